package object

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// referring stands for the method Full with references in lists of methods.
const referring difference.Method = 100

// drift moves floats of four bytes by steps of some size, as training moves weights.
func drift(p []byte, step float32, random *rand.Rand) []byte {
	p = slices.Clone(p)
	for i := 0; i+4 <= len(p); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(p[i:]))
		binary.LittleEndian.PutUint32(p[i:], math.Float32bits(x+step*float32(random.NormFloat64())))
	}
	return p
}

func weights(n int, random *rand.Rand) []byte { return drift(make([]byte, n), 0.1, random) }

// driftingTier has checkpoints whose weights drift, one with another shape among them.
func driftingTier(t fataler) *tier {
	s := newTier(t, Options{Method: difference.Full, References: true, Chunk: 32, Lineage: 0x0123456789abcdef})
	random := rand.New(rand.NewPCG(5, 6))
	now := []dedup.Region{{Name: "bytes", Bytes: []byte("some bytes that stay")}, {Name: "w", Bytes: weights(2002, random)}, {Name: "empty"}}
	for k := range 7 {
		s.add(now)
		now = clone(now)
		now[1].Bytes = drift(now[1].Bytes, 1e-6, random)
		if k == 4 {
			now[1].Bytes = now[1].Bytes[:1600]
		}
	}
	return s
}

// Of checkpoints that drift each but the anchors takes a part of its bytes, a reader needs one object more at most, and the anchor changes when it has become too
// old: the total is less than with one anchor, and than with an anchor for each.
func TestReferences(t *testing.T) {
	const count = 60
	random := rand.New(rand.NewPCG(1, 2))
	s := newTier(t, Options{Method: difference.Full, References: true, Chunk: 32, Lineage: 16})
	defer s.close()
	now := []dedup.Region{{Name: "frozen", Bytes: weights(300_000, random)}, {Name: "w", Bytes: weights(700_003, random)}}
	anchors, all := 0, int64(0)
	for range count {
		n := s.add(now)
		d := s.differences[n]
		if all += d.Bytes(); !d.Refers {
			anchors++
		}
		if len(d.Sources) > 1 || d.Refers != (len(d.Sources) == 1) {
			t.Fatalf("checkpoint %d: %+v", n, d)
		}
		s.whole(n)
		s.parts(n)
		now = clone(now)
		now[1].Bytes = drift(now[1].Bytes, 2e-5, random)
	}
	first, second := s.differences[1].Bytes(), s.differences[2].Bytes()
	if anchors < 2 || anchors > count/4 || second > first*2/3 || all > count*first*3/4 {
		t.Errorf("%d anchors; the first takes %d bytes, the one after it %d, all take %d", anchors, first, second, all)
	}
}

// Bytes that have nothing in common with those before are tried ever more rarely.
func TestReferencesInVain(t *testing.T) {
	const count = 120
	s := newTier(t, Options{Method: difference.Full, References: true, Chunk: 32, Lineage: 16})
	defer s.close()
	tried := 0
	for range count {
		p := make([]byte, 5000)
		for i := range p {
			p[i] = byte(s.random.Uint32())
		}
		if n := s.add([]dedup.Region{{Name: "u", Bytes: p}}); s.differences[n].Refers {
			tried++
		}
	}
	if tried < 2 || tried > 5 {
		t.Errorf("%d of %d were tried", tried, count)
	}
}

