package cache

import (
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
)

// Reduction is what the store knows of a history whose checkpoints are encoded or de-duplicated on their way down.
type Reduction struct {
	Planner *encoding.Planner
	Lineage *Lineage         // nil: every checkpoint stands alone
	Course  *schedule.Course // nil: a device encodes what has queued up
	Before  int64            // places that the courses before it had
	Planned uint64           // the engine's number of the checkpoint that was planned last
	Deeper  bool             // checkpoints of a device have gone on to the disk, so that the time there counts, too
	Refers  bool             // checkpoints are encoded with others: on the host in a lineage, or on a device with an anchor
	Anchor  *Anchor          // with which a device encodes checkpoints; nil: none is kept
	alone   int              // checkpoints that are encoded alone before another anchor is kept
	rest    int              // how many these were the last time
	Figures figures.Reduction
}

// Begin goes on with another course, or with none. What the one before has counted keeps its places.
func (r *Reduction) Begin(course *schedule.Course) {
	if r.Course != nil {
		r.Before += int64(r.Course.Captured())
	}
	r.Course = course
}

// ExpectBytes predicts how many bytes a checkpoint will have in a form. The lock is held.
func (c *Cache) ExpectBytes(r *engine.Record, f engine.Form) int64 {
	known := c.Reductions[r.Hist.Name]
	if known == nil || c.GoesWhole(r) {
		return r.Size
	}
	onDevice := c.encodedBy(known, r.Top())
	if f == engine.Difference && onDevice {
		return c.expectWrapped(r)
	}
	x := encoding.Checkpoint{Layout: r.Version.Layout.ID, Queued: f == engine.Encoded && onDevice}
	if x.Queued {
		x.Removable = c.AnchorFor(known, r, r.Top()) != nil
		return known.Planner.Expect(x, r.Size)
	}
	if x.Removable = f == engine.Difference && known.Lineage != nil; x.Removable && known.Planner.Likely(x) == encoding.Difference {
		return known.Lineage.expect(r.Size)
	}
	x.Removable = false
	return known.Planner.Expect(x, r.Size)
}

// expectWrapped predicts the room of a checkpoint on the disk whose encoded bytes the host has.
func (c *Cache) expectWrapped(r *engine.Record) int64 {
	l, e := r.Version.Layout, r.Version.Encoding
	switch {
	case e != nil:
		return predictWrapped(l, e)
	case r.Version.Anchor:
		return roomOfWrapped(l, r.Size)
	}
	return r.Size
}

// EncodesOnDevice tells whether a device encodes the checkpoints of a history that it has.
func (c *Cache) EncodesOnDevice(r *Reduction) bool {
	return r.Planner.OnDevice() || r.Refers && c.Relates()
}

// encodedBy tells whether the device of a tier, if it is that of one, encodes the checkpoints of a history that it has. One that is too small leaves those to a lineage that would be
// encoded with others.
func (c *Cache) encodedBy(r *Reduction, t int) bool {
	return c.DeviceTier(t) != nil && c.EncodesOnDevice(r) && (r.Planner.OnDevice() || c.PartOf(t) > 0)
}

// MostTogether is the largest room of checkpoints that go to the disk together, by one request. They stay as they are: encoding each would take them apart.
const MostTogether = 64 << 10

// ShapeOf says how a checkpoint of a layout is kept that takes so much room in memory, and whose fastest tier is the one with a number; nil: as it is in all tiers. The
// lock is held.
func (c *Cache) ShapeOf(history string, l *checkpoint.Layout, room int64, top int) *engine.Shape {
	r := c.Reductions[history]
	if r == nil || room <= MostTogether || r.Planner.Method() == encoding.Raw {
		return nil
	}
	form, most, ofDevice := engine.Encoded, room, c.DeviceTier(top) != nil
	onDevice := c.encodedBy(r, top)
	if r.Lineage != nil && !onDevice && (!ofDevice || r.Planner.Method() == encoding.Lineage) {
		form, most = engine.Difference, mostOfObject(room)
	}
	s, some := &engine.Shape{}, false
	for t := range c.Tiers {
		switch {
		case c.DeviceTier(t) != nil:
		case t == c.HostTier() && c.Host != nil && !onDevice: // callers, a lineage or a compressor use the plain bytes there
		case onDevice && r.Refers && c.Relates() && t != c.HostTier():
			s.Forms[t], s.Sizes[t], some = engine.Difference, roomOfWrapped(l, room), true
		default:
			s.Forms[t], s.Sizes[t], some = form, most, true
		}
	}
	if !some {
		return nil
	}
	return s
}
