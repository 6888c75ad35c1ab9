package cache

import (
	"math"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/digest"
)

// shapes tells how checkpoints are kept in the tiers, and predicts how many bytes they have there.
type shapes struct {
	*state
	stagings  *stagings
	anchors   *anchors
	schedules *schedules
	areas     *lineageAreas
}

// ExpectBytes predicts how many bytes a checkpoint will have in a form. The lock is held.
func (sh *shapes) ExpectBytes(r *engine.Record, f engine.Form) int64 {
	known := sh.Reductions[r.Hist.Name]
	if known == nil || sh.schedules.GoesWhole(r) {
		return r.Size
	}
	if f == engine.Deduplicated { // what is new is known when the device has written it
		return math.MaxInt64
	}
	onDevice := sh.encodedBy(known, r.Top())
	if f == engine.Difference && known.Lineage != nil && sh.isDeduplicated(r) { // the host's lineage makes an object of it
		return known.Lineage.expect(r.Size)
	}
	if f == engine.Difference && onDevice {
		return sh.expectWrapped(r)
	}
	x := encoding.Checkpoint{Layout: r.Version.Layout.ID, Queued: f == engine.Encoded && onDevice}
	if x.Queued {
		x.Removable = sh.anchors.AnchorFor(known, r, r.Top()) != nil
		return known.Planner.Expect(x, r.Size)
	}
	if x.Removable = f == engine.Difference && known.Lineage != nil; x.Removable && known.Planner.Likely(x) == encoding.Difference {
		return known.Lineage.expect(r.Size)
	}
	x.Removable = false
	return known.Planner.Expect(x, r.Size)
}

// isDeduplicated tells whether a checkpoint was captured to be de-duplicated by its device.
func (sh *shapes) isDeduplicated(r *engine.Record) bool {
	host := sh.HostTier()
	return sh.Host != nil && r.Objects()[0].Form(host) == engine.Deduplicated
}

// expectWrapped predicts the room of a checkpoint on the disk whose encoded bytes the host has.
func (sh *shapes) expectWrapped(r *engine.Record) int64 {
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
func (sh *shapes) EncodesOnDevice(r *Reduction) bool {
	return r.Planner.OnDevice() || r.Refers && sh.anchors.Relates()
}

// encodedBy tells whether the device of a tier, if it is that of one, encodes the checkpoints of a history that it has. One that is too small leaves those to a lineage that would be
// encoded with others.
func (sh *shapes) encodedBy(r *Reduction, t int) bool {
	return sh.DeviceTier(t) != nil && sh.EncodesOnDevice(r) && (r.Planner.OnDevice() || sh.stagings.PartOf(t) > 0)
}

// MostTogether is the largest room of checkpoints that go to the disk together, by one request. They stay as they are: encoding each would take them apart.
const MostTogether = 64 << 10

// ShapeOf says how a checkpoint of a layout is kept that takes so much room in memory, and whose fastest tier is the one with a number; nil: as it is in all tiers. The
// lock is held.
func (sh *shapes) ShapeOf(history string, l *checkpoint.Layout, room int64, top int) *engine.Shape {
	r := sh.Reductions[history]
	if r == nil || room <= MostTogether || r.Planner.Method() == encoding.Raw {
		return nil
	}
	form, most, ofDevice := engine.Encoded, room, sh.DeviceTier(top) != nil
	onDevice := sh.encodedBy(r, top)
	if r.Lineage != nil && !onDevice && (!ofDevice || r.Planner.Method() == encoding.Lineage) {
		form, most = engine.Difference, mostOfObject(room)
	}
	removed := sh.roomDeduplicated(r, l, room, top)
	if removed > 0 {
		form, most = engine.Difference, mostOfObject(room)
	}
	s, some := &engine.Shape{}, false
	for t := range sh.Tiers {
		switch {
		case sh.DeviceTier(t) != nil:
		case removed > 0 && t == sh.HostTier():
			s.Forms[t], s.Sizes[t], some = engine.Deduplicated, removed, true
		case t == sh.HostTier() && sh.Host != nil && !onDevice: // callers, a lineage or a compressor use the plain bytes there
		case removed == 0 && onDevice && r.Refers && sh.anchors.Relates() && t != sh.HostTier():
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

// roomDeduplicated is the room on the host of a checkpoint that its device is to de-duplicate; 0: it is not. A history with a schedule has that decide. Each call counts as a checkpoint of
// the history.
func (sh *shapes) roomDeduplicated(r *Reduction, l *checkpoint.Layout, room int64, top int) int64 {
	if sh.areas.AreaFor(r, top) == nil || r.Course != nil && r.Planner.Method() == encoding.Auto {
		return 0
	}
	most := mostDeduplicated(l, room, r.OnDevice)
	if most > sh.Engine.Capacity(sh.HostTier()) || !r.Planner.Deduplicates() {
		return 0
	}
	return most
}

// mostDeduplicated is the room that is reserved for what a device writes to the host of a checkpoint that takes so much in memory: all of its bytes may be new, and metadata is
// behind them until the host has read it.
func mostDeduplicated(l *checkpoint.Layout, room int64, m *DeviceMethod) int64 {
	const checksum, entry, rest = 8, 24, 1024 // bytes for a block, for a chunk that is not full, and where lengths are rounded up
	regions := int64(len(l.Spans))
	return room + checksum*(room/digest.SumBytes+regions) + device.FirstBytes*(room/int64(m.Chunk)) + (entry+device.FirstBytes)*regions + rest
}
