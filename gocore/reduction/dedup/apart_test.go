package dedup

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/difference"
)

// firsts gathers the first occurrences from the regions.
func firsts(t fataler, d *difference.Difference, regions []Region) []byte {
	var data []byte
	if err := d.Firsts(func(region int, at, n uint64) { data = append(data, regions[region].Bytes[at:at+n]...) }); err != nil {
		t.Fatalf("%v", err)
	}
	return data
}

// A lineage that leaves the first occurrences out finds the same ones, and has the same metadata, map and known checkpoints, also when digests collide.
func TestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.cut = pick(t, []int{0, 0, 8, 16}, "bits")
		exact := o.cut > 0 || rapid.Bool().Draw(t, "exact")
		h := newHistory(t, o, exact)
		o.Apart = true
		if exact {
			o.Read = h.read
		}
		apart, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var regions []Region
		for number := range uint32(rapid.IntRange(1, 10).Draw(t, "steps")) {
			regions = edit(t, h, regions, o.Chunk)
			d, m, err := apart.Dedup(number, regions)
			if err != nil || d.Data != nil {
				t.Fatalf("checkpoint %d: %d bytes are not left out, or %v", number, len(d.Data), err)
			}
			want := h.add(number, regions)
			metadata, err := d.AppendMetadata(nil)
			if err != nil || !bytes.Equal(metadata, h.objects[number][:len(h.objects[number])-len(want.Data)]) {
				t.Fatalf("checkpoint %d: other metadata: %v", number, err)
			}
			if data := firsts(t, d, regions); !bytes.Equal(data, want.Data) || d.Stored() != uint64(len(data)) || want.Stored() != d.Stored() {
				t.Fatalf("checkpoint %d: other first occurrences: %d bytes, not %d", number, len(data), len(want.Data))
			}
			if !bytes.Equal(m.Append(nil), h.maps[number].Append(nil)) {
				t.Fatalf("checkpoint %d: another map", number)
			}
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				before := maps.Clone(h.objects)
				h.drop(pick(t, slices.Sorted(maps.Keys(h.plain)), "dropped"))
				maps.DeleteFunc(before, func(c uint32, _ []byte) bool { return h.objects[c] != nil })
				apart.Forget(slices.Sorted(maps.Keys(before))...)
			}
			if known := apart.Known(); !slices.Equal(known, h.lineage.Known()) || slices.ContainsFunc(known, func(c uint32) bool { return h.objects[c] == nil }) {
				t.Fatalf("checkpoint %d: %d are known, not %d, or one was forgotten", number, known, h.lineage.Known())
			}
		}
	})
}
