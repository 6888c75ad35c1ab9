package cuda

import (
	"testing"

	"pgregory.net/rapid"
)

// The table answers like a list of all bytes.
func TestSeams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const space = 64
		var p pins
		var owner [space]int // 0: not pinned
		var ranges []pinned
		for i := 1; i <= rapid.IntRange(0, 12).Draw(t, "steps"); i++ {
			if len(ranges) > 0 && rapid.Bool().Draw(t, "take away") {
				k := rapid.IntRange(0, len(ranges)-1).Draw(t, "which")
				if !p.remove(ranges[k]) || p.remove(ranges[k]) {
					t.Fatal("a range is not taken away once")
				}
				for at := ranges[k].at; at < ranges[k].end(); at++ {
					owner[at] = 0
				}
				ranges = append(ranges[:k], ranges[k+1:]...)
				continue
			}
			at := rapid.IntRange(0, space-1).Draw(t, "at")
			n := rapid.IntRange(1, space-at).Draw(t, "bytes")
			free := true
			for _, o := range owner[at : at+n] {
				free = free && o == 0
			}
			r := pinned{at: uintptr(at), bytes: int64(n)}
			if p.insert(r) != free {
				t.Fatalf("insert %v into %v: %v", r, *p.current(), !free)
			}
			if !free {
				continue
			}
			ranges = append(ranges, r)
			for j := range owner[at : at+n] {
				owner[at+j] = i
			}
		}
		at := rapid.IntRange(0, space-1).Draw(t, "from")
		n := rapid.IntRange(1, space-at).Draw(t, "copied")
		want := 1
		for want < n && owner[at+want] == owner[at] {
			want++
		}
		if have := p.current().whole(uintptr(at), int64(n)); have != int64(want) {
			t.Fatalf("%d of %d bytes at %d in %v, want %d", have, n, at, *p.current(), want)
		}
	})
}
