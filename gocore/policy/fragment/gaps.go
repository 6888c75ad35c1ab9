package fragment

import "math/bits"

// Gaps are found through segregated lists: one list for each eighth of a power of two, with a bit map of the non-empty lists. So a gap that fits is
// found without walking the table, however many fragments there are.
const (
	subBits  = 3
	nBins    = 64 << subBits
	probes   = 8 // gaps of the request's own list that are tried before a surely larger one is taken
	mapWords = nBins / 64
)

type bins struct {
	head [nBins]ID
	full [mapWords]uint64
}

// links are a gap's neighbours in its list. They are stored in its row as ETA, which a gap does not use.
func (f *Fragment[O]) links() (next, prev ID) { return ID(f.ETA), ID(f.ETA >> 32) }

func (f *Fragment[O]) link(next, prev ID) { f.ETA = int64(prev)<<32 | int64(uint32(next)) }

func (b *bins) reset() {
	for i := range b.head {
		b.head[i] = None
	}
}

// binOf is the list for gaps of this size; the lower bounds of the lists grow with their index.
func binOf(size int64) int {
	if size < 1<<subBits {
		return int(size)
	}
	top := bits.Len64(uint64(size)) - 1
	return (top-subBits+1)<<subBits + int(size>>(top-subBits))&(1<<subBits-1)
}

// binFrom is the lower bound of a list.
func binFrom(i int) int64 {
	if i < 1<<subBits {
		return int64(i)
	}
	return int64(1<<subBits|i&(1<<subBits-1)) << (i>>subBits - 1)
}

func (t *Table[O]) binIn(id ID) {
	b := &t.gaps
	f := &t.rows[id]
	i := binOf(f.Size)
	next := b.head[i]
	f.link(next, None)
	if next != None {
		n := &t.rows[next]
		behind, _ := n.links()
		n.link(behind, id)
	}
	b.head[i] = id
	b.full[i/64] |= 1 << (i % 64)
}

func (t *Table[O]) binOut(id ID) {
	b := &t.gaps
	f := &t.rows[id]
	next, prev := f.links()
	if next != None {
		n := &t.rows[next]
		behind, _ := n.links()
		n.link(behind, prev)
	}
	if prev != None {
		p := &t.rows[prev]
		_, before := p.links()
		p.link(next, before)
		return
	}
	i := binOf(f.Size)
	b.head[i] = next
	if next == None {
		b.full[i/64] &^= 1 << (i % 64)
	}
}

// findGap returns a gap with room for size aligned bytes, or None. It tries a few gaps near the request's own size. Beyond, any gap fits whose list
// has a lower bound that covers the worst padding.
func (t *Table[O]) findGap(size, align int64) ID {
	for i := binOf(size); i >= 0; i = t.nextBin(i + 1) {
		id := t.gaps.head[i]
		for n := 0; id != None && n < probes; n++ {
			if t.fits(id, size, align) {
				return id
			}
			id, _ = t.rows[id].links()
		}
	}
	return None
}

func (t *Table[O]) fits(id ID, size, align int64) bool {
	f := &t.rows[id]
	return f.Size-Padding(f.Offset, align) >= size
}

func (t *Table[O]) nextBin(from int) int {
	for w := from / 64; w < mapWords; w++ {
		m := t.gaps.full[w]
		if w == from/64 {
			m &= ^uint64(0) << (from % 64)
		}
		if m != 0 {
			return w*64 + bits.TrailingZeros64(m)
		}
	}
	return -1
}

// counted is how many gaps of a list are examined to find the largest.
const counted = 64

// NoGapOver returns a size that no gap exceeds: that of the largest gap, except with very many gaps of about that size. O(1).
func (t *Table[O]) NoGapOver() (size int64) {
	i := t.lastBin()
	if i < 0 {
		return 0
	}
	id := t.gaps.head[i]
	for n := 0; id != None; n++ {
		if n == counted {
			return binFrom(i+1) - 1
		}
		size = max(size, t.rows[id].Size)
		id, _ = t.rows[id].links()
	}
	return size
}

func (t *Table[O]) lastBin() int {
	for w := mapWords - 1; w >= 0; w-- {
		if m := t.gaps.full[w]; m != 0 {
			return w*64 + bits.Len64(m) - 1
		}
	}
	return -1
}
