package cache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// What an area gives out lies in it, and does not overlap. What was given back is given out again.
func TestMemoryOfAnArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ar := &LineageArea{at: 1024, bytes: 64 * areaAlign}
		var taken []model.Span
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
				ar.give(taken[i])
				taken = slices.Delete(taken, i, i+1)
				continue
			}
			bytes, take := rapid.Int64Range(0, 20*areaAlign).Draw(t, "bytes"), ar.take
			if rapid.Bool().Draw(t, "last") {
				take = ar.takeLast
			}
			s, ok := take(bytes)
			if !ok {
				if largestGap(ar, taken) >= roundUp(max(bytes, 1), areaAlign) {
					t.Fatalf("%d bytes are refused, and taken are %v", bytes, taken)
				}
				continue
			}
			if s.Bytes < max(bytes, 1) || s.Offset < ar.at || s.End() > ar.at+ar.bytes || s.Offset%areaAlign != 0 {
				t.Fatalf("%v for %d bytes", s, bytes)
			}
			for _, other := range taken {
				if s.Offset < other.End() && other.Offset < s.End() {
					t.Fatalf("%v overlaps %v", s, other)
				}
			}
			taken = append(taken, s)
		}
		free := ar.bytes
		for _, s := range taken {
			free -= s.Bytes
		}
		if ar.free() != free {
			t.Fatalf("%d bytes are free, counted %d", ar.free(), free)
		}
	})
}

func largestGap(ar *LineageArea, taken []model.Span) (largest int64) {
	all := slices.SortedFunc(slices.Values(taken), func(a, b model.Span) int { return int(a.Offset - b.Offset) })
	at := ar.at
	for _, s := range append(all, model.Span{Offset: ar.at + ar.bytes}) {
		largest, at = max(largest, s.Offset-at), s.End()
	}
	return largest
}

// The staging memory of a tier has the place that it was given first, also when the budget is another one later: the area lies behind it.
func TestStagingMemoryKeepsItsPlace(t *testing.T) {
	sg := stagings{groups: map[int]int64{}}
	large, small := groupFor(1<<30), groupFor(160<<20)
	if large == small || small == 0 {
		t.Fatalf("groups of %d and %d bytes", large, small)
	}
	if first, later := sg.groupOf(0, 160<<20), sg.groupOf(0, 1<<30); first != small || later != small {
		t.Errorf("groups of %d and %d bytes, not %d", first, later, small)
	}
	if other := sg.groupOf(1, 1<<30); other != large {
		t.Errorf("another tier has groups of %d bytes", other)
	}
}

// Maps of checkpoints whose copies are gone are forgotten, those of others are not.
func TestMapsAreForgotten(t *testing.T) {
	l, gone := &DeviceLineage{}, map[*engine.Object]bool{}
	for i := range 100 {
		o := &engine.Object{}
		l.Mapped = append(l.Mapped, o)
		gone[o] = i%10 != 0
		l.ForgetMaps(func(o *engine.Object) bool { return gone[o] })
	}
	for range 100 {
		l.ForgetMaps(func(o *engine.Object) bool { return gone[o] })
	}
	if len(l.Mapped) != 10 || slices.ContainsFunc(l.Mapped, func(o *engine.Object) bool { return gone[o] }) {
		t.Errorf("%d are kept", len(l.Mapped))
	}
}
