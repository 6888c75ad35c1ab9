package schedule

import (
	"testing"

	"pgregory.net/rapid"
)

// The searches by jumps find what walks from entry to entry find, on trees of chains.
func TestChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChains(64)
		n := rapid.IntRange(1, 200).Draw(t, "entries")
		for range n {
			before := int32(len(c) - 1)
			if rapid.IntRange(0, 9).Draw(t, "branch") == 0 {
				before = rapid.Int32Range(0, before).Draw(t, "before")
			}
			c.add(before, max(c[before].end, 0)+rapid.Int64Range(0, 3).Draw(t, "later"), rapid.Int64Range(0, 4).Draw(t, "bytes"))
		}
		newest := rapid.Int32Range(0, int32(n)).Draw(t, "newest")
		at, room := rapid.Int64Range(0, 400).Draw(t, "at"), rapid.Int64Range(0, 400).Draw(t, "room")
		left, freed, next, more := int64(0), int64(-1), int64(0), false
		for v := newest; v != 0; v = c[v].before {
			if c[v].end > at {
				left, next, more = left+c[v].total-c[c[v].before].total, c[v].end, true
			}
			if kept := c[newest].total - c[c[v].before].total; kept > room && freed < 0 {
				freed = c[v].end
			}
		}
		if got := c.left(newest, at); got != left {
			t.Fatalf("left %d, by a walk %d", got, left)
		}
		if got, ok := c.next(newest, at); got != next || ok != more {
			t.Fatalf("next %d %v, by a walk %d %v", got, ok, next, more)
		}
		if got := c.freed(newest, room); got != freed {
			t.Fatalf("freed %d, by a walk %d", got, freed)
		}
	})
}

// A state that accumulates, even empty checkpoints, cannot flush the next one as it is: it is never as good as one that accumulates nothing.
func TestAccumulatingDominatesNoOther(t *testing.T) {
	p := search{chains: newChains(1)}
	open, closed := state{members: 1}, state{}
	if p.dominates(&open, &closed) {
		t.Error("an accumulation dominates a state without one")
	}
	if !p.dominates(&closed, &open) || !p.dominates(&open, &open) {
		t.Error("a state with nothing accumulated, or the same, does not dominate")
	}
}
