package object

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/regions"
)

// decodedBytes is the length of a benchmark's region: more than a core's caches hold.
const decodedBytes = 32 << 20

// One goroutine decodes a whole checkpoint and verifies the hashes of its plain bytes: from the containers of its regions alone, where the reference is in
// memory, and from objects, where the reference is decoded too.
func BenchmarkDecode(b *testing.B) {
	for _, c := range decodedCases() {
		b.Run("regions/"+c.name, func(b *testing.B) { c.run(b, (*tier).decodeRegions) })
		b.Run("object/"+c.name, func(b *testing.B) { c.run(b, (*tier).decodeObject) })
	}
}

// decodedCase is a region of a benchmark, and that of the checkpoint before; nil: there is none.
type decodedCase struct {
	name             string
	kind             codec.Kind
	plain, reference []byte
}

func decodedCases() []decodedCase {
	random := rand.New(rand.NewPCG(1, 2))
	w := weights(2<<20, random)
	next := drift(w, 1e-5, random)
	early, afterEarly := wavefields(50)
	late, afterLate := wavefields(720)
	return []decodedCase{
		{"weights bf16", codec.BFloat16, topHalves(w), nil},
		{"weights bf16, reference", codec.BFloat16, topHalves(next), topHalves(w)},
		{"weights fp32", codec.Float32, w, nil},
		{"weights fp32, reference", codec.Float32, next, w},
		{"wavefield early", codec.Float32, early, nil},
		{"wavefield early, reference", codec.Float32, afterEarly, early},
		{"wavefield late", codec.Float32, late, nil},
		{"wavefield late, reference", codec.Float32, afterLate, late},
	}
}

// run writes the case as objects, and measures decoding. Beside the mean rate it reports that of the fastest run, which other processes disturb least.
func (c *decodedCase) run(b *testing.B, decode func(*tier, uint32, []byte) error) {
	s := newTier(b, wholeOptions)
	defer s.close()
	s.copies = 1
	last, before := uint32(1), uint32(0)
	if c.reference != nil {
		s.addWhole(1, c.checkpoint(c.reference), model.PartGrain, 0)
		last, before = 2, 1
	}
	s.addWhole(last, c.checkpoint(c.plain), model.PartGrain, before)
	slot := make([]byte, decodedBytes)
	if err := decode(s, last, slot); err != nil || !bytes.Equal(slot, filled(c.plain)) {
		b.Fatalf("other bytes: %v", err)
	}
	b.SetBytes(decodedBytes)
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		if err := decode(s, last, slot); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(began))
	}
	b.ReportMetric(decodedBytes/1e6/best.Seconds(), "best-MB/s")
	b.ReportMetric(decodedBytes/float64(s.differences[last].Data), "ratio")
}

// checkpoint has one region with bytes: that whose number gives it the kind.
func (c *decodedCase) checkpoint(plain []byte) []dedup.Region {
	list := []dedup.Region{{Name: "0"}, {Name: "1"}, {Name: "2"}, {Name: "3"}}
	list[slices.Index(kinds, c.kind)].Bytes = filled(plain)
	return list
}

// filled repeats bytes up to the length of a region.
func filled(p []byte) []byte { return bytes.Repeat(p, decodedBytes/len(p)+1)[:decodedBytes] }

// decodeRegions decodes the containers of a whole checkpoint.
func (s *tier) decodeRegions(number uint32, slot []byte) error {
	r, spans, _ := s.open(number)
	e, _ := r.Whole()
	o := regions.Options{Goroutines: 1, Room: s.room}
	if d := s.differences[number]; d.Refers {
		o.Reference = func(container int, plain, _ []byte) error {
			for _, region := range s.plain[d.Sources[0].Number] {
				copy(plain, region.Bytes[min(container*model.PartGrain, len(region.Bytes)):])
			}
			return nil
		}
	}
	object := s.objects[number]
	read := func(at int64, to []byte) error {
		copy(to, object[at:])
		return nil
	}
	return regions.Decode(spans, e, spans, read, slot, func(int64, int64) {}, o)
}

// decodeObject opens a checkpoint's objects and decodes them.
func (s *tier) decodeObject(number uint32, slot []byte) error {
	r, spans, _ := s.open(number)
	wanted := slices.DeleteFunc(slices.Clone(spans), func(s model.Span) bool { return s.Bytes == 0 })
	return r.Decode(wanted, slot, func(int64, int64) {}, regions.Options{Goroutines: 1, Room: s.room})
}

// topHalves makes bf16 of floats of four bytes, by truncation.
func topHalves(p []byte) []byte {
	var half []byte
	for ; len(p) > 0; p = p[4:] {
		half = append(half, p[2], p[3])
	}
	return half
}

const fieldSide = 352

// wavefields simulates an acoustic wave in layered rock with a Ricker source, and returns the field after some steps, and after one step more.
func wavefields(steps int) (field, next []byte) {
	now, before := make([]float64, fieldSide*fieldSide), make([]float64, fieldSide*fieldSide)
	for t := range steps + 1 {
		advance(now, before)
		now, before = before, now
		a := math.Pi * (0.005*float64(t) - 1.1)
		for y := -9; y <= 9; y++ {
			for x := -9; x <= 9; x++ {
				now[(fieldSide/4+y)*fieldSide+fieldSide/2+x] += (1 - 2*a*a) * math.Exp(-a*a-float64(x*x+y*y)/18)
			}
		}
	}
	return fp32(before), fp32(now)
}

// advance replaces the field before by the field after now.
func advance(now, before []float64) {
	for y := 1; y < fieldSide-1; y++ {
		for x := 1; x < fieldSide-1; x++ {
			i := y*fieldSide + x
			change := now[i-1] + now[i+1] + now[i-fieldSide] + now[i+fieldSide] - 4*now[i]
			before[i] = 2*now[i] - before[i] + (0.10+0.025*float64((y+x/6)/48%7))*change
		}
	}
}

// fp32 rounds numbers; a solver in fp32 has none that are as small as some of them.
func fp32(field []float64) []byte {
	p := make([]byte, 4*len(field))
	for i, x := range field {
		if math.Abs(x) > 1e-30 {
			binary.LittleEndian.PutUint32(p[4*i:], math.Float32bits(float32(x)))
		}
	}
	return p
}
