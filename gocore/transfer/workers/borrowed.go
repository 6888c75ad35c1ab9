package workers

import (
	"errors"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// A checkpoint with a borrowed source (copy=False) goes from the caller's arrays on a device directly to the host tier, or to the device tier when no other has room. Contiguous regions are copied
// as flushes are, cut by cut in the worker's own lane. The other regions take a kernel, as those of checkpoints do that are too large for the device
// tier. The device computes the checksums from the source, so that they also verify the copy over the link.

// OwnCopyBytes is the smallest region that gets a copy command of its own. Smaller regions are gathered by one kernel.
const OwnCopyBytes = 256 << 10

// borrowedParts divides the regions of such a checkpoint, by index.
type borrowedParts struct {
	cuts, rest   []int32 // each region is in one of these: copied in cuts, or gathered
	there, after []int32 // … and in one of these: hashed on the device before, or in the slot after the copy
}

func (s *Workers) splitBorrowed(slot []byte, regions []model.Region) (by borrowedParts) {
	reaches := slots.Reaches(s.Cache, slot)
	for i := range regions {
		r, n := &regions[i], int32(i)
		together := r.Place > 0 && r.Bytes > 0 && r.Mem.Contiguous()
		if together && (r.Bytes >= OwnCopyBytes || !reaches) {
			by.cuts = append(by.cuts, n)
		} else {
			by.rest = append(by.rest, n)
		}
		if together {
			by.there = append(by.there, n)
		} else {
			by.after = append(by.after, n)
		}
	}
	return by
}

// moveBorrowed carries out a transfer from a borrowed source on a device.
func (s *Workers) moveBorrowed(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, b *checkpoint.Version) *moved {
	src := pending.Of(b).Source
	var err error
	if ready := src.Filled(); ready != nil {
		err = a.OnLane(lane)(func(lane device.Lane) error { return lane.After(ready) })
		ready.Drop()
	}
	var sums []uint64
	switch {
	case err != nil:
	case x.To == a.Tier:
		sums, err = s.borrowToDevice(a, lane, x, src, b.Layout.Spans)
	default:
		s.Host.Watermark().Await(x.ToOff + min(x.Rec.Size, host.WatermarkReach))
		sums, err = s.borrowToHost(a, lane, s.Host.Bytes(x.ToOff, x.Rec.Size), src, b.Layout.Spans)
	}
	if !errors.Is(err, borrow.ErrAbandoned) {
		err = devicememory.Explain(err)
	}
	return &moved{sums: sums, err: err}
}

// borrowToHost fills a slot of the host tier and returns its checksums.
func (s *Workers) borrowToHost(a *devicememory.Memory, lane device.Lane, slot []byte, src *borrow.Source, spans []model.Span) ([]uint64, error) {
	by := s.splitBorrowed(slot, src.Regions)
	if !s.Set.Checksum {
		by.there, by.after = nil, nil
	}
	var there device.Sums
	err := src.During(func() error {
		last, err := s.copyCuts(a, lane, slot, src, spans, by.cuts)
		if err == nil && len(by.there) > 0 {
			err = a.OnLane(lane)(func(lane device.Lane) (err error) {
				there, err = lane.Hash(inPlace(src.Regions, by.there))
				return err
			})
		}
		return a.Finish(last, err)
	})
	if err != nil {
		return nil, err
	}
	if err := slots.GatherToHost(s.Cache, a, a.OnLane(lane), src, slot, spans, by.rest); err != nil || !s.Set.Checksum {
		if there != nil {
			there.Discard()
		}
		return nil, err
	}
	sums := make([]uint64, len(spans))
	if there != nil {
		put(sums, by.there, there.Take())
	}
	job := slots.VerifyJob(s.Cache, slot, slots.Selected(spans, by.after))
	defer job.Free()
	job.Run(0)
	put(sums, by.after, job.Sums())
	return sums, nil
}

// borrowToDevice fills a slot on the device and returns its checksums. It runs when no other tier has room.
func (s *Workers) borrowToDevice(a *devicememory.Memory, lane device.Lane, x *engine.Transfer, src *borrow.Source, spans []model.Span) (all []uint64, err error) {
	if err := a.AwaitRange(x.ToOff, x.Rec.Size); err != nil { // before the source is held: other streams may read the slot for long
		return nil, err
	}
	err = src.During(func() error {
		var sums device.Sums
		m, err := a.QueueWrite(lane, devicememory.Checks, x.ToOff, x.Rec.Size, func() (err error) {
			if sums, err = devicememory.Gather(lane, a.Address(x.ToOff), spans, src.Regions, s.Set.Checksum); sums != nil {
				err = sums.Fetch(lane)
			}
			return err
		})
		waited := a.Finish(m, nil)
		switch {
		case sums == nil || m == nil || waited != nil: // otherwise the copy of the checksums has ended
		case err == nil:
			all = sums.Take()
		default:
			sums.Discard()
		}
		return errors.Join(err, waited)
	})
	return all, err
}

// copyCuts queues the copies of contiguous regions in a lane, cut by cut, and returns the event behind the last copy. After an error none of the
// copies is in progress. The caller's taking back the source is such an error.
func (s *Workers) copyCuts(a *devicememory.Memory, lane device.Lane, slot []byte, src *borrow.Source, spans []model.Span, which []int32) (device.Event, error) {
	if len(which) == 0 {
		return nil, nil
	}
	last := spans[which[len(which)-1]]
	return a.CopyInCuts(last.Offset+last.Bytes, s.oneCut, func(from, n int64) (device.Event, error) {
		if src.Abandoned() {
			return nil, borrow.ErrAbandoned
		}
		var failed error
		for _, i := range which {
			at, end := max(spans[i].Offset, from), min(spans[i].Offset+spans[i].Bytes, from+n)
			if at < end && failed == nil {
				failed = lane.Copy(device.AddressOf(slot[at:end]), device.Address(src.Regions[i].Mem.Base)+device.Address(at-spans[i].Offset), end-at)
			}
		}
		return devicememory.EventBehind(lane, failed)
	})
}

// inPlace returns the regions at their own addresses, for checksums.
func inPlace(regions []model.Region, which []int32) []device.Piece {
	all := make([]device.Piece, len(which))
	for j, i := range which {
		all[j] = device.Piece{Slot: device.Address(regions[i].Mem.Base), Bytes: regions[i].Bytes}
	}
	return all
}

func put(all []uint64, which []int32, some []uint64) {
	for j, i := range which {
		all[i] = some[j]
	}
}
