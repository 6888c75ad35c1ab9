package disk

import (
	"cmp"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// A store that is opened again goes on with the lineages of the checkpoints that it finds: the next checkpoint refers to objects that the disk has.

// pastLineage is a lineage of which the catalog had checkpoints when the store was opened.
type pastLineage struct {
	id       uint64
	sections bool
	next     uint32 // above the numbers of all of its checkpoints
	serial   uint64 // of its latest checkpoint
	// last are the checkpoints with the highest numbers, the highest one first: some of them may be dropped before the lineage goes on.
	last []pastRow
}

// pastRow identifies a row of the catalog.
type pastRow struct {
	key    model.Key
	serial uint64
	number uint32
}

// mostPast bounds pastLineage.last.
const mostPast = 4

// past are the lineages by history, and by their number. A lineage with which the store goes on is not among them any more.
type past map[uint32]map[uint64]*pastLineage

// add counts a row with a difference.
func (p past) add(row *catalog.Row) {
	all, d := p[row.History], row.Difference
	if all == nil {
		all = map[uint64]*pastLineage{}
		p[row.History] = all
	}
	l := all[d.Lineage]
	if l == nil {
		l = &pastLineage{id: d.Lineage, sections: d.Sections}
		all[d.Lineage] = l
	}
	l.next, l.serial = max(l.next, d.Number, d.Number+1), max(l.serial, row.Serial) // of the highest number of all there is no next one
	at, _ := slices.BinarySearchFunc(l.last, d.Number, func(r pastRow, number uint32) int { return cmp.Compare(number, r.number) })
	if at == mostPast {
		return
	}
	if len(l.last) == mostPast {
		l.last = l.last[:mostPast-1]
	}
	l.last = slices.Insert(l.last, at, pastRow{row.Key, row.Serial, d.Number})
}

// take removes and returns the latest lineage of a history that is wanted; nil: there is none.
func (p past) take(history uint32, wanted func(lineage uint64, sections bool) bool) (latest *pastLineage) {
	all := p[history]
	for _, l := range all {
		if (latest == nil || l.serial > latest.serial) && wanted(l.id, l.sections) {
			latest = l
		}
	}
	if latest != nil {
		delete(all, latest.id)
	}
	return latest
}

// Past is a checkpoint that was stored before the store was opened. Its object and its sources stay on the disk until LetGo(Held).
type Past struct {
	Key        model.Key
	Serial     uint64
	Layout     *model.Layout
	Difference *model.Difference
	Held       []model.Source // the sources, and then the checkpoint's own object
	Next       uint32         // above the numbers of all checkpoints of the lineage
}

// TakePast returns the last checkpoint of the latest lineage of a history that is wanted, and holds what it needs; nil: the disk has none. It returns no lineage twice, so two
// writers never go on with the same one.
func (d *Tier) TakePast(history string, wanted func(lineage uint64, sections bool) bool) *Past {
	v := d.versions
	if v == nil {
		return nil
	}
	id, ok := v.state.History(history)
	if !ok {
		return nil
	}
	for {
		l := v.past.take(id, wanted)
		if l == nil {
			return nil
		}
		for _, r := range l.last {
			if p := v.holdPast(history, id, l, r); p != nil {
				return p
			}
		}
	}
}

// holdPast returns a checkpoint unless it was dropped, or an object that it needs is gone or doubted.
func (v *versions) holdPast(history string, id uint32, l *pastLineage, r pastRow) *Past {
	row, ok := v.state.Find(id, r.key)
	if !ok || row.Serial != r.serial || v.tombstones.hide(place{history, r.key}, r.serial) {
		return nil
	}
	x, err := v.Difference(&row)
	off, _, failed := v.Place(&row)
	if x == nil || err != nil || failed != nil {
		return nil // cannot happen: opening the store would have failed
	}
	p := &Past{Key: r.key, Serial: r.serial, Layout: &row.Layout.Layout, Difference: x, Next: l.next}
	p.Held = append(slices.Clone(x.Sources), model.Source{Number: x.Number, Data: x.Data, Meta: x.Meta, Offset: off})
	if gone := v.tier.Hold(x.Lineage, p.Held); len(gone) > 0 {
		return nil
	}
	return p
}
