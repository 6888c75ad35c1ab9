package virtual

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Events come in the order of their moments, those of one moment in the order in which they were scheduled, and those of the past at once.
func TestEventsComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type note struct{ at, order int64 }
		var c Clock
		var came, want []note
		schedule := func(from int64) {
			for range rapid.IntRange(0, 5).Draw(t, "events") {
				x := note{rapid.Int64Range(0, 20).Draw(t, "at"), int64(len(want))}
				due := max(x.at, from)
				want = append(want, note{due, x.order})
				c.At(x.at, func() {
					if c.Now() != due {
						t.Fatalf("an event of %d came at %d", due, c.Now())
					}
					came = append(came, note{due, x.order})
				})
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			schedule(c.Now())
			c.Step()
		}
		for c.Step() {
		}
		slices.SortFunc(want, func(a, b note) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return int(a.order - b.order)
		})
		if !slices.Equal(came, want) {
			t.Fatalf("events came as %v, wanted %v", came, want)
		}
	})
}

func BenchmarkClock(b *testing.B) {
	var c Clock
	random := uint64(1)
	var again func()
	again = func() {
		random = random*6364136223846793005 + 1442695040888963407
		c.At(c.Now()+int64(random>>40), again)
	}
	for range 10_000 {
		again()
	}
	for b.Loop() {
		c.Step()
	}
}
