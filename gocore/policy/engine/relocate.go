package engine

import (
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// relocations give copies another place in their tier, and another form there.
type relocations struct {
	*state
}

// Relocate begins to move o's copy in tier t to a gap before it, so that the gaps behind grow together. It evicts nothing. Restores that read the copy keep the
// old place until they end, and later ones read the new place. False if there is no such gap, or if the copy is being moved or verified, or if a
// catalog refers to its place.
func (rl *relocations) Relocate(now int64, o *Object, t int) bool {
	if !rl.isMovable(o, t) {
		return false
	}
	end := rl.copies.row(o, t).Offset
	return rl.move(now, o, t, Relocate, o.shape(), end)
}

// Recode begins to give o's copy in tier t another form, in a gap of the tier: an Encode of at most so many bytes, or a Decode to raw ones. Other tiers keep
// their forms. The answer is as that of Relocate, and false while the copy is read, also at a place that it has left. A copy that is read when the transfer
// ends keeps its form. The readers know only the old form.
func (rl *relocations) Recode(now int64, o *Object, t int, form Form, bytes int64) bool {
	if form == o.Form(t) || !rl.isMovable(o, t) || rl.copies.row(o, t).Pins > 0 || o.home.duplicates > 0 {
		return false
	}
	s := &shaped{}
	if old := o.shape(); old != nil {
		*s = *old
	} else {
		for u := range s.Sizes {
			s.Sizes[u] = o.home.Size
		}
		s.known, s.bounds = 1<<MaxTiers-1, s.Sizes
	}
	s.recode(t, form, bytes, o.home.Size)
	kind := Encode
	if form == Raw {
		kind = Decode
	}
	return rl.move(now, o, t, kind, s, rl.tiers[t].Capacity)
}

// recode changes the form in tier t. Its size is exact if it is raw, or if another tier has the form.
func (s *shaped) recode(t int, form Form, bytes, raw int64) {
	bit := uint8(1) << t
	s.Forms[t], s.Sizes[t], s.known = form, max(bytes, 1), s.known&^bit
	if form == Raw {
		s.Sizes[t], s.known = raw, s.known|bit
	}
	s.bounds[t] = s.Sizes[t]
	for u := range s.Forms {
		if u != t && s.Forms[u] == form {
			s.Sizes[t] = s.Sizes[u]
			s.known |= s.known >> u & 1 << t
		}
	}
}

// isMovable tells whether o's copy in tier t may get another place. In a referring tier other copies know where it is, and so do copies that need each other.
func (rl *relocations) isMovable(o *Object, t int) bool {
	return !o.gone && !rl.tiers[t].listed && !rl.tiers[t].Referring && rl.copies.complete(o, t) && !o.verifying && rl.copies.row(o, t).Transfers == 0 && !o.isNeeded(t) && len(o.Sources(t)) == 0
}

// move queues the transfer of o's copy to a gap of tier t that begins before an offset.
func (rl *relocations) move(now int64, o *Object, t int, kind TransferKind, shape *shaped, end int64) bool {
	tr := rl.tiers[t]
	s := o.duplicate(shape)
	gap := tr.gapBefore(s, end)
	if gap == fragment.None {
		return false
	}
	id, _ := tr.table.PlaceIn(gap, tr.extent(s), tr.align(s), s)
	rl.copies.place(s, t, id, lifecycle.BeginWrite)
	o.home.duplicates++
	f, from := tr.table.At(id), rl.copies.row(o, t)
	f.Transfers, from.Transfers = 1, 1
	rl.copies.updateCopy(now, o, t)
	x := &Transfer{Kind: kind, Rec: o.Rec(), Obj: o, From: t, To: t, FromOff: from.Offset, ToOff: f.Offset, sent: o.Bytes(t), duplicate: s}
	rl.transfers.passInside(x)
	return true
}

// gapBefore is the first gap before an offset that holds o, or none.
func (tr *tier) gapBefore(o *Object, end int64) fragment.ID {
	size, align := tr.extent(o), tr.align(o)
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

// duplicate returns an object that has the second place of o in a tier: the new one while the bytes move, and then the old one while readers
// are left. Nobody refers to it, so the place is given back as soon as nothing reads or writes it.
func (o *Object) duplicate(shape *shaped) *Object {
	s := &Object{gone: true, captured: true}
	s.init(o.home, o.touched)
	s.top = o.top
	if shape != nil {
		s.extra().shape = shape
	}
	return s
}

// relocated ends a relocation. The object has its new place if nothing else began to move its copy meanwhile.
func (rl *relocations) relocated(now int64, x *Transfer, err error) {
	o, s, t := x.Obj, x.duplicate, x.From
	tr := rl.tiers[t]
	if err == nil && x.Kind != Relocate {
		rl.forms.settle(s, t, x.wrote)
	}
	old, made := rl.copies.row(o, t), rl.copies.row(s, t)
	old.Transfers--
	made.Transfers--
	still := !o.gone && old.Transfers == 0 && !o.verifying && o.spoiled&(1<<t) == 0 && (x.Kind == Relocate || old.Pins == 0 && !o.contradicts(s, t))
	if err == nil && still && !tr.behind(made) {
		made.State, made.Verified, made.Born, made.ETA = old.State, old.Verified && x.Kind == Relocate, old.Born, old.ETA
		old.Owner, made.Owner = s, o
		o.copies[t], s.copies[t] = s.copies[t], o.copies[t]
		if x.Kind != Relocate {
			rl.exchange(o, s, t)
		}
	} else {
		rl.copies.step(s, t, lifecycle.Abort)
	}
	rl.loads.withdrawPromisesOf(now, o) // the end of a restore that reads the old place does so for that one
	for u := range rl.tiers {           // the new size may fit a tier below that was too small, or not fit any more
		rl.copies.updateCopy(now, o, u)
	}
	rl.copies.updateCopy(now, s, t)
}

// contradicts tells whether another tier has a copy of o in the form that s has in tier t, but of another size: one form has one size. Two encoders that
// ran at once may have come to different ones.
func (o *Object) contradicts(s *Object, t int) bool {
	for u, id := range o.copies {
		if u != t && id != fragment.None && o.Form(u) == s.Form(t) && o.Bytes(u) != s.Bytes(t) {
			return true
		}
	}
	return false
}

// exchange gives o the form that its new place in tier t has, and s the form of the old place.
func (rl *relocations) exchange(o, s *Object, t int) {
	old, made := o.shape(), s.more.shape
	kept := *made
	if s.more.shape = old; old != nil {
		kept = *old // other tiers may have learnt their sizes meanwhile
		kept.Forms[t], kept.Sizes[t], kept.bounds[t] = made.Forms[t], made.Sizes[t], made.bounds[t]
		kept.known = kept.known&^(1<<t) | made.known&(1<<t)
	}
	for u := range kept.Forms { // what is placed there learns its size when it is complete
		if kept.Forms[u] == kept.Forms[t] && o.copies[u] == fragment.None {
			kept.Sizes[u], kept.known = kept.Sizes[t], kept.known|kept.known>>t&1<<u
		}
	}
	o.extra().shape = &kept
	for k, l := range rl.links { // it was counted with the old sizes
		if o.dirtyAt[k] >= 0 {
			l.dirty.set(o, false)
			l.dirty.set(o, true)
			l.passable = unknown
		}
	}
}
