package copier

import (
	"bytes"
	"testing"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// Rows of arrays large enough to be collected, into slots at any address, compared with row by row; bytes around the slot stay unchanged.
func TestCollect(t *testing.T) {
	pool := eagerPool(2)
	defer pool.Close()
	src := random(2 << 20)
	rapid.Check(t, func(t *rapid.T) {
		item := rapid.OneOf(rapid.Int64Range(rowItem, 3000), rapid.Int64Range(trayBytes, 5*trayBytes)).Draw(t, "row")
		gap := rapid.Int64Range(1, 200).Draw(t, "gap")
		height := rapid.Int64Range(2, 40).Draw(t, "height")
		deep := rapid.Int64Range(streamFrom[Gather], 3*unitBytes).Draw(t, "bytes")/(item*height) + 1
		a := model.Strided{
			Base: address(src), Item: item,
			Shape: []int64{deep, height}, Strides: []int64{(item + gap) * height, item + gap},
		}
		if rapid.Bool().Draw(t, "planes lie apart") {
			a.Strides[0] += gap
		}
		if rapid.Bool().Draw(t, "backwards") {
			a.Base, a.Strides[1] = unsafe.Add(a.Base, (height-1)*a.Strides[1]), -a.Strides[1]
		}
		n := deep * height * item
		if a.Strides[0]*deep > int64(len(src)) {
			t.Skip("wider than the source")
		}
		to := rapid.OneOf(rapid.SampledFrom([]int64{0, 32, 64}), rapid.Int64Range(0, 130)).Draw(t, "to")
		area := random(int(n) + 300)
		to += int64(-uintptr(address(area)) & 63)
		want := bytes.Clone(area)
		for i := range deep * height {
			copy(want[to+i*item:][:item], unsafe.Slice((*byte)(unsafe.Add(a.Base, i/height*a.Strides[0]+i%height*a.Strides[1])), item))
		}
		pieces := []Piece{{Slot: unsafe.Pointer(&area[to]), Bytes: n, Mem: a}}
		j := NewJob(Gather, pieces, Options{Checksum: rapid.Bool().Draw(t, "checksum"), Pool: pool})
		runAll(j, 0)
		if !bytes.Equal(area, want) {
			t.Fatalf("%d × %d rows of %d bytes to %d differ", deep, height, item, to)
		}
		if j.check && j.Sums()[0] != checksum.Sum(want[to:to+n]) {
			t.Fatal("the checksum differs")
		}
		j.Free()
	})
}
