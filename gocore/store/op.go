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

// Outcome holds the results of a call or a step.
type Outcome struct {
	Ticket    uint64
	Lease     *Lease
	Layout    uint64
	Slot      int64 // resize: bytes that the resized tiers have now; with Trim, the bytes that were given back
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

// Op is an operation that could not end within the call that began it. Its caller steps it until it ends, or cancels it. Steps and cancels from
// several goroutines run one at a time. A call after the end returns Stale.
type Op struct {
	s        *Store
	kind     opKind
	notifier notifier
	turn     sync.Mutex // held by the call that steps or cancels; never locked while the store's lock is held

	capture    *engine.Capture
	restore    *engine.Restore
	wait       *engine.Wait
	recs       []*engine.Record       // wait: records whose source a device may still be reading
	many       bool                   // wait: for all versions of a history or store, so versions dropped meanwhile are no error
	history    *engine.History        // wait: of many; nil: all histories
	lentBefore int64                  // wait: value of deferredVerification.lentLoads when the wait began
	sized      []*devicememory.Memory // resize: the devices that get another budget …
	host       bool                   // … and whether host and disk get one; out.Slot sums the bytes of all of these
	disk       bool
	trims      int64 // resize: number of the trim request that it waits for; 0: none
	given      int64 // resize: bytes that the host tier had given back before

	asked   int64                // capture: time of the call, ns
	device  *devicememory.Memory // the device on which regions lie; nil when all lie in host memory
	looped  bool                 // restore: leaves the due restores of a loop over the plan unchanged
	streams []uint64             // the caller's streams on that device
	at      int64                // offset of the bytes in the device's tier; valid when placed is set
	placed  bool                 // the device's tier has the bytes, or room for them
	event   device.Event         // event of device work that the operation waits for
	async   *asyncJob            // work that another goroutine does for the operation
	sent    bool                 // restore: the host bytes are verified, and the copies to a device come next or have been queued
	// restore: why copies could not be queued; capture: why the disk does not take the bytes; wait: the loss of a device that was copying the bytes
	failed error

	job     *copier.Job    // the copy in progress
	slot    []byte         // the bytes in host memory, once they have a place: the slot in the cache, or the mapping that a fetch filled
	regions []model.Region // capture: sources; restore: destinations, parallel to want
	source  *borrow.Source // capture: the caller's memory that a transfer reads, when the operation itself copies nothing
	want    []int32        // restore: indices of the regions wanted
	lends   bool           // restore: ends with a lease instead of a copy to regions
	private *memory.Mapping
	check   bool     // restore: the job verifies checksums
	lent    []uint64 // restore, debug mode: checksums of the bytes on a device, for the lease
	alone   bool     // restore: the lease gets a private copy, because other callers read the bytes in the cache
	shared  bool     // restore: no memory could be mapped for a private copy

	since, waited int64
	blocker       engine.Blocker         // capture: cause of the present wait …
	blockedSince  int64                  // … and since when; the time before that is in blocked
	blocked       [engine.Blockers]int64 // ns of waited, by cause
	copied        int64                  // ns spent copying
	holds         bool                   // counted in Store.users
	over          bool
}

// slice bounds how long one call copies before the caller can check for Ctrl-C. A copy of at most oneSlice bytes runs in one call.
const (
	slice    = 25 * time.Millisecond
	oneSlice = 16 << 20
)

// live registers the operation, so that Close and panics notify its caller, and keeps the memory mapped until it ends. The lock is held.
func (op *Op) live() {
	op.s.ops[op] = struct{}{}
	op.s.users++
	op.holds = true
}

// end undoes live and disables the notifier. The lock is held.
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

// waits records that the caller is about to wait, and returns Pending.
func (op *Op) waits(now int64) (status.Code, error) {
	if op.since == 0 {
		op.since = now
		op.beginBlocked(now)
	}
	return status.Pending, nil
}

// woke records that the wait is over. The lock is held.
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

// Step continues the operation. The operation has ended when the code is neither Pending nor Again.
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

// Cancel gives the operation up and undoes its effects. When it returns, no goroutine accesses the caller's memory or descriptor any more. The store
// stays usable. Cancel waits at most for one slice of a copy. A capture that can no longer be undone has succeeded; taken is its outcome.
func (op *Op) Cancel() (taken *Outcome) {
	defer op.Disown() // at once, even when another call holds the turn
	op.turn.Lock()
	defer op.turn.Unlock()
	op.abandonAsync()
	taken = op.undo()
	op.freeJob()
	op.unmap()
	op.dropEvent()
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
			_, _ = op.endCapture(taken, nil) // err is nil: the code is OK
		}
	case op.kind == restoreOp && op.event != nil:
		op.releaseLater()
	case op.kind == restoreOp:
		s.eng.EndRestore(s.now(), op.restore)
	case op.kind == waitOp:
		s.eng.CancelWait(op.wait)
	}
	op.end()
	return taken
}

