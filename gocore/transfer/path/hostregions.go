package path

import (
	"errors"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/slots"
)

// hostRegions are a caller's regions in host memory. Every access is guarded, so that the caller can take the memory back.
type hostRegions struct {
	c    *cache.Cache
	src  *borrow.Source
	end  int64 // offset at which the last region ends in the slot
	sums []uint64
	kept [][]uint64 // hashes of the leaves of regions with more than one

	// Of reads part by part:
	next     int             // the first region that may reach behind the part read last
	hashes   []uint64        // of the leaves of region next so far
	gathered *memory.Mapping // the bytes of a region that do not lie together in the caller's memory
	which    int             // its number
}

func (h *hostRegions) prepare() error { return nil }

func (h *hostRegions) Bytes() []byte { return nil }

func (h *hostRegions) report(r *Result) {
	if r.Err == nil && h.sums != nil {
		r.Sums, r.Leaves = h.sums, h.allLeaves()
	}
}

// keepLeaves keeps the hashes of the leaves of a region, if it has more than one.
func (h *hostRegions) keepLeaves(i int, hashes []uint64) {
	if len(hashes) < 2 {
		return
	}
	if h.kept == nil {
		h.kept = make([][]uint64, len(h.src.Regions))
	}
	h.kept[i] = append([]uint64(nil), hashes...)
}

// allLeaves returns the hashes of the leaves of all regions with more than one, in order; nil if not all are known.
func (h *hostRegions) allLeaves() (all []uint64) {
	for i := range h.src.Regions {
		if h.src.Regions[i].Bytes <= checksum.LeafBytes {
			continue
		}
		if h.kept == nil || h.kept[i] == nil {
			return nil
		}
		all = append(all, h.kept[i]...)
	}
	return all
}

// Read copies the whole slot by one job, which hashes in the same pass. Parts of a slot are read in ascending order.
func (h *hostRegions) Read(at int64, to []byte, arrived func(at, n int64)) error {
	if at > 0 || int64(len(to)) < h.end {
		return h.readPart(at, to, arrived, h.copyPart)
	}
	job := slots.GatherJob(h.c, to, h.src.Regions)
	defer job.Free()
	if err := h.src.Run(job); err != nil {
		return err
	}
	if h.c.Set.Checksum {
		h.sums = append([]uint64(nil), job.Sums()...)
		for i := range h.src.Regions {
			h.keepLeaves(i, job.Leaves(i))
		}
	}
	arrived(0, int64(len(to)))
	return nil
}

// readPart calls copyPart for the part of every region that reaches into a part of the slot. offset is that of the part in its region.
func (h *hostRegions) readPart(at int64, to []byte, arrived func(at, n int64), copyPart func(i int, offset int64, to []byte) error) error {
	regions, end := h.src.Regions, at+int64(len(to))
	if h.sums == nil && h.c.Set.Checksum {
		h.sums = sumsOf(regions)
	}
	for ; h.next < len(regions) && regions[h.next].Offset < end; h.next++ {
		r := &regions[h.next]
		from, to := max(r.Offset, at), to[max(r.Offset, at)-at:min(r.Offset+r.Bytes, end)-at]
		if err := copyPart(h.next, from-r.Offset, to); err != nil {
			return err
		}
		if len(to) > 0 {
			arrived(from-at, int64(len(to)))
		}
		if r.Offset+r.Bytes > end {
			return nil // the next part continues with it
		}
		if len(h.hashes) > 0 {
			h.sums[h.next] = checksum.Combine(h.hashes)
			h.keepLeaves(h.next, h.hashes)
			h.hashes = h.hashes[:0]
		}
	}
	return nil
}

// sumsOf returns room for the checksums of regions. Those of empty regions, of which no byte is read, are filled in.
func sumsOf(regions []model.Region) []uint64 {
	sums := make([]uint64, len(regions))
	for i := range regions {
		if regions[i].Bytes == 0 {
			sums[i] = checksum.Sum(nil)
		}
	}
	return sums
}

// copyPart copies a part of a region, leaf by leaf. The copy that contains the first byte of a leaf also hashes the leaf.
func (h *hostRegions) copyPart(i int, offset int64, to []byte) error {
	r := &h.src.Regions[i]
	if len(r.Mem.Shape) == 0 {
		return h.copyLeaves(unsafe.Slice((*byte)(r.Mem.Base), r.Bytes), offset, to, h.src.Read)
	}
	return h.copyGathered(i, offset, to, func(all []byte) error { return slots.CopyHere(h.c, copier.Gather, h.src, r, all) })
}

// copyGathered copies a part of a region whose bytes do not lie together. gather brings all of them to memory beside the cache: parts of such a region
// are not leaves of its checksum.
func (h *hostRegions) copyGathered(i int, offset int64, to []byte, gather func(all []byte) error) error {
	bytes := h.src.Regions[i].Bytes
	if bytes == 0 {
		return nil
	}
	if h.gathered == nil || h.which != i {
		h.close()
		m, err := memory.Map("spill gather", bytes)
		if err != nil {
			return status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(bytes))
		}
		if err := gather(m.Bytes(0, bytes)); err != nil {
			return errors.Join(err, m.Unmap())
		}
		h.gathered, h.which = m, i
	}
	return h.copyLeaves(h.gathered.Bytes(0, bytes), offset, to, func(piece func()) error {
		piece()
		return nil
	})
}

// copyLeaves copies from the bytes of a region, and accesses them within access only.
func (h *hostRegions) copyLeaves(all []byte, offset int64, to []byte, access func(piece func()) error) error {
	for len(to) > 0 {
		within := offset % checksum.LeafBytes
		n := min(checksum.LeafBytes-within, int64(len(to)))
		err := access(func() {
			if within == 0 && h.sums != nil {
				h.hashes = append(h.hashes, checksum.Leaf(all[offset:min(offset+checksum.LeafBytes, int64(len(all)))]))
			}
			copy(to[:n], all[offset:])
		})
		if err != nil {
			return err
		}
		offset, to = offset+n, to[n:]
	}
	return nil
}

// close gives back the memory beside the cache.
func (h *hostRegions) close() {
	if h.gathered != nil {
		_ = h.gathered.Unmap() // mapped for this source; no other goroutine uses it
		h.gathered = nil
	}
}

// regionAt returns a part of a region whose bytes lie together.
func regionAt(r *model.Region, offset, bytes int64) model.Region {
	return model.Region{Place: r.Place, Bytes: bytes, Mem: model.Strided{Base: unsafe.Add(r.Mem.Base, offset)}}
}
