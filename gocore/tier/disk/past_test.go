package disk

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// A lineage is known by its checkpoints with the highest numbers, in whatever order rows come, and is taken once, the latest one that is wanted first.
func TestPastLineages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := past{}
		numbers, latest := map[uint64][]uint32{}, map[uint64]uint64{}
		for serial := range uint64(rapid.IntRange(0, 30).Draw(t, "rows")) {
			lineage := rapid.Uint64Range(1, 4).Draw(t, "lineage")
			number := rapid.Uint32Range(0, 1000).Draw(t, "number")*5000 + uint32(serial)
			numbers[lineage], latest[lineage] = append(numbers[lineage], number), serial
			p.add(&catalog.Row{
				History: 3, Key: model.NumberKey(int64(number)), Serial: serial, Difference: &model.Difference{Lineage: lineage, Number: number, Sections: lineage == 2},
			})
		}
		if l := p.take(4, func(uint64, bool) bool { return true }); l != nil {
			t.Fatalf("another history has lineage %d", l.id)
		}
		unwanted := rapid.Uint64Range(1, 5).Draw(t, "unwanted")
		before := uint64(math.MaxUint64)
		for range len(numbers) {
			l := p.take(3, func(lineage uint64, sections bool) bool {
				if sections != (lineage == 2) {
					t.Fatalf("lineage %d has sections: %v", lineage, sections)
				}
				return lineage != unwanted
			})
			if l == nil {
				break
			}
			want := numbers[l.id]
			slices.Sort(want)
			slices.Reverse(want)
			if l.id == unwanted || l.serial >= before || l.serial != latest[l.id] || l.next != want[0]+1 || len(l.last) != min(len(want), mostPast) {
				t.Fatalf("%+v of %d, after serial %d", l, want, before)
			}
			for i, r := range l.last {
				if r.number != want[i] || r.key != model.NumberKey(int64(want[i])) {
					t.Fatalf("checkpoint %d is %+v, of %d", i, r, want)
				}
			}
			before = l.serial
			delete(numbers, l.id)
		}
		delete(numbers, unwanted)
		if len(numbers) > 0 {
			t.Fatalf("lineages are left: %v", numbers)
		}
	})
}

// The number behind the highest one there can be is not the lowest.
func TestPastNumbersEnd(t *testing.T) {
	p := past{}
	p.add(&catalog.Row{History: 1, Difference: &model.Difference{Lineage: 1, Number: math.MaxUint32}})
	if l := p.take(1, func(uint64, bool) bool { return true }); l == nil || l.next != math.MaxUint32 {
		t.Errorf("%+v", l)
	}
}
