package path

import (
	"errors"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
)

// deviceSlot is a slot in the memory of a device. Copies go cut by cut through the worker's lane, so that work that a caller waits for gets its turn.
type deviceSlot struct {
	p    *Path
	a    *devicememory.Memory
	lane device.Lane // nil: the memory's own lane is used
	at   int64       // offset of the slot
	sums []uint64    // checksums of the regions that were gathered
	all  []uint64    // hashes of their leaves
	bad  []int32     // regions whose bytes are not those captured
}

func (s *deviceSlot) prepare() error { return nil }
func (s *deviceSlot) close()         {}

func (s *deviceSlot) report(r *Result) {
	r.Bad = s.bad
	if s.sums != nil {
		r.Sums, r.Leaves = s.sums, s.all
	}
}

func (s *deviceSlot) Bytes() []byte { return nil }

// Read copies bytes of the slot to host memory. Without a lane of the worker it waits for a copy in one piece.
func (s *deviceSlot) Read(at int64, to []byte, arrived func(at, n int64)) error {
	read := s.flush
	if s.lane == nil {
		read = s.readAtOnce
	}
	if err := read(at, to); err != nil {
		return err
	}
	arrived(0, int64(len(to)))
	return nil
}

func (s *deviceSlot) readAtOnce(at int64, to []byte) error { return s.a.Read(to, s.at+at) }

// flush copies behind the checksums that the device computed with the capture. The time waiting for the capture does not count as the link's.
func (s *deviceSlot) flush(at int64, to []byte) error {
	x, b, end := s.p.x, s.p.version, int64(len(to))
	s.p.awaitPinned(at + min(s.cut(), end)) // first: from pending.Begin on, restores may have to wait for this goroutine
	t := pending.Begin(s.p.c, s.a, b)
	if err := t.AwaitCopy(); err != nil {
		return err
	}
	x.Begun(s.p.c.Now())
	s.p.began = time.Now()
	if err := t.QueueChecksums(s.lane); err != nil { // in the flush's own lane: a separate one would make the link switch over and back
		return err
	}
	last, err := s.a.CopyInCuts(end, s.cut, func(from, n int64) (device.Event, error) {
		if b.Gone.Load() {
			return nil, engine.ErrStopped
		}
		if from > 0 { // while the first cut is being copied, so that the link is not idle
			if err := t.AwaitChecksums(); err != nil {
				return nil, err
			}
			x.Rested(s.p.awaitPinned(at + from + n))
		}
		there := s.at + at + from
		return s.a.QueueRead(s.lane, devicememory.Flushes, there, n, func() error {
			return s.lane.Copy(device.AddressOf(to[from:]), s.a.Address(there), n)
		})
	})
	return s.a.Finish(last, errors.Join(err, t.AwaitChecksums()))
}

func (s *deviceSlot) cut() int64 { return s.p.c.Set.Cut }

// Write copies a slot of host memory to the device, and the device verifies it. Restores may use the copy as soon as all of this is queued, because their
// callers' streams then wait for it. A verification error that comes later is reported as a deferred one.
func (s *deviceSlot) Write(at int64, p []byte) error {
	last, err := s.a.CopyInCuts(s.p.version.Layout.End()-at, s.loadCut, func(from, n int64) (device.Event, error) {
		there := s.at + at + from
		return s.a.QueueWrite(s.lane, devicememory.Loads, there, n, func() error {
			return s.lane.Copy(s.a.Address(there), device.AddressOf(p[from:]), n)
		})
	})
	if err != nil {
		return s.a.Finish(last, err)
	}
	return s.verify(last)
}

// orIdle waits, after an error, until no work uses the slot: the source of the copy must stay until the copy has ended.
func (s *deviceSlot) orIdle(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, s.a.AwaitRange(s.at, s.p.x.Rec.Size))
}

// loadCut returns how many bytes of a load are queued next: all that are left once a restore waits for them.
func (s *deviceSlot) loadCut() int64 {
	c, x := s.p.c, s.p.x
	c.Lock()
	defer c.Unlock()
	if x.Urgent || c.Engine.Awaited(x.Rec) {
		return max(x.Rec.Size, 1)
	}
	return c.Set.Cut
}

// queued lets restores use a load whose copies are queued, unless the previous load of the record was wrong.
func (s *deviceSlot) queued() {
	c, x := s.p.c, s.p.x
	c.Lock()
	defer c.Leave()
	if c.Findings.Suspect(x.Rec) == nil {
		c.Engine.Queued(c.Now(), x)
	}
}

// Gather fills the slot from a caller's regions by one kernel, which also computes the checksums. It runs when no other tier has room.
func (s *deviceSlot) Gather(src *borrow.Source, spans []model.Span) error {
	size := s.p.x.Rec.Size
	if err := s.a.AwaitRange(s.at, size); err != nil { // before the source is held: other streams may read the slot for long
		return explain(err)
	}
	return explain(src.During(func() error {
		var sums device.Sums
		m, err := s.a.QueueWrite(s.lane, devicememory.Checks, s.at, size, func() (err error) {
			if sums, err = devicememory.Gather(s.lane, s.a.Address(s.at), spans, src.Regions, s.p.c.Set.Checksum); sums != nil {
				err = sums.Fetch(s.lane)
			}
			return err
		})
		waited := s.a.Finish(m, nil)
		switch {
		case sums == nil || m == nil || waited != nil: // otherwise the copy of the checksums has ended
		case err == nil:
			s.all = sums.Leaves()
			s.sums = sums.Take()
		default:
			sums.Discard()
		}
		return errors.Join(err, waited)
	}))
}
