package catalog

import "velocpy/gocore/model"

// Brief is what a listing shows of a checkpoint.
type Brief struct {
	Key     model.Key
	Serial  uint64
	Layout  *Layout
	Content Content
	Time    int64 // as a Row's
	Summed  bool  // there are checksums
	Meta    int   // bytes of it
}

// Cursor is a place between the rows of a State. The zero value is before the first; others are good as long as nothing is applied.
type Cursor uint64

// List calls f for the rows of a history from a cursor on, in the order in which they were put, until it says no. The row of which it says so is the first
// behind next; more tells whether there is one. It looks at the rows of the other histories too, takes some 20 ns for each row, and allocates nothing but
// the texts of keys.
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
	if b.Content != Raw {
		return b
	}
	b.Summed = p.flags&flagSums != 0
	before := 8 + extentBytes*uint64(le32(p.rest[4:]))
	if b.Summed {
		before += 8 * uint64(len(l.Spans))
	}
	if p.flags&flagLeaves != 0 {
		before += 8 * l.leaves
	}
	b.Meta = int(le32(p.rest[before:]))
	return b
}
