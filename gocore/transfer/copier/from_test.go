package copier

import (
	"bytes"
	"testing"
	"unsafe"

	"velocpy/gocore/base/checksum"

	"pgregory.net/rapid"
)

// Arrays that are written range by range, each by a job of its own and in any order, compared with copying byte by byte.
func TestRangesOfArrays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawArray(t, rapid.SampledFrom([]int{300, 3 * unitBytes}).Draw(t, "limit"), false)
		offsets := a.offsets()
		dense := random(len(offsets))
		want := bytes.Clone(a.memory)
		for i, at := range offsets {
			want[at] = dense[i]
		}
		cuts := []int{0}
		for cuts[len(cuts)-1] < len(dense) {
			cuts = append(cuts, rapid.IntRange(cuts[len(cuts)-1]+1, len(dense)).Draw(t, "cut"))
		}
		order := rapid.Permutation(cuts[:len(cuts)-1]).Draw(t, "order")
		for _, from := range order {
			end := len(dense)
			for _, c := range cuts {
				if c > from {
					end = min(end, c)
				}
			}
			piece := Piece{Slot: unsafe.Pointer(&dense[from]), Bytes: int64(end - from), Mem: a.Strided, From: int64(from)}
			job := NewJob(Scatter, []Piece{piece}, Options{Checksum: true, Of: rapid.SampledFrom([]int64{0, 64 << 20}).Draw(t, "of")})
			if job.Run(0); job.Sums()[0] != checksum.Sum(dense[from:end]) {
				t.Fatal("a wrong checksum")
			}
			job.Free()
		}
		if !bytes.Equal(a.memory, want) {
			t.Fatalf("%+v differs, cut at %v", a.Strided, cuts)
		}
	})
}
