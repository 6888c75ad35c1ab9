package copier

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// Streaming stores compared with copy, at all lengths and alignments; bytes around the destination stay unchanged.
func TestCopyStream(t *testing.T) {
	src, area := random(300<<10), random(300<<10)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 10<<10), rapid.IntRange(0, 256<<10)).Draw(t, "n")
		from, to := rapid.IntRange(0, 100).Draw(t, "from"), rapid.IntRange(0, 100).Draw(t, "to")
		want := bytes.Clone(area)
		copy(want[to:to+n], src[from:])
		copyStream(area[to:to+n], src[from:from+n])
		if !bytes.Equal(area, want) {
			t.Fatalf("%d bytes from %d to %d", n, from, to)
		}
	})
}
