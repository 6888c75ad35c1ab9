package engine

// Reading is a copy that the caller reads for a purpose of its own: no restore, flush or load stands for it. While it is under way the copy stays where it is. The
// checkpoint may be dropped meanwhile: its room is free when the reading has ended.
type Reading struct {
	Obj  *Object
	Tier int
}

// BeginReading begins to read the copy of r in a tier, if there is one: complete, raw, in one object, not lent for the last time, not being loaded, and in a
// tier where no claim waits for room. EndReading follows.
func (e *Engine) BeginReading(now int64, r *Record, t int) (x Reading, ok bool) {
	if !e.isReadable(r, t) || e.awaitsRoom(t) {
		return x, false
	}
	return e.beginReading(now, &r.own, t), true
}

func (e *Engine) isReadable(r *Record, t int) bool {
	o := &r.own
	return !r.gone && !r.hidden && len(r.Objects()) == 1 && r.Objects()[0] == o && e.complete(o, t) && o.Form(t) == Raw && o.loadRuns == 0
}

func (e *Engine) beginReading(now int64, o *Object, t int) Reading {
	e.row(o, t).Transfers++
	o.readings++
	e.verifying++
	e.tiers[t].verifying++
	e.updateCopy(now, o, t)
	return Reading{Obj: o, Tier: t}
}

// Keep is BeginReading for a caller that will need the copy for several flushes, also while a claim waits for room. As long as it is kept, claims wait as if something
// were under way: the caller gives it up once Obstructs says so.
func (e *Engine) Keep(now int64, r *Record, t int) (x Reading, ok bool) {
	if e.isReadable(r, t) {
		return e.beginReading(now, &r.own, t), true
	}
	return x, false
}

// KeepCopy is Keep for an object's copy of any form, also while another copy is lent, or nobody refers to the object any more: for a caller that gives it up soon.
func (e *Engine) KeepCopy(now int64, o *Object, t int) (x Reading, ok bool) {
	if !e.complete(o, t) {
		return x, false
	}
	return e.beginReading(now, o, t), true
}

// Obstructs tells whether a copy that Keep keeps should be given up now: the checkpoint is gone, or lent to a caller for the last time; or a claim waits for room in any
// tier, and no flush makes room in this one; or the copy lies behind the end of the tier, or in a retired range.
func (e *Engine) Obstructs(x Reading) bool {
	if e.mustGo(x) {
		return true
	}
	for t := range e.tiers {
		if e.awaitsRoom(t) {
			return !e.drains(x.Tier)
		}
	}
	return false
}

// ObstructsThere is Obstructs, but only for claims that wait for room in the tier of the copy.
func (e *Engine) ObstructsThere(x Reading) bool {
	return e.mustGo(x) || e.awaitsRoom(x.Tier) && !e.drains(x.Tier)
}

// mustGo tells whether a copy that is kept should be given up whether or not a claim waits.
func (e *Engine) mustGo(x Reading) bool {
	tr, f := e.tiers[x.Tier], e.row(x.Obj, x.Tier)
	return x.Obj.gone || x.Obj.home.hidden || tr.behind(f) || tr.retires(f)
}

// drains tells whether flushes make room in tier t.
func (e *Engine) drains(t int) bool {
	return t < len(e.links) && e.links[t].queued+e.links[t].flushing > 0
}

// EndReading ends a reading.
func (e *Engine) EndReading(now int64, x Reading) {
	e.verifying--
	e.tiers[x.Tier].verifying--
	x.Obj.readings--
	e.row(x.Obj, x.Tier).Transfers--
	e.updateCopy(now, x.Obj, x.Tier)
	e.roomAppeared(x.Tier)
	e.makeProgress(now)
	for t := range e.tiers { // it was the last that seemed to be under way: no worker may look again
		e.failStalled(now, t)
	}
}

// IsInTheWay tells whether a reading should end soon: the checkpoint is gone, or lent to a caller that may write to the copy, or a claim waits for room in the tier.
func (e *Engine) IsInTheWay(x Reading) bool {
	return x.Obj.gone || x.Obj.home.hidden || e.awaitsRoom(x.Tier)
}

// awaitsRoom tells whether a claim, or a flush from above, waits for room in a tier.
func (e *Engine) awaitsRoom(t int) bool {
	tr := e.tiers[t]
	if tr.claims.len() > 0 {
		return true
	}
	for _, l := range e.links {
		if l.lower == t && l.paused == tr.version+1 && l.queued > l.flushing {
			return true
		}
	}
	return false
}
