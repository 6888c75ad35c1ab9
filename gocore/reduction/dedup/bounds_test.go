package dedup

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// A checkpoint that would refer to too many others refers to none, and the ones after it refer to it.
func TestRebase(t *testing.T) {
	for _, method := range methods[1:] {
		h := newHistory(t, Options{Method: method, Chunk: 32, Record: 1 << 20, MaxReferences: 3}, false)
		b := noise(32 * 100)
		var bases []uint32
		for number := uint32(1); number <= 12; number++ {
			b[32*number]++ // from the fifth on there would be four references
			d := h.add(number, []Region{{"a", b}})
			if !d.HasBase {
				bases = append(bases, number)
				if len(d.References) > 0 || len(d.Data) != len(b) {
					t.Errorf("%s: the base %d refers to %v and stores %d bytes", method, number, d.References, len(d.Data))
				}
			} else if len(d.Data) != 32 {
				t.Errorf("%s: checkpoint %d stores %d bytes", method, number, len(d.Data))
			}
			h.mustRestore(number)
		}
		if !reflect.DeepEqual(bases, []uint32{1, 5, 9}) {
			t.Errorf("%s: the bases are %v", method, bases)
		}
	}
}

// A base has no place in the record of an earlier checkpoint, and its own digests are recorded.
func TestRecordAfterRebase(t *testing.T) {
	h := newHistory(t, Options{Method: difference.List, Chunk: 32, Record: 1 << 20, MaxReferences: 1}, false)
	old, b := noise(32*10), noise(32 * 100)[32*50:]
	h.add(1, []Region{{"a", old}})
	b[0]++
	h.add(2, []Region{{"a", b}})
	b[0]++
	h.add(3, []Region{{"a", b}})
	b[32]++
	if d := h.add(4, []Region{{"a", b}}); d.HasBase {
		t.Fatalf("it refers to %v", d.References)
	}
	if n, _ := h.lineage.Recorded(); n != 50 {
		t.Errorf("%d entries, want those of the base", n)
	}
	if d := h.add(5, []Region{{"b", b}, {"c", old}}); !reflect.DeepEqual(d.References, []uint32{4}) || len(d.Data) != len(old) {
		t.Errorf("it refers to %v and stores %d bytes", d.References, len(d.Data))
	}
}

// What was forgotten is stored anew: unchanged chunks of the last checkpoint, and chunks in the record.
func TestForget(t *testing.T) {
	a, b := noise(32*10), noise(32 * 30)[32*10:]
	for _, method := range methods[1:] {
		h := newHistory(t, Options{Method: method, Chunk: 32, Record: 1 << 20}, false)
		h.add(1, []Region{{"a", a}})
		h.add(2, []Region{{"a", a}, {"b", b}})
		h.drop(1)
		if h.objects[1] == nil {
			t.Fatalf("%s: an object was removed that checkpoint 2 needs", method)
		}
		h.lineage.Forget(1)
		d := h.add(3, []Region{{"b", b}, {"a", a}, {"c", a}})
		want := len(a) // "b" is fixed; "a" is stored, and "c" is a shifted duplicate of it
		if method == difference.Basic {
			want *= 2
		}
		if len(d.Data) != want || !reflect.DeepEqual(d.References, []uint32{2}) {
			t.Errorf("%s: %d bytes are stored, want %d; references %v", method, len(d.Data), want, d.References)
		}
		h.mustRestore(3)
	}
}

// A source is at most MaxAge older; fixed duplicates are not bound by it.
func TestMaxAge(t *testing.T) {
	a, b := noise(32*10), noise(32 * 30)[32*10:]
	h := newHistory(t, Options{Method: difference.Tree, Chunk: 32, Record: 1 << 20, MaxAge: 2}, false)
	h.add(1, []Region{{"a", a}, {"b", b}})
	h.add(2, []Region{{"a", a}})
	if d := h.add(3, []Region{{"a", a}, {"c", b}}); len(d.Data) > 0 {
		t.Errorf("2 older: %d bytes are stored", len(d.Data))
	}
	if d := h.add(4, []Region{{"a", a}, {"d", b}}); len(d.Data) != len(b) || !reflect.DeepEqual(d.References, []uint32{1}) {
		t.Errorf("3 older: %d bytes are stored, references %v", len(d.Data), d.References)
	}
	h.mustRestore(4)
}

// After hundreds of checkpoints a restore still reads each run at once, and nothing twice.
func TestLongHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, method := range []difference.Method{difference.Basic, difference.Tree, difference.Runs} {
		h := newHistory(t, Options{Method: method, Chunk: 32, Record: record.Memory(2000), MaxReferences: 100, MaxAge: 50}, false)
		b := noise(32 * 200)
		for number := uint32(1); number <= 300; number++ {
			for range 3 {
				b[random.IntN(len(b))]++
			}
			copy(b[32*random.IntN(200):][:32], b[32*random.IntN(200):][:32])
			h.add(number, []Region{{"a", b}})
		}
		for _, number := range random.Perm(300)[:40] {
			h.mustRestore(uint32(number + 1))
			reads := 0
			m := h.maps[uint32(number+1)]
			err := m.Regions[0].Read(0, make([]byte, len(b)), func(uint32, uint64, []byte) error {
				reads++
				return nil
			})
			if err != nil || reads != m.Runs() || reads > 200 {
				t.Errorf("%s: %d reads for %d runs: %v", method, reads, m.Runs(), err)
			}
		}
	}
}

// Of a subtree of 16 chunks the record takes the chunks first, as many as it has room for, and then whole levels of nodes.
func TestTheRecordTakesWholeLevels(t *testing.T) {
	a := noise(32 * 16)
	for _, c := range []struct{ capacity, entries, level int }{{6, 6, 0}, {12, 12, 0}, {19, 16, 0}, {25, 16 + 8, 1}, {32, 16 + 8 + 4 + 2 + 1, 4}} {
		h := newHistory(t, Options{Method: difference.Tree, Chunk: 32, Record: record.Memory(c.capacity)}, false)
		h.add(1, []Region{{"a", a}})
		if n, capacity := h.lineage.Recorded(); n != c.entries || capacity != c.capacity {
			t.Errorf("%d entries of %d, not %d of %d", n, capacity, c.entries, c.capacity)
		}
		d := h.add(2, []Region{{"b", a}})
		if len(d.Shifted) == 0 || int(d.Shifted[0].Extent) != c.level {
			t.Errorf("with room for %d the entries are %v, not of level %d", c.capacity, d.Shifted, c.level)
		}
		h.mustRestore(2)
	}
}
