package engine

import (
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// headroomFor is for how many operations a capture counts as recent: while captures are recent, prefetches leave room for two of them.
const headroomFor = 16

// prefetches decides which loads begin before their restores.
type prefetches struct {
	*state

	toPrefetch    []*History // those whose prefetcher may have work
	prefetchSpare []*History // the list's other buffer
	turns         turns      // buffer of prefetchTier
}

// StartPrefetch allows prefetching before the first restore.
func (ps *prefetches) StartPrefetch(now int64, h *History) {
	h.started = true
	ps.queuePrefetch(h)
	ps.makeProgress(now)
}

// lookAgain makes the prefetcher of tier t go over the order again from seq on.
func (ps *prefetches) lookAgain(h *History, t int, seq int64) {
	if seq < h.promised[t] {
		h.promised[t] = seq
	}
	h.verifiedTo = min(h.verifiedTo, seq)
	ps.queuePrefetch(h)
}

// queuePrefetch puts the history on the list of those whose prefetcher may have work.
func (ps *prefetches) queuePrefetch(h *History) {
	ps.verifications.queueVerification(h)
	if h.started && !h.inPrefetch && ps.cfg.Prefetch {
		h.inPrefetch = true
		ps.toPrefetch = append(ps.toPrefetch, h)
	}
}

// promises tells whether all objects of rec are promised in tier t.
func (ps *prefetches) promises(rec *Record, t int) bool {
	for _, o := range rec.Objects() {
		if id := o.copies[t]; id == fragment.None || ps.tiers[t].table.At(id).State != lifecycle.ReadComplete {
			return false
		}
	}
	return true
}

// ahead promises the copies of rec's objects in tier t or begins to load them, in the order in which a restore needs them; false if that has to wait.
func (ps *prefetches) ahead(now int64, h *History, rec *Record, t int) bool {
	if !ps.checkpoints.mayRead(rec, t) || t == rec.Top() && !ps.restores.fitsWhole(rec, t) {
		return true
	}
	for _, o := range rec.Objects() {
		ps.dependencies.aheadOfSource(now, h, o, t)
		if !ps.aheadOf(now, h, o, t) {
			return false
		}
	}
	return true
}

func (ps *prefetches) aheadOf(now int64, h *History, o *Object, t int) bool {
	tr := ps.tiers[t]
	if !ps.loads.isLoadable(o, t) {
		return true
	}
	if id := o.copies[t]; id != fragment.None {
		f := tr.table.At(id)
		if tr.behind(f) {
			return true // a copy that has to leave a shrunk tier is not promised
		}
		if f.State == lifecycle.WriteComplete || f.State == lifecycle.Flushed {
			if tr.claims.len() > 0 || (f.Class != fragment.Held && tr.bytes[fragment.Promised]+o.Bytes(t) > tr.Capacity-ps.headroom(t)) {
				return false
			}
			ps.copies.step(o, t, lifecycle.Promise)
			ps.copies.updateCopy(now, o, t)
		}
		return true
	}
	if ps.Below(t) < 0 || o.loadsOn&(1<<t) != 0 {
		return true
	}
	l := ps.links[t]
	if !ps.copies.complete(o, l.lower) {
		return false // it is loaded into the tier below first
	}
	if ps.loads.loadsEnough(l) {
		return false
	}
	if tr.bytes[fragment.Promised]+tr.bytes[fragment.Held]+o.Bytes(t) > tr.Capacity-ps.headroom(t) || tr.claims.len() > 0 || ps.flushes.isUnderPressure(t) {
		return false
	}
	if ps.rooms.spare(now, t, o) != granted {
		h.stuck[t] = tr.version + 1
		return false
	}
	ps.copies.row(o, l.lower).Transfers++
	ps.copies.updateCopy(now, o, l.lower)
	o.loadsOn |= 1 << t
	ps.loads.beginLoad(now, o, t, false)
	return true
}

// headroom is the room of tier t that prefetches leave to captures.
func (ps *prefetches) headroom(t int) int64 {
	tr := ps.tiers[t]
	if tr.captured == 0 || ps.count-tr.captures > headroomFor {
		tr.captured = 0
		return 0
	}
	return min(2*tr.captured, tr.Capacity/2)
}
