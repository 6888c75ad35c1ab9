package engine

import (
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// Relocate begins to move o's copy in tier t to a gap before it, so that the gaps behind grow together. It evicts nothing. Restores that read the copy keep the
// old place until they end, and later ones read the new place. False if there is no such gap, or if the copy is being moved or verified, or if a
// catalog refers to its place.
func (e *Engine) Relocate(now int64, o *Object, t int) bool {
	tr := e.tiers[t]
	if o.gone || tr.listed || !e.complete(o, t) || o.verifying || e.row(o, t).Transfers > 0 {
		return false
	}
	gap := tr.gapBefore(o)
	if gap == fragment.None {
		return false
	}
	id, _ := tr.table.PlaceIn(gap, tr.extent(o), tr.align(o), nil)
	place := e.stead(o, t, id)
	f, from := tr.table.At(id), e.row(o, t)
	f.Transfers, from.Transfers = 1, 1
	e.updateCopy(now, o, t)
	x := &Transfer{Kind: Relocate, Rec: o.Rec(), Obj: o, From: t, To: t, FromOff: from.Offset, ToOff: f.Offset, sent: o.Bytes(t), stead: place}
	e.passing[Down][min(t, len(e.passing[Down])-1)].push(x)
	return true
}

// gapBefore is the first gap before o's copy that holds it, or none.
func (tr *tier) gapBefore(o *Object) fragment.ID {
	size, align, end := tr.extent(o), tr.align(o), tr.table.At(o.copies[tr.index]).Offset
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		f := tr.table.At(id)
		if f.Offset >= end {
			break
		}
		if f.Class == fragment.Gap && f.Offset+f.Size <= tr.Capacity && f.Size >= size+fragment.Padding(f.Offset, align) {
			return id
		}
	}
	return fragment.None
}

// stead returns an object that stands for o in a second place of tier t: first in the new one, while the bytes move, and then in the old one, while readers
// are left. Nobody refers to it, so the place is given back as soon as nothing reads or writes it.
func (e *Engine) stead(o *Object, t int, id fragment.ID) *Object {
	s := &Object{gone: true, captured: true}
	s.init(o.home, o.touched)
	s.top = o.top
	if o.more != nil && o.more.shape != nil {
		s.extra().shape = o.more.shape
	}
	e.tiers[t].table.At(id).Owner = s
	e.place(s, t, id, lifecycle.BeginWrite)
	o.home.steads++
	return s
}

// relocated ends a relocation. The object has its new place if nothing else began to move its copy meanwhile.
func (e *Engine) relocated(now int64, x *Transfer, err error) {
	o, s, t := x.Obj, x.stead, x.From
	tr := e.tiers[t]
	old, made := e.row(o, t), e.row(s, t)
	old.Transfers--
	made.Transfers--
	if moved := err == nil && !o.gone && old.Transfers == 0 && !o.verifying && o.spoiled&(1<<t) == 0 && !tr.behind(made); moved {
		made.State, made.Verified, made.Born, made.ETA = old.State, old.Verified, old.Born, old.ETA
		old.Owner, made.Owner = s, o
		o.copies[t], s.copies[t] = s.copies[t], o.copies[t]
	} else {
		e.step(s, t, lifecycle.Abort)
	}
	e.updateCopy(now, o, t)
	e.updateCopy(now, s, t)
}
