package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// A copy may hold only what differs from another object's copy in the same tier, which it needs for its bytes then. The other copy keeps its place while it is needed,
// even when nobody refers to its object any more. Once the tier below has all that both consist of, the copy there has what it needs by itself: then the need is loose,
// and holds nothing. It still says that the two objects are used together.
//
// Or a copy may hold only what is new in it, and other parts of its bytes lie in the copies of several others. These may lack parts themselves: each copy needs all that
// have bytes of it, so none is read for what it lacks. Such a need is never loose: it ends with the copy.

// needs is what the copies of an object need, and which others need them. Most objects have none.
type needs struct {
	tier  int       // of a copy that needs others
	of    []*Object // … the copies of these objects; none: no copy needs another
	parts bool      // … for parts of its bytes; otherwise there is one, and the copy needs all bytes of that
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
	n.tier, n.of, n.parts = t, []*Object{of}, false
	ds.tiers[t].needs++
	ds.use(now, o, of, t)
	return true
}

// use makes o a user of another object, whose copy in tier t it needs.
func (ds *dependencies) use(now int64, o, of *Object, t int) {
	m := of.extra().needing()
	m.users = append(m.users, o)
	ds.copies.updateCopy(now, of, t)
}

// NeedParts records that o's copy in tier t, which has room there and which no other copy needs, needs those of other objects for parts of its bytes: of all of these, and of
// no others that an earlier call named. Without others it needs none any more. False, and nothing is changed: a copy is not complete, or needs one other for all of its
// bytes; or the tier is none in which copies can need each other.
func (ds *dependencies) NeedParts(now int64, o *Object, of []*Object, t int) bool {
	if o.hasNeed() && (!o.more.needs.parts || o.more.needs.tier != t) || o.copies[t] == fragment.None || len(o.users()) > 0 {
		return false
	}
	for _, x := range of {
		if !ds.HasParts(x, o, t) {
			return false
		}
	}
	n, before := o.extra().needing(), []*Object(nil)
	before, n.tier, n.of, n.parts = n.of, t, slices.Clone(of), true
	ds.tiers[t].needs += len(n.of) - len(before)
	for _, x := range n.of {
		if !slices.Contains(before, x) {
			ds.use(now, o, x, t)
		}
	}
	for _, x := range before {
		if !slices.Contains(of, x) {
			ds.disuse(o, x, t)
		}
	}
	if len(ds.unneeded) > 0 {
		ds.makeProgress(now)
	}
	return true
}

// HasCopy tells whether tier t has a copy of an object, or room for one that is being written.
func (ds *dependencies) HasCopy(o *Object, t int) bool { return o.copies[t] != fragment.None }

// HasParts tells whether NeedParts takes the copy that one object has in tier t for the copy of another.
func (ds *dependencies) HasParts(of, o *Object, t int) bool {
	return of != o && ds.canNeed(t, o, of) && ds.copies.complete(of, t) && (!of.hasNeed() || of.more.needs.parts)
}

// disuse undoes use. The other copy gives its room back when followUnneeded runs: now the engine may be about to use a gap beside it.
func (ds *dependencies) disuse(o, of *Object, t int) {
	n := of.more.needs
	n.users = slices.DeleteFunc(n.users, func(u *Object) bool { return u == o })
	ds.unneeded = append(ds.unneeded, unneeded{of, t})
}

// canNeed tells whether copies of two objects in tier t may need each other. In the fastest tier of an object readers find plain bytes, and what a catalog lists keeps
// what it needs by itself. A copy that moves has two places.
func (ds *dependencies) canNeed(t int, o, of *Object) bool {
	tr := ds.tiers[t]
	return !tr.listed && !tr.Referring && t != int(o.top) && t != int(of.top) && o.home.duplicates+of.home.duplicates == 0
}

// hasNeed tells whether a copy of o needs another one.
func (o *Object) hasNeed() bool {
	return o.more != nil && o.more.needs != nil && len(o.more.needs.of) > 0
}

// needsParts tells whether a copy of o needs others for parts of its bytes.
func (o *Object) needsParts() bool { return o.hasNeed() && o.more.needs.parts }

// NeedNoMore ends Need and NeedParts.
func (ds *dependencies) NeedNoMore(now int64, o *Object, t int) {
	ds.releaseNeeded(o, t)
	ds.makeProgress(now)
}

// Loosen tells, before Done, that a flush of a copy which needs another one for all of its bytes has brought it to a tier that has all that it needs, and keeps that as long as it. If the flush
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

// Source is the object whose copy in tier t o's copy there needs for all of its bytes; nil: it needs none, or loosely.
func (o *Object) Source(t int) *Object {
	if of := o.Related(t); of != nil && !o.more.needs.loose {
		return of
	}
	return nil
}

// Related is Source, but also of a loose need, and then also while o has no copy in tier t.
func (o *Object) Related(t int) *Object {
	if !o.hasNeed() || o.more.needs.tier != t || o.more.needs.parts {
		return nil
	}
	return o.more.needs.of[0]
}

// Sources are all objects whose copies in tier t o's copy there needs, but for a loose need. The caller must not change them.
func (o *Object) Sources(t int) []*Object {
	if !o.hasNeed() || o.more.needs.tier != t || o.more.needs.loose {
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
	return slices.ContainsFunc(o.users(), func(u *Object) bool { return slices.Contains(u.Sources(t), o) })
}

// releaseNeeded ends the need of o's copy in tier t, unless it is loose.
func (ds *dependencies) releaseNeeded(o *Object, t int) {
	if len(o.Sources(t)) > 0 {
		ds.forgetNeed(o)
	}
}

// endParts ends the need of o's copy in tier t for parts of its bytes: nobody reads the copy for its own bytes any more, and those who need it read what it has.
func (ds *dependencies) endParts(o *Object, t int) {
	if o.needsParts() {
		ds.releaseNeeded(o, t)
	}
}

// forgetNeed ends the need of a copy of o, which may be loose.
func (ds *dependencies) forgetNeed(o *Object) {
	if !o.hasNeed() {
		return
	}
	n := o.more.needs
	all, t := n.of, n.tier
	if !n.loose {
		ds.tiers[t].needs -= len(all)
	}
	n.of, n.parts, n.loose, n.asked = nil, false, false, false
	for _, of := range all {
		ds.disuse(o, of, t)
	}
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
	if of == nil && len(o.Sources(t)) == 0 {
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
