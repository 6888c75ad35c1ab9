package path

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
)

// Every container that has a wanted byte is read, no other one, and nothing twice.
func TestWhatIsNeededOfAnAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []model.Container
		plain, at := int64(0), int64(0)
		for range rapid.IntRange(0, 12).Draw(t, "containers") {
			plain += int64(rapid.IntRange(0, 2).Draw(t, "between")) // regions may lie apart
			c := model.Container{Plain: model.Span{Offset: plain, Bytes: int64(rapid.IntRange(1, 5).Draw(t, "plain"))}}
			c.At = model.Span{Offset: at, Bytes: int64(rapid.IntRange(1, 4).Draw(t, "bytes"))}
			plain, at, all = c.Plain.End(), c.At.End(), append(all, c)
		}
		var wanted []model.Span
		for from := int64(0); from < plain; {
			n := int64(rapid.IntRange(1, 8).Draw(t, "span"))
			if rapid.Bool().Draw(t, "wanted") {
				wanted = append(wanted, model.Span{Offset: from, Bytes: n})
			}
			from += n
		}
		reads := make([]int, at)
		for _, s := range neededOf(all, wanted) {
			for i := s.Offset; i < s.End(); i++ {
				reads[i]++
			}
		}
		for _, c := range all {
			want := 0
			if slices.ContainsFunc(wanted, func(s model.Span) bool { return s.Offset < c.Plain.End() && c.Plain.Offset < s.End() }) {
				want = 1
			}
			for i := c.At.Offset; i < c.At.End(); i++ {
				if reads[i] != want {
					t.Fatalf("byte %d is read %d times, not %d, of %v for %v", i, reads[i], want, all, wanted)
				}
			}
		}
	})
}
