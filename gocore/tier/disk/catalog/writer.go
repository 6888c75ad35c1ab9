package catalog

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"velocpy/gocore/model"
)

// Writer encodes records for a State, which has those that are durable. A State has one Writer.
//
// A record has the definitions that it relies on, unless they are in the State. So a record that never becomes durable, or whose outcome is unknown, takes no
// definition with it that a later record needs. While the Writer lives, it never assigns the id of a layout or history to another one.
type Writer struct {
	s         *State
	histories map[string]uint32 // all ids ever assigned, as a forgotten history may be in a log that counts after all
	layouts   map[string]uint32 // by the item's content after the id
	history   uint32            // last assigned id
	layout    uint32
	contents  []byte // buffer for the content of a layout
}

// NewWriter returns the Writer of a State.
func NewWriter(s *State) *Writer {
	w := &Writer{s: s, histories: map[string]uint32{}, layouts: map[string]uint32{}}
	for id, h := range s.histories {
		w.histories[h.name], w.history = id, max(w.history, id)
	}
	for id, l := range s.layouts {
		w.layouts[string(appendContents(nil, &l.Layout))], w.layout = id, max(w.layout, id)
	}
	return w
}

// Record is a record in preparation: items that will count together or not at all. The caller must report its outcome to the Writer, also when it remains
// unknown: until then, snapshots keep the definitions that it relies on.
type Record struct {
	w         *Writer
	bytes     []byte
	histories []uint32 // that it relies on
	layouts   []*layout
	pinnedH   []*history // of these, histories that are not defined in it
	pinnedL   []*layout
	defined   []*layout // layouts that are defined in it
}

// Record begins a record.
func (w *Writer) Record() *Record { return &Record{w: w} }

// Bytes returns the encoded items so far, for the journal.
func (r *Record) Bytes() []byte { return r.bytes }

