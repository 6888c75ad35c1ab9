package workers

import (
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/cache"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// Anchor implements path.Planner. Until Ended is called the engine keeps the anchor's copies on the device and on the host.
func (p *planner) Anchor() *path.Anchor {
	p.s.Lock()
	defer p.s.Unlock()
	r := reduction(p.s.Cache, p.x)
	if r == nil {
		return nil
	}
	a := p.s.AnchorFor(r, p.x.Rec, p.x.From)
	if a == nil || !p.s.Engine.Need(p.s.Now(), p.x.Obj, a.Kept.Obj, p.x.To) {
		r.Planner.NotRelated()
		return nil
	}
	p.s.KeepOnHost(a)
	a.Users++
	a.Count++
	return &path.Anchor{Device: true, At: p.s.Engine.Offset(a.Kept.Obj, a.Kept.Tier), Ended: func(did path.Outcome) { p.s.anchors.used(p.x, a, did) }}
}

// anchors finds the anchors of transfers, and keeps them until they have been used.
type anchors struct {
	*cache.Cache

	flushed *sync.Cond // the lock's: a checkpoint that others were encoded with may have come to the disk, or failed to
}

// used ends the use of an anchor by a transfer.
func (an *anchors) used(x *engine.Transfer, a *cache.Anchor, did path.Outcome) {
	an.Lock()
	defer an.Leave()
	a.Users--
	if did == path.Used {
		return
	}
	a.Count--
	an.Engine.NeedNoMore(an.Now(), x.Obj, x.To)
	if did == path.Unlike {
		a.Took(x.Rec.Size)
	}
}

// keep keeps a checkpoint that has left its device without an anchor, so that later ones are encoded with it, or counts one that was encoded so.
func (an *anchors) keep(r *cache.Reduction, x *engine.Transfer, did *path.Staged) {
	switch {
	case r == nil || an.DeviceTier(x.From) == nil:
	case x.Lower == engine.Deduplicated:
		if r.Planner.PrefersRemoval() { // the anchor would be in the way, and too old when others are encoded again
			r.EndAnchor(x.Rec.Version.Layout.ID)
		}
	case !an.relates(r, x):
		r.EndAnchor(x.Rec.Version.Layout.ID)
	case !did.Related:
		an.KeepAnchor(r, x.Rec, x.From, did.Written())
	case r.Anchor != nil && r.Anchor.Kept.Obj == x.Obj.Source(x.To):
		r.Anchor.Took(did.Bytes())
	}
}

// relates tells whether a checkpoint that leaves its device may be encoded with another, or others with it.
func (an *anchors) relates(r *cache.Reduction, x *engine.Transfer) bool {
	return r != nil && r.Refers && r.Course == nil && x.Stage == engine.Encoding && x.Lower != engine.Deduplicated && an.DeviceTier(x.From) != nil && an.Relates() && r.Planner.Relates(x.Rec.Version.Layout.ID)
}

// mayJoin is how many checkpoints of a device can leave it together, x included: as many as the anchor is left for, and x alone if it becomes one.
func (an *anchors) mayJoin(x *engine.Transfer) int {
	r := reduction(an.Cache, x)
	if x.Lower == engine.Deduplicated { // each of them waits for its turn
		return 1
	}
	if !an.relates(r, x) {
		return mostAccumulated
	}
	if a := an.AnchorFor(r, x.Rec, x.From); a != nil {
		return min(mostAccumulated, a.Left())
	}
	if r.BeginsAnchor() {
		return 1
	}
	return mostAccumulated
}

// anchorOf is the anchor with which a checkpoint was encoded that a transfer decodes; nil: none.
func (w *worker) anchorOf(x *engine.Transfer) *path.Anchor {
	if x.Stage != engine.Decoding || x.Upper != engine.Raw || x.Lower == engine.Difference {
		return nil
	}
	s := w.s
	s.Lock()
	defer s.Leave()
	of := x.Obj.Related(x.From)
	switch {
	case s.Host == nil || x.From != s.HostTier():
		return nil
	case x.Obj.Source(x.From) == nil: // the disk has both
		return s.anchors.anywhere(x, of)
	}
	anchor := s.anchors.onHost(of, x.From) // the engine keeps it as long as the copy that is read
	if x.To >= 0 && s.DeviceTier(x.To) != nil {
		s.anchors.read(anchor, of.Made(), x.To)
	}
	return anchor
}

// anywhere is anchorOf for a checkpoint of which the disk has a copy, and what it needs: the device's copy of the anchor, else the host's, else the disk's. The
// lock is held.
func (an *anchors) anywhere(x *engine.Transfer, of *engine.Object) *path.Anchor {
	d := x.Rec.Version.Difference
	if d == nil || !d.Refers {
		return nil
	}
	if of != nil {
		a := &path.Anchor{}
		if x.To >= 0 && an.DeviceTier(x.To) != nil {
			an.read(a, of.Made(), x.To)
		}
		if a.Device {
			return a
		}
		if reading, ok := an.Engine.KeepCopy(an.Now(), of, x.From); ok {
			a = an.onHost(of, x.From)
			a.Ended = func(path.Outcome) { an.endReading(reading) }
			return a
		}
	}
	an.Disk.Share(d.Sources) // its copy on the disk holds them, too
	return &path.Anchor{
		Stored: &path.StoredAnchor{Tier: an.Engine.Below(x.From), Lineage: d.Lineage, Source: d.Sources[0]},
		Ended: func(path.Outcome) {
			an.Lock()
			defer an.Leave()
			an.Disk.LetGo(d.Sources)
		},
	}
}

// read lets a load use the plain bytes of an anchor that its device has.
func (an *anchors) read(a *path.Anchor, of *engine.Record, t int) {
	reading, ok := an.Engine.Keep(an.Now(), of, t)
	if !ok {
		return
	}
	a.Device, a.At = true, an.Engine.Offset(reading.Obj, t)
	a.Ended = func(path.Outcome) { an.endReading(reading) }
}

func (an *anchors) endReading(x engine.Reading) {
	an.Lock()
	defer an.Leave()
	an.Engine.EndReading(an.Now(), x)
}

// awaits tells whether a transfer can wait until an anchor is on the disk: a worker is about to write it there. The lock is held.
func (an *anchors) awaits(w *cache.Wrapped, of *engine.Object, x *engine.Transfer) bool {
	_, bad := safego.Poisoned()
	return !bad && !an.Closing && an.Engine.Flushes(of, x.From) && !w.IsAt(of, an.Engine.Offset(of, x.To))
}

// onHost is an anchor whose copy on the host the engine keeps. The lock is held.
func (an *anchors) onHost(o *engine.Object, t int) *path.Anchor {
	of := o.Made().Version
	bytes := of.Layout.End()
	if of.Encoding != nil {
		bytes = of.Encoding.Bytes()
	}
	return &path.Anchor{Encoding: of.Encoding, Bytes: an.Host.Bytes(an.Engine.Offset(o, t), bytes), Ended: func(path.Outcome) {}}
}
