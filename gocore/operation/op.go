// Package operation carries out the calls of a store that may have to wait: captures, restores, waits, resizes and the close. Each returns an Op that its caller
// steps, since no call waits inside the core.
package operation

import (
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
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

// History is a history of a store. Engine is called with the lock held, since a closed store forgets its histories.
type History interface{ Engine() *engine.History }

// Op is an operation that could not end within the call that began it. Its caller steps it until it ends, or cancels it. Steps and cancels from
// several goroutines run one at a time. A call after the end returns Stale.
type Op struct {
	s        *cache.Cache
	does     operation
	notifier notifier
	turn     sync.Mutex // held by the call that steps or cancels; never locked while the store's lock is held

	since, waited int64
	copied        int64 // ns spent copying
	holds         bool  // counted in Cache.Users
	over          bool
}

// operation is what an Op does: a capture, a restore, a wait, a close or a resize.
type operation interface {
	// step continues the operation. It has ended when the code is neither Pending nor Again. The lock is not held.
	step(out *Outcome) (status.Code, error)
	// halt stops the goroutines that work for the operation. When it returns, they access no memory of the operation or its caller any more.
	halt()
	// undo undoes what the operation has done so far. An operation that can no longer be undone has succeeded; taken is its outcome. The lock is held.
	undo() (taken *Outcome)
	// release gives back the operation's own memory and events after undo. The lock is not held.
	release()
	// disown releases the memory that belongs to the caller. It takes no lock that a panic could have left held.
	disown()
	// refuse ends the operation if it waits for the disk to take its bytes. The lock is held.
	refuse(why error)
	// account ends a wait that is going on, and adds the time that the operation has taken to the store's sums. The lock is held.
	account(c *figures.Counters)
}

// begun returns the operation that does something for a caller with an eventfd. It is a part of what it does.
func begun(s *cache.Cache, fd int32) Op { return Op{s: s, notifier: notifier{fd: fd}} }

// What an operation does that has no goroutines, memory or sums of its own.

func (op *Op) halt()                     {}
func (op *Op) undo() *Outcome            { return nil }
func (op *Op) release()                  {}
func (op *Op) refuse(error)              {}
func (op *Op) disown()                   {}
func (op *Op) account(*figures.Counters) { op.woke(op.s.Now(), nil) }

// live registers the operation, so that Close and panics notify its caller, and keeps the memory mapped until it ends. The lock is held.
func (op *Op) live() {
	op.s.Callers[op] = struct{}{}
	op.s.Users++
	op.holds = true
}

// end undoes live and disables the notifier. The lock is held.
func (op *Op) end() {
	if op.over {
		return
	}
	op.over = true
	op.notifier.disable()
	delete(op.s.Callers, op)
	op.does.account(&op.s.Counters)
	if op.holds {
		op.s.Users--
	}
}

// waits records that the caller is about to wait, and returns Pending.
func (op *Op) waits(now int64) (status.Code, error) {
	if op.since == 0 {
		op.since = now
	}
	return status.Pending, nil
}

// woke records that the wait is over. rec is the checkpoint that the caller has waited for, if there is one. The lock is held.
func (op *Op) woke(now int64, rec *engine.Record) {
	if op.since != 0 {
		op.waited += now - op.since
		op.s.Line.NoteWait(now, now-op.since, rec)
		op.since = 0
	}
}

// Step continues the operation. The operation has ended when the code is neither Pending nor Again.
func (op *Op) Step(out *Outcome) (status.Code, error) {
	op.turn.Lock()
	defer op.turn.Unlock()
	returned := false
	defer op.disownUnless(&returned)
	code, err := op.step(out)
	returned = true
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
	return op.does.step(out)
}

var errEnded = status.New(status.Stale, "the operation has ended")

// Cancel gives the operation up and undoes its effects. When it returns, no goroutine accesses the caller's memory or descriptor any more. The store
// stays usable. Cancel waits at most for one slice of a copy. A capture that can no longer be undone has succeeded; taken is its outcome.
func (op *Op) Cancel() (taken *Outcome) {
	defer op.Disown() // at once, even when another call holds the turn
	op.turn.Lock()
	defer op.turn.Unlock()
	op.does.halt()
	taken = op.giveUp()
	op.does.release()
	return taken
}

func (op *Op) giveUp() (taken *Outcome) {
	op.s.Lock()
	defer op.s.Leave()
	if op.over {
		return nil
	}
	taken = op.does.undo()
	op.end()
	return taken
}

// Disown releases only what belongs to the caller: its descriptor and the memory that is being captured. It serves operations of a core that has
// panicked, so it takes no lock that a panic could have left held.
func (op *Op) Disown() {
	op.notifier.disable()
	op.does.disown()
}

// Wake notifies the operation's caller.
func (op *Op) Wake() { op.notifier.notify() }

// Refuse ends the operation if it waits for the disk to take its bytes. The lock is held.
func (op *Op) Refuse(why error) { op.does.refuse(why) }

// disownUnless is for a defer: when a call panics, its caller never steps or cancels the operation again.
func (op *Op) disownUnless(returned *bool) {
	if !*returned {
		op.Disown()
	}
}
