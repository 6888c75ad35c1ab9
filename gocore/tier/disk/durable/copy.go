package durable

import (
	"errors"

	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Checkpoints go from one store into another as they lie on disk: encoded ones stay encoded, and differences stay differences. What follows is what a copier needs.

// LineageObject names an object of a lineage, in one store: a copy of the store has the same lineage, and if both go on, other objects under the same numbers. The zero
// value names none.
type LineageObject struct {
	Lineage    uint64
	Number     uint32
	Data, Meta int64 // bytes of the containers, and of the metadata
}

// Room is a range of the space that has the bytes of a checkpoint, or of an object that it needs.
type Room struct {
	From, End int64
	Object    LineageObject // that lies there; none: the plain or encoded bytes of one checkpoint
}

// Rooms returns the rooms that a readable row needs: its own first, and then those of its sources.
func (f *files) Rooms(row *catalog.Row) ([]Room, error) {
	claims, ok := f.identity.claims(row)
	if !ok {
		return nil, ErrDamaged
	}
	rooms := make([]Room, len(claims))
	for i, x := range claims {
		rooms[i] = Room{x.from, x.end, LineageObject{x.lineage, x.number, x.data, x.meta}}
	}
	return rooms, nil
}

// Verifier compares the bytes of checkpoints with their checksums. One goroutine uses it.
type Verifier struct {
	c    *contents
	data *segment.Space
	w    *window
}

// Verifier returns a verifier of checkpoints that have been written, and need no row yet.
func (d *Dir) Verifier() (*Verifier, error) { return d.verifier(d.data) }

// Verifier returns a verifier of the checkpoints of the View.
func (v *View) Verifier() (*Verifier, error) { return v.verifier(v.data) }

func (c *contents) verifier(data *segment.Space) (*Verifier, error) {
	w, err := newWindow(data)
	if err != nil {
		return nil, err
	}
	return &Verifier{c, data, w}, nil
}

// Sound reads a checkpoint whose bytes lie at an offset of the space, and those of its sources where its Difference says. It returns false if bytes are
// missing, are not those of the checksums, or cannot be decoded. It sets the extents of the row.
func (v *Verifier) Sound(row *catalog.Row, off int64) bool {
	v.c.identity.locate(row, off)
	return v.Stands(row)
}

// Stands is Sound for a row that has its extents.
func (v *Verifier) Stands(row *catalog.Row) bool {
	claims, ok := v.c.identity.claims(row)
	return ok && len(disproved(v.c, v.data, row, claims, v.w)) == 0
}

// Close gives the memory back.
func (v *Verifier) Close() error { return v.w.close() }

// disproved verifies the bytes of a row, which were written just now, in their rooms. It returns ranges with bytes that are wrong; none for a raw row without
// checksums.
func disproved(of *contents, data *segment.Space, row *catalog.Row, rooms []claim, w *window) (wrong []run) {
	files := map[int64]int64{}
	for _, c := range rooms {
		for first, end := data.Segments(c.from, c.end-c.from); first < end; first++ {
			files[first] = of.identity.segment
		}
	}
	c := &Check{v: &View{contents: of, data: data}, files: files}
	cut := cutter{row: row, lies: rooms[0].run, read: row.Sums != nil || row.Content != catalog.Raw}
	for p, ok := cut.next(); ok; p, ok = cut.next() {
		w.begin(p.lies.end)
		for _, s := range c.examine(w, p) {
			wrong = append(wrong, s.suspect)
		}
	}
	return wrong
}

// SourceError is an error of the store that is copied, and not of the copy.
type SourceError struct{ Err error }

func (e SourceError) Error() string { return e.Err.Error() }

func (e SourceError) Unwrap() error { return e.Err }

// CopyRange copies a range of a space, which from reads, to an offset of another, through a buffer. seen is called with the bytes, in their order; nil: it is not. An error of the
// source is a SourceError.
func CopyRange(from reader, off, end int64, to *segment.Space, at int64, buffer []byte, seen func(p []byte)) error {
	for done := off; done < end; {
		p := buffer[:min(end-done, int64(len(buffer)))]
		if err := from.Read(done, p); err != nil {
			return SourceError{err}
		}
		if seen != nil {
			seen(p)
		}
		if err := to.Write(at+done-off, p); err != nil {
			return err
		}
		done += int64(len(p))
	}
	return nil
}

// NamesStore returns an error, a SourceError, unless the data files of rooms name this store as theirs. Bytes without checksums prove nothing by themselves.
func (v *View) NamesStore(rooms []Room) error {
	for _, r := range rooms {
		if err := v.Space().Proves(r.From, r.End-r.From); err != nil {
			return SourceError{err}
		}
	}
	return nil
}

// Lay sets the extents of a row whose bytes lie at an offset of the space, and those of its sources, which lie where its Difference says.
func (v *View) Lay(row *catalog.Row, off int64) { v.identity.locate(row, off) }

// Fit returns an error unless checkpoints of the store can be copied: a damaged catalog, or contents of a later version, come first.
func (v *View) Fit() error { return errors.Join(v.damage(), v.writable()) }
