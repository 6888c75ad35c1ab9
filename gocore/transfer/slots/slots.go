// Package slots copies between the slots of checkpoints in host memory and the regions of callers, in host memory or on a device.
package slots

import (
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// Reaches tells whether the kernels of every device can access bytes of the host tier.
func Reaches(c *cache.Cache, slot []byte) bool {
	return c.Host != nil && c.Host.Reaches(slot)
}

// GatherToHost copies the given regions to a slot of the host tier. If the device can access the slot, large regions whose bytes lie together are copied one by
// one, and all others by one kernel. Otherwise it uses bounce buffers.
func GatherToHost(c *cache.Cache, a *devicememory.Memory, run devicememory.Runner, gate *borrow.Source, slot []byte, spans []model.Span, which []int32) error {
	if Reaches(c, slot) && len(which) > 0 {
		return gate.During(func() error {
			return run(func(lane device.Lane) error {
				_, err := lane.Gather(devicememory.Pieces(device.AddressOf(slot), spans, which, Selected(gate.Regions, which)), false)
				return err
			})
		})
	}
	for _, i := range which {
		r := &gate.Regions[i]
		to := slot[spans[i].Offset : spans[i].Offset+r.Bytes]
		if r.Place == 0 {
			if err := CopyHere(c, copier.Gather, gate, r, to); err != nil {
				return err
			}
			continue
		}
		err := a.Fetch(gate, r, func(part []byte) error {
			to = to[copy(to, part):]
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Selected returns some of a list, by their indices.
func Selected[T any](all []T, which []int32) []T {
	some := make([]T, len(which))
	for j, i := range which {
		some[j] = all[i]
	}
	return some
}

// ScatterFromHost copies host memory to destinations, some of which lie on a device. spans are those of the destinations' bytes, in their order.
func ScatterFromHost(c *cache.Cache, a *devicememory.Memory, gate *borrow.Source, slot []byte, spans []model.Span) error {
	for j := range spans {
		r := &gate.Regions[j]
		from := slot[spans[j].Offset : spans[j].Offset+r.Bytes]
		var err error
		if r.Place == 0 {
			err = CopyHere(c, copier.Scatter, gate, r, from)
		} else {
			err = a.Deliver(gate, r, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SendFromHost queues the copies from host memory that the device can access to destinations on the device, and carries out those to host memory. spans are
// those of the destinations' bytes, in their order.
func SendFromHost(c *cache.Cache, lane device.Lane, slot []byte, spans []model.Span, regions []model.Region) error {
	var there []device.Piece
	for j := range spans {
		r := &regions[j]
		from := slot[spans[j].Offset : spans[j].Offset+r.Bytes]
		var err error
		switch {
		case r.Bytes == 0:
		case r.Place == 0:
			err = CopyHere(c, copier.Scatter, &borrow.Source{}, r, from)
		case r.Mem.Contiguous():
			err = lane.Copy(device.Address(r.Mem.Base), device.AddressOf(from), r.Bytes)
		default:
			there = append(there, device.Piece{Slot: device.AddressOf(from), Bytes: r.Bytes, Mem: r.Mem})
		}
		if err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	return lane.Scatter(there)
}

// CopyHere copies between a region in host memory and a slot.
func CopyHere(c *cache.Cache, direction copier.Direction, gate *borrow.Source, r *model.Region, slot []byte) error {
	piece := copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot)), Bytes: r.Bytes, Mem: r.Mem}
	job := copier.NewJob(direction, []copier.Piece{piece}, copier.Options{Pool: c.Copiers})
	defer job.Free()
	return gate.Run(job)
}

// denseShare is the part (as a divisor) of a slot from which on all of its pages may become resident: huge pages are faster to fault in.
const denseShare = 2

// Beside maps memory beside the cache for a slot, of which so many bytes are read. Where these are few, only the pages that are read become resident.
func Beside(l *checkpoint.Layout, read int64) (*memory.Mapping, error) {
	bytes, maps := l.Slot, memory.Map
	if read < bytes/denseShare {
		maps = memory.MapSparse
	}
	m, err := maps("private restore", max(bytes, 1))
	if err != nil {
		return nil, status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(bytes))
	}
	return m, nil
}

// Slot returns the memory of r's copy in the host tier.
func Slot(c *cache.Cache, r *engine.Record, t int) []byte {
	f := c.Engine.Fragment(r, t)
	return c.Host.Bytes(f.Offset, f.Size)
}

// GatherJob returns the job that copies regions into a slot.
func GatherJob(c *cache.Cache, slot []byte, regions []model.Region) *copier.Job {
	var few [16]copier.Piece
	pieces := few[:0]
	for i := range regions {
		r := &regions[i]
		pieces = append(pieces, copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot[r.Offset:])), Bytes: r.Bytes, Mem: r.Mem})
	}
	return copier.NewJob(copier.Gather, pieces, copier.Options{Checksum: c.Set.Checksum, Pool: c.Copiers})
}

// KeepLeaves gives a version the hashes of its regions' leaves, which a job has computed: restores of parts of regions verify by them.
func KeepLeaves(b *checkpoint.Version, job *copier.Job) {
	var all []uint64
	for i, span := range b.Layout.Spans {
		if span.Bytes > checksum.LeafBytes {
			all = append(all, job.Leaves(i)...)
		}
	}
	b.KeepLeaves(all)
}

// VerifyJob returns the job that computes the checksums of a slot's regions.
func VerifyJob(c *cache.Cache, slot []byte, spans []model.Span) *copier.Job {
	all := make([]copier.Piece, len(spans))
	for i, span := range spans {
		all[i] = copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(slot[span.Offset:])), Bytes: span.Bytes}
	}
	return copier.NewJob(copier.Verify, all, copier.Options{Checksum: c.Set.Checksum, Pool: c.Copiers})
}

// Bring copies spans of a slot to host memory.
func Bring(c *cache.Cache, a *devicememory.Memory, gate *borrow.Source, to []byte, at int64, spans []model.Span) error {
	for _, span := range spans {
		for from, end := span.Offset, span.Offset+span.Bytes; from < end; from += c.Set.Cut {
			n := min(c.Set.Cut, end-from)
			if err := gate.During(func() error { return a.Read(to[from:from+n], at+from) }); err != nil {
				return err
			}
		}
	}
	return nil
}
