// Package lifecycle is the state machine of one object's copy on one tier, after figure 1 of Maurya et al., HPDC'23. It makes no decisions: one table
// lists the possible transitions, and every other one is an error.
//
// docs/life-cycle.md shows the table as a diagram and explains where it differs from the paper.
package lifecycle

import (
	"errors"
	"fmt"
)

// ErrTransition reports an event that the state does not allow: a defect of the caller. The state is unchanged.
var ErrTransition = errors.New("impossible change of a checkpoint's life cycle")

// State is the state of an object's copy on a tier. The zero value is Init.
type State uint8

const (
	Init            State = iota // not on the tier
	WriteInProgress              // its bytes arrive from the application or the tier above
	WriteComplete                // here, and on no lower tier: neither needed soon nor evictable
	Flushed                      // here, and complete on a lower tier: evictable
	ReadInProgress               // its bytes arrive from a lower tier
	ReadComplete                 // here, and promised to a coming restore: not evictable
	Consumed                     // here, and not needed any more: evicted before all others

	states = iota
)

var stateNames = [states]string{
	"INIT", "WRITE_IN_PROGRESS", "WRITE_COMPLETE", "FLUSHED", "READ_IN_PROGRESS", "READ_COMPLETE", "CONSUMED",
}

// String is the state's name in figure 1.
func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// Event is an event in the life of an object's copy on a tier.
type Event uint8

const (
	BeginWrite       Event = iota // space is reserved, its bytes are arriving from above
	WriteDone                     // they are complete
	FlushDone                     // a lower tier holds a complete copy
	LowerLost                     // no lower tier holds a complete copy any more
	BeginRead                     // space is reserved, its bytes are arriving from below
	ReadDone                      // they are complete
	Promise                       // a hint or a restore needs it kept
	ReleaseFlushed                // no hint or restore needs it any more; a lower tier holds a complete copy
	ReleaseUnflushed              // no hint or restore needs it any more; no lower tier holds a complete copy
	Consume                       // it was restored for the last time, or dropped
	Abort                         // the transfer under way failed or was cancelled
	Evict                         // its space is freed

	events = iota
)

var eventNames = [events]string{
	"BeginWrite", "WriteDone", "FlushDone", "LowerLost", "BeginRead", "ReadDone", "Promise", "Release(true)", "Release(false)", "Consume", "Abort",
	"Evict",
}

// String is the event's name in the source.
func (e Event) String() string {
	if e >= events {
		return fmt.Sprintf("Event(%d)", uint8(e))
	}
	return eventNames[e]
}

// Release is the event that no hint or restore needs the checkpoint any more: it was restored, not for the last time, or its hint was withdrawn.
func Release(flushed bool) Event {
	if flushed {
		return ReleaseFlushed
	}
	return ReleaseUnflushed
}

// transitions is the life cycle; a transition that is not listed is impossible.
var transitions = [states]map[Event]State{
	Init: {
		BeginWrite: WriteInProgress,
		BeginRead:  ReadInProgress,
	},
	WriteInProgress: {
		WriteDone: WriteComplete,
		Abort:     Init,
	},
	WriteComplete: {
		FlushDone: Flushed,
		Promise:   ReadComplete,
		Consume:   Consumed,
	},
	Flushed: {
		LowerLost: WriteComplete,
		Promise:   ReadComplete,
		Consume:   Consumed,
		Evict:     Init,
	},
	ReadInProgress: {
		ReadDone: ReadComplete,
		Abort:    Init,
	},
	ReadComplete: {
		FlushDone:        ReadComplete, // a flush that was under way when the promise was made
		LowerLost:        ReadComplete,
		Promise:          ReadComplete, // a further promise
		ReleaseFlushed:   Flushed,
		ReleaseUnflushed: WriteComplete,
		Consume:          Consumed,
	},
	Consumed: {
		FlushDone: Consumed, // a flush that could not be cancelled in time
		LowerLost: Consumed,
		Evict:     Init,
	},
}

// dense is transitions as an array, off by one so that zero means impossible. The engine calls Next for every fragment under its lock.
var dense = func() (table [states][events]uint8) {
	for s, row := range transitions {
		for e, to := range row {
			table[s][e] = uint8(to) + 1
		}
	}
	return table
}()

// Next returns the state after e. An impossible event returns the state unchanged and an error that wraps ErrTransition. O(1).
func (s State) Next(e Event) (State, error) {
	if s < states && e < events {
		if to := dense[s][e]; to != 0 {
			return State(to - 1), nil
		}
	}
	return s, fmt.Errorf("%w: %s in %s", ErrTransition, e, s)
}

// Evictable tells whether the space may be freed at once.
func (s State) Evictable() bool { return s == Flushed || s == Consumed }

// HasBytes tells whether the tier holds the complete checkpoint, so that a restore or a flush may read it here.
func (s State) HasBytes() bool {
	return s == WriteComplete || s == Flushed || s == ReadComplete || s == Consumed
}

// Pinned tells whether the copy is kept for a restore: being loaded for one, or promised to one.
func (s State) Pinned() bool { return s == ReadInProgress || s == ReadComplete }

// Busy tells whether a transfer into its space is under way.
func (s State) Busy() bool { return s == WriteInProgress || s == ReadInProgress }
