package engine

import (
	"cmp"

	"velocpy/gocore/base/quantity"
)

// Wait ends when one or several versions are captured (Tier 0) or durable in a tier. A version is durable in a tier when that tier or one below it
// has all bytes.
type Wait struct {
	Tier   int
	Phase  Phase
	Err    error // of the first version that cannot become so
	Notify any
	left   int
	single bool
	quiet  bool
}

// waiters are callers that wait until checkpoints have reached a tier. The part also gives up on transfers and tiers: then it ends these waits, and lets
// the parts that have them end the restores and claims which depend on the same transfers.
type waiters struct {
	*state

	durable map[*Record][]*Wait
	lost    map[uint64]error
}

// Await returns a Wait for the given versions and makes their flushes urgent. A version that is gone needs no flush; waiting for it alone is
// ErrDropped.
func (ws *waiters) Await(now int64, recs []*Record, t int) *Wait {
	w := &Wait{Tier: t, single: len(recs) == 1, quiet: true, left: 1} // the extra one is for this loop
	for _, rec := range recs {
		if rec.gone || ws.reached(rec, t) {
			if rec.gone && w.single && !ws.reached(rec, t) {
				w.Err = ErrDropped
			}
			continue
		}
		w.left++
		ws.durable[rec] = append(ws.durable[rec], w)
		if t > 0 {
			ws.want(now, rec, t)
		}
		ws.wakeWaits(now, rec)
	}
	if w.left--; w.left == 0 {
		w.Phase = Ended
	}
	ws.makeProgress(now)
	w.quiet = false
	return w
}

// CancelWait forgets a wait; the flushes that it asked for go on.
func (ws *waiters) CancelWait(w *Wait) {
	w.Phase, w.Notify = Ended, nil
}

// want asks for the flushes of rec down to tier t, and retries those that failed.
func (ws *waiters) want(now int64, rec *Record, t int) {
	for _, o := range rec.Objects() {
		o.wants |= 1 << t
		for k, l := range ws.links[:t] {
			if ws.copies.complete(o, k) && ws.copies.lower(o, k) < 0 {
				if l.refuses(ws.state, o) {
					l.retryRefused(ws.tiers[l.lower].need(o))
				}
				ws.flushes.queueFlush(now, k, o, true)
			}
		}
	}
}

// reached tells whether rec is captured and, for a tier below the fastest, whether tier t or a lower one has its bytes.
func (ws *waiters) reached(rec *Record, t int) bool {
	if t <= rec.Top() {
		return rec.Captured()
	}
	return ws.checkpoints.below(rec, t-1)
}

// Durable is the set of tiers (bit t) that have all bytes of rec, themselves or in a tier below.
func (ws *waiters) Durable(rec *Record) (tiers uint8) {
	for t := range ws.tiers {
		if ws.reached(rec, t) {
			tiers |= 1 << t
		}
	}
	return tiers
}

// wakeWaits checks the waits for rec after a change.
func (ws *waiters) wakeWaits(now int64, rec *Record) {
	waits := ws.durable[rec]
	if waits == nil {
		return
	}
	var still []*Wait
	for _, w := range waits {
		if w.Phase == Ended {
			continue
		}
		done, err := ws.settled(rec, w)
		if !done {
			still = append(still, w)
			continue
		}
		if err != nil && w.Err == nil {
			w.Err = err
		}
		if w.left--; w.left == 0 || (w.Err != nil && w.single) {
			w.Phase = Ended
			if !w.quiet {
				ws.wake(w.Notify)
			}
		}
	}
	if still == nil {
		delete(ws.durable, rec)
	} else {
		ws.durable[rec] = still
	}
}

// settled tells whether rec has reached the tier of w, or never will.
func (ws *waiters) settled(rec *Record, w *Wait) (done bool, err error) {
	switch {
	case ws.reached(rec, w.Tier):
		return true, nil
	case rec.gone && w.single:
		return true, cmp.Or(ws.failure(rec), ErrDropped)
	case rec.gone || ws.failure(rec) != nil:
		return true, ws.failure(rec)
	}
	for _, o := range rec.Objects() {
		for k, l := range ws.links {
			if k < w.Tier && (l.refuses(ws.state, o) || !ws.tiers[l.lower].fits(o)) && ws.copies.complete(o, k) && ws.copies.lower(o, k) < 0 {
				return true, full(l.lower, "the flush of the checkpoint wants %s", quantity.Exact(o.Bytes(l.lower)))
			}
		}
	}
	return false, nil
}

// failure is why an object of rec failed, unless a flush of it is going to be tried again.
func (ws *waiters) failure(rec *Record) error {
	for _, o := range rec.Objects() {
		if err := o.failed(); err != nil && (rec.gone || o.stuckOn != 0) {
			return err
		}
	}
	return nil
}

// Lost is why a version that was acknowledged before its bytes were taken (copy=False) could not be captured. Nil if it was captured, or if too many
// later failures have displaced it.
func (ws *waiters) Lost(id uint64) error { return ws.lost[id] }

// lostKept bounds the number of failures remembered.
const lostKept = 1024

func (ws *waiters) lose(rec *Record, err error) {
	if len(ws.lost) >= lostKept {
		clear(ws.lost)
	}
	ws.lost[rec.ID] = err
}
