package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// A copy may hold only what differs from another object's copy in the same tier, which it needs for its bytes then. The other copy keeps its place while it is needed,
// even when nobody refers to its object any more. Once the tier below has all that both consist of, the copy there has what it needs by itself: then the need is loose,
// and holds nothing. It still says that the two objects are used together.

// needs is what the copies of an object need, and which others need them. Most objects have none.
type needs struct {
	tier  int       // of a copy that needs another
	of    *Object   // … the copy of this object; nil: no copy needs another
	loose bool      // … or the tier below has both
	asked bool      // FlushFirst was called for it
	users []*Object // those that need a copy of the object
}

// dependencies are copies that need others of the same tier.
type dependencies struct {
	*state

	unneeded []unneeded // copies that nobody needs any more since followUnneeded ran
}

// Need records that o's copy in tier t, which has room there, needs that of another object, until it gives its room back or needs it no more. At most one copy of an
// object needs another. False: the other copy is not complete, or it needs another one itself, so that a restore would have to read a chain of them; or the tier is none
// in which copies can need each other.
func (ds *dependencies) Need(now int64, o, of *Object, t int) bool {
	if o == of || !ds.canNeed(t, o, of) || o.copies[t] == fragment.None || !ds.copies.complete(of, t) || len(o.users()) > 0 || o.hasNeed() || of.hasNeed() {
		return false
	}
	n := o.extra().needing()
	n.tier, n.of = t, of
	ds.tiers[t].needs++
	m := of.extra().needing()
	m.users = append(m.users, o)
	ds.copies.updateCopy(now, of, t)
	return true
}

// canNeed tells whether copies of two objects in tier t may need each other. In the fastest tier of an object readers find plain bytes, and what a catalog lists keeps
// what it needs by itself. A copy that moves has two places.
func (ds *dependencies) canNeed(t int, o, of *Object) bool {
	tr := ds.tiers[t]
	return !tr.listed && !tr.Referring && t != int(o.top) && t != int(of.top) && o.home.duplicates+of.home.duplicates == 0
}

// hasNeed tells whether a copy of o needs another one.
func (o *Object) hasNeed() bool {
	return o.more != nil && o.more.needs != nil && o.more.needs.of != nil
}

// NeedNoMore ends Need.
func (ds *dependencies) NeedNoMore(now int64, o *Object, t int) {
	ds.releaseNeeded(o, t)
	ds.makeProgress(now)
}

// Loosen tells, before Done, that a flush of a copy which needs another one has brought it to a tier that has all that it needs, and keeps that as long as it. If the flush
// succeeds, the need is loose.
func (x *Transfer) Loosen() { x.loosens = true }

// loosen makes the need of o's copy in tier t a loose one.
func (ds *dependencies) loosen(o *Object, t int) {
	if of := o.Source(t); of != nil {
		o.more.needs.loose = true
		ds.tiers[t].needs--
		ds.unneeded = append(ds.unneeded, unneeded{of, t})
	}
}

// Source is the object whose copy in tier t o's copy there needs; nil: it needs none, or loosely.
func (o *Object) Source(t int) *Object {
	if of := o.Related(t); of != nil && !o.more.needs.loose {
		return of
	}
	return nil
}

// Related is Source, but also of a loose need, and then also while o has no copy in tier t.
func (o *Object) Related(t int) *Object {
	if !o.hasNeed() || o.more.needs.tier != t {
		return nil
	}
	return o.more.needs.of
}

func (m *more) needing() *needs {
	if m.needs == nil {
		m.needs = new(needs)
	}
	return m.needs
}

// asked tells whether what o needs was to be flushed before it.
func (o *Object) asked() bool { return o.hasNeed() && o.more.needs.asked }

// isNeeded tells whether copies of other objects need o's copy in tier t.
func (o *Object) isNeeded(t int) bool {
	return slices.ContainsFunc(o.users(), func(u *Object) bool { return u.Source(t) == o })
}

// releaseNeeded ends the need of o's copy in tier t, unless it is loose. The other copy gives its room back when followUnneeded runs: now the engine may be about to use
// a gap beside it.
func (ds *dependencies) releaseNeeded(o *Object, t int) {
	if o.Source(t) != nil {
		ds.forgetNeed(o)
	}
}

// forgetNeed ends the need of a copy of o, which may be loose.
func (ds *dependencies) forgetNeed(o *Object) {
	if !o.hasNeed() {
		return
	}
	of, t := o.more.needs.of, o.more.needs.tier
	if !o.more.needs.loose {
		ds.tiers[t].needs--
	}
	o.more.needs.of, o.more.needs.loose, o.more.needs.asked = nil, false, false
	n := of.more.needs
	n.users = slices.DeleteFunc(n.users, func(u *Object) bool { return u == o })
	ds.unneeded = append(ds.unneeded, unneeded{of, t})
}

// users are the objects of which a copy needs one of o.
func (o *Object) users() []*Object {
	if o.more == nil || o.more.needs == nil {
		return nil
	}
	return o.more.needs.users
}

// unneeded is a copy that one other needs no more.
type unneeded struct {
	o *Object
	t int
}

// sourceShare is the part (as a divisor) of a tier that may be taken by what a prefetched copy needs.
const sourceShare = 4

// aheadOfSource prefetches what o's copy below tier t needs, which is expected later than o. Loads of all that need it are faster then. If the need is loose, that is
// also prefetched to the tier of the copy. Where there is no room for it, o is prefetched all the same.
func (ds *dependencies) aheadOfSource(now int64, h *History, o *Object, t int) {
	below := ds.Below(t)
	if below < 0 || o.copies[t] != fragment.None {
		return
	}
	of := o.Related(below)
	if of == nil && o.Source(t) == nil {
		of = o.Related(t)
	}
	if of == nil || of.gone || of.next() == fragment.Unexpected || of.copies[t] != fragment.None || ds.tiers[t].extent(of) > ds.tiers[t].Capacity/sourceShare {
		return
	}
	stuck := h.stuck[t]
	ds.prefetches.aheadOf(now, h, of, t)
	h.stuck[t] = stuck
}

// followUnneeded gives the copies that were needed back to eviction, and the room of those whose objects are gone.
func (ds *dependencies) followUnneeded(now int64) {
	for len(ds.unneeded) > 0 {
		last := len(ds.unneeded) - 1
		x := ds.unneeded[last]
		ds.unneeded = ds.unneeded[:last]
		ds.copies.updateCopy(now, x.o, x.t)
		ds.loads.withdrawPromisesOf(now, x.o)
	}
}
