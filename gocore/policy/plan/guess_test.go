package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/model"
)

// history drives an Order like an application, and counts the expected restores.
type history struct {
	*Order
	restores  int
	missed    int // restores that were not expected as the next one
	withdrawn int
}

func guessing(n int) *history {
	h := &history{Order: New(Options{Guess: true})}
	h.write(numbers(0, int64(n-1), 1)...)
	return h
}

func (h *history) write(keys ...model.Key) {
	for _, k := range keys {
		h.Written(k)
	}
}

func (h *history) restore(keys ...model.Key) Verdict {
	var v Verdict
	for _, k := range keys {
		v = h.Restored(k)
		h.restores++
		h.withdrawn += len(v.Withdrawn)
		if !v.Expected || v.Ahead != 0 {
			h.missed++
		}
	}
	return v
}

func (h *history) upcoming() []model.Key {
	var keys []model.Key
	h.Upcoming(0, func(_ int64, k model.Key, _ bool) bool {
		keys = append(keys, k)
		return true
	})
	return keys
}

func numbers(from, to, step int64) []model.Key {
	var keys []model.Key
	for i := from; (step > 0 && i <= to) || (step < 0 && i >= to); i += step {
		keys = append(keys, model.NumberKey(i))
	}
	return keys
}

func shuffled(n int, seed uint64) []model.Key {
	keys := numbers(0, int64(n-1), 1)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func equal(a, b []model.Key) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A loop is guessed after two restores, one with a stride after three. From then on every guess is exact, including the end.
func TestGuessLoops(t *testing.T) {
	for _, tc := range []struct {
		name   string
		order  []model.Key
		proofs int // restores before the guess
	}{
		{"backward", numbers(999, 0, -1), 2},
		{"backward from the middle", numbers(500, 0, -1), 2},
		{"forward", numbers(0, 999, 1), 2},
		{"every third, backward", numbers(999, 0, -3), 3},
		{"every seventh, forward", numbers(1, 999, 7), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := guessing(1000)
			for i, k := range tc.order {
				want := tc.order[i:min(i+32, len(tc.order))]
				if i < tc.proofs {
					want = nil
				}
				if got := h.upcoming(); !equal(got, want) || h.Guessing() != (len(want) > 0) {
					t.Fatalf("after %d restores: guessing %v, expects %v, want %v", i, h.Guessing(), got, want)
				}
				if v := h.restore(k); v.Expected != (i >= tc.proofs) || v.Guessed != v.Expected || v.Last || v.Ahead != 0 {
					t.Fatalf("restore %d: %+v", i, v)
				}
			}
			if h.missed != tc.proofs || h.withdrawn != 0 {
				t.Fatalf("missed %d of %d, withdrew %d", h.missed, h.restores, h.withdrawn)
			}
		})
	}
}

