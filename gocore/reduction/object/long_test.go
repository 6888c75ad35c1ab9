package object

import (
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// chain returns how many metadata of other objects locate the bytes of a checkpoint.
func (s *tier) chain(number uint32) (bases int) {
	s.t.Helper()
	for ; ; bases++ {
		d := s.differences[number]
		meta := s.objects[number][d.Data:]
		h, err := parseHeader(meta, d.Meta)
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		if h.form == formMap {
			return bases
		}
		body, err := h.unpack(meta[headerBytes+h.table:])
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		parsed, _, err := difference.ParseMetadata(body)
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		if !parsed.HasBase {
			return bases
		}
		number = parsed.Base
	}
}

// In a long history the sources and the chains stay bounded, and so do the objects that are kept for the last checkpoints.
func TestLongHistory(t *testing.T) {
	for _, method := range methods[1:] {
		o := Options{Method: method, Chunk: 64, Lineage: 99, Record: 1 << 20, MaxSources: 20, MaxChain: 5}
		s := newTier(t, o)
		defer s.close()
		random := rand.New(rand.NewPCG(5, 6))
		now := []dedup.Region{{Name: "w", Bytes: make([]byte, 30_011)}, {Name: "m", Bytes: make([]byte, 20_000)}}
		for i := range now {
			for j := range now[i].Bytes {
				now[i].Bytes[j] = byte(random.Uint32())
			}
		}
		longest, most, bases, kept, stored := 0, 0, 0, 0, int64(0)
		for i := range 300 {
			for range random.IntN(12) {
				p := now[random.IntN(len(now))].Bytes
				p[random.IntN(len(p))]++
			}
			n := s.add(now)
			d := s.differences[n]
			longest, most = max(longest, s.chain(n)), max(most, len(d.Sources))
			if len(d.Sources) == 0 {
				bases++
			}
			stored += d.Data
			if i >= 10 {
				s.drop(n - 10)
			}
			kept = max(kept, len(s.objects))
			if i%13 == 0 {
				s.whole(n)
			}
		}
		for _, n := range s.live() {
			s.whole(n)
			s.parts(n)
		}
		t.Logf("%v: chains of at most %d, %d sources, %d bases, %d objects, %d bytes", method, longest, most, bases, kept, stored)
		if longest != o.MaxChain || most < o.MaxSources/2 || most > o.MaxSources || bases != 1 || kept > 3*o.MaxSources || stored > 400_000 {
			t.Errorf("%v: chains of %d, %d sources, %d bases, %d objects, %d bytes", method, longest, most, bases, kept, stored)
		}
		if slices.Max(s.writer.Known()) != 300 {
			t.Errorf("%v: known are %d", method, s.writer.Known())
		}
	}
}
