package handle

import (
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int]
		live, dead := map[uint64]int{}, []uint64{0, 2 << 32, ^uint64(0)}
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") || len(live) == 0 {
				h := table.Put(i)
				if _, clash := live[h]; clash || h == 0 {
					t.Fatalf("handle %x given twice, or zero", h)
				}
				live[h] = i
			} else {
				for h, want := range live {
					if got, ok := table.Take(h); !ok || got != want {
						t.Fatalf("took %d, %v instead of %d", got, ok, want)
					}
					delete(live, h)
					dead = append(dead, h)
					break
				}
			}
			for h, want := range live {
				if got, ok := table.Get(h); !ok || got != want {
					t.Fatalf("got %d, %v instead of %d", got, ok, want)
				}
			}
			for _, h := range dead {
				if _, ok := table.Get(h); ok {
					t.Fatalf("stale handle %x answers", h)
				}
			}
			if table.Len() != len(live) {
				t.Fatalf("%d handles, want %d", table.Len(), len(live))
			}
		}
	})
}

func TestOnlyOneTakes(t *testing.T) {
	var table Table[int]
	for range 100 {
		h := table.Put(7)
		var wg sync.WaitGroup
		won := make(chan bool, 8)
		for range cap(won) {
			wg.Go(func() {
				if _, ok := table.Take(h); ok {
					won <- true
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d takers", len(won))
		}
	}
}
