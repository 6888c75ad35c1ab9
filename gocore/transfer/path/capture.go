package path

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/slots"
)

// Sums are the checksums of a slot's regions, and the hashes of the leaves of those with more than one.
type Sums struct{ Regions, Leaves []uint64 }

// CaptureToHost copies a caller's regions, some of which lie on a device, into a slot of host memory. If the device can access the slot, it also computes the
// checksums of the regions whose bytes lie together in its memory: it reads them faster than the link does, and than processors read the slot. The result
// is nil where the caller has to compute the checksums of all regions from the slot.
func CaptureToHost(c *cache.Cache, a *devicememory.Memory, src *borrow.Source, slot []byte, spans []model.Span) (*Sums, error) {
	d := &deviceRegions{hostRegions: hostRegions{c: c, src: src}, a: a, spans: spans}
	if !slots.Reaches(c, slot) {
		return nil, slots.GatherToHost(c, a, a.RunSync, src, slot, spans, d.numbers(func(*model.Region) bool { return true }))
	}
	return d.capture(slot, func(lane device.Lane, which []int32) error {
		_, err := lane.Gather(devicememory.Pieces(device.AddressOf(slot), spans, which, slots.Selected(src.Regions, which)), false)
		return err
	})
}

// capture has the device copy the regions in two lanes, by gather, and hash them. While one lane hashes, or begins a copy, the other one copies, so the link is not idle; and while
// they copy the host takes the checksums over.
func (d *deviceRegions) capture(slot []byte, gather func(lane device.Lane, which []int32) error) (*Sums, error) {
	var there []int32
	if d.c.Set.Checksum {
		there = d.numbers(together)
	}
	first, second := d.halves()
	var sums device.Sums
	var hashed device.Event
	err := d.src.During(func() error {
		return d.a.RunInTwo(func(one, other device.Lane) (err error) {
			if len(there) > 0 {
				sums, err = other.Hash(inPlace(d.src.Regions, there))
				if hashed, err = devicememory.EventBehind(other, err); err != nil {
					return err
				}
			}
			if err = gather(one, first); err == nil && len(second) > 0 { // the other lane hashes first
				err = gather(other, second)
			}
			return err
		}, func() error { return d.takeHashed(there, sums, hashed) })
	})
	if d.sums == nil || err != nil {
		return nil, err
	}
	if err := d.hashHere(slot); err != nil {
		return nil, err
	}
	return &Sums{Regions: d.sums, Leaves: d.allLeaves()}, nil
}

// takeHashed waits for checksums and takes them over. Without an event, or if the wait fails, their memory stays taken: kernels may still write to it.
func (d *deviceRegions) takeHashed(there []int32, sums device.Sums, hashed device.Event) error {
	if hashed == nil {
		return nil
	}
	err := d.a.Wait(hashed)
	if err == nil && sums != nil {
		d.sums = make([]uint64, len(d.spans))
		d.take(there, sums)
	}
	return err
}

// halves shares the regions out among two lanes by their bytes. Small ones, which one kernel copies, and those that no copy command brings all go to the first.
func (d *deviceRegions) halves() (first, second []int32) {
	ahead := int64(0) // bytes that the first has more than the second
	for i := range d.src.Regions {
		r := &d.src.Regions[i]
		if together(r) && r.Bytes >= OwnCopyBytes && ahead > 0 {
			second, ahead = append(second, int32(i)), ahead-r.Bytes
			continue
		}
		first, ahead = append(first, int32(i)), ahead+r.Bytes
	}
	return first, second
}
