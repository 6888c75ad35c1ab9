package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/device/hostdevice"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/devicememory"
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

// A checkpoint that gets no memory is told why: its digests are too large for the area, other histories have the memory, the host has too little room, or no lineage takes the regions.
func TestWhyAnAreaHasNoMemory(t *testing.T) {
	a, err := devicememory.Open(hostdevice.New(hostdevice.Options{}), 0, 1<<20, devicememory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	m := &DeviceMethod{Method: difference.Tree, Chunk: 256}
	of := func(bytes int64, names ...string) (all []lineage.Region) {
		for _, name := range names {
			all = append(all, lineage.Region{Name: name, Bytes: bytes})
		}
		return all
	}
	long := strings.Repeat("n", difference.MaxName+1)
	for name, c := range map[string]struct {
		regions []lineage.Region
		others  int   // histories that have begun before, each with a checkpoint of 1 MiB
		most    int64 // bytes of the result
		want    error
	}{
		"fits":                  {of(1<<20, "u", "v"), 0, 1 << 30, nil},
		"too large":             {of(1<<30, "u"), 0, 1 << 30, ErrArea},
		"too large with others": {of(1<<30, "u"), 8, 1 << 30, ErrArea},
		"others":                {of(8<<20, "u"), 8, 1 << 30, ErrOthers},
		"no room on the host":   {of(1<<20, "u"), 0, 1 << 10, ErrResult},
		"a long name":           {of(1<<20, long), 0, 1 << 30, lineage.ErrRegion},
		"a name twice":          {of(1<<20, "u", "u"), 0, 1 << 30, lineage.ErrRegion},
		"a long name, others":   {of(1<<20, long), 8, 1 << 30, lineage.ErrRegion},
	} {
		t.Run(name, func(t *testing.T) {
			ar := &LineageArea{bytes: 512 << 10, lineages: map[string]*DeviceLineage{}}
			for i := range c.others {
				_, _ = ar.Lineage(fmt.Sprint(i), m, a, of(1<<20, "u")) // the last ones find no memory
			}
			l, err := ar.Lineage("h", m, a, c.regions)
			if err == nil {
				_, _, err = l.Memory(c.regions, c.most)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
		})
	}
}

// A lineage that there is gets no memory for a checkpoint that has become larger: because of its size, or of other histories.
func TestWhyALineageHasNoMemory(t *testing.T) {
	a, err := devicememory.Open(hostdevice.New(hostdevice.Options{}), 0, 1<<20, devicememory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	m := &DeviceMethod{Method: difference.Tree, Chunk: difference.MaxChunk}
	for want, bytes := range map[error]int64{ErrArea: 1 << 30, ErrOthers: 7 << 20} {
		ar := &LineageArea{bytes: 512 << 10, lineages: map[string]*DeviceLineage{}}
		for _, history := range []string{"h", "g", "f", "e"} {
			if _, err := ar.Lineage(history, m, a, []lineage.Region{{Name: "u", Bytes: 1 << 20}}); err != nil {
				t.Fatal(err)
			}
		}
		larger := []lineage.Region{{Name: "u", Bytes: bytes}}
		l, err := ar.Lineage("h", m, a, larger)
		if err == nil {
			_, _, err = l.Memory(larger, 1<<40)
		}
		if !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
}
