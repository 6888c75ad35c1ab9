package engine

import (
	"math"
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// claim is a demand for room that could not be met at once. Claims of a tier are served in order: no claim overtakes one that waits for a flush, so
// that large checkpoints do not starve.
type claim struct {
	obj     *Object
	patient bool   // a capture that also waits for room that only the application can make
	load    bool   // for a load, not for a capture
	retried bool   // failed flushes have been retried on behalf of this claim
	over    bool   // granted, denied or withdrawn: it only waits to be removed from the queue
	seen    uint64 // the tier's version at the last attempt
	tried   bool
	verdict verdict // of that attempt
	granted func(now int64)
	denied  func(now int64, err error)
	// These three end the claim; nil: never. elsewhere uses room of another tier, if it can. below does so when the tier has become too small. sooner
	// does so when the capture would end sooner in a lower tier than in the room that the window makes (First None: no window makes room).
	elsewhere, below func(now int64) bool
	sooner           func(now int64, w evict.Window) bool
	came             bool // deflected from a tier below, which has no room
}

// extent is the room that o takes in the tier, align the alignment of its offset.
func (tr *tier) extent(o *Object) int64 {
	g := max(tr.Grain, 1)
	return (o.Bytes(tr.index) + g - 1) / g * g
}

func (tr *tier) align(o *Object) int64 { return max(tr.Grain, o.home.Align, 1) }

// fits tells whether the empty tier could hold o.
func (tr *tier) fits(o *Object) bool {
	return tr.extent(o) <= tr.Capacity && !tr.unlisted(o)
}

// verdict is the outcome of one attempt to make room.
type verdict uint8

const (
	granted verdict = iota
	waits           // flushes, queued or running, will make room
	stuck           // no copies are evictable, or become so by a flush
)

// none is no window.
var none = evict.Window{First: fragment.None, Last: fragment.None}

// rooms finds room for copies, and evicts others for it.
type rooms struct {
	*state

	victims   []*Object // buffer of evict
	unchained bool      // a checkpoint of several objects has gone since claims were served

	wholeTable, scanLimit int // the constants of these names, except in tests
}

// room tries to place o in tier t and evicts the window that algorithm 1 chooses. It serves demands only: it breaks promises if nothing else helps,
// and makes the flushes urgent that the room depends on.
func (rm *rooms) room(now int64, t int, o *Object) verdict {
	v, w := rm.seek(now, t, o)
	if v == waits {
		rm.flushUrgently(now, t, w)
	}
	return v
}

// seek is room without making flushes urgent. It returns the window that has to be waited for, or none where a copy has to be waited for that others need.
func (rm *rooms) seek(now int64, t int, o *Object) (verdict, evict.Window) {
	tr := rm.tiers[t]
	rm.orders.compare(now)
	for tries := 0; tries < 64; tries++ {
		if id, ok := tr.table.Place(tr.extent(o), tr.align(o), o); ok {
			o.copies[t] = id
			return granted, none
		}
		w, ok := rm.choose(now, t, o, evict.Request{Floor: -1})
		if !ok {
			w, ok = rm.choose(now, t, o, evict.Request{Floor: -1, Break: true})
		}
		switch {
		case !ok && rm.evictUser(now, t, o):
			tries = 0
		case !ok && rm.flushes.flushUsers(now, t):
			return waits, none
		case !ok:
			return stuck, none
		case w.Promises > 0:
			rm.breakPromises(now, t, w)
		case w.Wait > 0:
			return waits, w
		default:
			rm.evict(now, t, w, o)
			return granted, none
		}
	}
	return stuck, none
}

// spare is room for a prefetch. It evicts nothing that is expected sooner than o and breaks no promise. If a restore is predicted to make the room
// before the flushes would, these do not become urgent. The prefetch is then tried again when that restore has ended a promise.
func (rm *rooms) spare(now int64, t int, o *Object) verdict {
	tr := rm.tiers[t]
	if id, ok := tr.table.Place(tr.extent(o), tr.align(o), o); ok {
		o.copies[t] = id
		return granted
	}
	rm.orders.compare(now)
	w, ok := rm.choose(now, t, o, evict.Request{Floor: rm.orders.distance(o.first())})
	switch {
	case !ok:
		return stuck
	case w.Wait > 0:
		if in, ok := rm.prefetches.roomByRestore(now, t, o); !ok || in >= w.Wait {
			rm.flushUrgently(now, t, w)
		}
		return waits
	}
	rm.evict(now, t, w, o)
	return granted
}

// roomNow tells whether tier t has room for o without waiting.
func (rm *rooms) roomNow(now int64, t int, o *Object) bool {
	if rm.tiers[t].claims.len() > 0 {
		return false
	}
	_, ok := rm.choose(now, t, o, evict.Request{Floor: -1, NoWait: true})
	return ok
}

func (rm *rooms) choose(now int64, t int, o *Object, req evict.Request) (evict.Window, bool) {
	tr := rm.tiers[t]
	req.Size, req.Align, req.Now, req.Count, req.Heads = tr.extent(o), tr.align(o), now, rm.count, rm.orders.places
	req.Intervals = rm.orders.intervals
	many := tr.table.Count() >= rm.wholeTable
	if req.Start = fragment.None; many {
		req.Limit, req.Start = rm.scanLimit, tr.hand
	}
	if t < len(rm.links) {
		l := rm.links[t]
		req.Backlog = max(l.backlog-now, 0)
		if !l.refusesAll() {
			req.FlushRate = 1e9 / l.down.Rate() / float64(rm.cfg.Workers) * l.sends
			req.FlushRate += l.stalls / float64(rm.cfg.Workers)
		}
		if req.FlushRate > 0 && len(l.refused) > 0 {
			req.Barred = func(id fragment.ID) bool { return l.refuses(rm.state, tr.table.At(id).Owner) }
		}
	}
	w, ok := evict.Choose(rm.cfg.Policy, tr.table, &req)
	if many && !(ok && w.Wait == 0 && w.Promises == 0) && rm.worthALook(tr, &req, ok) {
		req.Limit, req.Start = 0, fragment.None
		w, ok = evict.Choose(rm.cfg.Policy, tr.table, &req)
	}
	if !ok && req.Barred != nil && (req.Limit == 0 || rm.links[t].passable == unknown) {
		rm.flushes.recount(rm.links[t]) // so that no claim scans the whole table again before more can be flushed
	}
	rm.Stats.Decisions++
	return w, ok
}

// worthALook tells whether a large table may hold a window although a part of it held none, or none that is evictable now.
func (rm *rooms) worthALook(tr *tier, req *evict.Request, some bool) bool {
	room := tr.bytes[fragment.Gap] + tr.bytes[fragment.Free]
	if !some {
		room += tr.bytes[fragment.Flushing]
		if req.FlushRate > 0 {
			room += rm.flushes.passable(tr)
		}
		if req.Break {
			room += tr.bytes[fragment.Promised]
		}
	}
	return room >= req.Size
}

// evict frees the window, which is evictable as a whole, and places o in it.
func (rm *rooms) evict(now int64, t int, w evict.Window, o *Object) {
	tr := rm.tiers[t]
	victims := rm.victims[:0] // listed first: freeing a fragment merges it with the adjacent gap and invalidates its ID
	for id := w.First; ; id = tr.table.Next(id) {
		if f := tr.table.At(id); f.Class != fragment.Gap {
			victims = append(victims, f.Owner)
		}
		if id == w.Last {
			break
		}
	}
	gap := w.First
	for i, victim := range victims {
		gap = rm.evictCopy(now, t, victim)
		victims[i] = nil
	}
	rm.victims = victims
	id, ok := tr.table.PlaceIn(gap, tr.extent(o), tr.align(o), o)
	if !ok {
		panic("engine: the window chosen does not hold what it was chosen for")
	}
	tr.hand = tr.table.Next(id)
	o.copies[t] = id
	rm.dependencies.followUnneeded(now)
}

// evictUser evicts a copy in tier t that needs others there for parts of its bytes, so that these may be evicted and make room for o: the one that is expected last. It tells whether
// there was one, and enough to evict.
func (rm *rooms) evictUser(now int64, t int, o *Object) bool {
	tr := rm.tiers[t]
	if tr.needs == 0 {
		return false
	}
	var last *Object
	room := tr.bytes[fragment.Gap] + tr.bytes[fragment.Free]
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		f := tr.table.At(id)
		if f.Class == fragment.Free && f.Owner.needsParts() && len(f.Owner.Sources(t)) > 0 {
			if last == nil || rm.orders.distance(last.first()) < rm.orders.distance(f.Owner.first()) {
				last = f.Owner
			}
		}
		if f.Class == fragment.Held && f.Owner != nil && f.Owner.isNeeded(t) && f.Pins == 0 && f.Transfers == 0 {
			room += f.Size
		}
	}
	if last == nil || room < tr.extent(o) {
		return false
	}
	rm.evictCopy(now, t, last)
	rm.dependencies.followUnneeded(now)
	return true
}

