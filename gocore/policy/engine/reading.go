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
	o := &r.own
	if r.gone || r.hidden || len(r.Objects()) != 1 || r.Objects()[0] != o || !e.complete(o, t) || o.Form(t) != Raw || o.loadRuns != 0 || e.awaitsRoom(t) {
		return x, false
	}
	e.row(o, t).Transfers++
	e.verifying++
	e.tiers[t].verifying++
	e.updateCopy(now, o, t)
	return Reading{Obj: o, Tier: t}, true
}

// EndReading ends a reading.
func (e *Engine) EndReading(now int64, x Reading) {
	e.verifying--
	e.tiers[x.Tier].verifying--
	e.row(x.Obj, x.Tier).Transfers--
	e.updateCopy(now, x.Obj, x.Tier)
	e.roomAppeared(x.Tier)
	e.makeProgress(now)
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
