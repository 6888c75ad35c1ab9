package lifecycle

import (
	"errors"
	"strings"
	"testing"
)

// The life cycle again, written by hand and independently of the table: state, event, state.
const expected = `
INIT               BeginWrite      WRITE_IN_PROGRESS
INIT               BeginRead       READ_IN_PROGRESS
WRITE_IN_PROGRESS  WriteDone       WRITE_COMPLETE
WRITE_IN_PROGRESS  Abort           INIT
WRITE_COMPLETE     FlushDone       FLUSHED
WRITE_COMPLETE     Promise         READ_COMPLETE
WRITE_COMPLETE     Consume         CONSUMED
FLUSHED            LowerLost       WRITE_COMPLETE
FLUSHED            Promise         READ_COMPLETE
FLUSHED            Consume         CONSUMED
FLUSHED            Evict           INIT
READ_IN_PROGRESS   ReadDone        READ_COMPLETE
READ_IN_PROGRESS   Abort           INIT
READ_COMPLETE      FlushDone       READ_COMPLETE
READ_COMPLETE      LowerLost       READ_COMPLETE
READ_COMPLETE      Promise         READ_COMPLETE
READ_COMPLETE      Release(true)   FLUSHED
READ_COMPLETE      Release(false)  WRITE_COMPLETE
READ_COMPLETE      Consume         CONSUMED
CONSUMED           FlushDone       CONSUMED
CONSUMED           LowerLost       CONSUMED
CONSUMED           Evict           INIT
`

func TestEveryTransition(t *testing.T) {
	want := map[[2]string]string{}
	for line := range strings.Lines(strings.TrimSpace(expected)) {
		f := strings.Fields(line)
		want[[2]string{f[0], f[1]}] = f[2]
	}
	for s := range State(states + 2) {
		for e := range Event(events + 2) {
			to, err := s.Next(e)
			name, possible := want[[2]string{s.String(), e.String()}]
			if possible != (err == nil) {
				t.Errorf("%s in %s: error %v, want possible = %v", e, s, err, possible)
			}
			if possible && to.String() != name {
				t.Errorf("%s in %s leads to %s, want %s", e, s, to, name)
			}
			if !possible && (to != s || !errors.Is(err, ErrTransition)) {
				t.Errorf("%s in %s leads to %s with error %v", e, s, to, err)
			}
			if !possible && (!strings.Contains(err.Error(), s.String()) || !strings.Contains(err.Error(), e.String())) {
				t.Errorf("error does not name state and event: %v", err)
			}
		}
	}
}

func allows(s State, e Event) bool {
	_, err := s.Next(e)
	return err == nil
}

func TestProperties(t *testing.T) {
	for s, want := range map[State]struct{ evictable, bytes, pinned, busy bool }{
		Init:            {},
		WriteInProgress: {busy: true},
		WriteComplete:   {bytes: true},
		Flushed:         {evictable: true, bytes: true},
		ReadInProgress:  {pinned: true, busy: true},
		ReadComplete:    {bytes: true, pinned: true},
		Consumed:        {evictable: true, bytes: true},
	} {
		if s.Evictable() != want.evictable || s.HasBytes() != want.bytes || s.Pinned() != want.pinned || s.Busy() != want.busy {
			t.Errorf("%s: evictable %v, bytes %v, pinned %v, busy %v", s, s.Evictable(), s.HasBytes(), s.Pinned(), s.Busy())
		}
		if s.Evictable() != allows(s, Evict) {
			t.Errorf("%s: evictable %v, but Evict allowed: %v", s, s.Evictable(), allows(s, Evict))
		}
		if s.Busy() != allows(s, Abort) {
			t.Errorf("%s: busy %v, but Abort allowed: %v", s, s.Busy(), allows(s, Abort))
		}
		if s.Pinned() && s.Evictable() {
			t.Errorf("%s is pinned and evictable", s)
		}
	}
}

// Whatever happens, a checkpoint can reach an end, and an evicted one can return.
func TestEveryStateLeadsHome(t *testing.T) {
	for s := range State(states) {
		reached := map[State]bool{s: true}
		for grew := true; grew; {
			grew = false
			for from := range reached {
				for e := range Event(events) {
					if to, err := from.Next(e); err == nil && !reached[to] {
						reached[to], grew = true, true
					}
				}
			}
		}
		if len(reached) != states {
			t.Errorf("%s leads to %d of %d states only", s, len(reached), states)
		}
	}
}

func TestNextIsCheap(t *testing.T) {
	s := WriteComplete
	if n := testing.AllocsPerRun(100, func() { s, _ = s.Next(Promise); s, _ = s.Next(Release(false)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
