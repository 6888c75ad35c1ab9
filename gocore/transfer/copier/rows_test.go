package copier

import (
	"bytes"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// Rows of any length and distance, also backwards, compared with single copies; bytes around the rows stay unchanged.
func TestCopyRows(t *testing.T) {
	src, area := random(256<<10), random(256<<10)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, 3000)).Draw(t, "n")
		rows := rapid.Int64Range(0, 20).Draw(t, "rows")
		dstStep, srcStep := n+rapid.Int64Range(0, 100).Draw(t, "dst gap"), n+rapid.Int64Range(0, 100).Draw(t, "src gap")
		to, from := rapid.Int64Range(0, 100).Draw(t, "to"), rapid.Int64Range(0, 100).Draw(t, "from")
		if rapid.Bool().Draw(t, "backwards") {
			from += rows * srcStep
			srcStep = -srcStep
		}
		want, got := bytes.Clone(area), bytes.Clone(area)
		for i := range rows {
			copy(want[to+i*dstStep:][:n], src[from+i*srcStep:][:n])
		}
		copyRows(unsafe.Pointer(&got[to]), unsafe.Pointer(&src[from]), n, rows, dstStep, srcStep)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d rows of %d bytes, steps %d and %d", rows, n, dstStep, srcStep)
		}
	})
}
