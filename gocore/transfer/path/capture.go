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
	return d.capture(slot, func(run devicememory.Runner) error {
		return slots.GatherToHost(c, a, run, src, slot, spans, d.numbers(func(*model.Region) bool { return true }))
	})
}

// capture has the device hash regions where gather lets it run work.
func (d *deviceRegions) capture(slot []byte, gather func(devicememory.Runner) error) (*Sums, error) {
	there := d.numbers(together)
	var sums device.Sums
	err := gather(func(work func(device.Lane) error) error {
		return d.a.RunSync(func(lane device.Lane) (err error) {
			if len(there) > 0 && d.c.Set.Checksum {
				if sums, err = lane.Hash(inPlace(d.src.Regions, there)); err != nil {
					return err
				}
			}
			return work(lane)
		})
	})
	switch {
	case sums == nil:
		return nil, err
	case err != nil:
		sums.Discard()
		return nil, err
	}
	d.sums = make([]uint64, len(d.spans))
	d.take(there, sums)
	if err := d.hashHere(slot); err != nil {
		return nil, err
	}
	return &Sums{Regions: d.sums, Leaves: d.allLeaves()}, nil
}
