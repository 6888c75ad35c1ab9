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

// Writer makes the records for a State, which is what of them is durable. A State has one Writer.
//
// A record carries the definitions that it relies on, unless they are in the State: so a record that never becomes durable, or whose fate nobody knows,
// takes nothing with it that a later one needs. An id that was given to a layout or history is given to no other as long as the Writer lives.
type Writer struct {
	s         *State
	histories map[string]uint32 // ever given, as a history that is forgotten may stand in a log that counts after all
	layouts   map[string]uint32 // by what the item says behind the id
	history   uint32            // the last id given
	layout    uint32
	contents  []byte // room for those of a layout
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

// Record is one in the making: items that will count together or not at all. When its fate is known, or known to remain unknown, the Writer has to be
// told: until then snapshots keep what it relies on.
type Record struct {
	w         *Writer
	bytes     []byte
	histories []uint32 // that it relies on
	layouts   []*layout
	pinnedH   []*history // those of them that it does not carry
	pinnedL   []*layout
	defined   []*layout // those that it carries
}

// Record begins one.
func (w *Writer) Record() *Record { return &Record{w: w} }

// Bytes are those of the items so far, for the journal.
func (r *Record) Bytes() []byte { return r.bytes }

// Repeated is a record of the definitions that others rely on and do not carry, for the batch that they stand in: it says nothing new, but with it the
// batch needs no other one. It has at most so many bytes; what does not fit is left out, the longest first. The records must not have been given up.
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

// Acknowledged applies a record that is durable to the State. Records are acknowledged in the order in which they stand in the journal.
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

// Abandoned gives a record up of which nobody knows whether it is durable, or that was never to be. A second time it does nothing.
func (w *Writer) Abandoned(r *Record) {
	for _, h := range r.pinnedH {
		h.pins--
	}
	for _, l := range r.pinnedL {
		l.pins--
	}
	r.pinnedH, r.pinnedL = nil, nil
}

// Put adds a version of a checkpoint. Of the row the History is not looked at, nor the Layout's ID: the same contents are the same layout. Its Content is Raw.
// For one key, serials grow in the order of the journal. After an error nothing was added but definitions.
func (r *Record) Put(history string, row *Row) error {
	if row.Layout == nil || row.Content != Raw || row.Align < 0 || row.Align > math.MaxUint32 {
		return malformed("a row of content %d with alignment %d", row.Content, row.Align)
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

// Drop adds that a key's version goes, and those before it.
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

// Clear adds that all versions of a history go up to a serial.
func (r *Record) Clear(history string, serial uint64) error {
	h, err := r.history(history)
	if err != nil {
		return err
	}
	p, start := beginItem(r.bytes, kindClear)
	return r.add(endItem(appendEnding(p, h, serial), start), func(item) error { return checkSerial(serial) })
}

// Retain adds what is kept of a history from now on; the zero value ends that.
func (r *Record) Retain(history string, retention *Retention) error {
	h, err := r.history(history)
	if err != nil {
		return err
	}
	return r.add(appendRetention(r.bytes, h, retention), func(i item) error {
		_, _, err := parseRetention(i.body())
		return err
	})
}

// Given adds that serials have been given up to this one.
func (r *Record) Given(serial uint64) error {
	p, start := beginItem(r.bytes, kindSerial)
	return r.add(endItem(appendNumbers(p, serial), start), func(item) error { return checkSerial(serial) })
}

// add takes an item that was appended, if it is one that Apply takes.
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

// history gives the id of a history, which the record then relies on.
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

// layout gives the layout with the contents of one, which the record then relies on.
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

// sweep forgets which ids layouts had that are not in the State, when they have become many: should they come again, they get other ones.
func (w *Writer) sweep() {
	if len(w.layouts) < 2*len(w.s.layouts)+fewLayouts {
		return
	}
	maps.DeleteFunc(w.layouts, func(_ string, id uint32) bool { return w.s.layouts[id] == nil })
}

// fewLayouts may linger.
const fewLayouts = 64
