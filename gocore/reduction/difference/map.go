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
	Period     uint32 // bytes of a source that repeats; 0: it does not
}

// Void stands in a run for a checkpoint whose first occurrences are gone.
const Void = 1<<32 - 1

// Located is one region with the places of its bytes.
type Located struct {
	Name string
	Size uint64
	Runs []Run // ascending from 0 on; none if the region is empty
}

// Map is the resolved form of a checkpoint: where each byte was first stored. It needs no other map, so a restore reads each run at once, however long the
// history is. It is immutable, and needs 24 bytes per run.
type Map struct {
	Checkpoint uint32
	Regions    []Located
	index      map[string]int
	owned      []Share // by checkpoint: how many bytes each has, those of a source that repeats counted once; nil: not counted
	void       bool    // some bytes are gone, once they were counted
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
	sources := make([]cursor, len(d.Regions))
	for i, r := range d.Regions {
		m.Regions[i] = Located{Name: r.Name, Size: r.Size}
		m.index[r.Name] = i
		if d.HasBase {
			sources[i].of = base.Find(r.Name)
		}
		if from := sources[i].of; from != nil { // a map has a few more than that of its base
			m.Regions[i].Runs = make([]Run, 0, len(from.Runs)+len(from.Runs)/8+8)
		}
	}
	err := d.walk(d.lengthOfData(), func(p piece) error {
		to := &m.Regions[p.region]
		if p.label != fixed {
			to.add(Run{At: p.at, Offset: p.offset, Checkpoint: p.checkpoint, Period: uint32(p.period)}, p.bytes, d.Chunk)
			return nil
		}
		from := &sources[p.region]
		if from.of == nil || from.of.Size < p.at+p.bytes {
			return fmt.Errorf("%w: region %q of checkpoint %d lacks its bytes up to %d", ErrBase, to.Name, d.Base, p.at+p.bytes)
		}
		from.each(p.at, p.at+p.bytes, func(run Run, n uint64) bool {
			to.add(run, n, d.Chunk)
			return true
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range m.Regions {
		if len(m.Regions[i].Runs) == 0 {
			m.Regions[i].Runs = nil
		}
	}
	m.count()
	return m, nil
}

// cursor visits the runs of a region in pieces that ascend. It need not search for them.
type cursor struct {
	of   *Located
	next int // index of the run in which the last piece ended
}

func (c *cursor) each(from, to uint64, visit func(r Run, bytes uint64) bool) {
	runs := c.of.Runs
	for step := 0; c.next+1 < len(runs) && runs[c.next+1].At <= from; step++ {
		if c.next++; step == 16 { // it is far away
			c.next = c.of.index(from)
		}
	}
	c.next = c.of.eachFrom(c.next, from, to, visit)
}

// add appends a run of n bytes, or lengthens the last one. Chunks that follow each other and have one source become a run that repeats it: a region of
// equal chunks has one or two runs.
func (l *Located) add(r Run, n uint64, chunk int) {
	if uint64(r.Period) >= n {
		r.Period = 0
	}
	if len(l.Runs) == 0 || !l.Runs[len(l.Runs)-1].extend(r, n, uint64(chunk)) {
		l.Runs = append(l.Runs, r)
	}
}

// extend makes a run include the next one, of n bytes, if one run can stand for both.
func (last *Run) extend(r Run, n, chunk uint64) bool {
	before := r.At - last.At
	switch {
	case last.Checkpoint != r.Checkpoint:
		return false
	case r.Checkpoint == Void, last.Period == 0 && r.Period == 0 && last.Offset+before == r.Offset:
		return true
	case last.Offset != r.Offset:
		return false
	}
	alone := before == chunk && last.Period == 0 || last.Period > 0
	if alone && (n == chunk && r.Period == 0 || r.Period > 0) {
		last.Period = uint32(chunk)
		return true
	}
	return false
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

// Each visits the runs between two offsets, cut to them, with the length of each, until visit returns false. Where the cut is inside a period, its rest is
// visited by itself.
func (l *Located) Each(from, to uint64, visit func(r Run, bytes uint64) bool) {
	if from < to {
		l.eachFrom(l.index(from), from, to, visit)
	}
}

// index is that of the run with the byte at an offset.
func (l *Located) index(at uint64) int {
	return sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].At > at }) - 1
}

// eachFrom is Each from run i on, which has the first byte. It returns the index of the run with the last one.
func (l *Located) eachFrom(i int, from, to uint64, visit func(r Run, bytes uint64) bool) int {
	for from < to {
		r, end := l.Runs[i], l.Size
		if i+1 < len(l.Runs) {
			end = l.Runs[i+1].At
		}
		r, end = r.cut(from, min(end, to))
		if !visit(r, end-from) {
			return i
		}
		if from = end; i+1 < len(l.Runs) && l.Runs[i+1].At == end {
			i++
		}
	}
	return i
}

// cut returns the part of a run between two offsets, or the beginning of it, and the part's end.
func (r Run) cut(from, to uint64) (Run, uint64) {
	skip := from - r.At
	r.At = from
	switch period := uint64(r.Period); {
	case r.Checkpoint == Void:
	case period == 0:
		r.Offset += skip
	case skip%period != 0:
		r.Offset += skip % period
		r.Period = 0
		to = min(to, from+period-skip%period)
	}
	return r, to
}

// References returns the other checkpoints whose first occurrences the map names, ascending. These must be kept as long as the checkpoint.
func (m *Map) References() []uint32 {
	return slices.DeleteFunc(m.Named(), func(c uint32) bool { return c == m.Checkpoint })
}

// Named returns all checkpoints whose first occurrences the map names, ascending.
func (m *Map) Named() []uint32 {
	shares, _ := m.shares()
	list := make([]uint32, len(shares))
	for i, s := range shares {
		list[i] = s.Checkpoint
	}
	return list
}

// HasVoid tells whether some of the bytes are gone.
func (m *Map) HasVoid() bool {
	if m == nil {
		return false
	}
	_, void := m.shares()
	return void
}

// Without returns the map with the runs of checkpoints made void: the objects with their first occurrences are about to go.
func (m *Map) Without(checkpoints ...uint32) *Map {
	if m == nil {
		return nil
	}
	without := &Map{Checkpoint: m.Checkpoint, Regions: slices.Clone(m.Regions), index: m.index}
	gone := make(map[uint32]bool, len(checkpoints))
	for _, c := range checkpoints {
		gone[c] = true
	}
	for i := range without.Regions {
		without.Regions[i].Runs = slices.Clone(without.Regions[i].Runs)
		for j := range without.Regions[i].Runs {
			if r := &without.Regions[i].Runs[j]; gone[r.Checkpoint] {
				*r = Run{At: r.At, Checkpoint: Void}
			}
		}
	}
	without.count()
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
