package cache

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/object"
)

// The room that is reserved for what a device has encoded is enough for containers that did not become smaller, and what is predicted for containers of known lengths is
// enough for these, whatever the names and the sizes of the regions are.
func TestRoomOfWhatIsWrapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := int64(model.PartGrain) << rapid.IntRange(0, 4).Draw(t, "part")
		l := &checkpoint.Layout{}
		w := &object.Whole{Lineage: 1, Number: rapid.Uint32Range(2, 1<<31).Draw(t, "number"), Encoding: &model.Encoding{Part: part}}
		w.Reference = &model.Source{Number: w.Number - 1, Meta: 64}
		end, chars := int64(0), 0
		for i := range rapid.IntRange(0, 200).Draw(t, "regions") {
			n := rapid.OneOf(rapid.Int64Range(0, 3000), rapid.Int64Range(0, 3*part)).Draw(t, "bytes")
			name := fmt.Sprint("#", i) // of a region without a name of its own
			if rapid.Bool().Draw(t, "named") {
				name += strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "length"))
				chars += len(name)
			}
			l.Spans, w.Names = append(l.Spans, model.Span{Offset: end, Bytes: n}), append(w.Names, name)
			for from := int64(0); from < n; from += part {
				w.Encoding.Lengths = append(w.Encoding.Lengths, uint32(model.ContainerBound(min(part, n-from))))
			}
			end += (n + 63) / 64 * 64
		}
		l.Text, w.Spans = strings.Repeat("t", chars), l.Spans
		meta, err := w.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		all := w.Difference(int64(len(meta))).Bytes()
		if most := roomOfWrapped(&checkpoint.Layout{Layout: l.Layout}, end); end > MostTogether && all > most {
			t.Errorf("%d regions of %d bytes take %d, and have room for %d", len(l.Spans), end, all, most)
		}
		if likely := predictWrapped(l, w.Encoding); all > likely {
			t.Errorf("%d bytes are predicted, and it takes %d", likely, all)
		}
	})
}
