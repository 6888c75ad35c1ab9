package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// counters is the history of a large array of counters of which a few grow from each checkpoint to the next, as graphlet counts do.
func counters(steps int) [][]dedup.Region {
	random := rand.New(rand.NewPCG(3, 4))
	p := make([]byte, 1<<18)
	for i := 0; i < len(p); i += 4 {
		if random.IntN(3) > 0 {
			binary.LittleEndian.PutUint32(p[i:], uint32(random.ExpFloat64()*40))
		}
	}
	var history [][]dedup.Region
	for range steps {
		history = append(history, []dedup.Region{{Name: "counts", Bytes: bytes.Clone(p)}})
		for range 500 {
			at := random.IntN(len(p)/4) * 4
			binary.LittleEndian.PutUint32(p[at:], binary.LittleEndian.Uint32(p[at:])+1)
		}
	}
	return history
}

// Bodies of sparse changes become much smaller, in both forms, and are read back.
func TestPacked(t *testing.T) {
	for _, method := range methods[1:] {
		s := newTier(t, Options{Method: method, Chunk: 64, Lineage: 3, Record: 1 << 22, MaxChain: 3})
		defer s.close()
		plain, stored := map[form]int64{}, map[form]int64{}
		for _, now := range counters(6) {
			n := s.add(now)
			h, _, ok := split(s.objects[n][s.differences[n].Data:])
			if !ok {
				t.Fatalf("%v: the header of checkpoint %d", method, n)
			}
			plain[h.form] += h.plain
			stored[h.form] += h.body
			s.whole(n)
		}
		t.Logf("%v: by form %d, of %d", method, stored, plain)
		if stored[formDifference] == 0 || stored[formDifference] > plain[formDifference]*2/3 || stored[formMap] == 0 || stored[formMap] > plain[formMap]*9/10 {
			t.Errorf("%v: by form %d bytes are stored, of %d", method, stored, plain)
		}
	}
}

// pack gives the same bytes whatever an encoder has compressed before, in any goroutine.
func TestPackAgain(t *testing.T) {
	random := rand.NewChaCha8([32]byte{7})
	var bodies, first [][]byte
	for i := range 20 {
		p := make([]byte, 100<<(i%12))
		_, _ = random.Read(p)
		for j := range p {
			p[j] &= 3
		}
		packed, err := pack(formMap, p)
		if err != nil || len(p) >= leastPacked && len(packed) >= len(p)/2 || len(p) < leastPacked && len(packed) != len(p) {
			t.Fatalf("%d of %d bytes: %v", len(packed), len(p), err)
		}
		bodies, first = append(bodies, p), append(first, packed)
	}
	var ended sync.WaitGroup
	for g := range 4 {
		ended.Go(func() {
			for i := range bodies {
				i = (i*7 + g) % len(bodies)
				packed, err := pack(formMap, bodies[i])
				if err != nil || !bytes.Equal(packed, first[i]) {
					t.Errorf("body %d: other bytes, %v", i, err)
				}
				h := &head{form: formMap, body: int64(len(packed)), plain: int64(len(bodies[i]))}
				if p, err := h.unpack(packed); err != nil || !bytes.Equal(p, bodies[i]) {
					t.Errorf("body %d: other plain bytes, %v", i, err)
				}
			}
		})
	}
	ended.Wait()
}

// Bytes that do not become shorter stay as they are.
func TestNotPacked(t *testing.T) {
	p := make([]byte, 10_000)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(p)
	if packed, err := pack(formMap, p); err != nil || !bytes.Equal(packed, p) {
		t.Errorf("%d of %d bytes: %v", len(packed), len(p), err)
	}
	if _, err := pack(formDifference, p); !errors.Is(err, difference.ErrFormat) {
		t.Errorf("a difference of random bytes: %v", err)
	}
}

// A frame that has another length than the header says is refused, and memory is allocated for no more than that length.
func TestClaimedLength(t *testing.T) {
	packed, err := pack(formMap, make([]byte, 64<<20))
	if err != nil || len(packed) > 64<<10 {
		t.Fatalf("%d bytes: %v", len(packed), err)
	}
	for _, plain := range []int64{int64(len(packed)), int64(len(packed)) + 1, 1 << 20, 64<<20 - 1, 64<<20 + 1} {
		h := &head{form: formMap, body: int64(len(packed)), plain: plain}
		if plain == h.body {
			continue // it is not compressed then
		}
		before, after := new(runtime.MemStats), new(runtime.MemStats)
		runtime.ReadMemStats(before)
		if _, err := h.unpack(packed); !errors.Is(err, ErrFormat) {
			t.Errorf("a length of %d: %v", plain, err)
		}
		runtime.ReadMemStats(after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(plain)+4<<20 {
			t.Errorf("a length of %d: %d bytes of memory", plain, taken)
		}
	}
}

// A header with lengths that no body has is refused before a body is read.
func TestImpossibleLengths(t *testing.T) {
	s := smallTier(t, difference.Runs)
	defer s.close()
	const number = 7
	meta := s.objects[number][s.differences[number].Data:]
	h, begin, ok := split(meta)
	if !ok || h.plain <= h.body {
		t.Fatalf("checkpoint %d has no compressed body: %+v", number, h)
	}
	for _, plain := range []int64{0, h.body - 1, h.body*mostRatio + 1, model.MostMeta + 1} {
		p := withBody(meta, meta[begin:], plain)
		if _, err := parseHeader(p, int64(len(p))); !errors.Is(err, ErrFormat) {
			t.Errorf("a length of %d: %v", plain, err)
		}
	}
	packed := slices.Clone(meta[begin:])
	packed[len(packed)/2] ^= 1
	if _, err := h.unpack(packed[:len(packed)-1]); !errors.Is(err, ErrFormat) {
		t.Errorf("a frame without its end: %v", err)
	}
}
