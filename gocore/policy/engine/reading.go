package engine

// Reading is a copy that the caller reads for a purpose of its own: no restore, flush or load stands for it. While it is under way the copy stays where it is. The
// checkpoint may be dropped meanwhile: its room is free when the reading has ended.
type Reading struct {
	Obj  *Object
	Tier int
}

// readings are copies that are read where they lie, by no restore: sources of other copies. They also count the verifications (verification.go).
type readings struct {
	*state

	verifying int // verifications and readings under way, in all tiers
}

// begun counts a reading or a verification that begins in tier t.
func (rd *readings) begun(t int) {
	rd.verifying++
	rd.tiers[t].verifying++
}

// ended counts a reading or a verification that has ended in tier t.
func (rd *readings) ended(t int) {
	rd.verifying--
	rd.tiers[t].verifying--
}

// BeginReading begins to read the copy of r in a tier, if there is one: complete, raw, in one object, not lent for the last time, not being loaded, and in a
// tier where no claim waits for room. EndReading follows.
func (rd *readings) BeginReading(now int64, r *Record, t int) (x Reading, ok bool) {
	if !rd.isReadable(r, t) || rd.rooms.awaitsRoom(t) {
		return x, false
	}
	return rd.beginReading(now, &r.own, t), true
}

func (rd *readings) isReadable(r *Record, t int) bool {
	o := &r.own
	return !r.gone && !r.hidden && len(r.Objects()) == 1 && r.Objects()[0] == o && rd.copies.complete(o, t) && o.Form(t) == Raw && o.loadRuns == 0
}

func (rd *readings) beginReading(now int64, o *Object, t int) Reading {
	rd.copies.row(o, t).Transfers++
	o.readings++
	rd.begun(t)
	rd.copies.updateCopy(now, o, t)
	return Reading{Obj: o, Tier: t}
}

// Keep is BeginReading for a caller that will need the copy for several flushes, also while a claim waits for room. As long as it is kept, claims wait as if something
// were under way: the caller gives it up once Obstructs says so.
func (rd *readings) Keep(now int64, r *Record, t int) (x Reading, ok bool) {
	if rd.isReadable(r, t) {
		return rd.beginReading(now, &r.own, t), true
	}
	return x, false
}

// KeepCopy is Keep for an object's copy of any form, also while another copy is lent, or nobody refers to the object any more: for a caller that gives it up soon.
func (rd *readings) KeepCopy(now int64, o *Object, t int) (x Reading, ok bool) {
	if !rd.copies.complete(o, t) {
		return x, false
	}
	return rd.beginReading(now, o, t), true
}

// Obstructs tells whether a copy that Keep keeps should be given up now: the checkpoint is gone, or lent to a caller for the last time; or a claim waits for room in any
// tier, and no flush makes room in this one; or the copy lies behind the end of the tier, or in a retired range.
func (rd *readings) Obstructs(x Reading) bool {
	if rd.mustGo(x) {
		return true
	}
	for t := range rd.tiers {
		if rd.rooms.awaitsRoom(t) {
			return !rd.drains(x.Tier)
		}
	}
	return false
}

// ObstructsThere is Obstructs, but only for claims that wait for room in the tier of the copy.
func (rd *readings) ObstructsThere(x Reading) bool {
	return rd.mustGo(x) || rd.rooms.awaitsRoom(x.Tier) && !rd.drains(x.Tier)
}

// mustGo tells whether a copy that is kept should be given up whether or not a claim waits.
func (rd *readings) mustGo(x Reading) bool {
	tr, f := rd.tiers[x.Tier], rd.copies.row(x.Obj, x.Tier)
	return x.Obj.gone || x.Obj.home.hidden || tr.behind(f) || tr.retires(f)
}

// drains tells whether flushes make room in tier t.
func (rd *readings) drains(t int) bool {
	return t < len(rd.links) && rd.links[t].queued+rd.links[t].flushing > 0
}

// EndReading ends a reading.
func (rd *readings) EndReading(now int64, x Reading) {
	rd.ended(x.Tier)
	x.Obj.readings--
	rd.copies.row(x.Obj, x.Tier).Transfers--
	rd.copies.updateCopy(now, x.Obj, x.Tier)
	rd.copies.roomAppeared(x.Tier)
	rd.makeProgress(now)
	for t := range rd.tiers { // it was the last that seemed to be under way: no worker may look again
		rd.rooms.failStalled(now, t)
	}
}

// IsInTheWay tells whether a reading should end soon: the checkpoint is gone, or lent to a caller that may write to the copy, or a claim waits for room in the tier.
func (rd *readings) IsInTheWay(x Reading) bool {
	return x.Obj.gone || x.Obj.home.hidden || rd.rooms.awaitsRoom(x.Tier)
}
