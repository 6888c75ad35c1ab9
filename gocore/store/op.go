package store

import (
	"errors"
	"strings"
	"sync"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// Outcome is what a call or a step gives back.
type Outcome struct {
	Ticket    uint64
	Lease     *Lease
	Layout    uint64
	Slot      int64 // resize: what the tiers that it was for have; of free memory: what was given back
	Meta      int64
	HintsLeft int64
	Key       model.Key
	Waited    int64 // ns
	Hit       bool
}

type opKind uint8

const (
	captureOp opKind = iota
	restoreOp
	waitOp
	closeOp
	resizeOp
)

// Op is an operation that could not end at once. Its caller steps it until it ends, or cancels it, from any goroutine: calls that meet
// take turns, and one that comes after the end is told so.
type Op struct {
	s    *Store
	kind opKind
	notifier notifier
	turn sync.Mutex // held by the call that steps or cancels; never taken while the store's lock is held

	capture *engine.Capture
	restore *engine.Restore
	wait    *engine.Wait
	recs    []*engine.Record       // wait: whose bytes a device may still be taking
	many    bool                   // wait: for all of a history or store, so that nobody minds what has gone
	history *engine.History        // wait: of many, or nil for all histories
	lentBefore   int64                  // wait: what had been given when it began
	sized   []*devicememory.Memory // resize: the devices …
	host    bool                   // … and other tiers of which it tells what they have
	disk    bool
	trims   int64 // resize: the request to give back what is free that it waits for; 0: none
	given   int64 // … and the bytes that had been given back before

	asked   int64                // capture: when
	device  *devicememory.Memory // of the regions that lie on one, or else of the record
	looped  bool                 // leaves what is due for a loop over the plan alone
	streams []uint64             // the caller's, on that device
	at      int64                // offset of the bytes in the tier of a device, when there is room or they are there
	placed  bool                 // at is valid
	mark    device.Mark          // what the operation waits for: work of a device
	async  *asyncJob              // what somebody else does for it
	sent    bool                 // restore: copies to a device have been queued
	failed  error                // why not all of them; capture: the disk does not take the bytes; wait: a device was lost while it took the bytes

	job     *copier.Job    // the copy under way
	slot    []byte         // the bytes in the cache, once they are there: its room, or what a fetch has brought
	regions []model.Region // capture: sources; restore: destinations, parallel to want
	source  *borrow.Source // capture: where a transfer takes the bytes from, instead of a copy of ours
	want    []int32        // restore: regions asked for
	lends   bool           // restore: ends with a lease instead of a copy to regions
	private *memory.Mapping
	check   bool     // restore: the job verifies
	lent    []uint64 // restore, debug: checksums of the bytes on a device, for the lease
	alone   bool     // restore: the lease is to have bytes of its own, because others read those in the cache
	shared  bool     // restore: there was no memory for that

	since, waited int64
	blocker       engine.Blocker         // capture: what it waits for now …
	blockedSince  int64                  // … since when, as far as that is not in blocked
	blocked       [engine.Blockers]int64 // ns of waited, by what it waited for
	copied        int64                  // ns spent in copies
	holds         bool                   // counted among the users of the memory
	over          bool
}

// slice bounds how long one call copies before the caller may look for Ctrl-C; what has no more than oneSlice bytes is copied in one call.
const (
	slice    = 25 * time.Millisecond
	oneSlice = 16 << 20
)

// live registers the operation, so that close and panics reach it, and keeps the memory mapped until it ends. The lock is held.
func (op *Op) live() {
	op.s.ops[op] = struct{}{}
	op.s.users++
	op.holds = true
}

// end takes it back: from now on nobody rings. The lock is held.
func (op *Op) end() {
	if op.over {
		return
	}
	op.over = true
	op.notifier.disable()
	if _, known := op.s.ops[op]; known && op.kind == resizeOp {
		op.s.resizing--
	}
	delete(op.s.ops, op)
	op.account()
	if op.holds {
		op.s.users--
	}
}

// waits notes that the caller is about to wait.
func (op *Op) waits(now int64) (status.Code, error) {
	if op.since == 0 {
		op.since = now
		op.beginBlocked(now)
	}
	return status.Pending, nil
}

// woke notes that the wait is over. The lock is held.
func (op *Op) woke(now int64) {
	if op.since != 0 {
		op.endBlocked(now)
		op.waited += now - op.since
		op.s.noteWait(now, now-op.since, op)
		op.since = 0
	}
}

func (op *Op) account() {
	c := &op.s.counters
	op.woke(op.s.now())
	switch op.kind {
	case captureOp:
		c.CaptureWait += op.waited
		c.CaptureCopy += op.copied
		op.s.causes.add(op.blocked)
	case restoreOp:
		c.RestoreWait += op.waited
		c.RestoreCopy += op.copied
	case waitOp:
		c.DurableWait += op.waited
	}
}

// Step goes on with the operation. After anything but Pending and Again it has ended.
func (op *Op) Step(out *Outcome) (status.Code, error) {
	op.turn.Lock()
	defer op.turn.Unlock()
	returned := false
	defer op.disownUnless(&returned)
	code, err := op.step(out)
	out.Lease.noteChecksums()
	returned = true
	if err != nil && op.source != nil {
		op.source.Abandon()
	}
	return code, err
}

func (op *Op) step(out *Outcome) (status.Code, error) {
	if text, bad := safego.Poisoned(); bad {
		op.Disown()
		return status.Poisoned, status.New(status.Poisoned, "%s", text)
	}
	if op.over {
		return status.Stale, errEnded
	}
	switch op.kind {
	case captureOp:
		return op.stepCapture(out)
	case restoreOp:
		return op.stepRestore(out)
	case waitOp:
		return op.stepWait(out)
	case resizeOp:
		return op.stepResize(out)
	default:
		return op.stepClose(out)
	}
}

var errEnded = status.New(status.Stale, "the operation has ended")

// Cancel gives the operation up and undoes what it has begun. When it returns, nobody touches the caller's memory or descriptor any more.
// The store stays usable. It waits for nothing but a copy of at most one slice. A capture that cannot be undone any more has ended well, with an outcome.
func (op *Op) Cancel() (taken *Outcome) {
	defer op.Disown() // whoever has the turn
	op.turn.Lock()
	defer op.turn.Unlock()
	op.abandonAsync()
	taken = op.undo()
	op.freeJob()
	op.unmap()
	op.dropMark()
	return taken
}

func (op *Op) undo() (taken *Outcome) {
	s := op.s
	s.mu.Lock()
	defer s.leave()
	switch {
	case op.over:
	case op.kind == captureOp:
		if op.cancelCapture() {
			taken = new(Outcome)
			_, _ = op.endCapture(taken, nil) // it cannot fail
		}
	case op.kind == restoreOp && op.mark != nil:
		op.releaseLater()
	case op.kind == restoreOp:
		s.eng.EndRestore(s.now(), op.restore)
	case op.kind == waitOp:
		s.eng.CancelWait(op.wait)
	}
	op.end()
	return taken
}

// Disown lets go of what is the caller's, its descriptor and the memory that is being captured, and of nothing else: for an operation of a
// core that has panicked. It needs no lock that a panic could have left behind.
func (op *Op) Disown() {
	op.notifier.disable()
	if op.source != nil {
		op.source.Abandon()
	}
	op.abandonAsync()
}

// disownUnless is for a deferred call: an operation whose call panics is never seen again.
func (op *Op) disownUnless(returned *bool) {
	if !*returned {
		op.Disown()
	}
}

// copy runs the job, for a slice of time when it is large.
func (op *Op) copy() (done bool) {
	began := op.s.now()
	budget := slice
	if op.job.Bytes() <= oneSlice {
		budget = 0 // no limit
	}
	done = op.job.Run(budget)
	op.copied += op.s.now() - began
	return done
}

func (op *Op) freeJob() {
	if op.job != nil {
		op.job.Free()
		op.job = nil
	}
}

// unmap gives back the operation's own mapping, if it still has one. The operation has ended, and the lock is not held.
func (op *Op) unmap() {
	if op.private != nil {
		_ = op.private.Unmap() // it was mapped for this operation alone; there is nobody to tell
		op.private = nil
	}
}

func (op *Op) stepClose(out *Outcome) (status.Code, error) {
	s := op.s
	s.mu.Lock()
	defer s.leave()
	if !s.freed {
		return op.waits(s.now())
	}
	op.end()
	out.Waited = op.waited
	err := s.deferred.takeFinding(nil, false)
	if s.deferred.found = nil; err == nil {
		err, s.undone = s.undone, nil
	}
	if err != nil {
		return codeOf(err), err
	}
	return status.OK, nil
}

// Wait returns an operation that ends when the versions are captured (tier TierNone) or durable in the tier: one ticket, or all of a
// history, or, with both zero, all of the store.
func (s *Store) Wait(h *History, ticket uint64, tier int, fd int32) (*Op, status.Code, error) {
	op := &Op{s: s, kind: waitOp, notifier: notifier{fd: fd}, many: ticket == 0}
	returned := false
	defer op.disownUnless(&returned)
	code, err := s.openWait(op, h, ticket, tier)
	returned = true
	return op, code, err
}

func (s *Store) openWait(op *Op, h *History, ticket uint64, tier int) (status.Code, error) {
	if err := s.enter(); err != nil {
		return codeOf(err), err
	}
	defer s.leave()
	t, err := s.tierIndex(tier)
	if err != nil {
		return codeOf(err), err
	}
	if h != nil {
		op.history = h.h
	}
	op.lentBefore = s.deferred.lentLoads
	recs, err := s.versions(h, ticket, t)
	if err != nil {
		return codeOf(err), err
	}
	if t == 0 && len(s.deviceTiers) > 0 {
		op.recs = recs
		if c := s.orphans.captures[ticket]; ticket != 0 && c != nil {
			op.watch(c.device, c.mark.Keep())
		}
	}
	s.retryForCaller(s.now())
	op.wait = s.eng.Await(s.now(), recs, t)
	op.wait.Notify = op
	s.ops[op] = struct{}{}
	return op.checkWait(&Outcome{})
}

func (op *Op) stepWait(out *Outcome) (status.Code, error) {
	s := op.s
	s.mu.Lock()
	defer s.leave()
	return op.checkWait(out)
}

func (op *Op) checkWait(out *Outcome) (status.Code, error) {
	s, w := op.s, op.wait
	if err := op.deferredError(); err != nil {
		op.giveUpWait()
		return codeOf(err), err
	}
	switch {
	case w.Phase == engine.Ended && op.isCopying():
	case w.Phase == engine.Ended && op.many && s.deferred.pending(op.history, op.lentBefore):
	case w.Phase == engine.Ended:
		op.end()
		out.Waited = op.waited
		if op.failed != nil {
			return codeOf(op.failed), op.failed
		}
		if w.Err == nil || op.many && errors.Is(w.Err, engine.ErrDropped) {
			return status.OK, nil
		}
		err := s.explain(w.Err, nil)
		return err.Code, err
	case s.closing:
		op.giveUpWait()
		return status.Closed, errClosed
	}
	return op.waits(s.now())
}

func (op *Op) giveUpWait() {
	op.s.eng.CancelWait(op.wait)
	op.dropMark()
	op.end()
}

// deferredError is what a wait for all of a history or store has to tell of restores before it.
func (op *Op) deferredError() error {
	if !op.many {
		return nil
	}
	return op.s.deferred.takeFinding(op.history, true)
}

// versions are the records that a wait concerns.
func (s *Store) versions(h *History, ticket uint64, t int) ([]*engine.Record, error) {
	if ticket != 0 {
		r := s.eng.Record(ticket)
		if r == nil {
			if err := s.eng.Lost(ticket); err != nil {
				return nil, s.explain(err, nil)
			}
			if t == 0 {
				return nil, nil // what was not lost had been captured, or nobody reads its source any more
			}
			return nil, status.New(status.Dropped, "the checkpoint of this ticket was dropped, replaced or consumed: it owes no flush any more")
		}
		return []*engine.Record{r}, nil
	}
	var recs []*engine.Record
	add := func(r *engine.Record) { recs = append(recs, r) }
	if h != nil {
		h.h.Each(add)
		return recs, nil
	}
	for _, h := range s.eng.Histories() {
		h.Each(add)
	}
	return recs, nil
}

// tierIndex is the engine's index of a tier of the contract; TierNone is 0: captured.
func (s *Store) tierIndex(tier int) (int, error) {
	if tier == status.TierNone {
		return 0, nil
	}
	for t, number := range s.tiers {
		if number == tier {
			return t, nil
		}
	}
	name := status.TierName(tier)
	if name == "" {
		return 0, status.New(status.Invalid, "there is no tier %d; the store has %s", tier, s.tierNames())
	}
	return 0, status.New(status.Unavailable, "the store has no %s tier; it has %s", name, s.tierNames()).AtTier(tier)
}

// tierNames lists the tiers there are, the fastest first.
func (s *Store) tierNames() string {
	names := make([]string, len(s.tiers))
	for t, number := range s.tiers {
		names[t] = status.TierName(number)
	}
	return strings.Join(names, " and ")
}

// TicketState says how far a version has come.
type TicketState struct {
	Captured, Gone  bool
	Durable, Failed int32 // by tier of the contract
}

// Ticket tells how far a version has come. Once it says Captured or Gone, nobody reads the version's source.
func (s *Store) Ticket(ticket uint64) (TicketState, error) {
	st, unread, err := s.ticket(ticket)
	if unread != nil {
		unread.Abandon()
	}
	return st, err
}

// ticket also returns the source that a transfer may still read, of a version that has gone.
func (s *Store) ticket(ticket uint64) (st TicketState, unread *borrow.Source, err error) {
	if err := s.enter(); err != nil {
		return st, nil, err
	}
	defer s.mu.Unlock()
	r := s.eng.Record(ticket)
	switch {
	case r == nil && s.eng.Lost(ticket) != nil:
		return TicketState{Gone: true, Failed: 1 << s.tiers[0]}, nil, nil
	case r == nil:
		unread := s.orphans.has(ticket)
		return TicketState{Gone: !unread, Captured: !unread}, nil, nil
	case r.Gone() && s.eng.Lost(ticket) != nil: // its room is still being given back
		return TicketState{Gone: true, Failed: 1 << s.tiers[0]}, r.Body.(*body).openSource(), nil
	case r.Gone():
		b := r.Body.(*body)
		if b.isCopied() {
			return TicketState{Gone: true, Captured: true}, b.openSource(), nil
		}
		return TicketState{}, nil, nil // nobody wants it any more, but a device still reads its source
	}
	st.Captured = r.Captured() && r.Body.(*body).isCopied()
	durable := s.eng.Durable(r)
	for t, number := range s.tiers {
		if a := s.deviceTier(t); a != nil && t == r.Top() && a.Device.Lost() != nil {
			st.Failed |= 1 << number
		} else if durable&(1<<t) != 0 {
			st.Durable |= 1 << number
		} else if r.Failed() != nil {
			st.Failed |= 1 << number
		}
	}
	return st, nil, nil
}
