package object

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

// piece is bytes of one container that are wanted in one region: n of them, from an offset in the container's plain bytes on.
type piece struct {
	object    int32 // index in heads
	container int32 // index in the object
	region    int32 // of the checkpoint
	stride    uint32
	from, n   int64
	to        int64 // in the slot
	end       int64 // where the last copy ends: the bytes are copied to to, to + stride and so on, cut at end. Without a stride it is to + n
}

// places are where the containers of an object lie.
type places struct {
	firsts []model.Span
	part   int64   // plain bytes of each container but a region's last one
	begins []int   // index of the first container of each region
	at     []int64 // of each container in the object, and where the last one ends

	plainMost, encodedMost int64 // bound the plain bytes of a container, and its encoded ones
}

func newPlaces(h *head) *places {
	p := &places{firsts: h.firsts, part: h.encoding.Part, begins: make([]int, len(h.firsts)), at: make([]int64, len(h.encoding.Lengths)+1)}
	next := 0
	for i, s := range h.firsts {
		p.begins[i] = next
		next += int(model.Containers(s.Bytes, p.part))
		p.plainMost = max(p.plainMost, min(s.Bytes, p.part))
	}
	for i, n := range h.encoding.Lengths {
		p.at[i+1] = p.at[i] + int64(n)
		p.encodedMost = max(p.encodedMost, int64(n))
	}
	return p
}

// find returns the container that has a first occurrence, which exists: its index, the offset in its plain bytes, and how many of these there are.
func (p *places) find(offset int64) (container int, from, plain int64) {
	i := sort.Search(len(p.firsts), func(i int) bool { return p.firsts[i].End() > offset })
	from = offset - p.firsts[i].Offset
	n := from / p.part
	before := n * p.part
	return p.begins[i] + int(n), from - before, min(p.part, p.firsts[i].Bytes-before)
}

// plan finds the pieces of parts of the slot, which ascend and lie in the regions. They are ordered by container, then by place in the slot.
func (r *Reader) plan(wanted []model.Span) ([]piece, error) {
	var list []piece
	region, end := 0, int64(0)
	for _, w := range wanted {
		if w.Bytes < 0 || w.Offset < end {
			return nil, fmt.Errorf("%w: bytes from %d on", ErrWanted, w.Offset)
		}
		if end = w.End(); w.Bytes == 0 {
			continue
		}
		for region < len(r.spans) && r.spans[region].End() <= w.Offset {
			region++
		}
		if region == len(r.spans) || w.Offset < r.spans[region].Offset || end > r.spans[region].End() {
			return nil, fmt.Errorf("%w: bytes from %d to %d", ErrWanted, w.Offset, end)
		}
		list = r.addPieces(list, region, w.Offset-r.spans[region].Offset, w.Bytes, r.spans[region].Offset)
	}
	sortPieces(list)
	return list, nil
}

func sortPieces(list []piece) { slices.SortFunc(list, comparePieces) }

func comparePieces(a, b piece) int {
	if a.object != b.object {
		return cmp.Compare(a.object, b.object)
	}
	if a.container != b.container {
		return cmp.Compare(a.container, b.container)
	}
	return cmp.Compare(a.to, b.to)
}

// addPieces adds the pieces of a part of a region. Its bytes from 0 on would go to base.
func (r *Reader) addPieces(list []piece, region int, from, n, base int64) []piece {
	r.locations.Regions[region].Each(uint64(from), uint64(from+n), func(run difference.Run, bytes uint64) bool {
		object, _ := r.index(run.Checkpoint) // checkRuns has looked
		source, to, end := int64(bytes), base+int64(run.At), base+int64(run.At+bytes)
		if run.Period > 0 {
			source = min(source, int64(run.Period))
		}
		for done := int64(0); done < source; {
			container, at, plain := r.places[object].find(int64(run.Offset) + done)
			p := piece{object: int32(object), container: int32(container), region: int32(region), from: at, n: min(plain-at, source-done), to: to + done}
			p.end = p.to + p.n
			if run.Period > 0 && source < int64(bytes) {
				p.stride, p.end = run.Period, end
			}
			list = append(list, p)
			done += p.n
		}
		return true
	})
	return list
}

// copyTo copies the piece from the container's plain bytes to all of its places, and tells of each.
func (p *piece) copyTo(slot, plain []byte, arrived func(at, n int64)) {
	source := plain[p.from:][:p.n]
	switch {
	case p.stride == 0:
		copy(slot[p.to:], source)
	case int64(p.stride) == p.n: // the copies are neighbours
		to := slot[p.to:p.end]
		for done := copy(to, source); done < len(to); done *= 2 {
			copy(to[done:], to[:done])
		}
	default:
		for at := p.to; at < p.end; at += int64(p.stride) {
			arrived(at, int64(copy(slot[at:min(at+p.n, p.end)], source)))
		}
		return
	}
	arrived(p.to, p.end-p.to)
}

// plain is the number of plain bytes of a container.
func (p *places) plain(container int) int64 {
	i, before := p.region(container)
	return min(p.part, p.firsts[i].Bytes-before)
}

// offset is that of the container's plain bytes in the first occurrences.
func (p *places) offset(container int) int64 {
	i, before := p.region(container)
	return p.firsts[i].Offset + before
}

// region returns the region of a container, and how many bytes of its first occurrences the containers before have.
func (p *places) region(container int) (i int, before int64) {
	i = sort.Search(len(p.begins), func(i int) bool { return p.begins[i] > container }) - 1
	return i, int64(container-p.begins[i]) * p.part
}
