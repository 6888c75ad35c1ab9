package durable

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// piece is the unit of work of a verifying goroutine: a range of leaves of a region.
type piece struct {
	row        *catalog.Row
	place      int64 // offset of the row in the space
	region     int
	from, end  int // leaves
	first      int // index in the row's Leaves of the region's first leaf
	read       bool
	unsuitable bool // checksum and leaf hashes of the region contradict each other
}

// pieceLeaves bounds the leaves of a piece.
const pieceLeaves = 64 << 20 / checksum.LeafBytes

// cutter cuts a row into pieces. After the end of all data files, the rest of a region is one piece.
type cutter struct {
	row    *catalog.Row
	place  int64
	ends   int64 // of the space: no data file reaches beyond it
	read   bool
	region int
	leaf   int
	first  int
}

// takeSome appends the next pieces, as many as one window covers.
func (c *Check) takeSome(to []piece) []piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(to) == 0 || c.ahead() < to[0].begins()+windowBytes && len(to) < piecesAtOnce {
		p, ok := c.take()
		if !ok {
			break
		}
		to = append(to, p)
	}
	return to
}

// piecesAtOnce bounds the rows that are decoded at once.
const piecesAtOnce = 4096

// ahead estimates where the next piece ends.
func (c *Check) ahead() int64 {
	switch {
	case c.cut.row != nil:
		return c.cut.place + c.cut.row.Layout.Slot
	case c.next < len(c.rows):
		return c.rows[c.next].from + c.rows[c.next].bytes
	}
	return 0
}

// begins and reaches return the range of a piece in the space.
func (p *piece) begins() int64 {
	return p.place + p.row.Layout.Spans[p.region].Offset + int64(p.from)*checksum.LeafBytes
}

func (p *piece) reaches() int64 {
	s := p.row.Layout.Spans[p.region]
	return p.place + s.Offset + min(int64(p.end)*checksum.LeafBytes, s.Bytes)
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
		c.cut = cutter{row: &row, place: x.from, ends: c.ends, read: x.read}
	}
}

