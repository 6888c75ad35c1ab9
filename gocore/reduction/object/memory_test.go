package object

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// A draft and its object take a small part of the checkpoint's length on the heap, also if all of its bytes are first occurrences.
func TestMemory(t *testing.T) {
	p := make([]byte, 24<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(p)
	for _, method := range methods {
		w, err := NewWriter(Options{Method: method, Chunk: 2048, Lineage: 1, Record: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		room := new(regions.Room)
		defer room.Free()
		before, after := new(runtime.MemStats), new(runtime.MemStats)
		runtime.ReadMemStats(before)
		d, err := w.Draft([]dedup.Region{{Name: "p", Bytes: p}})
		if err != nil {
			t.Fatal(err)
		}
		written := 0
		_, err = d.Write(nil, []regions.Choice{{Kind: codec.Int8, Modes: 0}}, model.MostData, func(p []byte) error {
			written += len(p)
			return nil
		}, regions.Options{Goroutines: 2, Room: room})
		runtime.ReadMemStats(after)
		if taken := after.TotalAlloc - before.TotalAlloc; err != nil || written < len(p) || d.Stored() != int64(len(p)) || taken > uint64(len(p)/2) {
			t.Errorf("%v: %d bytes of heap for %d of a checkpoint, %d were written: %v", method, taken, len(p), written, err)
		} else {
			t.Logf("%v: %d bytes of heap", method, taken)
		}
	}
}

// Metadata whose table is longer than what is read at first are read whole.
func TestManyRegions(t *testing.T) {
	s := newTier(t, Options{Method: difference.Runs, Chunk: 32, Lineage: 5, Record: 1 << 20})
	defer s.close()
	list := make([]dedup.Region, headGuess+5000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range list {
		list[i].Name = string([]byte{byte('a' + i%26), byte(i), byte(i >> 8), byte(i >> 16)})
		if i%50 == 7 {
			list[i].Bytes = make([]byte, random.IntN(100))
			list[i].Bytes = append(list[i].Bytes, byte(random.Uint32()))
		}
	}
	for range 2 {
		n := s.add(list)
		s.whole(n)
		list[7].Bytes[0]++
	}
}
