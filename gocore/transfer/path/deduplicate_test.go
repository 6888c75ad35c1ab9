package path

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// The pieces that are found in a map are the first occurrences, in their order.
func TestFirstOccurrencesInAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom([]difference.Method{difference.Basic, difference.List, difference.Tree}).Draw(t, "method")
		l, err := dedup.New(dedup.Options{Method: method, Chunk: 32, Seed: 1, Record: 1 << 12})
		if err != nil {
			t.Fatal(err)
		}
		regions := []dedup.Region{{Name: "a", Bytes: make([]byte, rapid.IntRange(0, 700).Draw(t, "a"))}, {Name: "b", Bytes: make([]byte, rapid.IntRange(0, 300).Draw(t, "b"))}}
		for number := uint32(1); number < 6; number++ {
			for _, r := range regions {
				for range rapid.IntRange(0, 6).Draw(t, "edits") {
					if chunks := len(r.Bytes) / 32; chunks > 0 {
						c := r.Bytes[32*rapid.IntRange(0, chunks-1).Draw(t, "chunk"):][:32]
						for i := range c {
							c[i] = byte(rapid.IntRange(0, 3).Draw(t, "value") * i)
						}
					}
				}
			}
			d, m, err := l.Dedup(number, regions)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for _, p := range firstsOf(&checkpoint.Deduplicated{Number: number, Map: m}) {
				if p.to != int64(len(want)) {
					t.Fatalf("a piece goes to %d behind %d bytes", p.to, len(want))
				}
				want = append(want, regions[p.region].Bytes[p.at:p.at+p.bytes]...)
			}
			if string(want) != string(d.Data) {
				t.Fatalf("checkpoint %d, %v: %d bytes of first occurrences are found, of %d", number, method, len(want), len(d.Data))
			}
		}
	})
}