// evictCopy frees the room of a copy that is evictable, and returns the gap there.
func (rm *rooms) evictCopy(now int64, t int, victim *Object) fragment.ID {
	rm.copies.step(victim, t, lifecycle.Evict)
	rm.Stats.Tiers[t].Evicted += victim.Bytes(t)
	rm.traceMove(now, Evicted, victim, t, 0)
	return rm.copies.free(victim, t)
}

// flushUrgently makes the flushes urgent that the window waits for, if there is a window.
func (rm *rooms) flushUrgently(now int64, t int, w evict.Window) {
	tr := rm.tiers[t]
	for id := w.First; id != fragment.None; id = tr.table.Next(id) {
		f := tr.table.At(id)
		if f.Class == fragment.Dirty || f.Class == fragment.Flushing {
			rm.flushes.queueFlush(now, t, f.Owner, true)
		}
		if id == w.Last {
			return
		}
	}
}

// breakPromises withdraws the promises in the window: a demand that an operation waits for has priority over a prediction.
func (rm *rooms) breakPromises(now int64, t int, w evict.Window) {
	tr := rm.tiers[t]
	for id := w.First; ; id = tr.table.Next(id) {
		if f := tr.table.At(id); f.Class == fragment.Promised {
			o := f.Owner
			rm.release(now, o, t)
			for _, r := range o.Refs() {
				r.Hist.promised[t] = min(r.Hist.promised[t], r.seq)
			}
			rm.Stats.BrokenPromises++
		}
		if id == w.Last {
			return
		}
	}
}

