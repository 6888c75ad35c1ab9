package plan

import (
	"slices"
	"testing"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// TestLosses: each key once, in the order of its first loss, and all of them until they are taken out.
func TestLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l losses
		var want []model.Key
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 99).Draw(t, "take") == 0 {
				if got := l.take(); !slices.Equal(got, want) {
					t.Fatalf("lost %v, must be %v", got, want)
				}
				want = nil
				continue
			}
			k := model.NumberKey(rapid.Int64Range(0, 150).Draw(t, "key"))
			if l.add(k); !slices.Contains(want, k) {
				want = append(want, k)
			}
		}
	})
}
