package engine

import "velocpy/gocore/policy/fragment"

// A copy may hold only what differs from another object's copy in the same tier, which it needs for its bytes then. The other copy keeps its place while it is needed,
// even when nobody refers to its object any more.

// needs is what the copies of an object need, and which others need them. Most objects have none.
type needs struct {
	tier   int     // of a copy that needs another
	of     *Object // … the copy of this object; nil: no copy needs another
	others [MaxTiers]int32
}

// Need records that o's copy in tier t, which has room there, needs that of another object, until it gives its room back or needs it no more. An object has one such
// copy. False: the other copy is not complete, or it needs another one itself, so that a restore would have to read a chain of them; or the tier is none in which
// copies can need each other.
func (e *Engine) Need(now int64, o, of *Object, t int) bool {
	if o == of || !e.canNeed(t, o, of) || o.copies[t] == fragment.None || !e.complete(of, t) || o.isNeeded(t) || o.hasNeed() || of.hasNeed() {
		return false
	}
	n := o.extra().needing()
	n.tier, n.of = t, of
	of.extra().needing().others[t]++
	e.updateCopy(now, of, t)
	return true
}

// canNeed tells whether copies of two objects in tier t may need each other. In the fastest tier of an object readers find plain bytes, and what a catalog lists keeps
// what it needs by itself. A copy that moves has two places.
func (e *Engine) canNeed(t int, o, of *Object) bool {
	tr := e.tiers[t]
	return !tr.listed && !tr.Referring && t != int(o.top) && t != int(of.top) && o.home.duplicates+of.home.duplicates == 0
}

// hasNeed tells whether a copy of o needs another one.
func (o *Object) hasNeed() bool {
	return o.more != nil && o.more.needs != nil && o.more.needs.of != nil
}

// NeedNoMore ends Need.
func (e *Engine) NeedNoMore(now int64, o *Object, t int) {
	e.releaseNeeded(o, t)
	e.makeProgress(now)
}

// Source is the object whose copy in tier t o's copy there needs; nil: it needs none.
func (o *Object) Source(t int) *Object {
	if !o.hasNeed() || o.more.needs.tier != t {
		return nil
	}
	return o.more.needs.of
}

// Offset is where o's copy in tier t lies, which it has.
func (e *Engine) Offset(o *Object, t int) int64 { return e.row(o, t).Offset }

func (m *more) needing() *needs {
	if m.needs == nil {
		m.needs = new(needs)
	}
	return m.needs
}

// isNeeded tells whether copies of other objects need o's copy in tier t.
func (o *Object) isNeeded(t int) bool {
	return o.more != nil && o.more.needs != nil && o.more.needs.others[t] > 0
}

// releaseNeeded ends the need of o's copy in tier t. The other copy gives its room back when followUnneeded runs: now the engine may be about to use a gap beside it.
func (e *Engine) releaseNeeded(o *Object, t int) {
	of := o.Source(t)
	if of == nil {
		return
	}
	o.more.needs.of = nil
	if of.more.needs.others[t]--; of.more.needs.others[t] == 0 {
		e.unneeded = append(e.unneeded, unneeded{of, t})
	}
}

// unneeded is a copy that was needed.
type unneeded struct {
	o *Object
	t int
}

// followUnneeded gives the copies that were needed back to eviction, and the room of those whose objects are gone.
func (e *Engine) followUnneeded(now int64) {
	for len(e.unneeded) > 0 {
		last := len(e.unneeded) - 1
		x := e.unneeded[last]
		e.unneeded = e.unneeded[:last]
		e.updateCopy(now, x.o, x.t)
	}
}
