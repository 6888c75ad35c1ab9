package store

import (
	"errors"
	"sync"

	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/device/hazard"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// accelerator is one device of the store: the memory of its tier, and the account of who still reads or writes there.
type accelerator struct {
	dev    device.Device
	arena  device.Arena
	tier   int // the engine's number
	extent extent

	mu      sync.Mutex // held while the account is asked or told, never while work is put into a lane
	hazards hazard.Tracker

	own     device.Lane // for what callers wait for: reads of leases, copies to host memory
	ownLane sync.Mutex

	windows sync.Mutex // held while the window is in use
	window  detour

	watchers sync.WaitGroup // goroutines that wait for marks
	waits    laneWaits
}

// at is the address of a place in the tier.
func (a *accelerator) at(offset int64) device.Address { return a.arena.Base() + device.Address(offset) }

// reading puts work into a lane that reads [from, from+size) of the tier, behind everybody who still writes there. The mark is behind the work
// and the caller's to drop, also when it comes with an error: then some of the work may have been queued all the same.
func (a *accelerator) reading(lane device.Lane, kind work, from, size int64, put func() error) (device.Mark, error) {
	a.mu.Lock()
	before := a.hazards.BeforeRead(nil, from, size)
	a.mu.Unlock()
	return a.behind(lane, kind, before, put, func(m device.Mark) { a.hazards.Read(from, size, m) })
}

// writing is the same for work that writes, behind everybody who still writes or reads there.
func (a *accelerator) writing(lane device.Lane, kind work, from, size int64, put func() error) (device.Mark, error) {
	a.mu.Lock()
	before := a.hazards.BeforeWrite(nil, from, size)
	a.mu.Unlock()
	return a.behind(lane, kind, before, put, func(m device.Mark) { a.hazards.Wrote(from, size, m) })
}

func (a *accelerator) behind(lane device.Lane, kind work, before []device.Mark, put func() error, note func(device.Mark)) (device.Mark, error) {
	failed := a.after(lane, before, kind)
	if failed == nil {
		failed = put()
	}
	m, failed := behindAll(lane, failed) // also when the work failed: some of it may have been queued
	if m == nil {
		a.unmarked(failed)
		return nil, deviceError(failed)
	}
	a.mu.Lock()
	note(&workMark{m, kind})
	a.mu.Unlock()
	return m, deviceError(failed)
}

// unmarked notes that there may be work of which nobody knows when it ends: from now on no memory is given back. A stream that is being captured
// takes no work either.
func (a *accelerator) unmarked(err error) {
	if !errors.Is(err, device.ErrRecording) {
		a.extent.fixed.Store(true)
	}
}

// after makes a lane wait for marks and drops them.
func after(lane device.Lane, marks []device.Mark) error {
	var failed error
	for _, m := range marks {
		failed = errors.Join(failed, lane.After(plain(m)))
		m.Drop()
	}
	return failed
}

// join is the lane of the first of the caller's streams, behind what is queued in the others.
func (a *accelerator) join(streams []uint64) (device.Lane, error) {
	if len(streams) == 0 {
		return a.dev.Borrow(0), nil
	}
	first := a.dev.Borrow(streams[0])
	for _, other := range streams[1:] {
		m, err := a.dev.Borrow(other).Mark()
		if err != nil {
			return nil, err
		}
		if err := after(first, []device.Mark{m}); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// rejoin makes the other streams of the caller wait for what was put into the lane of the first.
func (a *accelerator) rejoin(streams []uint64, m device.Mark) error {
	for _, other := range streams[min(1, len(streams)):] {
		if err := a.dev.Borrow(other).After(m); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for what reading or writing has queued, also when that is not all: who gets the error may use the memory again.
func (a *accelerator) finish(m device.Mark, err error) error {
	if m == nil {
		return err
	}
	return errors.Join(err, a.wait(m))
}

// wait blocks until a mark has passed and drops it.
func (a *accelerator) wait(m device.Mark) error {
	defer m.Drop()
	return deviceError(m.Wait())
}

// read copies bytes of the tier to host memory and waits for them.
func (a *accelerator) read(to []byte, from int64) error {
	if len(to) == 0 {
		return nil
	}
	a.ownLane.Lock()
	m, err := a.reading(a.own, reads, from, int64(len(to)), func() error { return a.own.Copy(device.AddressOf(to), a.at(from), int64(len(to))) })
	a.ownLane.Unlock()
	return a.finish(m, err)
}

// quiet waits until nobody reads or writes the tier any more.
func (a *accelerator) quiet() error {
	if a.arena == nil {
		return nil
	}
	return a.still(0, a.arena.Mapped())
}

// still waits until nobody who has been noted reads or writes a range of the tier any more.
func (a *accelerator) still(from, size int64) error {
	a.mu.Lock()
	marks := a.hazards.Quiet(nil, from, size)
	a.mu.Unlock()
	var failed error
	for _, m := range marks {
		failed = errors.Join(failed, m.Wait())
		m.Drop()
	}
	return failed
}

// free gives the device back. Nobody may use it any more.
func (a *accelerator) free() error {
	err := a.quiet()
	a.watchers.Wait()
	a.hazards.Close()
	a.waits.close()
	if a.own != nil {
		err = errors.Join(err, a.own.Close())
	}
	if a.arena != nil {
		err = errors.Join(err, a.arena.Free())
	}
	return errors.Join(err, a.dev.Close(), a.closeWindow())
}

// deviceError gives an error of a device its place; nil stays nil.
func deviceError(err error) error {
	return atTier(err, status.TierDevice, func(err error) *status.Error {
		switch {
		case errors.Is(err, device.ErrLost):
			return status.Wrap(status.DeviceLost, err, "the device is lost")
		case errors.Is(err, device.ErrRecording):
			return status.Wrap(status.Invalid, err, "a stream that is being captured into a graph takes no copies")
		case errors.Is(err, device.ErrUnavailable):
			return status.Wrap(status.Unavailable, err, "no device")
		case errors.Is(err, device.ErrMemory):
			return status.Wrap(status.TierFull, err, "the device's memory is full")
		}
		return status.Wrap(status.IO, err, "the device failed")
	})
}

// home is the device of a record; nil for one of host memory.
func (s *Store) home(r *engine.Record) *accelerator { return s.accelerator(r.Top()) }

// accelerator is the device of an engine's tier, or nil.
func (s *Store) accelerator(t int) *accelerator {
	if t >= 0 && t < len(s.accelerators) {
		return s.accelerators[t]
	}
	return nil
}

// placed is the device that regions lie on; nil when all lie in host memory. Those of one checkpoint lie on one.
func (s *Store) placed(regions []model.Region) (*accelerator, error) {
	var found *accelerator
	place := int32(0)
	for i := range regions {
		switch p := regions[i].Place; {
		case p == 0 || p == place:
		case place != 0:
			return nil, status.New(status.Invalid, "the regions of one call lie on the devices %d and %d; give each device a checkpoint of its own", place-1, p-1).AtRegion(i)
		default:
			if found = s.on(int(p - 1)); found == nil {
				return nil, status.New(status.Unavailable, "the array lies on device %d, for which the store has no budget: open it with device={%d: ...}", p-1, p-1).
					AtTier(status.TierDevice).AtRegion(i)
			}
			place = p
		}
	}
	return found, nil
}

// on is the store's device of this number, or nil.
func (s *Store) on(ordinal int) *accelerator {
	for _, a := range s.accelerators {
		if a.dev.Ordinal() == ordinal {
			return a
		}
	}
	return nil
}

// pieces are regions on their way into or out of a slot at base.
func pieces(base device.Address, spans []model.Span, want []int32, regions []model.Region) []device.Piece {
	return appendPieces(make([]device.Piece, 0, len(regions)), base, spans, want, regions)
}

// lists keeps those of captures: one of hundreds of regions is a large object for the garbage collector.
var lists = sync.Pool{New: func() any { return new([]device.Piece) }}

// gatherOn queues a capture of regions into the slot at base.
func gatherOn(lane device.Lane, base device.Address, spans []model.Span, regions []model.Region, sums bool) (device.Sums, error) {
	list := lists.Get().(*[]device.Piece)
	defer lists.Put(list)
	*list = appendPieces((*list)[:0], base, spans, nil, regions)
	defer clear(*list) // what it points to is the caller's
	return lane.Gather(*list, sums)
}

func appendPieces(all []device.Piece, base device.Address, spans []model.Span, want []int32, regions []model.Region) []device.Piece {
	for j := range regions {
		i := j
		if want != nil {
			i = int(want[j])
		}
		r := &regions[j]
		all = append(all, device.Piece{Slot: base + device.Address(spans[i].Offset), Bytes: r.Bytes, Mem: r.Mem, Host: r.Place == 0})
	}
	return all
}

// dense are the regions of a slot as they lie there: for checksums.
func dense(base device.Address, spans []model.Span) []device.Piece {
	all := make([]device.Piece, len(spans))
	for i, s := range spans {
		all[i] = device.Piece{Slot: base + device.Address(s.Offset), Bytes: s.Bytes, Mem: model.Strided{}}
	}
	return all
}
