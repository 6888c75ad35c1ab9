package dedup

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/digest"
)

// The lineage keeps no more digests than Memory says, and no fewer, beside the record that it was given.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		h := newHistory(t, o, false)
		regions := []Region{}
		for number := uint32(1); number < 4; number++ {
			regions = edit(t, h, regions, o.Chunk)
			h.add(number, regions)
			var sizes []uint64
			kept := int64(0)
			for _, r := range regions {
				sizes = append(sizes, uint64(len(r.Bytes)))
				v := h.lineage.regions[r.Name]
				for level := range 64 {
					kept += int64(len(v.tree.Level(level))) * digest.Bytes
				}
				kept += int64(len(v.blocks)) * digest.Bytes
			}
			if h.lineage.records() {
				kept += o.Record
			}
			if got := o.Memory(sizes); got != kept {
				t.Fatalf("%d bytes of digests and record, Memory says %d", kept, got)
			}
		}
	})
}