// Repeated is a record of the definitions that other records rely on and lack, for the batch that has them: with it the batch relies on no other batch. It
// has at most that many bytes; definitions that do not fit are left out, longest first. The records must not have been abandoned.
func Repeated(records []*Record, most int64) (p []byte) {
	histories, layouts := map[*history]bool{}, map[*layout]bool{}
	for _, r := range records {
		for _, h := range r.pinnedH {
			histories[h] = true
		}
		for _, l := range r.pinnedL {
			layouts[l] = true
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(histories), func(a, b *history) int { return cmp.Compare(a.id, b.id) }) {
		if int64(len(p))+definedBytes(len(h.name)) <= most {
			p = appendHistory(p, h.id, h.name)
		}
	}
	shortFirst := func(a, b *layout) int {
		return cmp.Or(cmp.Compare(a.definedBytes(), b.definedBytes()), cmp.Compare(a.ID, b.ID))
	}
	for _, l := range slices.SortedFunc(maps.Keys(layouts), shortFirst) {
		if int64(len(p))+l.definedBytes() > most {
			break
		}
		p = appendLayout(p, l.ID, &l.Layout)
	}
	return p
}

// Acknowledged applies a durable record to the State. The caller must acknowledge records in their order in the journal.
func (w *Writer) Acknowledged(r *Record) error {
	w.Abandoned(r)
	err := w.s.Apply(r.bytes)
	for _, l := range r.defined { // sweep may have forgotten it meanwhile
		if err == nil && w.s.layouts[l.ID] != nil {
			w.layouts[string(appendContents(nil, &l.Layout))] = l.ID
		}
	}
	return err
}

// Abandoned gives up a record that is not durable, or whose outcome is unknown. A second call does nothing.
func (w *Writer) Abandoned(r *Record) {
	for _, h := range r.pinnedH {
		h.pins--
	}
	for _, l := range r.pinnedL {
		l.pins--
	}
	r.pinnedH, r.pinnedL = nil, nil
}

// Put adds a version of a checkpoint. It ignores the row's History and the Layout's ID, as equal contents are the same layout. Its Content must be
// readable. The serials of a key must grow in the order of the journal. After an error, Put has added at most definitions.
func (r *Record) Put(history string, row *Row) error {
	if row.Layout == nil || !row.Readable() || row.Align < 0 || row.Align > math.MaxUint32 {
		return malformed("a row of content %d with alignment %d", row.Content, row.Align)
	}
	if row.Content.isEncoded() != (row.Encoding != nil) {
		return malformed("a row of content %d with the encoding %v", row.Content, row.Encoding)
	}
	if of := row.Difference; row.Content.isDifference() != (of != nil) || of != nil && len(of.Sources) != len(row.Sources) || of == nil && row.Sources != nil {
		return malformed("a row of content %d with the difference %v, and %d sources that lie somewhere", row.Content, of, len(row.Sources))
	}
	h, err := r.history(history)
	if err != nil {
		return err
	}
	l, err := r.layout(row.Layout)
	if err != nil {
		return err
	}
	if row.Sums != nil && len(row.Sums) != len(l.Spans) || row.Leaves != nil && uint64(len(row.Leaves)) != l.leaves {
		return malformed("%d sums and %d of leaves, where %d and %d belong", len(row.Sums), len(row.Leaves), len(l.Spans), l.leaves)
	}
	return r.add(appendPut(r.bytes, h, l.ID, row), func(i item) error {
		p, err := parsePut(i)
		if err == nil {
			_, err = p.parseRest(l)
		}
		return errors.Join(err, checkSerial(p.serial))
	})
}

// Drop adds the drop of a key's versions up to a serial.
func (r *Record) Drop(history string, key model.Key, serial uint64) error {
	h, err := r.history(history)
	if err != nil {
		return err
	}
	p, start := beginItem(r.bytes, kindDrop)
	p = endItem(appendKey(appendEnding(p, h, serial), key), start)
	return r.add(p, func(i item) error {
		f := fields{p: i.body()}
		_, _, err := parseEnding(&f)
		if err == nil {
			_, err = f.key()
		}
		return err
	})
}

// Clear adds the drop of all versions in a history up to a serial.
func (r *Record) Clear(history string, serial uint64) error {
	h, err := r.history(history)
	if err != nil {
		return err
	}
	p, start := beginItem(r.bytes, kindClear)
	return r.add(endItem(appendEnding(p, h, serial), start), func(item) error { return checkSerial(serial) })
}

// Retain adds the retention of a history from now on; the zero value removes it.
func (r *Record) Retain(history string, retention *model.Retention) error {
	h, err := r.history(history)
	if err != nil {
		return err
	}
	return r.add(appendRetention(r.bytes, h, retention), func(i item) error {
		_, _, err := parseRetention(i.body())
		return err
	})
}

// Given adds that all serials up to this one are in use.
func (r *Record) Given(serial uint64) error {
	p, start := beginItem(r.bytes, kindSerial)
	return r.add(endItem(appendNumbers(p, serial), start), func(item) error { return checkSerial(serial) })
}

// add accepts an appended item if Apply would.
func (r *Record) add(appended []byte, check func(i item) error) error {
	i := item(appended[len(r.bytes):])
	if uint64(len(i)-itemHead) > math.MaxUint32 {
		return malformed("an item has %d bytes", len(i))
	}
	if err := check(i); err != nil {
		return err
	}
	r.bytes = appended
	return nil
}

// history returns the id of a history, and makes the record rely on it.
func (r *Record) history(name string) (uint32, error) {
	w := r.w
	id, given := w.histories[name]
	if given && slices.Contains(r.histories, id) {
		return id, nil
	}
	if len(name) > MostName {
		return 0, malformed("the name has %d bytes", len(name))
	}
	if !given {
		if w.history == math.MaxUint32 {
			return 0, ErrExhausted
		}
		w.history++
		id = w.history
		w.histories[strings.Clone(name)] = id
	}
	r.histories = append(r.histories, id)
	if h := w.s.histories[id]; h != nil {
		h.pins++
		r.pinnedH = append(r.pinnedH, h)
	} else {
		r.bytes = appendHistory(r.bytes, id, name)
	}
	return id, nil
}

// layout returns the layout equal to like, and makes the record rely on it.
func (r *Record) layout(like *Layout) (*layout, error) {
	w := r.w
	w.contents = appendContents(w.contents[:0], like)
	id, given := w.layouts[string(w.contents)]
	if given {
		if at := slices.IndexFunc(r.layouts, func(l *layout) bool { return l.ID == id }); at >= 0 {
			return r.layouts[at], nil
		}
		if l := w.s.layouts[id]; l != nil {
			l.pins++
			r.pinnedL, r.layouts = append(r.pinnedL, l), append(r.layouts, l)
			return l, nil
		}
	}
	if !given {
		if w.layout == math.MaxUint32 {
			return nil, ErrExhausted
		}
		id = w.layout + 1
	}
	appended := appendLayout(r.bytes, id, like)
	var l *layout
	err := r.add(appended, func(i item) (err error) {
		l, err = parseLayout(i.body())
		return err
	})
	if err != nil {
		return nil, err
	}
	if !given {
		w.sweep()
		w.layout, w.layouts[string(w.contents)] = id, id
	}
	r.layouts, r.defined = append(r.layouts, l), append(r.defined, l)
	return l, nil
}

// sweep forgets the ids of layouts that are not in the State, once they are many: if such a layout returns, it gets another id.
func (w *Writer) sweep() {
	if len(w.layouts) < 2*len(w.s.layouts)+fewLayouts {
		return
	}
	maps.DeleteFunc(w.layouts, func(_ string, id uint32) bool { return w.s.layouts[id] == nil })
}

// fewLayouts is the number of such layouts that may stay.
const fewLayouts = 64