// Orders of real clients, and how many restores may be unexpected before and while the guess settles.
func TestGuessPatterns(t *testing.T) {
	reference, speed := model.TextKey("model"), model.TextKey("speed")
	for _, tc := range []struct {
		name      string
		missed    int
		withdrawn int
		drive     func(h *history)
	}{
		{"an arbitrary order, repeated", 1000 + 4, 32, func(h *history) {
			for range 4 {
				h.restore(shuffled(1000, 1)...)
			}
		}},
		{"backward, all rewritten before each sweep", 5, 0, func(h *history) {
			for range 5 {
				h.write(numbers(0, 999, 1)...)
				h.restore(numbers(999, 0, -1)...)
			}
		}},
		{"backward, consuming, all written before each sweep", 5, 0, func(h *history) {
			for range 5 {
				h.write(numbers(0, 999, 1)...)
				for _, k := range numbers(999, 0, -1) {
					h.restore(k)
					h.Dropped(k)
				}
			}
		}},
		{"backward by names", 2, 0, func(h *history) {
			for i := range 500 {
				h.Written(model.TextKey(fmt.Sprint("step", i)))
			}
			for i := range 500 {
				h.restore(model.TextKey(fmt.Sprint("step", 499-i)))
			}
		}},
		{"a constant before every restore", 8, 40, func(h *history) {
			h.Written(reference)
			for _, k := range numbers(999, 0, -1) {
				h.restore(reference, k)
			}
		}},
		{"a numbered constant before every restore", 8, 40, func(h *history) {
			for _, k := range numbers(998, 0, -1) {
				h.restore(model.NumberKey(999), k)
			}
		}},
		{"two constants before every restore", 14, 8, func(h *history) {
			h.write(reference, speed)
			for _, k := range numbers(999, 0, -1) {
				h.restore(reference, speed, k)
			}
		}},
		{"a constant now and then", 100 + 6, 8, func(h *history) { // which itself is unexpected every time
			h.Written(reference)
			for i, k := range numbers(999, 0, -1) {
				if h.restore(k); i%10 == 0 {
					h.restore(reference)
				}
			}
		}},
		{"every checkpoint twice in a row", 1000 + 4, 8, func(h *history) { // the second one is unexpected, the first is not
			for _, k := range numbers(999, 0, -1) {
				h.restore(k, k)
			}
		}},
		{"groups of five backward, inside them forward", 12, 20, func(h *history) {
			for i := int64(199); i >= 0; i-- {
				h.restore(numbers(5*i, 5*i+4, 1)...)
			}
		}},
		{"a loop backward and one forward, taking turns", 10, 8, func(h *history) {
			for i := range int64(500) {
				h.restore(model.NumberKey(999-i), model.NumberKey(i))
			}
		}},
		{"a checkpoint left out here and there", 3 * 20, 64, func(h *history) {
			for i := int64(999); i >= 0; i-- {
				if i%50 != 7 {
					h.restore(model.NumberKey(i))
				}
			}
		}},
		{"a sweep that is broken off and begun again", 12, 70, func(h *history) {
			h.restore(numbers(999, 500, -1)...)
			h.restore(numbers(999, 300, -1)...)
			h.restore(numbers(999, 0, -1)...)
		}},
		{"few checkpoints, many sweeps", 20, 30, func(h *history) {
			for range 50 {
				h.restore(numbers(6, 0, -1)...)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := guessing(1000)
			tc.drive(h)
			t.Logf("missed %d of %d, withdrew %d", h.missed, h.restores, h.withdrawn)
			if h.missed > tc.missed || h.withdrawn > tc.withdrawn {
				t.Errorf("missed %d of %d, withdrew %d; allowed: %d, %d", h.missed, h.restores, h.withdrawn, tc.missed, tc.withdrawn)
			}
		})
	}
}

// Reversal schedules restore the latest key written and not dropped yet.
func TestGuessReversalSchedules(t *testing.T) {
	for _, tc := range []struct{ steps, slots, percent int }{{250, 3, 65}, {250, 10, 90}, {1000, 20, 95}, {1000, 100, 98}} {
		h := &history{Order: New(Options{Guess: true})}
		for range 3 {
			h.play(revolve(tc.steps, tc.slots))
		}
		hit := 100 * (h.restores - h.missed) / h.restores
		t.Logf("%d steps, %d slots: %d of %d restores foreseen", tc.steps, tc.slots, h.restores-h.missed, h.restores)
		if hit < tc.percent {
			t.Errorf("%d steps, %d slots: %d %% foreseen", tc.steps, tc.slots, hit)
		}
	}
}

// A random order is not guessed: after a few failures hardly any restore is expected, so that hardly any is prefetched in vain.
func TestGuessLeavesRandomOrdersAlone(t *testing.T) {
	for _, n := range []int64{10, 30, 1000} {
		h := guessing(int(n))
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		expected := 0
		for range 100000 {
			if h.restore(model.NumberKey(rng.Int64N(n))); h.Guessing() {
				expected++
			}
		}
		t.Logf("%d keys: expects something after %d of %d restores, withdrew %d", n, expected, h.restores, h.withdrawn)
		if expected > h.restores/5 {
			t.Errorf("%d keys: guesses after %d of %d restores", n, expected, h.restores)
		}
	}
}

// When a guess is given up, its unmet expectations are reported once, together.
func TestGuessGivenUpIsWithdrawn(t *testing.T) {
	h := guessing(1000)
	h.restore(model.NumberKey(999), model.NumberKey(998))
	want := h.upcoming()
	if len(want) != 32 || want[0] != model.NumberKey(997) {
		t.Fatal(want)
	}
	v := h.restore(model.NumberKey(3))
	if v.Expected || !equal(v.Withdrawn, want) || h.Guessing() {
		t.Fatalf("%+v, guessing %v", v, h.Guessing())
	}
	if v := h.restore(model.NumberKey(500)); len(v.Withdrawn) != 0 {
		t.Fatalf("%+v", v)
	}
	// The next guess needs more proof.
	h.restore(model.NumberKey(499))
	if h.Guessing() {
		t.Fatal("trusts two restores again")
	}
	h.restore(model.NumberKey(498), model.NumberKey(497))
	if !h.Guessing() {
		t.Fatal("does not trust four restores")
	}
}

func TestHintsEndAGuess(t *testing.T) {
	h := guessing(1000)
	h.restore(model.NumberKey(999), model.NumberKey(998))
	last := int64(0)
	h.Upcoming(0, func(seq int64, _ model.Key, _ bool) bool { last = seq; return true })
	h.Append(hints(Restore, 990, 5)...)
	if h.Guessing() || h.Len() != 2 || !equal(h.upcoming(), []model.Key{model.NumberKey(990), model.NumberKey(5)}) {
		t.Fatal(h.Guessing(), h.Len(), h.upcoming())
	}
	if seq, _ := h.Seq(model.NumberKey(990)); seq <= last || h.Head() != seq {
		t.Fatalf("hint numbered %d, head %d, after guesses up to %d", seq, h.Head(), last)
	}
	v := h.restore(model.NumberKey(990))
	if !v.Expected || v.Guessed || len(v.Withdrawn) != 31 { // all of the guess but 990
		t.Fatalf("%+v", v)
	}
	h.restore(model.NumberKey(5))
	if h.Len() != 0 {
		t.Fatal(h.Len())
	}
}

// When hints are used up or withdrawn, the guess takes over, with what it learned meanwhile.
func TestAGuessFollowsHints(t *testing.T) {
	h := guessing(100)
	h.Append(hints(Restore, 99, 98, 97)...)
	h.restore(numbers(99, 97, -1)...)
	if !h.Guessing() || h.upcoming()[0] != model.NumberKey(96) {
		t.Fatal(h.upcoming())
	}
	h.Append(hints(Restore, 1, 2)...)
	head := h.Head()
	h.Clear()
	if !h.Guessing() || h.upcoming()[0] != model.NumberKey(96) || h.Head() <= head {
		t.Fatal(h.upcoming(), h.Head())
	}
}

func TestGuessForgetsWhatIsDropped(t *testing.T) {
	h := guessing(100)
	h.restore(numbers(99, 90, -1)...)
	h.Dropped(model.NumberKey(89))
	h.Dropped(model.NumberKey(85))
	if got := h.upcoming(); !equal(got[:4], []model.Key{model.NumberKey(88), model.NumberKey(87), model.NumberKey(86), model.NumberKey(84)}) {
		t.Fatal(got)
	}
	if _, ok := h.Seq(model.NumberKey(85)); ok {
		t.Fatal("a dropped key is expected")
	}
	// A stride ends where a key is missing.
	h = guessing(100)
	h.Dropped(model.NumberKey(70))
	h.restore(numbers(90, 82, -4)...)
	if got := h.upcoming(); !equal(got, []model.Key{model.NumberKey(78), model.NumberKey(74)}) {
		t.Fatal(got)
	}
}

// A reader follows the writer: its next restores are expected as soon as the keys are written.
func TestGuessGrowsWithWrites(t *testing.T) {
	h := guessing(4)
	h.restore(numbers(0, 3, 1)...)
	if h.Guessing() {
		t.Fatal(h.upcoming())
	}
	h.write(model.NumberKey(4), model.NumberKey(5))
	if got := h.upcoming(); !equal(got, []model.Key{model.NumberKey(4), model.NumberKey(5)}) {
		t.Fatal(got)
	}
	seq, _ := h.Seq(model.NumberKey(4))
	h.write(model.NumberKey(6))
	if got, ok := h.Seq(model.NumberKey(6)); !ok || got != seq+2 || h.Head() != seq {
		t.Fatalf("6 is number %d, 4 was %d, the head is %d", got, seq, h.Head())
	}
}

// An interrupted sweep whose next checkpoint is dropped cannot continue, and does not block another one.
func TestGuessLeavesAnInterruptedSweep(t *testing.T) {
	h := guessing(1000)
	h.restore(numbers(996, 900, -6)...)
	h.restore(model.NumberKey(500))
	if got := h.upcoming(); got[0] != model.NumberKey(894) {
		t.Fatal("a single restore ends the sweep:", got)
	}
	h.Dropped(model.NumberKey(894))
	h.restore(numbers(300, 297, -1)...)
	if got := h.upcoming(); len(got) != 32 || got[0] != model.NumberKey(296) {
		t.Fatal(got)
	}
}

func TestWithoutGuess(t *testing.T) {
	h := &history{Order: New(Options{})}
	h.write(numbers(0, 99, 1)...)
	h.restore(numbers(99, 50, -1)...)
	if h.Guessing() || h.missed != 50 || h.upcoming() != nil {
		t.Fatal("guesses although it was not asked to")
	}
}

func TestLookahead(t *testing.T) {
	o := New(Options{Guess: true, Lookahead: 1000})
	for i := range int64(2000) {
		o.Written(model.NumberKey(i))
	}
	o.Restored(model.NumberKey(1999))
	o.Restored(model.NumberKey(1998))
	if d, ok := o.Distance(model.NumberKey(998)); !ok || d != 999 {
		t.Fatal(d, ok)
	}
	if _, ok := o.Distance(model.NumberKey(997)); ok {
		t.Fatal("looks further than it should")
	}
}
