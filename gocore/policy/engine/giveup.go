package engine

import (
	"slices"
)

// GiveUpOn gives up on a transfer that has been under way for too long: the waiting operations fail with the reason. The transfer itself goes on,
// since it cannot be stopped. It keeps its room until Done, and may succeed.
func (ws *waiters) GiveUpOn(now int64, x *Transfer, why error) {
	if x.duplicate != nil {
		return // nobody waits for it
	}
	t := max(x.From, x.To)
	err := &TierError{Tier: t, Err: why}
	for _, r := range append([]*Record{x.Rec}, x.Obj.Refs()...) {
		ws.giveUpWaits(r, t, err)
		if x.Kind == Load && r.Captured() {
			ws.restores.failWaiting(now, r, err)
		}
	}
	switch x.Kind {
	case Fetch:
		if r := x.Restore; r.Phase == Waiting {
			ws.restores.endWaiting(now, r, err)
		}
	case Flush:
		ws.rooms.giveUpClaims(now, x.From, err)
	}
	ws.makeProgress(now)
}

// GiveUpOnTier gives up on a tier where transfers in one direction make no progress. It fails the operations that wait for bytes from the tier, for
// bytes to reach it, or for room that either would make. Queued transfers stay queued.
func (ws *waiters) GiveUpOnTier(now int64, t int, d Direction, why error) {
	err := &TierError{Tier: t, Err: why}
	if d == Up {
		ws.giveUpReads(now, t, err)
	} else {
		ws.giveUpWrites(now, t, err)
	}
	ws.makeProgress(now)
}

func (ws *waiters) giveUpReads(now int64, t int, err error) {
	for rec := range ws.restores.waiting {
		if rec.Captured() && slices.ContainsFunc(rec.Objects(), func(o *Object) bool { return ws.copies.fastest(o) == t }) {
			ws.restores.failWaiting(now, rec, err)
		}
	}
	ws.transfers.Unbegun(func(x *Transfer) {
		if x.Kind == Fetch && x.From == t && x.Restore.Phase == Waiting {
			ws.restores.endWaiting(now, x.Restore, err)
		}
	})
}

func (ws *waiters) giveUpWrites(now int64, t int, err error) {
	for rec := range ws.durable {
		ws.giveUpWaits(rec, t, err)
	}
	for rec := range ws.restores.waiting {
		if ws.copies.goesTo(rec, t) {
			ws.restores.failWaiting(now, rec, err)
		}
	}
	for k, l := range ws.links {
		if l.lower == t {
			ws.rooms.giveUpClaims(now, k, err)
		}
	}
	ws.rooms.giveUpClaims(now, t, err)
}

// giveUpWaits ends the waits for a record that depend on tier t.
func (ws *waiters) giveUpWaits(rec *Record, t int, err error) {
	var still []*Wait
	for _, w := range ws.durable[rec] {
		switch {
		case w.Phase == Ended:
		case w.Tier >= t || ws.copies.goesTo(rec, t):
			w.Phase, w.Err = Ended, err
			ws.wake(w.Notify)
		default:
			still = append(still, w)
		}
	}
	if still == nil {
		delete(ws.durable, rec)
	} else {
		ws.durable[rec] = still
	}
}
