package engine

// Despair is for a transfer that has been under way for so long that nobody should wait for it any more: those who do are told why. The transfer itself is not
// touched, as nobody knows how to end it: it goes on holding what it holds until Done, and may succeed.
func (e *Engine) Despair(now int64, x *Transfer, why error) {
	t := max(x.From, x.To)
	err := &TierError{Tier: t, Err: why}
	e.giveUpWaits(x.Rec, err)
	switch x.Kind {
	case Load:
		e.failWaiting(now, x.Rec, err)
	case Fetch:
		if r := x.Restore; r.Phase == Waiting {
			e.endWaiting(r, err)
		}
	case Flush:
		e.giveUpClaims(now, x.From, err)
	}
	e.pump(now)
}

// DespairOfRoom is for what the caller owes of tier t, and does not come: who waits for room there is told why.
func (e *Engine) DespairOfRoom(now int64, t int, why error) {
	e.giveUpClaims(now, t, &TierError{Tier: t, Err: why})
	e.pump(now)
}

// giveUpWaits ends the waits that concern a record.
func (e *Engine) giveUpWaits(rec *Record, err error) {
	for _, w := range e.durable[rec] {
		if w.Phase == Ended {
			continue
		}
		w.Phase, w.Err = Ended, err
		e.wake(w.Notify)
	}
	delete(e.durable, rec)
}

// giveUpClaims ends the claims to room in tier t that flushes out of it would have made.
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
