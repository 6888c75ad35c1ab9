package cache

import (
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
)

// Reduction is what the store knows of a history whose checkpoints are encoded on their way to the disk.
type Reduction struct {
	Planner *encoding.Planner
	Lineage *Lineage // nil: every checkpoint stands alone
	Figures figures.Reduction
}

// ExpectEncoded predicts how many bytes a checkpoint will have in a tier where it is encoded. The lock is held.
func (c *Cache) ExpectEncoded(r *engine.Record, _ int) int64 {
	known := c.Reductions[r.Hist.Name]
	if known != nil && known.Lineage != nil && known.Planner.RemovesSoon() {
		return known.Lineage.room.expect(r.Size)
	}
	if known != nil {
		return known.Planner.Expect(r.Version.Layout.ID, r.Size)
	}
	return r.Size
}

// MostTogether is the largest room of checkpoints that go to the disk together, by one request. They stay as they are: encoding each would take them apart.
const MostTogether = 64 << 10

// ShapeOf says how a checkpoint is kept that takes so much room in memory; nil: as it is in all tiers. The lock is held.
func (c *Cache) ShapeOf(history string, room int64) *engine.Shape {
	r := c.Reductions[history]
	if r == nil || c.Disk == nil || room <= MostTogether || r.Planner.Method() == encoding.Raw {
		return nil
	}
	t := len(c.Tiers) - 1 // the disk is the lowest tier
	s := &engine.Shape{}
	s.Forms[t], s.Sizes[t] = engine.Encoded, room
	if r.Lineage != nil {
		s.Forms[t], s.Sizes[t] = engine.Difference, mostOfObject(room)
	}
	return s
}
