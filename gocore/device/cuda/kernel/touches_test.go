package kernel

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"velocpy/gocore/base/checksum"

	"pgregory.net/rapid"
)

// The bytes that a launch changes, outside of the memory of strided arrays, are in the ranges that Touches returns as written. The bytes that it
// copies or hashes are in those returned as read.
func TestTouches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		what, sums := drawTask(t)
		w := drawWork(t, rapid.SampledFrom([]int{1, 5, 60}).Draw(t, "count"), 2*checksum.LeafBytes, what == scatter)
		memory := aligned(w.memory)
		base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
		within := func(all []Range, at, n int) bool {
			return slices.ContainsFunc(all, func(r Range) bool {
				from := int(uint64(r.At) - base)
				return from <= at && at+n <= from+int(r.Bytes)
			})
		}
		var reads, writes []Range
		for _, l := range w.plan(base, what, sums).Launches() {
			r, wr := Touches(l.Kernel, l.Parameter)
			reads, writes = append(reads, r...), append(writes, wr...)
			before := bytes.Clone(memory)
			if err := Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter); err != nil {
				t.Fatal(err)
			}
			for i := range before {
				if what != scatter && before[i] != memory[i] && !within(wr, i, 1) {
					t.Fatalf("%s writes byte %d beside what it touches", l.Kernel, i)
				}
			}
		}
		for i, p := range w.pieces {
			if p.bytes == 0 || p.host && what != hash {
				continue
			}
			slots := writes
			if what != gather {
				slots = reads
			}
			if len(p.shape) == 0 && !within(slots, p.slot, p.bytes) {
				t.Fatalf("the slot of piece %d is not among what %s touches", i, what)
			}
			if len(p.shape) == 0 && what == gather && !within(reads, p.mem, p.bytes) {
				t.Fatalf("the array of piece %d is not among what %s reads", i, what)
			}
		}
	})
}
