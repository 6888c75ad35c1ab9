package dedup

import (
	"testing"

	"go.uber.org/atomic"
	"pgregory.net/rapid"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// atHand gives the bytes of the last checkpoint of a history, except pieces that a function leaves out.
func (h *history) atHand(last *[]Region, without func(at int) bool) Before {
	return func(region string, at, n int, compare func([]byte)) {
		for _, r := range *last {
			if r.Name == region && !without(at) {
				compare(r.Bytes[at : at+n : at+n])
				return
			}
		}
		compare(nil)
	}
}

// Where the bytes of the checkpoint before are at hand and no digests of earlier ones are known, no collision of digests does harm, with any method.
func TestCollisionsWithBytesAtHand(t *testing.T) {
	var collided, silent int
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.Record, o.cut = 0, pick(t, []int{1, 4, 8, 16}, "bits")
		h, without := newHistory(t, o, false), newHistory(t, o, false)
		var regions []Region
		h.beside = h.atHand(&regions, func(int) bool { return false })
		for number := uint32(1); number < 10; number++ {
			next := edit(t, h, regions, o.Chunk)
			without.add(number, next)
			h.add(number, next)
			regions = next
			if rapid.IntRange(0, 3).Draw(t, "forget") == 0 {
				h.lineage.Forget(number)
				without.lineage.Forget(number)
			}
		}
		for c := range h.plain {
			h.mustRestore(c)
			a, b := without.restore(c)
			collided, silent = collided+a, silent+b
		}
	})
	if collided+silent == 0 {
		t.Error("no digests have collided")
	}
}

// With digests of all their bits, bytes at hand change nothing, whichever of them are.
func TestBytesAtHandChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.cut = 0
		h, without := newHistory(t, o, false), newHistory(t, o, false)
		var regions []Region
		some := rapid.IntRange(1, 3).Draw(t, "some")
		h.beside = h.atHand(&regions, func(at int) bool { return at/SegmentBytes%some > 0 })
		for number := uint32(1); number < 8; number++ {
			next := edit(t, h, regions, o.Chunk)
			a, errA := h.add(number, next).Append(nil)
			b, errB := without.add(number, next).Append(nil)
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Fatalf("checkpoint %d depends on the bytes at hand: %v, %v", number, errA, errB)
			}
			regions = next
		}
	})
}

// A chunk whose bytes are not those at hand is stored, once: also where blocks and subtrees have the digests of before, and beside what is not at hand.
func TestOtherBytesAtHandAreStored(t *testing.T) {
	const chunk, size = 64, 2*SegmentBytes + 1000
	for _, method := range methods[1:] {
		for _, blocks := range []bool{false, true} {
			h := newHistory(t, Options{Method: method, Chunk: chunk, Record: record.Memory(1 << 16), Blocks: blocks, Seed: 1}, false)
			p := []Region{{"a", noise(size)}, {"b", noise(500)}}
			h.add(1, p)
			other := clone(p)
			for _, at := range []int{0, 4096*3 + 5, SegmentBytes - 1, SegmentBytes, 2*SegmentBytes + 999} {
				other[0].Bytes[at]++
			}
			var calls atomic.Int64
			given := h.atHand(&other, func(at int) bool { return at == SegmentBytes })
			h.beside = func(region string, at, n int, compare func([]byte)) {
				calls.Inc()
				given(region, at, n, compare)
			}
			d := h.add(2, p)
			if want := 3*chunk + size%chunk; len(d.Data) != want || calls.Load() != 4 {
				t.Errorf("%v, %v: %d bytes are stored, not %d, after %d calls", method, blocks, len(d.Data), want, calls.Load())
			}
			h.mustRestore(2)
			h.beside = h.atHand(&p, func(int) bool { return false })
			if d := h.add(3, p); len(d.Data) != 0 {
				t.Errorf("%v, %v: %d bytes are stored of what has not changed", method, blocks, len(d.Data))
			}
			h.mustRestore(3)
		}
	}
	full := newHistory(t, Options{Method: difference.Full, Chunk: chunk}, false)
	full.beside = func(string, int, int, func([]byte)) { t.Error("the method full compares") }
	for number := uint32(1); number < 3; number++ {
		full.add(number, []Region{{"a", noise(500)}})
	}
}
