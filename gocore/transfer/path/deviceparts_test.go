package path

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

// drawnMap is a map of one region, with the place of each of its bytes.
func drawnMap(t *rapid.T, name string) (*difference.Map, []place) {
	var all []place
	l := difference.Located{Name: name}
	for range rapid.IntRange(0, 12).Draw(t, "runs") {
		r := difference.Run{
			At: uint64(len(all)), Checkpoint: uint32(rapid.IntRange(1, 2).Draw(t, "checkpoint")), Offset: uint64(rapid.IntRange(0, 3).Draw(t, "offset")) * 8,
			Period: uint32(rapid.SampledFrom([]int{0, 0, 0, 3}).Draw(t, "period")),
		}
		for i := range rapid.IntRange(4, 20).Draw(t, "bytes") {
			at := i
			if r.Period > 0 {
				at = i % int(r.Period)
			}
			all = append(all, place{r.Checkpoint, r.Offset + uint64(at)})
		}
		l.Runs = append(l.Runs, r)
	}
	l.Size = uint64(len(all))
	m, err := difference.NewMap(9, []difference.Located{l})
	if err != nil {
		t.Skip(err)
	}
	return m, all
}

type place struct {
	checkpoint uint32
	offset     uint64
}

// What a device takes from another checkpoint are bytes that lie at the same place of the same first occurrences. All bytes of a run are taken once, from there or from the host.
func TestSharedWithAResident(t *testing.T) {
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		own, mine := drawnMap(t, "u")
		other, theirs := drawnMap(t, rapid.SampledFrom([]string{"u", "u", "u", "v"}).Draw(t, "name"))
		const base = 1000
		g := deviceParts{s: &deviceSlot{p: &Path{o: Options{Parts: &Parts{}}}}, there: func(at int64) uintptr { return uintptr(base + at) }}
		g.s.p.o.Parts.Of = &checkpoint.Deduplicated{Map: own}
		g.s.p.o.Parts.Resident = &Resident{Map: other, Spans: []model.Span{{Bytes: int64(len(theirs))}}}
		own.Regions[0].Each(0, own.Regions[0].Size, func(r difference.Run, n uint64) bool {
			bytes, done := int64(n), int64(0)
			if r.Period > 0 {
				bytes = min(bytes, int64(r.Period))
			}
			g.eachSame(0, r, bytes, func(from, count int64, there uintptr) {
				if from != done || count <= 0 {
					t.Fatalf("%d bytes at %d behind %d", count, from, done)
				}
				done = from + count
				for i := from; i < from+count && there != 0; i++ {
					at := int64(there) - base + i - from
					if other.Regions[0].Name != "u" || mine[int64(r.At)+i] != theirs[at] {
						t.Fatalf("byte %d is taken from %d, where another one lies", int64(r.At)+i, at)
					}
					shared++
				}
			})
			if done != bytes {
				t.Fatalf("%d of %d bytes of a run", done, bytes)
			}
			return true
		})
	})
	if shared == 0 {
		t.Error("nothing was shared")
	}
}
