package dedup

import (
	"cmp"
	"slices"
	"sort"

	"velocpy/gocore/reduction/record"
)

// reserve makes room for so many bytes of first occurrences.
func (w *work) reserve(bytes int) {
	w.length, w.begins = 0, w.begins[:0]
	if !w.lineage.options.Apart {
		w.data = make([]byte, 0, bytes)
	}
}

// store makes bytes the next first occurrence.
func (w *work) store(now []byte) {
	w.length += uint64(len(now))
	if !w.lineage.options.Apart {
		w.data = append(w.data, now...)
	}
}

// own returns n bytes of this checkpoint's first occurrences, which begin with a chunk and lie together in a region.
func (w *work) own(place record.Place, n int) []byte {
	if !w.lineage.options.Apart {
		return w.data[place.Offset:][:n]
	}
	p := &w.parts[sort.Search(len(w.begins), func(i int) bool { return w.begins[i] > place.Offset })-1]
	at, _ := slices.BinarySearchFunc(p.firsts, place.Offset, func(f first, offset uint64) int { return cmp.Compare(f.offset, offset) })
	return p.bytes[p.firsts[at].index*p.chunk:][:n]
}
