package engine

import (
	"slices"

	"velocpy/gocore/policy/fragment"
)

// GiveUpOn gives up on a transfer that has been under way for too long: the waiting operations fail with the reason. The transfer itself goes on,
// since it cannot be stopped. It keeps its room until Done, and may succeed.
func (e *Engine) GiveUpOn(now int64, x *Transfer, why error) {
	if x.duplicate != nil {
		return // nobody waits for it
	}
	t := max(x.From, x.To)
	err := &TierError{Tier: t, Err: why}
	for _, r := range append([]*Record{x.Rec}, x.Obj.Refs()...) {
		e.giveUpWaits(r, t, err)
		if x.Kind == Load && r.Captured() {
			e.failWaiting(now, r, err)
		}
	}
	switch x.Kind {
	case Fetch:
		if r := x.Restore; r.Phase == Waiting {
			e.endWaiting(now, r, err)
		}
	case Flush:
		e.giveUpClaims(now, x.From, err)
	}
	e.makeProgress(now)
}

// GiveUpOnTier gives up on a tier where transfers in one direction make no progress. It fails the operations that wait for bytes from the tier, for
// bytes to reach it, or for room that either would make. Queued transfers stay queued.
func (e *Engine) GiveUpOnTier(now int64, t int, d Direction, why error) {
	err := &TierError{Tier: t, Err: why}
	if d == Up {
		e.giveUpReads(now, t, err)
	} else {
		e.giveUpWrites(now, t, err)
	}
	e.makeProgress(now)
}

func (e *Engine) giveUpReads(now int64, t int, err error) {
	for rec := range e.waiting {
		if rec.Captured() && slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return e.fastest(o) == t }) {
			e.failWaiting(now, rec, err)
		}
	}
	e.Unbegun(func(x *Transfer) {
		if x.Kind == Fetch && x.From == t && x.Restore.Phase == Waiting {
			e.endWaiting(now, x.Restore, err)
		}
	})
}

func (e *Engine) giveUpWrites(now int64, t int, err error) {
	for rec := range e.durable {
		e.giveUpWaits(rec, t, err)
	}
	for rec := range e.waiting {
		if e.goesTo(rec, t) {
			e.failWaiting(now, rec, err)
		}
	}
	for k, l := range e.links {
		if l.lower == t {
			e.giveUpClaims(now, k, err)
		}
	}
	e.giveUpClaims(now, t, err)
}

// goesTo tells whether a version is being captured straight into tier t.
func (e *Engine) goesTo(r *Record, t int) bool {
	return slices.ContainsFunc(r.Objects(), func(o *Object) bool { return !o.captured && o.copies[t] != fragment.None })
}

// giveUpWaits ends the waits for a record that depend on tier t.
func (e *Engine) giveUpWaits(rec *Record, t int, err error) {
	var still []*Wait
	for _, w := range e.durable[rec] {
		switch {
		case w.Phase == Ended:
		case w.Tier >= t || e.goesTo(rec, t):
			w.Phase, w.Err = Ended, err
			e.wake(w.Notify)
		default:
			still = append(still, w)
		}
	}
	if still == nil {
		delete(e.durable, rec)
	} else {
		e.durable[rec] = still
	}
}

// giveUpClaims ends the claims of captures to room in tier t.
func (e *Engine) giveUpClaims(now int64, t int, err error) {
	tr := e.tiers[t]
	for i := 0; i < tr.claims.len(); i++ {
		if c := tr.claims.at(i); !c.load {
			c.deny(now, err)
		}
	}
	for c, ok := tr.claims.peek(); ok && c.over; c, ok = tr.claims.peek() {
		tr.claims.pop()
	}
}
