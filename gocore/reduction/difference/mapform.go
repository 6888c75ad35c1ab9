package difference

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// Layout of a serialised map (docs/deduplication-format.md).
const (
	mapMagic       = "VELOCMAP"
	mapHeaderBytes = 32
	mapRegionBytes = 24
	mapRunBytes    = 24
)

// Append appends the serialised map. A store may keep it, so that it needs no differences of earlier checkpoints to restore this one.
func (m *Map) Append(to []byte) []byte {
	le := binary.LittleEndian
	start := len(to)
	to = le.AppendUint32(append(to, mapMagic...), version)
	to = le.AppendUint32(to, m.Checkpoint)
	to = le.AppendUint64(to, uint64(len(m.Regions)))
	names := 0
	for i := range m.Regions {
		names += len(m.Regions[i].Name)
	}
	to = le.AppendUint64(to, uint64(names))
	for i := range m.Regions {
		l := &m.Regions[i]
		to = le.AppendUint64(to, l.Size)
		to = le.AppendUint64(to, uint64(len(l.Runs)))
		to = le.AppendUint64(to, uint64(len(l.Name)))
	}
	for i := range m.Regions {
		to = append(to, m.Regions[i].Name...)
	}
	to = pad(to, start)
	for i := range m.Regions {
		for _, r := range m.Regions[i].Runs {
			to = le.AppendUint64(to, r.At)
			to = le.AppendUint64(to, r.Offset)
			to = le.AppendUint32(to, r.Checkpoint)
			to = le.AppendUint32(to, r.Period)
		}
	}
	return le.AppendUint64(to, xxh3.Hash(to[start:]))
}

// ParseMap reads a serialised map. Any bytes are safe, as with Parse.
func ParseMap(p []byte) (*Map, error) {
	le := binary.LittleEndian
	if len(p) < mapHeaderBytes+sumBytes || string(p[:8]) != mapMagic || le.Uint32(p[8:]) != version {
		return nil, fmt.Errorf("%w: no map of version %d", ErrFormat, version)
	}
	end := len(p) - sumBytes
	if le.Uint64(p[end:]) != xxh3.Hash(p[:end]) {
		return nil, fmt.Errorf("%w: the checksum of the map differs", ErrFormat)
	}
	m := &Map{Checkpoint: le.Uint32(p[12:])}
	if m.Checkpoint > MaxCheckpoint {
		return nil, fmt.Errorf("%w: a map of checkpoint %d", ErrFormat, m.Checkpoint)
	}
	regions, names := le.Uint64(p[16:]), le.Uint64(p[24:])
	rest := p[mapHeaderBytes:end]
	if regions > uint64(len(rest))/mapRegionBytes || names > uint64(len(rest)) || regions*mapRegionBytes+padded(names) > uint64(len(rest)) {
		return nil, fmt.Errorf("%w: %d regions in the map", ErrFormat, regions)
	}
	table, text := rest[:regions*mapRegionBytes], rest[regions*mapRegionBytes:][:padded(names)]
	runs := rest[regions*mapRegionBytes+padded(names):]
	m.Regions = make([]Located, regions)
	m.index = make(map[string]int, regions)
	for i := range m.Regions {
		var err error
		row := table[i*mapRegionBytes:]
		if text, runs, err = m.parseRegion(i, row, text, runs); err != nil {
			return nil, err
		}
	}
	if len(runs) > 0 || len(text) != int(padded(names)-names) || !zero(text) {
		return nil, fmt.Errorf("%w: superfluous bytes in the map", ErrFormat)
	}
	m.count()
	return m, nil
}

// parseRegion reads one row of the table, and its name and runs. It returns the names and runs that follow.
func (m *Map) parseRegion(i int, row, text, runs []byte) ([]byte, []byte, error) {
	size, count, length := binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:]), binary.LittleEndian.Uint64(row[16:])
	if length > uint64(len(text)) || length > MaxName || count > uint64(len(runs))/mapRunBytes || size > MaxBytes || (count == 0) != (size == 0) {
		return nil, nil, fmt.Errorf("%w: region %d of the map", ErrFormat, i)
	}
	m.Regions[i] = Located{Name: string(text[:length]), Size: size, Runs: parseRuns(runs[:count*mapRunBytes])}
	return text[length:], runs[count*mapRunBytes:], m.include(i)
}

// NewMap returns the map of a checkpoint whose regions are given. It fails with ErrFormat if ParseMap would refuse them.
func NewMap(checkpoint uint32, regions []Located) (*Map, error) {
	if checkpoint > MaxCheckpoint {
		return nil, fmt.Errorf("%w: a map of checkpoint %d", ErrFormat, checkpoint)
	}
	m := &Map{Checkpoint: checkpoint, Regions: regions, index: make(map[string]int, len(regions))}
	for i := range regions {
		if l := &regions[i]; len(l.Name) > MaxName || l.Size > MaxBytes || (len(l.Runs) == 0) != (l.Size == 0) {
			return nil, fmt.Errorf("%w: region %d of the map", ErrFormat, i)
		}
		if err := m.include(i); err != nil {
			return nil, err
		}
	}
	m.count()
	return m, nil
}

// include adds a region to the index, and verifies its runs.
func (m *Map) include(i int) error {
	l := &m.Regions[i]
	if _, taken := m.index[l.Name]; taken {
		return fmt.Errorf("%w: two regions have the name %q", ErrFormat, l.Name)
	}
	m.index[l.Name] = i
	for j, r := range l.Runs {
		first := j == 0 && r.At != 0
		order := j > 0 && r.At <= l.Runs[j-1].At
		if first || order || r.At >= l.Size || r.Offset > MaxBytes || r.Checkpoint > m.Checkpoint && r.Checkpoint != Void || r.Period != 0 && !ValidChunk(int(r.Period)) {
			return fmt.Errorf("%w: run %d of region %q", ErrFormat, j, l.Name)
		}
	}
	return nil
}

func parseRuns(p []byte) []Run {
	le := binary.LittleEndian
	list := slices.Grow([]Run(nil), len(p)/mapRunBytes)
	for ; len(p) > 0; p = p[mapRunBytes:] {
		list = append(list, Run{At: le.Uint64(p), Offset: le.Uint64(p[8:]), Checkpoint: le.Uint32(p[16:]), Period: le.Uint32(p[20:])})
	}
	return list
}
