package catalog

import "velocpy/gocore/model"

// Brief describes a checkpoint in a listing.
type Brief struct {
	Key     model.Key
	Serial  uint64
	Layout  *Layout
	Content Content
	Stored  int64 // bytes of the extents, without those of sources; 0: the content is unknown
	Time    int64 // as in Row
	Summed  bool  // it has checksums
	Meta    int   // length of the meta in bytes
	// Sources is the number of other objects that a difference refers to, and SourceBytes the bytes of their extents. Rows may share them.
	Sources     int
	SourceBytes int64
}

// Cursor is a position between the rows of a State. The zero value is before the first row; others are valid until a record is applied.
type Cursor uint64

// List calls f for the rows of a history from a cursor on, in the order of their puts, until f returns false. The row for which f returned false is the
// first one after next; more tells whether there is one. List iterates over the rows of all histories, takes some 20 ns per row, and allocates only text
// keys.
func (s *State) List(history uint32, from Cursor, f func(b Brief) bool) (next Cursor, more bool) {
	at := ref(from)
	if at == 0 {
		at = refOf(0, 0)
	}
	for number := at.chunk(); number < len(s.rows.chunks); number++ {
		chunk := s.rows.chunks[number]
		for at := at.offset(); at < len(chunk); {
			i := item(chunk[at : at+itemHead+int(le32(chunk[at+4:]))])
			if i.kind() != kindGone && le32(i[putHistory:]) == history && !f(s.brief(i)) {
				return Cursor(refOf(number, at)), true
			}
			at += len(i)
		}
		at = refOf(number+1, 0)
	}
	return Cursor(at), false
}

func (s *State) brief(i item) Brief {
	p, _ := parsePut(i)
	l := s.layout(p.layout)
	b := Brief{Key: p.key.key(), Serial: p.serial, Layout: &l.Layout, Content: p.content, Time: p.time}
	if !b.Content.Readable() {
		return b
	}
	b.Stored = int64(p.bytes())
	b.Summed = p.flags&flagSums != 0
	if b.Content.isDifference() {
		r, _ := p.split(l)
		b.Meta, b.Sources, b.SourceBytes = len(r.meta), int(r.difference.count), r.difference.sourceBytes()
		return b
	}
	before := 8 + extentBytes*uint64(le32(p.rest[4:]))
	if b.Summed {
		before += 8 * uint64(len(l.Spans))
	}
	if p.flags&flagLeaves != 0 {
		before += 8 * l.leaves
	}
	if b.Content.isEncoded() {
		before += 12 + 4*uint64(le32(p.rest[before+8:]))
	}
	b.Meta = int(le32(p.rest[before:]))
	return b
}
