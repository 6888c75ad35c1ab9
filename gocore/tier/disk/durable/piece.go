package durable

import (
	"math"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// piece is the unit of work of a verifying goroutine: a range of leaves of a region. Of an encoded row, these are the leaves of whole containers.
type piece struct {
	row        *catalog.Row
	lies       run // of the space: the bytes on disk; of a difference, the room of its own object
	region     int
	from, end  int    // leaves
	first      int    // index in the row's Leaves of the region's first leaf
	container  int    // of an encoded row: index of the first one
	longest    uint32 // bytes of the longest container, or of the metadata of a difference
	read       bool
	unsuitable bool // checksum and leaf hashes of the region contradict each other
}

// pieceLeaves bounds the leaves of a piece, unless one container has more.
const pieceLeaves = 64 << 20 / checksum.LeafBytes

// cutter cuts a row into pieces. After the end of all data files, the rest of a region is one piece.
type cutter struct {
	row       *catalog.Row
	lies      run
	ends      int64 // of the space: no data file reaches beyond it
	read      bool
	region    int
	leaf      int
	first     int
	container int
	packed    int64 // bytes of the containers before that one
}

// takeSome appends the next pieces, as many as one window covers. Those of differences may cover little of it and much of their checkpoints, so their plain
// bytes count too: other goroutines are to get some.
func (c *Check) takeSome(to []piece) []piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	decoded := int64(0)
	for len(to) == 0 || c.ahead() < to[0].lies.from+windowBytes && len(to) < piecesAtOnce && decoded < pieceLeaves*checksum.LeafBytes {
		p, ok := c.take()
		if !ok {
			break
		}
		if to = append(to, p); p.row.Difference != nil {
			decoded += p.bytes(p.from, p.end)
		}
	}
	return to
}

// piecesAtOnce bounds the rows that are decoded at once.
const piecesAtOnce = 4096

// ahead estimates where the next piece ends.
func (c *Check) ahead() int64 {
	switch {
	case c.cut.row != nil:
		return c.cut.lies.end
	case c.next < len(c.rows):
		return c.rows[c.next].end
	}
	return 0
}

// take returns the next piece; false when none is left. The caller holds mu.
func (c *Check) take() (p piece, ok bool) {
	for {
		if c.cut.row != nil {
			if p, ok := c.cut.next(); ok {
				return p, true
			}
			c.cut = cutter{}
		}
		if c.next == len(c.rows) {
			return piece{}, false
		}
		x := c.rows[c.next]
		c.next++
		row, ok := c.v.state.Find(x.history, x.key)
		if !ok {
			continue
		}
		if x.read && row.Sums == nil {
			c.sum.Unsummed++
		}
		c.cut = cutter{row: &row, lies: x.run, ends: c.ends, read: x.read}
	}
}

func (k *cutter) next() (p piece, ok bool) {
	for ; k.region < len(k.row.Layout.Spans); k.region++ {
		bytes := k.row.Layout.Spans[k.region].Bytes
		leaves := checksum.Leaves(bytes)
		if k.leaf < leaves || leaves == 0 && k.leaf == 0 {
			p = piece{row: k.row, region: k.region, from: k.leaf, first: k.first, read: k.read}
			k.bound(&p, leaves)
			if k.leaf == 0 {
				p.unsuitable = p.contradicts(leaves)
			}
			k.leaf = max(p.end, 1)
			return p, true
		}
		if leaves > 1 && k.row.Leaves != nil {
			k.first += leaves
		}
		k.leaf = 0
	}
	return p, false
}

// bound sets the end of a piece, and where it lies.
func (k *cutter) bound(p *piece, leaves int) {
	span := k.row.Layout.Spans[k.region]
	start, some := int64(p.from)*checksum.LeafBytes, pieceLeaves
	p.lies.from = k.lies.from + span.Offset + start
	e, d := k.row.Encoding, k.row.Difference
	if e != nil {
		p.container, p.lies.from = k.container, k.lies.from+k.packed
		each := int(e.Part / checksum.LeafBytes)
		some = max(some/each, 1) * each
	}
	if d != nil {
		p.lies.from = k.lies.from
	}
	p.end = min(leaves, p.from+some)
	if leaves > 1 && k.row.Leaves == nil || p.lies.from >= k.ends {
		p.end = leaves
	}
	plain := min(int64(p.end)*checksum.LeafBytes, span.Bytes) - start
	p.lies.end = p.lies.from + plain
	if d != nil {
		p.lies, p.longest = k.lies, uint32(min(metaBytes(k.row), math.MaxUint32))
	}
	if e != nil {
		containers := int(model.Containers(plain, e.Part))
		packed := model.Encoding{Lengths: e.Lengths[k.container:][:containers]}
		p.lies.end = p.lies.from + packed.Bytes()
		for _, n := range packed.Lengths {
			p.longest = max(p.longest, n)
		}
		k.container, k.packed = k.container+containers, k.packed+packed.Bytes()
	}
}

// contradicts tells whether the catalog's checksum and leaf hashes of a region disagree.
func (p *piece) contradicts(leaves int) bool {
	switch {
	case p.row.Sums == nil:
		return false
	case leaves == 0:
		return p.row.Sums[p.region] != checksum.Combine(nil)
	case leaves == 1 || p.row.Leaves == nil:
		return false
	}
	return p.row.Sums[p.region] != checksum.Combine(p.row.Leaves[p.first:p.first+leaves])
}
