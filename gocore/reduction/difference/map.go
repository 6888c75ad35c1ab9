package difference

import (
	"fmt"
	"slices"
	"sort"
)

// Run says where consecutive bytes of a region lie: those from At up to the next run's, or the region's end.
type Run struct {
	At         uint64
	Offset     uint64 // in the first occurrences of Checkpoint
	Checkpoint uint32
}

// Void stands in a run for a checkpoint whose first occurrences are gone.
const Void = 1<<32 - 1

// Located is one region with the places of its bytes.
type Located struct {
	Name string
	Size uint64
	Runs []Run // ascending from 0 on; none if the region is empty; neighbours could not be one run
}

// Map is the resolved form of a checkpoint: where each byte was first stored. It needs no other map, so a restore reads each run at once, however long the
// history is. It is immutable, and needs 24 bytes per run.
type Map struct {
	Checkpoint uint32
	Regions    []Located
	index      map[string]int
}

// Resolve returns the map of a difference, given that of its base; base is ignored if the difference has none. It takes time for the runs of both maps,
// not for the length of the history. It fails with ErrBase if base is not the one, and with ErrFormat if the references are not those of the map.
func (d *Difference) Resolve(base *Map) (*Map, error) {
	m, err := d.Locate(base)
	if err != nil {
		return nil, err
	}
	if used := m.References(); !slices.Equal(used, d.References) {
		return nil, fmt.Errorf("%w: it lists the references %d, not %d", ErrFormat, d.References, used)
	}
	return m, nil
}

// Locate is Resolve without the check of the references: for the one that makes the difference.
func (d *Difference) Locate(base *Map) (*Map, error) {
	if d.HasBase && (base == nil || base.Checkpoint != d.Base) {
		return nil, fmt.Errorf("%w: the base is checkpoint %d", ErrBase, d.Base)
	}
	m := &Map{Checkpoint: d.Checkpoint, Regions: make([]Located, len(d.Regions)), index: make(map[string]int, len(d.Regions))}
	sources := make([]*Located, len(d.Regions))
	for i, r := range d.Regions {
		m.Regions[i] = Located{Name: r.Name, Size: r.Size}
		m.index[r.Name] = i
		if d.HasBase {
			sources[i] = base.Find(r.Name)
		}
	}
	err := d.walk(uint64(len(d.Data)), func(p piece) error {
		to := &m.Regions[p.region]
		if p.label != fixed {
			to.add(Run{At: p.at, Offset: p.offset, Checkpoint: p.checkpoint})
			return nil
		}
		from := sources[p.region]
		if from == nil || from.Size < p.at+p.bytes {
			return fmt.Errorf("%w: region %q of checkpoint %d lacks its bytes up to %d", ErrBase, to.Name, d.Base, p.at+p.bytes)
		}
		from.Each(p.at, p.at+p.bytes, func(run Run, _ uint64) bool {
			to.add(run)
			return true
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// add appends a run, or lengthens the last one.
func (l *Located) add(r Run) {
	if n := len(l.Runs); n > 0 {
		last := l.Runs[n-1]
		if last.Checkpoint == r.Checkpoint && (last.Checkpoint == Void || last.Offset+(r.At-last.At) == r.Offset) {
			return
		}
	}
	l.Runs = append(l.Runs, r)
}

// Find returns a region by name, or nil.
func (m *Map) Find(name string) *Located {
	if m == nil {
		return nil
	}
	if i, ok := m.index[name]; ok {
		return &m.Regions[i]
	}
	return nil
}

// Each visits the runs between two offsets, cut to them, with the length of each, until visit returns false.
func (l *Located) Each(from, to uint64, visit func(r Run, bytes uint64) bool) {
	if from >= to {
		return
	}
	i := sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].At > from }) - 1
	for ; from < to; i++ {
		r, end := l.Runs[i], l.Size
		if i+1 < len(l.Runs) {
			end = l.Runs[i+1].At
		}
		end = min(end, to)
		if r.Checkpoint != Void {
			r.Offset += from - r.At
		}
		r.At = from
		if !visit(r, end-from) {
			return
		}
		from = end
	}
}

// References returns the other checkpoints whose first occurrences the map names, ascending. These must be kept as long as the checkpoint.
func (m *Map) References() []uint32 {
	seen := map[uint32]bool{}
	for i := range m.Regions {
		for _, r := range m.Regions[i].Runs {
			if r.Checkpoint != m.Checkpoint && r.Checkpoint != Void {
				seen[r.Checkpoint] = true
			}
		}
	}
	list := make([]uint32, 0, len(seen))
	for c := range seen {
		list = append(list, c)
	}
	slices.Sort(list)
	return list
}

// Without returns the map with the runs of a checkpoint made void: the object with its first occurrences is about to go.
func (m *Map) Without(checkpoint uint32) *Map {
	if m == nil {
		return nil
	}
	without := &Map{Checkpoint: m.Checkpoint, Regions: slices.Clone(m.Regions), index: m.index}
	for i := range without.Regions {
		l := &without.Regions[i]
		runs := l.Runs
		l.Runs = nil
		for _, r := range runs {
			if r.Checkpoint == checkpoint {
				r.Checkpoint, r.Offset = Void, 0
			}
			l.add(r)
		}
	}
	return without
}

// Runs is the number of runs of all regions.
func (m *Map) Runs() int {
	n := 0
	for i := range m.Regions {
		n += len(m.Regions[i].Runs)
	}
	return n
}
