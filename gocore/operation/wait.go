package operation

import (
	"errors"

	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/pending"
)

// wait is the operation that ends when versions are captured or durable.
type wait struct {
	watching
	wait       *engine.Wait
	recs       []*engine.Record // records whose source a device may still be reading
	many       bool             // for all versions of a history or store, so versions dropped meanwhile are no error
	history    *engine.History  // of many; nil: all histories
	lentBefore int64            // value of Findings.LentLoads when the wait began
}

// undo is part of operation.
func (op *wait) undo() *Outcome {
	op.s.Engine.CancelWait(op.wait)
	return nil
}

// release is part of operation.
func (op *wait) release() { op.dropEvent() }

// account is part of operation.
func (op *wait) account(c *figures.Counters) {
	op.Op.account(c)
	c.DurableWait += op.waited
}

// Wait returns an operation that ends when the versions are captured (tier TierNone) or durable in the tier. It covers one ticket, all of a history,
// or, without a history and with ticket zero, all of the store.
func Wait(s *cache.Cache, of History, ticket uint64, tier int, fd int32) (*Op, status.Code, error) {
	op := &wait{watching: watching{Op: begun(s, fd)}, many: ticket == 0}
	op.does = op
	returned := false
	defer op.disownUnless(&returned)
	code, err := op.open(of, ticket, tier)
	returned = true
	return &op.Op, code, err
}

func (op *wait) open(of History, ticket uint64, tier int) (status.Code, error) {
	s := op.s
	if err := s.Enter(); err != nil {
		return status.CodeOf(err), err
	}
	defer s.Leave()
	t, err := s.TierIndex(tier)
	if err != nil {
		return status.CodeOf(err), err
	}
	var h *engine.History
	if of != nil {
		h = of.Engine()
	}
	op.history = h
	op.lentBefore = s.Findings.LentLoads
	recs, err := versions(s, h, ticket, t)
	if err != nil {
		return status.CodeOf(err), err
	}
	if t == 0 && len(s.Devices) > 0 {
		op.recs = recs
		if c := s.Orphans.Of(ticket); ticket != 0 && c != nil {
			op.watch(c.Device, c.Event.Keep())
		}
	}
	s.RetryForCaller()
	op.wait = s.Engine.Await(s.Now(), recs, t)
	op.wait.Notify = &op.Op
	s.Callers[&op.Op] = struct{}{}
	return op.checkWait(&Outcome{})
}

// step is part of operation.
func (op *wait) step(out *Outcome) (status.Code, error) {
	s := op.s
	s.Lock()
	defer s.Leave()
	return op.checkWait(out)
}

func (op *wait) checkWait(out *Outcome) (status.Code, error) {
	s, w := op.s, op.wait
	if err := op.deferredError(); err != nil {
		op.giveUpWait()
		return status.CodeOf(err), err
	}
	switch {
	case w.Phase == engine.Ended && op.isCopying():
	case w.Phase == engine.Ended && op.many && s.Findings.Pending(op.history, op.lentBefore):
	case w.Phase == engine.Ended:
		op.end()
		out.Waited = op.waited
		if op.failed != nil {
			return status.CodeOf(op.failed), op.failed
		}
		if w.Err == nil || op.many && errors.Is(w.Err, engine.ErrDropped) {
			return status.OK, nil
		}
		err := s.Explain(w.Err, nil)
		return err.Code, err
	case s.Closing:
		op.giveUpWait()
		return status.Closed, cache.ErrClosed
	}
	return op.waits(s.Now())
}

func (op *wait) giveUpWait() {
	op.s.Engine.CancelWait(op.wait)
	op.dropEvent()
	op.end()
}

// deferredError returns a finding about earlier restores, for a wait that covers all of a history or store.
func (op *wait) deferredError() error {
	if !op.many {
		return nil
	}
	return op.s.Findings.TakeFinding(op.history, true)
}

// versions returns the records that a wait covers.
func versions(s *cache.Cache, h *engine.History, ticket uint64, t int) ([]*engine.Record, error) {
	if ticket != 0 {
		r := s.Engine.Record(ticket)
		if r == nil {
			if err := s.Engine.Lost(ticket); err != nil {
				return nil, s.Explain(err, nil)
			}
			if t == 0 {
				return nil, nil // the version was captured, or no transfer reads its source any more
			}
			return nil, status.New(status.Dropped, "the checkpoint of this ticket was dropped, replaced or consumed: it owes no flush any more")
		}
		return []*engine.Record{r}, nil
	}
	var recs []*engine.Record
	add := func(r *engine.Record) { recs = append(recs, r) }
	if h != nil {
		h.Each(add)
		return recs, nil
	}
	for _, h := range s.Engine.Histories() {
		h.Each(add)
	}
	return recs, nil
}

// isCopying tells whether a device still copies the bytes of a version that the operation waits for. If so, the caller is notified when the copy
// ends. The lock is held.
func (op *wait) isCopying() bool {
	if op.event != nil {
		passed, err := op.event.Passed()
		if !passed && err == nil {
			return true
		}
		op.failed = devicememory.Explain(err)
		op.dropEvent()
	}
	for len(op.recs) > 0 {
		b, a := op.recs[0].Version, op.s.DeviceOf(op.recs[0])
		if c := pending.Of(b); c != nil && c.Event != nil && a.Device.Lost() != nil {
			op.failed = devicememory.Explain(a.Device.Lost())
		}
		if !pending.IsCopied(b) {
			op.watch(op.s.DeviceOf(op.recs[0]), pending.Of(b).Event.Keep())
			return true
		}
		op.recs = op.recs[1:]
	}
	return false
}