func (k *cutter) next() (p piece, ok bool) {
	for ; k.region < len(k.row.Layout.Spans); k.region++ {
		bytes := k.row.Layout.Spans[k.region].Bytes
		leaves := checksum.Leaves(bytes)
		if k.leaf < leaves || leaves == 0 && k.leaf == 0 {
			p = piece{row: k.row, place: k.place, region: k.region, from: k.leaf, first: k.first, read: k.read}
			p.end = min(leaves, k.leaf+pieceLeaves)
			if leaves > 1 && k.row.Leaves == nil || p.begins() >= k.ends {
				p.end = leaves
			}
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

// suspicion is a possible fault that has not been read a second time.
type suspicion struct {
	piece
	fault Kind
	start int64 // in the region
	bytes int64
	why   string
}

// examine checks that the bytes of a piece exist and, if it is to be read, that they match their checksums.
func (c *Check) examine(w *window, p piece) (found []suspicion) {
	span := p.row.Layout.Spans[p.region]
	if p.unsuitable {
		found = append(found, suspicion{p, Changed, 0, span.Bytes, "its checksum and the hashes of its leaves do not belong together"})
	}
	gone := c.missing(p.begins(), p.reaches()-p.begins())
	for _, r := range gone {
		found = append(found, suspicion{p, Missing, r.from - p.place - span.Offset, r.end - r.from, c.gone(r)})
	}
	if !p.read {
		return found
	}
	var leaves []uint64
	whole := len(gone) == 0
	for leaf := p.from; leaf < p.end; leaf++ {
		start := int64(leaf) * checksum.LeafBytes
		n := min(span.Bytes-start, checksum.LeafBytes)
		at := p.place + span.Offset + start
		for len(gone) > 0 && gone[0].end <= at {
			gone = gone[1:]
		}
		if len(gone) > 0 && gone[0].from < at+n { // a region may claim far more leaves than the files have
			leaf = max(leaf, int((gone[0].end-at+start)/checksum.LeafBytes)-1)
			continue
		}
		bytes, err := w.at(at, n)
		if err != nil {
			found = append(found, suspicion{p, Unreadable, start, n, err.Error()})
			whole = false
			continue
		}
		c.read.Add(n)
		if p.row.Sums == nil {
			continue
		}
		sum := checksum.Leaf(bytes)
		switch want, known := p.leaf(leaf, span.Bytes); {
		case !known:
			leaves = append(leaves, sum)
		case sum != want:
			found = append(found, suspicion{p, Changed, start, n, "its bytes are not those that were written (checksum mismatch)"})
		}
	}
	if whole && len(leaves) > 0 && checksum.Combine(leaves) != p.row.Sums[p.region] {
		found = append(found, suspicion{p, Changed, 0, span.Bytes, "its bytes are not those that were written (checksum mismatch)"})
	}
	return found
}

// leaf returns the expected hash of a leaf, if the row has one for this leaf alone.
func (p *piece) leaf(leaf int, bytes int64) (sum uint64, known bool) {
	switch {
	case checksum.Leaves(bytes) == 1:
		return p.row.Sums[p.region], true
	case p.row.Leaves == nil:
		return 0, false
	}
	return p.row.Leaves[p.first+leaf], true
}

// gone returns the reason why a range is missing.
func (c *Check) gone(r run) string {
	if c.foreign[r.from/c.v.identity.segment] {
		return "the data file belongs elsewhere"
	}
	return "the data file ends before"
}

// missing returns the parts of a range that no data file has, ascending.
func (c *Check) missing(off, n int64) (gone []run) {
	for end := off + n; off < end; {
		number := off / c.v.identity.segment
		start := number * c.v.identity.segment
		next := min(end, start+c.v.identity.segment)
		if there := start + c.files[number]; there < next {
			if n := len(gone); n > 0 && gone[n-1].end == max(off, there) && c.foreign[number-1] == c.foreign[number] {
				gone[n-1].end = next
			} else {
				gone = append(gone, run{max(off, there), next})
			}
		}
		off = next
	}
	return gone
}

// checkPurpose is the name under which package memory accounts the buffers.
const checkPurpose = "check buffers"

// windowBytes is the size of a read: one large transfer keeps a disk busier than many small ones.
const windowBytes = 4 << 20

// window reads a range piece by piece, with read-ahead.
type window struct {
	data      reader
	mapping   *memory.Mapping
	buffer    []byte
	from, end int64 // of the space: the range that the buffer has
	limit     int64 // end of the read-ahead
}

// reader reads bytes of the space.
type reader interface {
	Read(off int64, p []byte) error
}

func newWindow(data *segment.Space) (*window, error) { return newWindowOf(data, windowBytes) }

// newWindowOf returns a window that reads bytes at once: at least a leaf and a block.
func newWindowOf(data reader, bytes int64) (*window, error) {
	m, err := memory.Map(checkPurpose, bytes)
	if err != nil {
		return nil, err
	}
	return &window{data: data, mapping: m, buffer: m.Bytes(0, bytes)}, nil
}

func (w *window) close() error { return w.mapping.Unmap() }

// begin discards the buffer. No read-ahead goes beyond limit.
func (w *window) begin(limit int64) { w.from, w.end, w.limit = 0, 0, limit }

// at returns the bytes of a range of at most a leaf; they are valid until the next call.
func (w *window) at(off, n int64) ([]byte, error) {
	if off < w.from || off+n > w.end {
		from := off / segment.Block * segment.Block
		w.from, w.end = from, min(from+int64(len(w.buffer)), max(w.limit, off+n))
		if err := w.data.Read(from, w.buffer[:w.end-from]); err != nil {
			w.from, w.end = 0, 0
			p := w.buffer[:n]
			if err := w.data.Read(off, p); err != nil { // the error may concern the read-ahead only, so read the requested part alone
				return nil, err
			}
			return p, nil
		}
	}
	return w.buffer[off-w.from : off-w.from+n], nil
}