// release ends a promise without consuming. The copy gets the state that it would have without the promise.
func (rm *rooms) release(now int64, o *Object, t int) {
	if rm.copies.row(o, t).State != lifecycle.ReadComplete {
		return
	}
	rm.copies.step(o, t, lifecycle.Release(rm.copies.lower(o, t) >= 0))
	rm.copies.updateCopy(now, o, t)
}

// demand asks for room in tier t. It calls granted or denied of the claim, at once if it can.
func (rm *rooms) demand(now int64, t int, c *claim) {
	tr := rm.tiers[t]
	if tr.claims.len() == 0 && rm.attempt(now, t, c) {
		return
	}
	tr.claims.push(c)
	rm.failStalled(now, t)
}

// attempt serves a claim if that is possible now.
func (rm *rooms) attempt(now int64, t int, c *claim) bool {
	tr := rm.tiers[t]
	if c.over {
		return true
	}
	if c.tried && c.seen == tr.version {
		return false
	}
	v, w := stuck, none
	if !c.load || !rm.loads.isPointless(c.obj, t) {
		v, w = rm.seek(now, t, c.obj)
	}
	switch {
	case v == granted:
		c.over = true
		c.granted(now)
		return true
	case c.sooner != nil && c.sooner(now, w):
		return true
	case v == waits:
		rm.flushUrgently(now, t, w)
	}
	c.tried, c.seen, c.verdict = true, tr.version, v
	return false
}

