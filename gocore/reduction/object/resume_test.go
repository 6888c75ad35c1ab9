package object

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/regions"
)

// A writer that was resumed stores what has changed, and no more.
func TestResume(t *testing.T) {
	s := newTier(t, Options{Method: difference.Runs, Chunk: 64, Lineage: 8, Record: 1 << 20})
	defer s.close()
	now := []dedup.Region{{Name: "p", Bytes: make([]byte, 100_000)}}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(now[0].Bytes)
	s.add(now)
	now[0].Bytes[500]++
	s.resume(s.add(now))
	now[0].Bytes[900]++
	d := s.draft(now)
	if d.Number() != 3 || d.Stored() != 64 || !slices.Equal(d.Sources(), []uint32{1, 2}) || d.body.form != formMap {
		t.Errorf("checkpoint %d stores %d bytes and has the sources %d, in form %d", d.Number(), d.Stored(), d.Sources(), d.body.form)
	}
	r, _, _ := s.open(2)
	if err := s.writer.Resume(r, s.window(r), regions.Options{Goroutines: 1, Room: s.room}); err == nil {
		t.Error("a writer is resumed that has a checkpoint")
	}
}

// Large regions pass through the window in pieces, small ones together.
func TestResumeInWindows(t *testing.T) {
	for _, method := range methods[1:] {
		s := newTier(t, Options{Method: method, Chunk: 512, Lineage: 9, Record: 1 << 20})
		noise := rand.NewChaCha8([32]byte{2})
		var now []dedup.Region
		for i, n := range []int{100, 3*LeastWindow + 77, 0, 5000, LeastWindow, 12, 0} {
			now = append(now, dedup.Region{Name: fmt.Sprint("r", i), Bytes: make([]byte, n)})
			_, _ = noise.Read(now[i].Bytes)
		}
		s.add(now)
		copy(now[1].Bytes[LeastWindow:], now[4].Bytes[:4096])
		last := s.add(now)
		for _, most := range []int64{LeastWindow, LeastWindow + 10_000, 1 << 30} {
			r, _, _ := s.open(last)
			w, err := NewWriter(s.options)
			if err != nil {
				t.Fatal(err)
			}
			through, used, inUse := s.window(r), int64(0), int64(0)
			through.Bytes = most
			clears := through.Free
			through.Free = func(at, n int64) error {
				used, inUse = used+n, max(inUse, n)
				return clears(at, n)
			}
			if err := w.Resume(r, through, regions.Options{Goroutines: 2, Room: s.room}); err != nil {
				t.Fatal(err)
			}
			if few := most < 1<<30; inUse > most || (used > 0) != few {
				t.Errorf("%v: a window of %d bytes, of at most %d", method, inUse, most)
			}
			next := clone(now)
			next[1].Bytes[2*LeastWindow+5]++
			next[6].Bytes = []byte{1}
			d, err := w.Draft(next)
			if err != nil || d.Stored() != 513 || d.Number() != last+1 {
				t.Errorf("%v: checkpoint %d stores %d bytes, %v", method, d.Number(), d.Stored(), err)
			}
		}
		s.close()
	}
}

// The number of the next checkpoint is above all that the lineage has had, if the caller knows of others.
func TestResumeSkipsNumbers(t *testing.T) {
	s := newTier(t, Options{Method: difference.Tree, Chunk: 64, Lineage: 10, Record: 1 << 20})
	defer s.close()
	now := []dedup.Region{{Name: "p", Bytes: make([]byte, 1000)}}
	s.add(now)
	s.options.First = 7
	s.resume(1)
	if d := s.draft(now); d.Number() != 7 || d.Stored() != 0 {
		t.Errorf("checkpoint %d stores %d bytes", d.Number(), d.Stored())
	}
}

// A writer that cannot be resumed, as bytes are damaged or cannot be read, is as new.
func TestResumeOfDamage(t *testing.T) {
	s := newTier(t, Options{Method: difference.List, Chunk: 64, Lineage: 11, Record: 1 << 20})
	defer s.close()
	now := []dedup.Region{{Name: "p", Bytes: make([]byte, 600_000)}}
	_, _ = rand.NewChaCha8([32]byte{3}).Read(now[0].Bytes)
	s.add(now)
	for at, want := range map[int]error{1000: codec.ErrCorrupt, 400_000: codec.ErrCorrupt, -1: errRead} {
		r, _, _ := s.open(1)
		w, err := NewWriter(s.options)
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 {
			r.read = func(int, int64, []byte) error { return errRead }
		} else {
			s.objects[1][at] ^= 4
		}
		err = w.Resume(r, s.window(r), regions.Options{Goroutines: 1, Room: s.room})
		if at >= 0 {
			s.objects[1][at] ^= 4
		}
		if damage := new(Damage); !errors.Is(err, want) || errors.As(err, &damage) != (at >= 0) || len(w.Known()) > 0 {
			t.Errorf("%d: %v, and %d are known", at, err, w.Known())
		}
		if d, err := w.Draft(now); err != nil || d.Number() != 1 || d.Stored() != 600_000 {
			t.Errorf("%d: checkpoint %d stores %d bytes, %v", at, d.Number(), d.Stored(), err)
		}
	}
}

var errRead = errors.New("no such bytes")

// The number of a lineage tells its options.
func TestNumber(t *testing.T) {
	all := map[uint64]Options{}
	for _, method := range methods {
		for _, kind := range []digest.Kind{digest.XXH3, digest.Murmur3} {
			for chunk := difference.MinChunk; chunk <= difference.MaxChunk; chunk *= 2 {
				o := Options{Method: method, Kind: kind, Chunk: chunk}
				n := o.Number(0xfedcba9876543210)
				if _, taken := all[n]; taken || !o.Numbered(n) || n>>16 != 0xfedcba987654 {
					t.Errorf("%+v has the number %x", o, n)
				}
				all[n] = o
			}
		}
	}
	for n, o := range all {
		for other, p := range all {
			if p.Numbered(n) != (n == other) {
				t.Errorf("%x of %+v is one of %+v", n, o, p)
			}
		}
	}
	o := Options{Method: difference.Tree, Chunk: 64}
	if n := o.Number(5); !(&Options{Method: difference.Tree, Kind: digest.XXH3, Chunk: 64}).Numbered(n) {
		t.Error("the default hash function is another one")
	}
}
