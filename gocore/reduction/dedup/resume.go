package dedup

import (
	"fmt"

	"velocpy/gocore/reduction/difference"
)

// Resume makes a checkpoint the last one of a new lineage, so that the next difference refers to it: for a store that was opened again. The regions have the
// checkpoint's restored bytes, and m is its map. The record stays empty: shifted duplicates of earlier checkpoints are not found. It costs one Dedup.
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
	}
	w := newWork(l, m.Checkpoint, regions)
	w.scan()
	w.commit(m)
	return nil
}
