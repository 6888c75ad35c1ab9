package workers

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// Anchor implements path.Planner. Until Ended is called the engine keeps the anchor's copies on the device and on the host.
func (p *planner) Anchor() *path.Anchor {
	p.s.Lock()
	defer p.s.Unlock()
	r := p.s.reduction(p.x)
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
	return &path.Anchor{Device: true, At: p.s.Engine.Offset(a.Kept.Obj, a.Kept.Tier), Ended: func(did path.Outcome) { p.s.usedAnchor(p.x, a, did) }}
}

// usedAnchor ends the use of an anchor by a transfer.
func (s *Workers) usedAnchor(x *engine.Transfer, a *cache.Anchor, did path.Outcome) {
	s.Lock()
	defer s.Leave()
	a.Users--
	if did == path.Used {
		return
	}
	a.Count--
	s.Engine.NeedNoMore(s.Now(), x.Obj, x.To)
	if did == path.Unlike {
		a.Took(x.Rec.Size)
	}
}

// keepAnchor keeps a checkpoint that has left its device without an anchor, so that later ones are encoded with it, or counts one that was encoded so.
func (s *Workers) keepAnchor(r *cache.Reduction, x *engine.Transfer, did *path.Staged) {
	switch {
	case r == nil || s.DeviceTier(x.From) == nil:
	case !s.relates(r, x):
		r.EndAnchor(x.Rec.Version.Layout.ID)
	case !did.Related:
		s.KeepAnchor(r, x.Rec, x.From, did.Written())
	case r.Anchor != nil && r.Anchor.Kept.Obj == x.Obj.Source(x.To):
		r.Anchor.Took(did.Bytes())
	}
}

// relates tells whether a checkpoint that leaves its device may be encoded with another, or others with it.
func (s *Workers) relates(r *cache.Reduction, x *engine.Transfer) bool {
	return r != nil && r.Refers && r.Course == nil && x.Stage == engine.Encoding && s.DeviceTier(x.From) != nil && s.Relates() && r.Planner.Relates(x.Rec.Version.Layout.ID)
}

// mayJoin is how many checkpoints of a device can leave it together, x included: as many as the anchor is left for, and x alone if it becomes one.
func (s *Workers) mayJoin(x *engine.Transfer) int {
	r := s.reduction(x)
	if !s.relates(r, x) {
		return mostAccumulated
	}
	if a := s.AnchorFor(r, x.Rec, x.From); a != nil {
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
		return s.anchorAnywhere(x, of)
	}
	anchor := s.anchorOnHost(of, x.From) // the engine keeps it as long as the copy that is read
	if x.To >= 0 && s.DeviceTier(x.To) != nil {
		s.readAnchor(anchor, of.Made(), x.To)
	}
	return anchor
}

// anchorAnywhere is anchorOf for a checkpoint of which the disk has a copy, and what it needs: the device's copy of the anchor, else the host's, else the disk's. The
// lock is held.
func (s *Workers) anchorAnywhere(x *engine.Transfer, of *engine.Object) *path.Anchor {
	d := x.Rec.Version.Difference
	if d == nil || !d.Refers {
		return nil
	}
	if of != nil {
		a := &path.Anchor{}
		if x.To >= 0 && s.DeviceTier(x.To) != nil {
			s.readAnchor(a, of.Made(), x.To)
		}
		if a.Device {
			return a
		}
		if reading, ok := s.Engine.KeepCopy(s.Now(), of, x.From); ok {
			a = s.anchorOnHost(of, x.From)
			a.Ended = func(path.Outcome) { s.endReading(reading) }
			return a
		}
	}
	s.Disk.Share(d.Sources) // its copy on the disk holds them, too
	return &path.Anchor{
		Stored: &path.StoredAnchor{Tier: s.Engine.Below(x.From), Lineage: d.Lineage, Source: d.Sources[0]},
		Ended: func(path.Outcome) {
			s.Lock()
			defer s.Leave()
			s.Disk.LetGo(d.Sources)
		},
	}
}

// readAnchor lets a load use the plain bytes of an anchor that its device has.
func (s *Workers) readAnchor(a *path.Anchor, of *engine.Record, t int) {
	reading, ok := s.Engine.Keep(s.Now(), of, t)
	if !ok {
		return
	}
	a.Device, a.At = true, s.Engine.Offset(reading.Obj, t)
	a.Ended = func(path.Outcome) { s.endReading(reading) }
}

func (s *Workers) endReading(x engine.Reading) {
	s.Lock()
	defer s.Leave()
	s.Engine.EndReading(s.Now(), x)
}
