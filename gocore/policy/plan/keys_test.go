package plan

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// Keys is a map with counted entries whose Refs differ.
func TestKeysAreAMap(t *testing.T) {
	numbers := rapid.OneOf(
		rapid.Int64Range(-70, 70), rapid.Int64Range(0, 900), rapid.Map(rapid.Int64Range(-20, 20), func(n int64) int64 { return n * 1000 }),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}),
	)
	some := rapid.OneOf(rapid.Map(numbers, model.NumberKey), rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "7", "wave"}), model.TextKey))
	rapid.Check(t, func(t *rapid.T) {
		var ks Keys
		type held struct {
			ref     Ref
			holders int
		}
		want, owner := map[model.Key]held{}, map[Ref]model.Key{}
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				k := some.Draw(t, "key")
				r := ks.Hold(k)
				if other, taken := owner[r]; r == Nobody || (taken && other != k) {
					t.Fatalf("%v got the Ref %d of %v", k, r, other)
				}
				if h, ok := want[k]; ok && (h.ref != r || h.holders == 255) {
					t.Fatalf("%v: %d after %v", k, r, h)
				}
				want[k], owner[r] = held{r, want[k].holders + 1}, k
			},
			"release": func(t *rapid.T) {
				k := some.Draw(t, "key")
				h, ok := want[k]
				if !ok {
					t.Skip("nobody holds it")
				}
				ks.Release(h.ref)
				if h.holders--; h.holders > 0 {
					want[k] = h
					return
				}
				delete(want, k)
				delete(owner, h.ref)
			},
			"": func(t *rapid.T) {
				k := some.Draw(t, "looked for")
				if r := ks.Find(k); r != want[k].ref {
					t.Fatalf("%v: found %d, want %v", k, r, want[k])
				}
				for r, k := range owner {
					if ks.Key(r) != k || ks.Find(k) != r {
						t.Fatalf("%d is %v, found at %d, want %v", r, ks.Key(r), ks.Find(k), k)
					}
				}
				if ks.Len() != len(want) {
					t.Fatal(ks.Len(), len(want))
				}
			},
		})
	})
}

// New keys reuse the rows of released ones. When all keys are released, the memory is freed.
func TestKeysReuseMemory(t *testing.T) {
	for _, stride := range []int64{1, 1000, -7} {
		var ks Keys
		live := make([]Ref, 0, 2000)
		for i := range int64(100_000) {
			if len(live) == cap(live) {
				ks.Release(live[0])
				live = append(live[:0], live[1:]...)
			}
			live = append(live, ks.Hold(model.NumberKey(i*stride)))
		}
		if len(ks.rows) > 3*2000>>groupBits {
			t.Errorf("stride %d: %d groups for %d keys", stride, len(ks.rows), len(live))
		}
		for _, r := range live {
			ks.Release(r)
		}
		if ks.rows != nil || ks.Find(model.NumberKey(0)) != Nobody {
			t.Errorf("stride %d: memory kept for no keys", stride)
		}
	}
}

// The memory per key among a million: consecutive, without neighbours, and random.
func TestKeysMemory(t *testing.T) {
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(5, 5))
	order := rng.Perm(n)
	for what, c := range map[string]struct {
		key  func(i int64) int64
		most float64
	}{
		"in a row":      {func(i int64) int64 { return i }, 32},
		"alone":         {func(i int64) int64 { return 1000 * i }, 32},
		"backwards":     {func(i int64) int64 { return n - 1 - i }, 32},
		"shuffled":      {func(i int64) int64 { return int64(order[i]) }, 64},
		"with holes":    {func(i int64) int64 { return 7*i + i%2 }, 130},
		"after a model": {func(i int64) int64 { return (8*i + 7_999_992) % 8_000_000 }, 32},
		"at random":     {func(int64) int64 { return rng.Int64() }, 64},
	} {
		start := heap()
		var ks Keys
		for i := range int64(n) {
			ks.Hold(model.NumberKey(c.key(i)))
		}
		per := float64(heap()-start) / n
		t.Logf("%s: %.1f bytes per key", what, per)
		if per > c.most {
			t.Errorf("%s: %.1f bytes per key", what, per)
		}
		runtime.KeepAlive(&ks)
	}
}
