package difference

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// scattered is a difference of a region of a GiB in which one block of 4 KiB in five is new, at random places, in chunks of 1 KiB.
func scattered(number uint32, r *rand.Rand) *Difference {
	const chunk, size = 1024, 1 << 30
	d := &Difference{Checkpoint: number, Method: Tree, Chunk: chunk, Regions: []Region{{Name: "u", Size: size}}}
	if number == 1 {
		d.First = []Entry{{Extent: 20}}
		d.LeaveOut(size)
		return d
	}
	d.HasBase, d.Base = true, number-1
	blocks := map[uint64]bool{}
	for range size / 4096 / 5 {
		blocks[r.Uint64N(size/4096)] = true
	}
	for at := range blocks {
		d.First = append(d.First, Entry{Position: 4 * at, Extent: 2})
	}
	slices.SortFunc(d.First, func(a, b Entry) int { return int(a.Position) - int(b.Position) })
	d.LeaveOut(uint64(len(blocks)) * 4096)
	return d
}

// BenchmarkLocate resolves differences of a long history, whose maps have as many runs as changed blocks make of them.
func BenchmarkLocate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var m *Map
	for number := uint32(1); number < 20; number++ {
		var err error
		if m, err = scattered(number, r).Locate(m); err != nil {
			b.Fatal(err)
		}
	}
	d := scattered(20, r)
	b.ReportMetric(float64(m.Runs()), "runs")
	for b.Loop() {
		next, err := d.Locate(m)
		if err != nil {
			b.Fatal(err)
		}
		if len(next.References()) == 0 {
			b.Fatal("no references")
		}
	}
}
