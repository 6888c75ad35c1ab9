package catalog

import (
	"encoding/binary"
	"maps"
	"slices"
)

// definitions are the histories and the layouts that rows refer to by their ids.
type definitions struct {
	histories map[uint32]*history
	names     map[string]*history
	layouts   map[uint32]*layout
	bytes     int64 // total length of the definitions

	// Cache of the last lookup, as successive rows mostly have the same history and layout.
	lately *history
	shape  *layout
}

func (d *definitions) history(id uint32) *history {
	if d.lately == nil || d.lately.id != id {
		d.lately = d.histories[id]
	}
	return d.lately
}

func (d *definitions) layout(id uint32) *layout {
	if d.shape == nil || d.shape.ID != id {
		d.shape = d.layouts[id]
	}
	return d.shape
}

// History returns the id of a history.
func (d *definitions) History(name string) (id uint32, ok bool) {
	h, ok := d.names[name]
	if !ok {
		return 0, false
	}
	return h.id, true
}

// HistoryName returns the name of a history.
func (d *definitions) HistoryName(id uint32) (name string, ok bool) {
	h, ok := d.histories[id]
	if !ok {
		return "", false
	}
	return h.name, true
}

// defineHistory applies the definition of a history, and records a new one in u.
func (d *definitions) defineHistory(i item, u *undo) error {
	id, name, err := parseHistory(i.body())
	if err != nil {
		return err
	}
	if h := d.history(id); h != nil {
		if h.name != string(name) {
			return malformed("history %d is %.80q, not %.80q", id, h.name, name)
		}
		return nil
	}
	if h := d.names[string(name)]; h != nil {
		return malformed("history %.80q is %d, not %d", name, h.id, id)
	}
	h := &history{id: id, name: string(name)}
	d.histories[id], d.names[h.name] = h, h
	d.bytes += definedBytes(len(name))
	u.histories = append(u.histories, h)
	return nil
}

// defineLayout does the same with the definition of a layout.
func (d *definitions) defineLayout(i item, u *undo) error {
	l, err := parseLayout(i.body())
	if err != nil {
		return err
	}
	if old := d.layout(l.ID); old != nil {
		if !old.equal(&l.Layout) {
			return malformed("layout %d is another one", l.ID)
		}
		return nil
	}
	d.layouts[l.ID] = l
	d.bytes += l.definedBytes()
	u.layouts = append(u.layouts, l)
	return nil
}

func definedBytes(name int) int64 { return itemHead + 4 + int64(name) }

func (l *layout) definedBytes() int64 {
	return itemHead + 24 + int64(len(l.Spans))*spanBytes + int64(len(l.Text))
}

// markUsed marks the layouts in use.
func (d *definitions) markUsed(all *rows) {
	for _, l := range d.layouts {
		l.used = l.pins > 0
	}
	all.each(func(i item) bool {
		d.layout(le32(i[putLayout:])).used = true
		return true
	})
}

func (h *history) used() bool { return h.rows() > 0 || h.retention != nil || h.pins > 0 }

// snapshot gives the largest serial and the definitions in use, sorted by id, so that equal states have equal snapshots.
func (d *definitions) snapshot(serial uint64, give func(record []byte) error) error {
	var p, next []byte
	add := func() (err error) {
		if len(p) > 0 && len(p)+len(next) > SnapshotRecord { // a larger one gets a record of its own, as it may only just fit
			err = give(p)
			p = p[:0]
		}
		p, next = append(p, next...), next[:0]
		return err
	}
	next, start := beginItem(next, kindSerial)
	next = endItem(appendNumbers(next, serial), start)
	for _, id := range slices.Sorted(maps.Keys(d.histories)) {
		h := d.histories[id]
		if !h.used() {
			continue
		}
		if err := add(); err != nil {
			return err
		}
		if next = appendHistory(next, id, h.name); h.retention != nil {
			next = appendRetention(next, id, h.retention)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.layouts)) {
		l := d.layouts[id]
		if !l.used {
			continue
		}
		if err := add(); err != nil {
			return err
		}
		next = appendLayout(next, id, &l.Layout)
	}
	if err := add(); err != nil {
		return err
	}
	return give(p)
}

func appendLayout(to []byte, id uint32, l *Layout) []byte {
	to, start := beginItem(to, kindLayout)
	to = binary.LittleEndian.AppendUint32(to, id)
	return endItem(appendContents(to, l), start)
}

// forget drops unused definitions. No later record may rely on them, as the snapshot, which may or may not count, lacks them.
func (d *definitions) forget() {
	d.lately, d.shape = nil, nil
	for id, h := range d.histories {
		if !h.used() {
			delete(d.histories, id)
			delete(d.names, h.name)
			d.bytes -= definedBytes(len(h.name))
		}
	}
	for id, l := range d.layouts {
		if !l.used {
			delete(d.layouts, id)
			d.bytes -= l.definedBytes()
		}
	}
}
