package plan

import (
	"math/rand/v2"
	"testing"
)

// history drives an Order as an application does, and counts which restores were foreseen at the head.
type history struct {
	*Order
	foreseen  int // restores that were expected
	atHead    int // … as the next one
	restores  int
	withdrawn int
}

func guessing(n int) *history {
	h := &history{Order: New(Options{Guess: true})}
	for i := range n {
		h.Written(Number(int64(i)))
	}
	return h
}

func (h *history) restore(keys ...Key) Verdict {
	var v Verdict
	for _, k := range keys {
		v = h.Restored(k)
		h.restores++
		h.withdrawn += len(v.Withdrawn)
		if v.Expected {
			h.foreseen++
			if v.Ahead == 0 {
				h.atHead++
			}
		}
	}
	return v
}

func (h *history) missed() int { return h.restores - h.atHead }

func (h *history) upcoming() []Key {
	var keys []Key
	h.Upcoming(0, func(_ int64, k Key, _ bool) bool {
		keys = append(keys, k)
		return true
	})
	return keys
}

func numbers(from, to, step int64) []Key {
	var keys []Key
	for i := from; (step > 0 && i <= to) || (step < 0 && i >= to); i += step {
		keys = append(keys, Number(i))
	}
	return keys
}

func TestGuessSimpleLoops(t *testing.T) {
	for _, tc := range []struct {
		name   string
		order  []Key
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
			if h.Guessing() {
				t.Fatal("guesses before any restore")
			}
			for i, k := range tc.order {
				if got, want := h.Guessing(), i >= tc.proofs; got != want {
					t.Fatalf("after %d restores: guessing = %v", i, got)
				}
				if i >= tc.proofs {
					want := tc.order[i:min(i+32, len(tc.order))]
					if got := h.upcoming(); !equal(got, want) {
						t.Fatalf("after %d restores: expects %v, want %v", i, got, want)
					}
				}
				h.restore(k)
			}
			if h.missed() != tc.proofs || h.withdrawn != 0 {
				t.Fatalf("missed %d of %d, withdrew %d", h.missed(), h.restores, h.withdrawn)
			}
		})
	}
}

func TestGuessRepeatsTheLastSweep(t *testing.T) {
	order := shuffled(1000, 1)
	h := guessing(1000)
	h.restore(order...)
	first := h.missed()
	for range 3 {
		h.restore(order...)
	}
	t.Logf("first sweep missed %d, the next three %d", first, h.missed()-first)
	if h.missed()-first > 80 {
		t.Fatalf("missed %d after the first sweep", h.missed()-first)
	}
}

func TestGuessLeavesRandomOrdersAlone(t *testing.T) {
	h := guessing(1000)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		h.restore(Number(rng.Int64N(1000)))
	}
	t.Logf("foreseen %d, withdrawn %d", h.foreseen, h.withdrawn)
	if h.withdrawn > 2000 {
		t.Fatalf("withdrew %d expectations", h.withdrawn)
	}
}

func TestGuessSurvivesAConstant(t *testing.T) {
	h := guessing(1000)
	model := Text("model")
	h.Written(model)
	for i := int64(999); i >= 0; i-- {
		h.restore(model, Number(i))
	}
	if h.missed() > 8 {
		t.Fatalf("missed %d of %d", h.missed(), h.restores)
	}
}

func shuffled(n int, seed uint64) []Key {
	keys := numbers(0, int64(n-1), 1)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func equal(a, b []Key) bool {
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