// An anchor whose checkpoint is gone serves on, and one whose object is gone is referred to no more. Regions that change their length or their name have none.
func TestAnchorsThatGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newTier(t, Options{Method: difference.Full, References: true, Chunk: 32, Lineage: 16 + 8*uint64(rapid.IntRange(0, 100).Draw(t, "seed"))})
		defer s.close()
		now := []dedup.Region{{Name: "a", Bytes: weights(4000, s.random)}, {Name: "b", Bytes: weights(1000, s.random)}}
		for range rapid.IntRange(2, 20).Draw(t, "checkpoints") {
			n := s.add(now)
			now = clone(now)
			now[0].Bytes = drift(now[0].Bytes, 1e-6, s.random)
			switch rapid.SampledFrom([]string{"", "", "drop", "compact", "forget", "longer", "other", "none"}).Draw(t, "then") {
			case "drop":
				s.drop(s.live()[0])
			case "compact":
				s.writer.Compact(s.alone())
			case "forget":
				if a := s.writer.anchor; a.use {
					s.forget(a.number)
				}
			case "longer":
				now[1].Bytes = append(now[1].Bytes, 1, 2, 3)
			case "other":
				now[0].Name += "x"
			case "none":
				now = now[:1]
				now = append(now, dedup.Region{Name: "b"})
			}
			if s.plain[n] != nil {
				s.whole(n)
			}
		}
		for _, n := range s.live() {
			s.whole(n)
			s.parts(n)
		}
	})
}

// What a writer cannot write, and a description that does not fit, are refused.
func TestReferencesThatAreRefused(t *testing.T) {
	for _, method := range methods[1:] {
		if _, err := NewWriter(Options{Method: method, Chunk: 32, Record: 1 << 20, References: true}); !errors.Is(err, ErrOptions) {
			t.Errorf("%v: %v", method, err)
		}
	}
	s := driftingTier(t)
	defer s.close()
	d := s.draft(s.plain[7])
	of := s.differences[d.Sources()[0]]
	sources := []model.Source{{Number: of.Number, Data: of.Data, Meta: of.Meta}}
	if got := d.Reference(sources); got == nil || got.Number != of.Number || got.Refers {
		t.Fatalf("the reference is %+v", got)
	}
	if _, err := d.Write(sources, make([]regions.Choice, 3), 1<<30, func([]byte) error { return nil }, regions.Options{Room: s.room}); !errors.Is(err, ErrSources) {
		t.Errorf("without the bytes of the reference: %v", err)
	}
	names, spans, _ := slot(s.plain[7])
	for what, change := range map[string]func(d *model.Difference){
		"nothing of the reference": func(d *model.Difference) { d.Refers = false },
		"another object":           func(d *model.Difference) { d.Sources[0].Number-- },
	} {
		other := *s.differences[7]
		other.Sources = slices.Clone(other.Sources)
		change(&other)
		if _, err := Open(&other, names, spans, s.reading(s.differences[7])); err == nil || kind(t, err).Region != -1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, bad := range map[string]model.Difference{
		"sections":    {Number: 3, Meta: 64, Refers: true, Sections: true, Sources: sources},
		"two sources": {Number: 30, Meta: 64, Refers: true, Sources: append(slices.Clone(sources), model.Source{Number: 20, Meta: 64})},
		"no source":   {Number: 3, Meta: 64, Refers: true},
	} {
		if err := bad.Check(); !errors.Is(err, model.ErrDifference) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A source that has a reference itself is refused.
func TestChainsOfReferencesAreRefused(t *testing.T) {
	s := driftingTier(t)
	defer s.close()
	if d := s.differences[3]; !d.Refers || d.Sources[0].Number == 2 || !s.differences[2].Refers {
		t.Fatalf("%+v", d)
	}
	second := s.differences[2]
	chained := *s.differences[3]
	chained.Sources = []model.Source{{Number: 2, Data: second.Data, Meta: second.Meta}}
	meta := slices.Clone(s.objects[3][chained.Data:])
	meta[headerBytes] = 2 // the number of the reference
	meta = sign(meta)
	names, spans, _ := slot(s.plain[3])
	_, err := Open(&chained, names, spans, func(source int, at int64, p []byte) error {
		if source == Own && at >= chained.Data {
			copy(p, meta[at-chained.Data:])
			return nil
		}
		return s.reading(&chained)(source, at, p)
	})
	if !errors.Is(err, ErrFormat) || kind(t, err).Source != 0 {
		t.Errorf("a source with a reference: %v", err)
	}
}
