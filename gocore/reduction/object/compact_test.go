package object

import (
	"math/rand/v2"
	"testing"

	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// Of a history that keeps its last two checkpoints, each of which has a few other bytes than the one before, objects have at most some three times the bytes that
// are in use. Without compaction they have more, and every checkpoint is what it was either way.
func TestMostlyDeadObjects(t *testing.T) {
	const size, count, change = 256 << 10, 200, 8 << 10
	most := map[bool]int{}
	for _, compacts := range []bool{false, true} {
		s := newTier(t, Options{Method: difference.Runs, Chunk: 256, Lineage: 16, Record: 1 << 20})
		r := rand.New(rand.NewPCG(5, 6))
		fill := func(p []byte) {
			for i := range p {
				p[i] = byte(r.Uint32())
			}
		}
		state := make([]byte, size)
		fill(state)
		for k := range count {
			fill(state[r.IntN(size-change):][:change])
			if compacts {
				s.writer.Compact(s.alone())
			}
			s.add([]dedup.Region{{Name: "x", Bytes: state}})
			for live := s.live(); len(live) > 2; live = s.live() {
				s.drop(live[0])
			}
			if k%20 == 0 {
				for _, number := range s.live() {
					s.whole(number)
				}
			}
			kept := 0
			for _, o := range s.objects {
				kept += len(o)
			}
			most[compacts] = max(most[compacts], kept)
		}
		if n := len(s.writer.stored); n > 8*DefaultSources {
			t.Errorf("the lengths of %d objects are kept", n)
		}
		s.close()
	}
	if most[true] > 3*size || most[true] > most[false] {
		t.Errorf("objects have %d bytes with compaction and %d without, of checkpoints of %d", most[true], most[false], size)
	}
}

// alone are the objects whose checkpoints are not live any more.
func (s *tier) alone() (numbers []uint32) {
	for n := range s.objects {
		if s.plain[n] == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
