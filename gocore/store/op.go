package store

import (
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/copier"
	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
	"velocpy/gocore/plan"
	"velocpy/gocore/safego"
	"velocpy/gocore/status"
)

// Region is one region of a checkpoint as the caller's memory has it.
type Region struct {
	Mem    copier.Strided
	Offset int64 // in the slot
	Bytes  int64
}

// Outcome is what a call or a step gives back.
type Outcome struct {
	Ticket    uint64
	Lease     *Lease
	Layout    uint64
	Slot      int64
	Meta      int64
	HintsLeft int64
	Key       plan.Key
	Waited    int64 // ns
	Hit       bool
}

type opKind uint8

const (
	captureOp opKind = iota
	restoreOp
	waitOp
	closeOp
)

// Op is an operation that could not end at once. Its caller steps it until it ends, or cancels it. Only one goroutine at a time may
// call its methods.
type Op struct {
	s    *Store
	kind opKind
	fd   int32 // eventfd of the caller, written under the store's lock and only while the operation lives

	capture *engine.Capture
	restore *engine.Restore
	wait    *engine.Wait

	job     *copier.Job // the copy under way
	regions []Region    // capture: sources; restore: destinations, parallel to want
	want    []int32     // restore: regions asked for
	private *memory.Mapping
	writer  bool // the lease will belong to the caller alone

	began, since, waited int64
	copied               int64 // ns spent in copies
	over                 bool
}

// slice bounds how long one call copies before the caller may look for Ctrl-C; what has no more than oneSlice bytes is copied in one call.
const (
	slice    = 25 * time.Millisecond
	oneSlice = 16 << 20
)

// signal wakes the caller. The store's lock is held, so no operation that has ended is written to.
func (op *Op) signal() {
	if op.over || op.fd < 0 {
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(int(op.fd), one[:]) // only a full counter can refuse, and then the caller is awake
}

// live registers the operation, so that close and panics reach it. The lock is held.
func (op *Op) live() {
	op.s.ops[op] = struct{}{}
	op.s.hold()
}

// end takes it back. The lock is held.
func (op *Op) end() {
	if op.over {
		return
	}
	op.over = true
	delete(op.s.ops, op)
	op.account()
}

// waits notes that the caller is about to wait.
func (op *Op) waits(now int64) (status.Code, error) {
	if op.since == 0 {
		op.since = now
	}
	return status.Pending, nil
}

// woke notes that the wait is over.
func (op *Op) woke(now int64) {
	if op.since != 0 {
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
	case restoreOp:
		c.RestoreWait += op.waited
		c.RestoreCopy += op.copied
	case waitOp:
		c.DurableWait += op.waited
	}
}

// Step goes on with the operation. After anything but Pending and Again it has ended.
func (op *Op) Step(out *Outcome) (status.Code, error) {
	if text, bad := safego.Poisoned(); bad {
		return status.Poisoned, status.New(status.Poisoned, "%s", text)
	}
	switch op.kind {
	case captureOp:
		return op.stepCapture(out)
	case restoreOp:
		return op.stepRestore(out)
	case waitOp:
		return op.stepWait()
	default:
		return op.stepClose()
	}
}

// Cancel gives the operation up and undoes what it has begun. The store stays usable.
func (op *Op) Cancel() {
	switch op.kind {
	case captureOp:
		op.cancelCapture()
	case restoreOp:
		op.cancelRestore()
	default:
		s := op.s
		s.mu.Lock()
		if op.wait != nil {
			s.eng.CancelWait(op.wait)
		}
		op.end()
		s.mu.Unlock()
	}
	op.release()
}

// release gives up the operation's share of the memory, and its private mapping if it still has one.
func (op *Op) release() {
	if op.private != nil {
		_ = op.private.Unmap() // it was mapped by this operation alone; there is nobody to tell
		op.private = nil
	}
	if op.kind == captureOp || op.kind == restoreOp {
		op.s.drop()
	}
}

// copy runs the copy of so many bytes, for a slice of time when they are many.
func (op *Op) copy(bytes int64) (done bool) {
	began := op.s.now()
	budget := slice
	if bytes <= oneSlice {
		budget = 0 // no limit
	}
	done = op.job.Run(budget)
	op.copied += op.s.now() - began
	return done
}

func (op *Op) stepClose() (status.Code, error) {
	s := op.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.freed {
		return op.waits(s.now())
	}
	op.end()
	return status.OK, nil
}

// Wait returns an operation that ends when the versions are captured (tier TierNone) or durable in the tier: one ticket, or all of a
// history, or, with both zero, all of the store.
func (s *Store) Wait(h *History, ticket uint64, tier int, fd int32) (*Op, status.Code, error) {
	if err := s.enter(); err != nil {
		return nil, status.Closed, err
	}
	defer s.leave()
	t, err := s.tierIndex(tier)
	if err != nil {
		return nil, status.Unavailable, err
	}
	recs, err := s.versions(h, ticket)
	if err != nil {
		return nil, status.Dropped, err
	}
	op := &Op{s: s, kind: waitOp, fd: fd, wait: s.eng.Await(s.now(), recs, t)}
	op.wait.Notify = op
	s.ops[op] = struct{}{}
	code, err := op.checkWait()
	return op, code, err
}

func (op *Op) stepWait() (status.Code, error) {
	s := op.s
	s.mu.Lock()
	defer s.leave()
	return op.checkWait()
}

func (op *Op) checkWait() (status.Code, error) {
	s := op.s
	switch {
	case op.wait.Phase == engine.Ended:
		op.end()
		if op.wait.Err != nil {
			err := s.explain(op.wait.Err, nil)
			return err.Code, err
		}
		return status.OK, nil
	case s.closing:
		op.end()
		return status.Closed, errClosed
	}
	return op.waits(s.now())
}

// versions are the records that a wait concerns.
func (s *Store) versions(h *History, ticket uint64) ([]*engine.Record, error) {
	if ticket != 0 {
		r := s.eng.Record(ticket)
		if r == nil {
			if err := s.eng.Lost(ticket); err != nil {
				return nil, s.explain(err, nil)
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
	return 0, status.New(status.Unavailable, "the store has no %s tier", status.TierName(tier))
}

// TicketState says how far a version has come.
type TicketState struct {
	Captured, Gone  bool
	Durable, Failed int32 // by tier of the contract
}

// Ticket tells how far a version has come.
func (s *Store) Ticket(ticket uint64) (TicketState, error) {
	if err := s.enter(); err != nil {
		return TicketState{}, err
	}
	defer s.mu.Unlock()
	r := s.eng.Record(ticket)
	if r == nil || r.Gone() {
		st := TicketState{Gone: true, Captured: r != nil && r.Captured()}
		if s.eng.Lost(ticket) != nil {
			st = TicketState{Failed: 1 << s.tiers[0]}
		}
		return st, nil
	}
	st := TicketState{Captured: r.Captured()}
	durable := s.eng.Durable(r)
	for t, number := range s.tiers {
		if durable&(1<<t) != 0 {
			st.Durable |= 1 << number
		} else if r.Failed() != nil {
			st.Failed |= 1 << number
		}
	}
	return st, nil
}