// deny ends a claim without room. It stays in its queue until it is at the head.
func (c *claim) deny(now int64, err error) {
	if !c.over {
		c.over = true
		c.denied(now, err)
	}
}

// withdrawClaims ends the claims for o: all of them, or only those of loads.
func (rm *rooms) withdrawClaims(now int64, o *Object, loads bool) {
	for _, tr := range rm.tiers {
		for i := 0; i < tr.claims.len(); i++ {
			if c := tr.claims.at(i); c.obj == o && (c.load || !loads) {
				c.deny(now, ErrDropped)
			}
		}
	}
}

// serve grants the claims of tier t in order as long as there is room.
func (rm *rooms) serve(now int64, t int) {
	tr := rm.tiers[t]
	for {
		c, ok := tr.claims.peek()
		if !ok || !rm.attempt(now, t, c) {
			break
		}
		tr.claims.pop()
	}
	rm.failStalled(now, t)
}

// noteGone records that a checkpoint has gone. If it had several objects, failStalled serves the claims of all tiers afterwards.
func (rm *rooms) noteGone(r *Record) { rm.unchained = rm.unchained || !r.isWhole() }

// failStalled ends the claims that the engine can never serve by itself: leases hold all bytes, or no lower tier takes them. It retries failed
// flushes first. While nothing moves, the order of the claims does not count. A claim that waits for the application must not delay one that may not
// wait, or one that fits.
func (rm *rooms) failStalled(now int64, t int) {
	tr := rm.tiers[t]
	if tr.claims.len() > 0 && rm.budgets.Draining(t) && !rm.progressing() { // copies across the end of a shrunk tier fill a part of it
		rm.budgets.drain(now, t, math.MaxInt)
	}
	for i := 0; i < tr.claims.len() && !rm.progressing(); i++ {
		c := tr.claims.at(i)
		if !c.retried {
			c.retried = true
			c.tried = !rm.flushes.retryStuck(now, t) && c.tried
		}
		if rm.attempt(now, t, c) || rm.progressing() {
			continue
		}
		// Even if the replaced version is not given up, looking it up may have made a record of a row, and a flush of that may make room.
		rm.giveUpReplaced(now, t, c)
		if rm.attempt(now, t, c) || rm.progressing() {
			continue
		}
		if c.elsewhere != nil && c.elsewhere(now) {
			continue
		}
		failing := t < len(rm.links) && rm.links[t].stuck > 0
		if tr.Device && !failing && !c.came && c.below != nil && c.below(now) { // here only the application could make room
			continue
		}
		if c.patient && !failing {
			continue
		}
		why := rm.whyFull(t, c.obj)
		if !c.load || !rm.restores.bypassCache(now, c.obj, why, !failing) {
			c.deny(now, why)
		}
	}
	for c, ok := tr.claims.peek(); ok && c.over; c, ok = tr.claims.peek() {
		tr.claims.pop()
	}
	if rm.unchained { // a capture was denied, and what only it needed has made room, perhaps in another tier
		rm.unchained = false
		for u := range rm.tiers {
			rm.serve(now, u)
		}
	}
}

// giveUpReplaced gives up the version that a capture is about to replace, if that makes its room. So an application can rewrite its keys in a tier that they
// fill.
func (rm *rooms) giveUpReplaced(now int64, t int, c *claim) {
	if c.load {
		return
	}
	rec := c.obj.home
	old := rec.Hist.Get(rec.Key)
	if old == nil || old == rec || !rm.freesAlone(old, c.obj, t) {
		return
	}
	if rm.catalogued(t) {
		return // its room stays reserved until the new version is in the catalog
	}
	rm.checkpoints.replace(now, old, rec)
}

