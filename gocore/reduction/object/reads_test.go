package object

import (
	"math/rand/v2"
	"sync"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// Each container is read once, with its neighbours, but no more than 2 MiB at a time, and only those that have what is wanted. A reader that goes on from part
// to part does so too.
func TestReads(t *testing.T) {
	s := newTier(t, Options{Method: difference.Runs, Chunk: 4096, Lineage: 4, Record: 1 << 20})
	defer s.close()
	p := make([]byte, 7<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	s.add([]dedup.Region{{Name: "p", Bytes: p}})
	for i := range p[3<<20 : 4<<20] {
		p[3<<20+i]++
	}
	const number = 2
	if n := s.add([]dedup.Region{{Name: "p", Bytes: p}}); n != number {
		t.Fatal(n)
	}
	d := s.differences[number]
	names, spans, n := slot(s.plain[number])
	var lock sync.Mutex
	read, largest := map[int]int64{}, 0
	inner := s.reading(d)
	r, err := Open(d, names, spans, func(source int, at int64, p []byte) error {
		lock.Lock()
		defer lock.Unlock()
		read[source] += int64(len(p))
		largest = max(largest, len(p))
		return inner(source, at, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(wanted ...model.Span) {
		clear(read)
		if err := r.Decode(wanted, make([]byte, n), func(int64, int64) {}, regions.Options{Goroutines: 3, Room: s.room}); err != nil {
			t.Fatal(err)
		}
	}
	decode(spans...)
	if read[Own] != d.Data || read[0] != d.Sources[0].Data*6/7 || largest > inBytes || largest < inBytes/2 {
		t.Errorf("read for all: %v, at most %d at once; the objects have %d and %d", read, largest, d.Data, d.Sources[0].Data)
	}
	decode(model.Span{Offset: 3<<20 + 77, Bytes: 1}, model.Span{Offset: 5<<20 - 1, Bytes: 2})
	if read[Own] != d.Data/4 || read[0] != d.Sources[0].Data/28*2 {
		t.Errorf("read for 3 bytes in 3 containers: %v", read)
	}
	clear(read)
	for at := 0; at < len(p); at += 100_000 {
		if err := r.Read(0, int64(at), make([]byte, min(100_000, len(p)-at))); err != nil {
			t.Fatal(err)
		}
	}
	if read[Own] != d.Data || read[0] != d.Sources[0].Data*6/7 {
		t.Errorf("read from part to part: %v", read)
	}
}