// Disown releases only what belongs to the caller: its descriptor and the memory that is being captured. It serves operations of a core that has
// panicked, so it takes no lock that a panic could have left held.
func (op *Op) Disown() {
	op.notifier.disable()
	if op.source != nil {
		op.source.Abandon()
	}
	op.abandonAsync()
}

// disownUnless is for a defer: when a call panics, its caller never steps or cancels the operation again.
func (op *Op) disownUnless(returned *bool) {
	if !*returned {
		op.Disown()
	}
}

// copy runs the job, for one slice of time when it is large.
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

// unmap unmaps the operation's private mapping, if it still has one. The operation has ended, and the lock is not held.
func (op *Op) unmap() {
	if op.private != nil {
		_ = op.private.Unmap() // only this operation used the mapping, and no caller is left to receive an error
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
		return status.CodeOf(err), err
	}
	return status.OK, nil
}

// Wait returns an operation that ends when the versions are captured (tier TierNone) or durable in the tier. It covers one ticket, all of a history,
// or, with h nil and ticket zero, all of the store.
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
		return status.CodeOf(err), err
	}
	defer s.leave()
	t, err := s.tierIndex(tier)
	if err != nil {
		return status.CodeOf(err), err
	}
	if h != nil {
		op.history = h.h
	}
	op.lentBefore = s.deferred.lentLoads
	recs, err := s.versions(h, ticket, t)
	if err != nil {
		return status.CodeOf(err), err
	}
	if t == 0 && len(s.deviceTiers) > 0 {
		op.recs = recs
		if c := s.orphans.captures[ticket]; ticket != 0 && c != nil {
			op.watch(c.device, c.event.Keep())
		}
	}
	s.retryForCaller()
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
		return status.CodeOf(err), err
	}
	switch {
	case w.Phase == engine.Ended && op.isCopying():
	case w.Phase == engine.Ended && op.many && s.deferred.pending(op.history, op.lentBefore):
	case w.Phase == engine.Ended:
		op.end()
		out.Waited = op.waited
		if op.failed != nil {
			return status.CodeOf(op.failed), op.failed
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
	op.dropEvent()
	op.end()
}

// deferredError returns a finding about earlier restores, for a wait that covers all of a history or store.
func (op *Op) deferredError() error {
	if !op.many {
		return nil
	}
	return op.s.deferred.takeFinding(op.history, true)
}

// versions returns the records that a wait covers.
func (s *Store) versions(h *History, ticket uint64, t int) ([]*engine.Record, error) {
	if ticket != 0 {
		r := s.eng.Record(ticket)
		if r == nil {
			if err := s.eng.Lost(ticket); err != nil {
				return nil, s.explain(err, nil)
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
		h.h.Each(add)
		return recs, nil
	}
	for _, h := range s.eng.Histories() {
		h.Each(add)
	}
	return recs, nil
}

// tierIndex converts a tier of the contract to the engine's index. TierNone becomes 0: captured.
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

// tierNames lists the store's tiers, the fastest first.
func (s *Store) tierNames() string {
	names := make([]string, len(s.tiers))
	for t, number := range s.tiers {
		names[t] = status.TierName(number)
	}
	return strings.Join(names, " and ")
}

// TicketState describes the progress of a version.
type TicketState struct {
	Captured, Gone  bool
	Durable, Failed int32 // bit t is set for tier t of the contract
}

// Ticket returns the progress of a version. Once it reports Captured or Gone, no transfer reads the version's source.
func (s *Store) Ticket(ticket uint64) (TicketState, error) {
	st, unread, err := s.ticket(ticket)
	if unread != nil {
		unread.Abandon()
	}
	return st, err
}

// ticket is Ticket. For a version that is gone it also returns the source that a transfer may still read.
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
	case r.Gone() && s.eng.Lost(ticket) != nil: // its space is still being released
		return TicketState{Gone: true, Failed: 1 << s.tiers[0]}, openSource(r.Version), nil
	case r.Gone():
		b := r.Version
		if isCopied(b) {
			return TicketState{Gone: true, Captured: true}, openSource(b), nil
		}
		return TicketState{}, nil, nil // no caller wants the version any more, but a device still reads its source
	}
	st.Captured = r.Captured() && isCopied(r.Version)
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