// freesAlone tells whether a checkpoint that is dropped frees room for o in tier t: a copy that no other checkpoint needs, or that of a gone object which is kept for
// this copy alone. One of them has to be large enough by itself.
func (rm *rooms) freesAlone(old *Record, o *Object, t int) bool {
	tr := rm.tiers[t]
	leavesRoom := func(x *Object) bool { return tr.extent(x) >= tr.extent(o) && tr.align(x) >= tr.align(o) }
	for _, x := range old.Objects() {
		if x.copies[t] == fragment.None || x.isShared() || x.isNeeded(t) || !rm.isFreedAtOnce(x, t) {
			continue
		}
		if leavesRoom(x) {
			return true
		}
		for _, of := range x.Sources(t) {
			if of.gone && of.isNeededOnlyBy(x, t) && rm.isFreedAtOnce(of, t) && leavesRoom(of) {
				return true
			}
		}
	}
	return false
}

// isNeededOnlyBy tells whether u's copy in tier t is the only one there that needs o's.
func (o *Object) isNeededOnlyBy(u *Object, t int) bool {
	return slices.Contains(u.Sources(t), o) && !slices.ContainsFunc(o.users(), func(other *Object) bool { return other != u && slices.Contains(other.Sources(t), o) })
}

// isFreedAtOnce tells whether the room of x's copy in tier t can be used as soon as the object is gone and no copy needs it.
func (rm *rooms) isFreedAtOnce(x *Object, t int) bool {
	tr, f := rm.tiers[t], rm.copies.row(x, t)
	becomesIdle := tr.retires(f) && (tr.allotted == 0 || rm.budgets.InUse(t) > tr.allotted)
	return f.Pins == 0 && f.Transfers == 0 && !tr.behind(f) && !becomesIdle
}

// whyFull says why there is no room in tier t.
func (rm *rooms) whyFull(t int, o *Object) error {
	tr := rm.tiers[t]
	if t < len(rm.links) {
		if l := rm.links[t]; l.stuck > 0 && l.err != nil {
			return &TierError{Tier: l.lower, Err: l.err}
		}
	}
	lent, used := rm.copies.pinnedBytes(t), tr.used()
	return full(t, "%s wanted, %s of %s used: %s by leases, %s by checkpoints for which no lower tier has room", quantity.Exact(o.Bytes(t)),
		quantity.Sized(used), quantity.Exact(tr.Capacity-tr.idleBytes), quantity.Sized(lent), quantity.Sized(used-lent-tr.bytes[fragment.Free]))
}

// progressing tells whether anything is under way that ends by itself, or when it obstructs.
func (s *state) progressing() bool {
	if s.transfers.running > 0 || s.captures.capturing > 0 || s.restores.copying > 0 || s.budgets.owed > 0 || s.readings.verifying > 0 || s.transfers.passing[Down].len() > 0 || s.transfers.passing[Up].len() > 0 {
		return true
	}
	for _, l := range s.links {
		if l.demand.len() > 0 || l.ahead.len() > 0 || l.queued > 0 {
			return true
		}
	}
	return false
}

// giveUpClaims ends the claims of captures to room in tier t.
func (rm *rooms) giveUpClaims(now int64, t int, err error) {
	tr := rm.tiers[t]
	for i := 0; i < tr.claims.len(); i++ {
		if c := tr.claims.at(i); !c.load {
			c.deny(now, err)
		}
	}
	for c, ok := tr.claims.peek(); ok && c.over; c, ok = tr.claims.peek() {
		tr.claims.pop()
	}
}

// awaitsRoom tells whether a claim, or a flush from above, waits for room in a tier.
func (rm *rooms) awaitsRoom(t int) bool {
	tr := rm.tiers[t]
	if tr.claims.len() > 0 {
		return true
	}
	for _, l := range rm.links {
		if l.lower == t && l.paused == tr.version+1 && l.queued > l.flushing {
			return true
		}
	}
	return false
}
