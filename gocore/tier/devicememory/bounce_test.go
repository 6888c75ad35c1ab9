package devicememory

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"
)

func random(n int, seed uint64) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(p)
	return p
}

// The parts of an array are its bytes, in order, whatever its shape.
func TestPartsOfAnArray(t *testing.T) {
	memory := random(1<<20, 9)
	base := unsafe.Pointer(unsafe.SliceData(memory))
	for _, m := range []model.Strided{
		{Base: base},
		{Base: base, Shape: []int64{1, 7, 1, 3}, Strides: []int64{5, 2000, 7, 16}, Item: 8},
		{Base: base, Shape: []int64{3, 5, 2}, Strides: []int64{16, 48, 8}, Item: 8},
		{Base: base, Shape: []int64{4}, Strides: []int64{10_000}, Item: 1000},
	} {
		bytes, elements := int64(20_000), int64(1)
		if len(m.Shape) > 0 {
			bytes = m.Item
			for _, n := range m.Shape {
				bytes *= n
				elements *= n
			}
		}
		for _, most := range []int64{8, 100, 1500, 1 << 20} {
			total := int64(0)
			if err := eachPart(m, bytes, most, func(p model.Strided, n int64) error {
				if n > most || p.Check(n) != nil {
					t.Errorf("a part of %d bytes, at most %d: %v", n, most, p)
				}
				want, got := make([]byte, n), make([]byte, n)
				gatherTo(want, copier.Piece{Bytes: n, Mem: p})
				whole := make([]byte, bytes)
				gatherTo(whole, copier.Piece{Bytes: bytes, Mem: m})
				if copy(got, whole[total:]); string(got) != string(want) {
					t.Errorf("the part at %d of %v differs", total, m)
				}
				total += n
				return nil
			}); err != nil || total != bytes {
				t.Errorf("%d of %d bytes: %v", total, bytes, err)
			}
		}
	}
}

func gatherTo(to []byte, p copier.Piece) {
	p.Slot = unsafe.Pointer(unsafe.SliceData(to))
	job := copier.NewJob(copier.Gather, []copier.Piece{p}, copier.Options{})
	job.Run(0)
	job.Free()
}
