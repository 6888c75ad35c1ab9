package record

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/digest"
)

// Random calls against a map; few digests, so that buckets overflow and wrap around.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(Memory(rapid.SampledFrom([]int{0, 1, 6, 12, 30, 300}).Draw(t, "room")))
		model := map[digest.Digest]Place{}
		alphabet := rapid.Uint64Range(1, 300).Draw(t, "alphabet")
		some := func() digest.Digest {
			v := rapid.Uint64Range(0, alphabet).Draw(t, "digest")
			return digest.Digest{Lo: v % 7, Hi: v / 7}
		}
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			switch kind := rapid.IntRange(0, 19).Draw(t, "call"); {
			case kind < 14:
				d := some()
				p := Place{
					Checkpoint: rapid.SampledFrom([]uint32{0, 1, 2, 3, MaxCheckpoint}).Draw(t, "checkpoint"),
					Offset:     rapid.Uint64Range(0, MaxBytes).Draw(t, "offset"), Bytes: rapid.Uint64Range(0, MaxBytes).Draw(t, "bytes"),
				}
				want := Added
				if _, ok := model[d]; ok {
					want = Present
				} else if len(model) == r.Cap() {
					want = Refused
				} else {
					model[d] = p
				}
				if got := r.Insert(d, p); got != want {
					t.Fatalf("insert: %d, want %d", got, want)
				}
			case kind < 17:
				c := rapid.Uint32Range(0, 4).Draw(t, "forgotten")
				r.Forget(c)
				for d, p := range model {
					if p.Checkpoint == c {
						delete(model, d)
					}
				}
			case kind < 19:
				c := rapid.Uint32Range(0, 4).Draw(t, "oldest")
				r.Expire(c)
				for d, p := range model {
					if p.Checkpoint < c {
						delete(model, d)
					}
				}
			default:
				r.Clear()
				clear(model)
			}
			if r.Len() != len(model) {
				t.Fatalf("%d entries, want %d", r.Len(), len(model))
			}
			d := some()
			p, ok := model[d]
			if r.Has(d) != ok {
				t.Fatalf("Has %x: want %v", d, ok)
			}
			if got, found := r.Find(d, p.Bytes); found != ok || ok && got != p {
				t.Fatalf("%x: %v %v, want %v %v", d, got, found, p, ok)
			}
			if _, found := r.Find(d, p.Bytes+1); found {
				t.Fatalf("%x was found with another length", d)
			}
		}
		for d, p := range model {
			if got, ok := r.Find(d, p.Bytes); !ok || got != p {
				t.Fatalf("%x: %v %v, want %v", d, got, ok, p)
			}
		}
	})
}

// The memory that a number of entries needs holds them, and no bucket less would.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "entries")
		if r := New(Memory(n)); r.Cap() < n || r.Cap()*10 > len(r.buckets)*slots*8 {
			t.Fatalf("%d entries: room for %d in %d slots", n, r.Cap(), len(r.buckets)*slots)
		}
		if r := New(Memory(n) - 1); r.Cap() >= n {
			t.Fatalf("%d entries fit in less", n)
		}
	})
	if r := New(-5); r.Cap() != 0 || r.Insert(digest.Digest{}, Place{}) != Refused || r.Has(digest.Digest{}) {
		t.Error("a record without memory")
	}
}

func TestLimits(t *testing.T) {
	r := New(Memory(10))
	for i, p := range []Place{{Checkpoint: MaxCheckpoint + 1}, {Offset: MaxBytes + 1}, {Bytes: MaxBytes + 1}} {
		if r.Insert(digest.Digest{Lo: uint64(i)}, p) != Refused {
			t.Errorf("%v was not refused", p)
		}
	}
}

// A full table finds each entry, also those that went on to a later bucket. With changing contents it keeps short searches: removing takes back what inserting
// counted.
func TestNoDecay(t *testing.T) {
	r := New(Memory(4000))
	random := rand.New(rand.NewPCG(1, 2))
	for round := range uint32(50) {
		var all []digest.Digest
		for r.Len() < r.Cap() {
			d := digest.Digest{Lo: random.Uint64(), Hi: random.Uint64()}
			r.Insert(d, Place{Checkpoint: round, Offset: uint64(len(all)), Bytes: 1})
			all = append(all, d)
		}
		for i, d := range all {
			if p, ok := r.Find(d, 1); !ok || p != (Place{round, uint64(i), 1}) || r.Has(digest.Digest{Lo: d.Lo + 1, Hi: d.Hi}) {
				t.Fatalf("round %d: entry %d of a full record: %v, %v", round, i, p, ok)
			}
		}
		r.Expire(round + 1)
		for at, b := range r.buckets {
			if b.passed != 0 || b.used != 0 {
				t.Fatalf("round %d: bucket %d was passed %d times by entries that are gone, or has some", round, at, b.passed)
			}
		}
	}
}

func BenchmarkFind(b *testing.B) {
	r := New(Memory(1 << 20))
	for i := range uint64(1 << 20) {
		r.Insert(digest.Digest{Lo: i * 0x9e3779b97f4a7c15, Hi: i}, Place{})
	}
	i := uint64(0)
	for b.Loop() {
		i++
		r.Has(digest.Digest{Lo: i * 0x9e3779b97f4a7c15, Hi: i & 1})
	}
}
