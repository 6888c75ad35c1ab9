package dedup

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// With an empty record, a lineage that was resumed writes the bytes that the old one would have written.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.Record = 0
		h := newHistory(t, o, rapid.Bool().Draw(t, "exact"))
		var regions []Region
		for number := uint32(1); number < 8; number++ {
			regions = edit(t, h, regions, o.Chunk)
			h.add(number, regions)
			if rapid.Bool().Draw(t, "resume") {
				other := newHistory(t, o, false)
				other.objects, other.maps, other.plain = h.objects, h.maps, h.plain
				other.lineage.options.Read = h.lineage.options.Read
				if err := other.lineage.Resume(h.maps[number], regions); err != nil {
					t.Fatal(err)
				}
				next := edit(t, h, regions, o.Chunk)
				a, _, errA := other.lineage.Dedup(number+1, next)
				b := h.add(number+1, next)
				b.Data = append([]byte{}, b.Data...)
				textA, _ := a.Append(nil)
				textB, _ := b.Append(nil)
				if errA != nil || !reflect.DeepEqual(textA, textB) {
					t.Fatalf("resumed: %v\n%+v\nwant\n%+v", errA, a, b)
				}
				h.lineage, regions = other.lineage, next
				number++
			}
		}
		for c := range h.plain {
			h.mustRestore(c)
		}
	})
}

func TestResumeRefuses(t *testing.T) {
	o := Options{Method: difference.Tree, Chunk: 32, Record: record.Memory(100)}
	h := newHistory(t, o, false)
	regions := []Region{{"a", noise(100)}}
	h.add(3, regions)
	if err := h.lineage.Resume(h.maps[3], regions); !errors.Is(err, ErrOrder) {
		t.Errorf("after a checkpoint: %v", err)
	}
	for name, wrong := range map[string][]Region{"none": nil, "another": {{"b", noise(100)}}, "shorter": {{"a", noise(99)}}, "twice": {{"a", nil}, {"a", nil}}} {
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Resume(h.maps[3], wrong); !errors.Is(err, ErrRegion) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Resume(h.maps[3], regions); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
		if _, _, err := l.Dedup(3, regions); !errors.Is(err, ErrOrder) {
			t.Errorf("the resumed checkpoint again: %v", err)
		}
	}
}

// A map of a lineage with another chunk length is refused where its runs could not be joined with new ones.
func TestResumeRefusesOtherChunks(t *testing.T) {
	old := newHistory(t, Options{Method: difference.Runs, Chunk: 64, Record: record.Memory(100)}, false)
	same := []Region{{"same", bytes.Repeat(noise(64), 4)}}
	old.add(1, same)
	odd := newHistory(t, Options{Method: difference.Runs, Chunk: 32, Record: record.Memory(100)}, false)
	shifted := []Region{{"odd", append(noise(96), noise(96)...)}}
	odd.add(1, shifted)
	for name, c := range map[string]struct {
		m       *difference.Map
		regions []Region
		chunk   int
	}{"period": {old.maps[1], same, 32}, "place": {odd.maps[1], shifted, 64}} {
		l, err := New(Options{Method: difference.Runs, Chunk: c.chunk, Record: record.Memory(100)})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Resume(c.m, c.regions); !errors.Is(err, ErrRegion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bytes that are loaded in pieces make the lineage that they make together, and a failed load leaves it as it was.
func TestResumeInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Method: rapid.SampledFrom(methods).Draw(t, "method"), Chunk: 512, Record: record.Memory(100), Blocks: rapid.Bool().Draw(t, "blocks")}
		h := newHistory(t, o, false)
		var regions []Region
		for i := range rapid.IntRange(0, 3).Draw(t, "regions") {
			regions = append(regions, Region{fmt.Sprint(i), noise(rapid.SampledFrom([]int{0, 1, 5000, SegmentBytes, 2*SegmentBytes + 77}).Draw(t, "size"))})
		}
		h.add(1, regions)
		together, pieces := newHistory(t, o, false).lineage, newHistory(t, o, false).lineage
		if err := together.Resume(h.maps[1], regions); err != nil {
			t.Fatal(err)
		}
		fails := rapid.IntRange(0, 4).Draw(t, "fails")
		bad := errors.New("no bytes")
		load := func(region, at int) ([]byte, error) {
			if fails--; fails == 0 {
				return nil, bad
			}
			p := regions[region].Bytes[at:]
			return p[:min(len(p), rapid.IntRange(1, 2).Draw(t, "segments")*SegmentBytes)], nil
		}
		err := pieces.ResumeBy(h.maps[1], load)
		if errors.Is(err, bad) {
			if pieces.Last() != nil {
				t.Fatal("a lineage has a checkpoint that was not loaded")
			}
			err = pieces.ResumeBy(h.maps[1], load)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range regions {
			if n := len(regions[i].Bytes); n > 0 {
				regions[i].Bytes = bytes.Clone(regions[i].Bytes)
				regions[i].Bytes[rapid.IntRange(0, n-1).Draw(t, "change")]++
			}
		}
		a, _, errA := together.Dedup(2, regions)
		b, _, errB := pieces.Dedup(2, regions)
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%v, %v:\n%+v\nwant\n%+v", errA, errB, b, a)
		}
	})
}

// Pieces that are no whole segments, or more than the region has, are refused.
func TestResumeRefusesOddPieces(t *testing.T) {
	o := Options{Method: difference.Tree, Chunk: 32, Record: record.Memory(100)}
	h := newHistory(t, o, false)
	p := noise(SegmentBytes + 100)
	h.add(1, []Region{{"a", p}})
	for _, n := range []int{0, 1, SegmentBytes - 1, SegmentBytes + 1, SegmentBytes + 101} {
		err := newHistory(t, o, false).lineage.ResumeBy(h.maps[1], func(int, int) ([]byte, error) { return append(p, 0)[:n], nil })
		if !errors.Is(err, ErrRegion) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
