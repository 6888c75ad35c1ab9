package dedup

import (
	"fmt"

	"velocpy/gocore/reduction/difference"
)

// Resume makes a checkpoint the last one of a new lineage, so that the next difference refers to it: for a store that was opened again. The regions have the
// checkpoint's restored bytes, and m is its map, of a lineage with the same chunk length. The record stays empty: shifted duplicates of earlier checkpoints are not found. It costs one Dedup.
func (l *Lineage) Resume(m *difference.Map, regions []Region) error {
	if l.any {
		return fmt.Errorf("%w: it cannot resume after checkpoint %d", ErrOrder, l.previous)
	}
	if err := checkRegions(regions, l.options.Chunk); err != nil {
		return err
	}
	if len(regions) != len(m.Regions) {
		return fmt.Errorf("%w: checkpoint %d has %d", ErrRegion, m.Checkpoint, len(m.Regions))
	}
	for i := range regions {
		located := m.Find(regions[i].Name)
		if located == nil || located.Size != uint64(len(regions[i].Bytes)) {
			return fmt.Errorf("%w: %q is not that of checkpoint %d", ErrRegion, regions[i].Name, m.Checkpoint)
		}
		if !l.fits(located) {
			return fmt.Errorf("%w: the map of %q is not one of chunks of %d B", ErrRegion, regions[i].Name, l.options.Chunk)
		}
	}
	w := newWork(l, m.Checkpoint, regions)
	w.scan()
	w.commit(m)
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
