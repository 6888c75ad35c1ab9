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

// Await returns a Wait for the given versions and makes their flushes urgent. A version that is gone needs no flush; waiting for it alone is
// ErrDropped.
func (e *Engine) Await(now int64, recs []*Record, t int) *Wait {
	w := &Wait{Tier: t, single: len(recs) == 1, quiet: true, left: 1} // the extra one is for this loop
	for _, rec := range recs {
		if rec.gone || e.reached(rec, t) {
			if rec.gone && w.single && !e.reached(rec, t) {
				w.Err = ErrDropped
			}
			continue
		}
		w.left++
		e.durable[rec] = append(e.durable[rec], w)
		if t > 0 {
			e.want(now, rec, t)
		}
		e.wakeWaits(now, rec)
	}
	if w.left--; w.left == 0 {
		w.Phase = Ended
	}
	e.makeProgress(now)
	w.quiet = false
	return w
}

// CancelWait forgets a wait; the flushes that it asked for go on.
func (e *Engine) CancelWait(w *Wait) {
	w.Phase, w.Notify = Ended, nil
}

// want asks for the flushes of rec down to tier t, and retries those that failed.
func (e *Engine) want(now int64, rec *Record, t int) {
	for _, o := range rec.Objects() {
		o.wants |= 1 << t
		for k, l := range e.links[:t] {
			if e.complete(o, k) && e.lower(o, k) < 0 {
				if l.refuses(e, o) {
					l.retryRefused(e.tiers[l.lower].need(o))
				}
				e.queueFlush(now, k, o, true)
			}
		}
	}
}

// reached tells whether rec is captured and, for a tier below the fastest, whether tier t or a lower one has its bytes.
func (e *Engine) reached(rec *Record, t int) bool {
	if t <= rec.Top() {
		return rec.Captured()
	}
	return e.below(rec, t-1)
}

// Durable is the set of tiers (bit t) that have all bytes of rec, themselves or in a tier below.
func (e *Engine) Durable(rec *Record) (tiers uint8) {
	for t := range e.tiers {
		if e.reached(rec, t) {
			tiers |= 1 << t
		}
	}
	return tiers
}

// wakeWaits checks the waits for rec after a change.
func (e *Engine) wakeWaits(now int64, rec *Record) {
	waits := e.durable[rec]
	if waits == nil {
		return
	}
	var still []*Wait
	for _, w := range waits {
		if w.Phase == Ended {
			continue
		}
		done, err := e.settled(rec, w)
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
				e.wake(w.Notify)
			}
		}
	}
	if still == nil {
		delete(e.durable, rec)
	} else {
		e.durable[rec] = still
	}
}

// settled tells whether rec has reached the tier of w, or never will.
func (e *Engine) settled(rec *Record, w *Wait) (done bool, err error) {
	switch {
	case e.reached(rec, w.Tier):
		return true, nil
	case rec.gone && w.single:
		return true, cmp.Or(e.failure(rec), ErrDropped)
	case rec.gone || e.failure(rec) != nil:
		return true, e.failure(rec)
	}
	for _, o := range rec.Objects() {
		for k, l := range e.links {
			if k < w.Tier && (l.refuses(e, o) || !e.tiers[l.lower].fits(o)) && e.complete(o, k) && e.lower(o, k) < 0 {
				return true, full(l.lower, "the flush of the checkpoint wants %s", quantity.Exact(o.Bytes(l.lower)))
			}
		}
	}
	return false, nil
}

// failure is why an object of rec failed, unless a flush of it is going to be tried again.
func (e *Engine) failure(rec *Record) error {
	for _, o := range rec.Objects() {
		if err := o.failed(); err != nil && (rec.gone || o.stuckOn != 0) {
			return err
		}
	}
	return nil
}

// Lost is why a version that was acknowledged before its bytes were taken (copy=False) could not be captured. Nil if it was captured, or if too many
// later failures have displaced it.
func (e *Engine) Lost(id uint64) error { return e.lost[id] }

// lostKept bounds the number of failures remembered.
const lostKept = 1024

func (e *Engine) lose(rec *Record, err error) {
	if len(e.lost) >= lostKept {
		clear(e.lost)
	}
	e.lost[rec.ID] = err
}
