package dedup

import (
	"fmt"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/tree"
)

// Load returns bytes of a region of a map, from an offset on: up to the region's end, or a multiple of SegmentBytes. They are used until the next call.
type Load func(region int, at int) ([]byte, error)

// Resume makes a checkpoint the last one of a new lineage, so that the next difference refers to it: for a store that was opened again. The regions have the
// checkpoint's restored bytes, and m is its map, of a lineage with the same chunk length. The record stays empty: shifted duplicates of earlier checkpoints are not found. It costs one Dedup.
func (l *Lineage) Resume(m *difference.Map, regions []Region) error {
	if err := checkRegions(regions, l.options.Chunk); err != nil {
		return err
	}
	if len(regions) != len(m.Regions) {
		return fmt.Errorf("%w: checkpoint %d has %d", ErrRegion, m.Checkpoint, len(m.Regions))
	}
	bytes := map[string][]byte{}
	for i := range regions {
		located := m.Find(regions[i].Name)
		if located == nil || located.Size != uint64(len(regions[i].Bytes)) {
			return fmt.Errorf("%w: %q is not that of checkpoint %d", ErrRegion, regions[i].Name, m.Checkpoint)
		}
		bytes[regions[i].Name] = regions[i].Bytes
	}
	return l.ResumeBy(m, func(region, at int) ([]byte, error) { return bytes[m.Regions[region].Name][at:], nil })
}

// ResumeBy is Resume for bytes that are not in memory together. It asks for those of each region in order, from the first to the last. An error of load is returned as it
// is, and leaves the lineage as it was.
func (l *Lineage) ResumeBy(m *difference.Map, load Load) error {
	if l.any {
		return fmt.Errorf("%w: it cannot resume after checkpoint %d", ErrOrder, l.previous)
	}
	names := make([]Region, len(m.Regions))
	for i := range m.Regions {
		names[i].Name = m.Regions[i].Name
	}
	if err := checkRegions(names, l.options.Chunk); err != nil {
		return err
	}
	for i := range m.Regions {
		if !l.fits(&m.Regions[i]) {
			return fmt.Errorf("%w: the map of %q is not one of chunks of %d B", ErrRegion, m.Regions[i].Name, l.options.Chunk)
		}
	}
	w := newWork(l, m.Checkpoint, names)
	for i := range w.parts {
		if err := w.rescan(i, int(m.Regions[i].Size), load); err != nil {
			return err
		}
	}
	w.commit(m)
	return nil
}

// rescan is scan for one region, whose bytes are loaded in pieces.
func (w *work) rescan(region, size int, load Load) error {
	p := &w.parts[region]
	p.size, p.leaves = size, tree.Chunks(uint64(size), p.chunk)
	var all []segment
	for at := 0; at < size; {
		bytes, err := load(region, at)
		if err != nil {
			return err
		}
		end := at + len(bytes)
		if len(bytes) == 0 || end > size || end < size && len(bytes)%SegmentBytes != 0 {
			return fmt.Errorf("%w: %d B were loaded of %q, from %d on", ErrRegion, len(bytes), p.name, at)
		}
		behind := len(all)
		all = p.cut(all, at, bytes)
		w.hash(all[behind:])
		for i := range all[behind:] {
			all[behind+i].bytes = nil
		}
		at = end
	}
	p.gather(all, w.lineage.function, w.lineage.options.Method)
	return nil
}

// fits tells whether the runs of a region are whole chunks of the lineage's length. Those of a lineage with another length may not be: a run that repeats a
// source of another length cannot be joined with one of this length.
func (l *Lineage) fits(region *difference.Located) bool {
	for _, r := range region.Runs {
		if r.At%uint64(l.options.Chunk) != 0 || r.Period != 0 && int(r.Period) != l.options.Chunk {
			return false
		}
	}
	return true
}
