package path

import (
	"errors"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/slots"
)

// OwnCopyBytes is the smallest region that gets a copy command of its own. Smaller regions are gathered by one kernel.
const OwnCopyBytes = 256 << 10

// deviceRegions are a caller's regions of which some lie on a device. The device computes the checksums of regions whose bytes lie together from the
// source, so that they also verify the copy over the link.
type deviceRegions struct {
	hostRegions
	a      *devicememory.Memory
	lane   device.Lane // the worker's own; nil: the memory's own lane is used
	spans  []model.Span
	await  func(end int64) int64 // waits for pinned memory below the sink
	hashed bool                  // the device has computed its checksums
}

func (d *deviceRegions) runner() devicememory.Runner {
	if d.lane == nil {
		return d.a.RunSync
	}
	return d.a.OnLane(d.lane)
}

// prepare waits for the work that fills the regions: on the device if the copies follow in a lane, otherwise here.
func (d *deviceRegions) prepare() error {
	ready := d.src.Filled()
	if ready == nil {
		return nil
	}
	if d.lane == nil {
		return d.a.Wait(ready)
	}
	defer ready.Drop()
	return explain(d.runner()(func(lane device.Lane) error { return lane.After(ready) }))
}

// Read fills the whole slot by copies and one kernel; parts of a slot come through the bounce buffer.
func (d *deviceRegions) Read(at int64, to []byte, arrived func(at, n int64)) error {
	if at > 0 || int64(len(to)) < d.end || d.lane == nil {
		if err := d.hashThere(); err != nil {
			return explain(err)
		}
		return explain(d.readPart(at, to, arrived, d.copyPart))
	}
	d.await(min(d.end, host.WatermarkReach))
	if err := d.readAll(to); err != nil {
		return explain(err)
	}
	arrived(0, int64(len(to)))
	return nil
}

// explain explains an error of a device, unless the caller has taken its memory back.
func explain(err error) error {
	if errors.Is(err, borrow.ErrAbandoned) {
		return err
	}
	return devicememory.Explain(err)
}

// together tells whether a region's bytes lie together in the device's memory.
func together(r *model.Region) bool { return r.Place > 0 && r.Bytes > 0 && r.Mem.Contiguous() }

// hashThere computes the checksums of the regions that the device can hash where they lie.
func (d *deviceRegions) hashThere() error {
	if d.hashed || !d.c.Set.Checksum {
		return nil
	}
	d.sums, d.hashed = sumsOf(d.src.Regions), true
	there := d.numbers(together)
	if len(there) == 0 {
		return nil
	}
	var sums device.Sums
	err := d.src.During(func() error {
		return d.runner()(func(lane device.Lane) (err error) {
			sums, err = lane.Hash(inPlace(d.src.Regions, there))
			return err
		})
	})
	if err == nil {
		d.take(there, sums)
	}
	return err
}

// take takes over the checksums of regions that the device has computed, and the hashes of their leaves.
func (d *deviceRegions) take(there []int32, sums device.Sums) {
	leaves := sums.Leaves()
	put(d.sums, there, sums.Take())
	for _, i := range there {
		if n := checksum.Leaves(d.src.Regions[i].Bytes); n > 1 && n <= len(leaves) {
			d.keepLeaves(int(i), leaves[:n])
			leaves = leaves[n:]
		}
	}
}

func (d *deviceRegions) numbers(which func(*model.Region) bool) (some []int32) {
	for i := range d.src.Regions {
		if which(&d.src.Regions[i]) {
			some = append(some, int32(i))
		}
	}
	return some
}

// copyPart copies a part of a region through the bounce buffer.
func (d *deviceRegions) copyPart(i int, offset int64, to []byte) error {
	switch r := &d.src.Regions[i]; {
	case r.Place == 0 || r.Bytes == 0:
		return d.hostRegions.copyPart(i, offset, to)
	case r.Mem.Contiguous():
		part := regionAt(r, offset, int64(len(to)))
		return d.fetch(&part, to)
	default:
		return d.copyGathered(i, offset, to, func(all []byte) error { return d.fetch(r, all) })
	}
}

func (d *deviceRegions) fetch(r *model.Region, to []byte) error {
	return d.a.Fetch(d.src, r, func(part []byte) error {
		to = to[copy(to, part):]
		return nil
	})
}

// readAll fills a slot: large regions cut by cut, as flushes are copied, and the others by a kernel, if the device can access the slot.
func (d *deviceRegions) readAll(slot []byte) error {
	reaches := slots.Reaches(d.c, slot)
	alone := func(r *model.Region) bool { return together(r) && (r.Bytes >= OwnCopyBytes || !reaches) }
	var sums device.Sums
	there := d.numbers(together)
	err := d.src.During(func() error {
		last, err := d.copyCuts(slot, d.numbers(alone))
		if err == nil && len(there) > 0 && d.c.Set.Checksum {
			err = d.runner()(func(lane device.Lane) (err error) {
				sums, err = lane.Hash(inPlace(d.src.Regions, there))
				return err
			})
		}
		return d.a.Finish(last, err)
	})
	if err != nil {
		return err
	}
	rest := d.numbers(func(r *model.Region) bool { return !alone(r) })
	if err := slots.GatherToHost(d.c, d.a, d.runner(), d.src, slot, d.spans, rest); err != nil || !d.c.Set.Checksum {
		if sums != nil {
			sums.Discard()
		}
		return err
	}
	d.sums = make([]uint64, len(d.spans))
	if sums != nil {
		d.take(there, sums)
	}
	return d.hashHere(slot)
}

// hashHere computes the checksums of the regions that the device did not hash, from the slot. It does not touch the slot any more when the caller has
// taken the memory back.
func (d *deviceRegions) hashHere(slot []byte) error {
	here := d.numbers(func(r *model.Region) bool { return !together(r) })
	job := slots.VerifyJob(d.c, slot, slots.Selected(d.spans, here))
	defer job.Free()
	if err := d.src.Run(job); err != nil {
		return err
	}
	put(d.sums, here, job.Sums())
	for j, i := range here {
		d.keepLeaves(int(i), job.Leaves(j))
	}
	return nil
}

// copyCuts queues the copies of regions in the worker's lane, cut by cut, and returns the event behind the last copy. After an error none of the copies is
// in progress. The caller's taking back the source is such an error.
func (d *deviceRegions) copyCuts(slot []byte, which []int32) (device.Event, error) {
	if len(which) == 0 {
		return nil, nil
	}
	last := d.spans[which[len(which)-1]]
	return d.a.CopyInCuts(last.Offset+last.Bytes, func() int64 { return d.c.Set.Cut }, func(from, n int64) (device.Event, error) {
		if d.src.Abandoned() {
			return nil, borrow.ErrAbandoned
		}
		var all []device.Move
		for _, i := range which {
			at, end := max(d.spans[i].Offset, from), min(d.spans[i].Offset+d.spans[i].Bytes, from+n)
			if at < end {
				base := device.Address(d.src.Regions[i].Mem.Base) + device.Address(at-d.spans[i].Offset)
				all = append(all, device.Move{To: device.AddressOf(slot[at:end]), From: base, Bytes: end - at})
			}
		}
		return devicememory.EventBehind(d.lane, copyAll(d.lane, all, slots.Reaches(d.c, slot)))
	})
}

// copyAll queues copies to a slot, one by one if it is not pinned.
func copyAll(lane device.Lane, all []device.Move, pinned bool) (err error) {
	if pinned {
		return lane.CopyAll(all)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = lane.Copy(all[i].To, all[i].From, all[i].Bytes)
	}
	return err
}

// inPlace returns regions at their own addresses, for checksums.
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
