package plan

import (
	"math/rand/v2"
	"testing"

	"velocpy/gocore/model"
)

// The trail is a list of all restores of which only the end is remembered.
func TestTrailForgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, keys := range []int64{10, 60_000, 1 << 40} {
		tr := trail{keys: &Keys{}}
		var all []model.Key
		latest := map[model.Key]int64{}
		for range 3 * trailSize {
			k := model.NumberKey(rng.Int64N(keys))
			latest[k] = int64(len(all))
			all = append(all, k)
			tr.add(k)
		}
		end := int64(len(all))
		if tr.end != end || len(tr.ring) != trailSize {
			t.Fatal(tr.end, len(tr.ring))
		}
		for _, pos := range []int64{end - 1, end - 1000, end - trailSize + 1, end - trailSize} {
			if k, ok := tr.at(pos); !ok || k != all[pos] {
				t.Errorf("%d keys: at %d: %v %v, want %v", keys, pos, k, ok, all[pos])
			}
		}
		for _, pos := range []int64{-1, 0, end - trailSize - 1, end, end + 1} {
			if k, ok := tr.at(pos); ok {
				t.Errorf("%d keys: at %d: %v", keys, pos, k)
			}
		}
		remembered := 0
		for k, want := range latest {
			pos, ok := tr.last(k)
			if ok != (want >= end-trailSize) || (ok && pos != want) {
				t.Fatalf("%d keys: last of %v: %d %v, want %d of %d", keys, k, pos, ok, want, end)
			}
			if ok {
				remembered++
			}
		}
		if tr.keys.Len() != remembered {
			t.Errorf("%d keys: %d are held, want %d", keys, tr.keys.Len(), remembered)
		}
	}
}

// An order whose period is longer than the trail is not recognised, and does no harm.
func TestSweepsLongerThanTheTrail(t *testing.T) {
	n := trailSize + 100
	order := shuffled(n, 3)
	h := guessing(n)
	h.restore(order...)
	h.restore(order...)
	if h.restores-h.missed > 10 || h.withdrawn > 1000 {
		t.Fatalf("foresaw %d, withdrew %d", h.restores-h.missed, h.withdrawn)
	}
}

// All other tests use tables. This one makes keys collide, and removes them in another order than they were added.
func TestTableUnderCollisions(t *testing.T) {
	owner := make(keyList, 5000)
	rng := rand.New(rand.NewPCG(2, 2))
	var tb table
	in := map[uint32]bool{}
	for round := range 200_000 {
		ref := uint32(rng.IntN(len(owner)))
		if round%1000 < 500 {
			ref %= 50
		}
		owner[ref] = model.NumberKey(int64(ref) << 40)
		got, slot, ok := tb.find(owner[ref], owner)
		if ok != in[ref] || (ok && got != ref) {
			t.Fatalf("round %d: %d found as %d %v, want %v", round, ref, got, ok, in[ref])
		}
		if ok {
			tb.remove(slot)
		} else {
			tb.add(owner[ref], ref)
		}
		in[ref] = !ok
	}
}

type keyList []model.Key

func (l keyList) keyAt(ref uint32) model.Key { return l[ref] }
