package workers

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/transfer/path"
)

// planner plans one transfer with the planner of its history, under the lock.
type planner struct {
	s        *Workers
	x        *engine.Transfer
	room     *regions.Room // the worker's
	together plans         // of what moves together with it; nil: nothing does
}

// plans are those of flushes that move together, by what they have in common. They go one way: what each took could not be told otherwise.
type plans map[alike]encoding.Plan

type alike struct {
	history *engine.History
	layout  uint64
}

// planner returns what plans a transfer; nil if it has no encoder, or its history none any more.
func (w *worker) planner(x *engine.Transfer) path.Planner {
	if x.Stage != engine.Encoding || x.Upper != engine.Raw && x.Upper != engine.Deduplicated {
		return nil
	}
	return &planner{s: w.s, x: x, room: &w.room}
}

func (p *planner) Next(slot []byte) encoding.Plan {
	plan, before, chunk := p.next(slot != nil)
	if before == nil {
		return plan
	}
	equal, known := before.looked(&p.x.Rec.Version.Layout.Layout, slot, chunk)
	p.s.Lock()
	defer p.s.Unlock()
	if r := reduction(p.s.Cache, p.x); known && r != nil {
		return r.Planner.Looked(plan, p.x.Rec.Version.Layout.ID, equal)
	}
	return plan
}

// next is Next, but for the comparison with the checkpoint before, chunk by chunk, that a plan asks for; before is nil without it.
func (p *planner) next(addressable bool) (plan encoding.Plan, before *beside, chunk int) {
	p.s.Lock()
	defer p.s.Unlock()
	r := reduction(p.s.Cache, p.x)
	if r == nil || p.s.GoesWhole(p.x.Rec) {
		return encoding.Plan{}, nil, 0
	}
	l := p.x.Rec.Version.Layout
	device := p.s.DeviceTier(p.x.From) != nil
	removable := addressable && r.Lineage != nil && p.x.Obj.Form(p.x.To) == engine.Difference && r.Lineage.Fits(p.x.Rec.Hist.Name, l.Spans)
	on := encoding.Checkpoint{
		Layout: l.ID, Queued: device, Captured: p.x.Lower == engine.Deduplicated || p.x.Upper == engine.Deduplicated,
		Removable: removable || p.s.anchors.relates(r, p.x) && p.s.AnchorFor(r, p.x.Rec, p.x.From) != nil,
	}
	like := alike{p.x.Rec.Hist, l.ID}
	if first, ok := p.together[like]; ok {
		return r.Planner.Follow(first, l.ID), nil, 0
	}
	plan = r.Planner.Next(on)
	if p.together != nil {
		p.together[like] = plan
	}
	if plan.Look = plan.Look && addressable; plan.Look {
		before, chunk = p.s.beside(r.Planned), r.Lineage.Options.Chunk
	}
	r.Planned = p.x.Rec.ID
	return plan, before, chunk
}

func (p *planner) Sampled(plan encoding.Plan, c []regions.Choice, plain, encoded int64) encoding.Plan {
	p.s.Lock()
	defer p.s.Unlock()
	if r := reduction(p.s.Cache, p.x); r != nil {
		sampled(r, p.x, c, plain, encoded)
		return r.Planner.Resume(plan, p.x.Rec.Version.Layout.ID)
	}
	return encoding.Plan{}
}

// sampled tells the planner what a sample said. Checkpoints whose flush is repeated with more room are no sample of their layout: they are those that became larger
// than others.
func sampled(r *cache.Reduction, x *engine.Transfer, c []regions.Choice, plain, encoded int64) {
	if !x.Obj.WasEnlarged(x.To) {
		r.Planner.Sampled(x.Rec.Version.Layout.ID, c, plain, encoded)
	}
}

// reduction is that of the history of a transfer's checkpoint; nil: it is kept as it is.
func reduction(c *cache.Cache, x *engine.Transfer) *cache.Reduction {
	return c.Reductions[x.Rec.Hist.Name]
}

// takeStaged takes over what a stage did, before the engine is told of the transfer's end. Its share of the link's time is so many ns. The lock is held.
func (s *Workers) takeStaged(x *engine.Transfer, did *path.Staged, share int64) {
	if did.Forwarded {
		s.takeForwarded(x, did)
		return
	}
	r := reduction(s.Cache, x)
	if len(did.Mended) > 0 {
		warnOfDamage(x, did.Mended)
	}
	cost := max(min(did.Took, share), s.timeBelow(x, r, did))
	if host := s.HostTier(); s.Host != nil && x.To == host && x.Obj.Form(host) == engine.Deduplicated {
		x.Rec.Version.Deduplicated = did.Deduplicated
	}
	if x.Stage == engine.Encoding {
		x.Rec.Version.Encoding, x.Rec.Version.Difference = did.Encoding, did.Difference
		if n := did.Bytes(); n > 0 {
			x.Wrote(n)
			x.Spent(did.Waited)
		} else { // the plain bytes, for which an object of a lineage has more room than they need
			x.Wrote(min(x.Rec.Size, x.Writes()))
		}
		if x.Upper == engine.Deduplicated {
			s.takeBelow(r, x, did)
			return
		}
		if r != nil {
			countEncoded(r, x, did, cost)
			s.anchors.keep(r, x, did)
			s.heldRuns.count(x, did)
		}
		return
	}
	if did.Crossed > 0 {
		x.Crossed(did.Crossed)
	}
	fromBelow := x.Upper == engine.Deduplicated // its plain bytes have come up to the host
	if fromBelow {
		x.Wrote(min(x.Rec.Size, x.Writes()))
	}
	if r == nil {
		return
	}
	if !fromBelow { // what it costs to bring the others up says nothing of these
		r.Planner.Loaded(did.Way, did.Plain, cost)
	}
	if f := &r.Figures; did.Way != encoding.Plain {
		f.Decoded++
		f.DecodedBytes += did.Plain
		f.DecodeTime += did.Took
		if len(did.Mended) > 0 {
			f.Mended++
		}
	}
}

// takeBelow takes over what became of a checkpoint that a device may have de-duplicated, on its way from the host to the disk. It was counted when it left the device. A load brings
// its plain bytes back.
func (s *Workers) takeBelow(r *cache.Reduction, x *engine.Transfer, did *path.Staged) {
	x.Rewrote()
	s.goesDeeper(r, x)
	if r != nil && r.Lineage != nil && did.Difference != nil {
		r.Lineage.Wrote(did.Difference.Bytes())
	}
}

// timeBelow predicts how many ns the bytes of a checkpoint take on the link below the host, if those of its history go on to the disk. Transfers of both links run beside
// each other, so a way costs what the slower one of them takes.
func (s *Workers) timeBelow(x *engine.Transfer, r *cache.Reduction, did *path.Staged) int64 {
	if r == nil || !r.Deeper || s.Host == nil || max(x.From, x.To) != s.HostTier() || min(x.From, x.To) < 0 {
		return 0
	}
	bytes, rate := x.Obj.Bytes(x.From), s.Engine.LoadRate(s.HostTier())
	if x.Stage == engine.Encoding {
		bytes, rate = did.Written(), s.Engine.FlushRate(s.HostTier())
	}
	return int64(float64(bytes) / rate * 1e9)
}

func countEncoded(r *cache.Reduction, x *engine.Transfer, did *path.Staged, cost int64) {
	f, layout := &r.Figures, x.Rec.Version.Layout.ID
	if x.Lower == engine.Deduplicated && did.Deduplicated == nil {
		r.Planner.NotDeduplicated()
	}
	switch d := did.Difference; {
	case did.Deduplicated != nil:
		r.Planner.Deduplicated(did.Plain, did.First, cost)
		f.FirstBytes, f.MetaBytes = f.FirstBytes+did.First, f.MetaBytes+did.Meta
		f.EncodedTo += did.Meta
		if len(did.Deduplicated.Map.References()) > 0 {
			f.Differences++
		}
	case d != nil:
		countDifference(r, did, cost)
	case did.Related:
		if f.Differences++; !did.Follows {
			r.Planner.Related(layout, did.Plain, did.Bytes(), cost)
		}
	case did.Encoding != nil:
		countFlush(r, did, cost)
		if did.Tried {
			sampled(r, x, did.Choices, did.Plain, did.Bytes())
		}
		r.Planner.Became(layout, did.Plain, did.Bytes())
	default:
		countFlush(r, did, cost)
		if did.Tried { // it has become larger
			sampled(r, x, did.Choices, did.Plain, did.Plain)
		}
		switch {
		case did.Unlike:
			r.Planner.Related(layout, did.Plain, did.Plain, cost)
		case did.GaveUp:
			r.Planner.GaveUp(layout)
		}
		f.Plain++
		f.PlainBytes += did.Plain
		return
	}
	f.Encoded++
	if did.Together > 1 {
		f.Accumulated++
	}
	f.EncodedFrom += did.Plain
	f.EncodedTo += did.Bytes()
	f.EncodeTime += did.Took
	f.EncoderTime += did.Waited
}

// countFlush tells the planner what a flush cost that wrote no difference. Of those that moved together it learns from one.
func countFlush(r *cache.Reduction, did *path.Staged, cost int64) {
	if !did.Follows {
		r.Planner.Flushed(did.Way, did.Plain, cost)
	}
}

func countDifference(r *cache.Reduction, did *path.Staged, cost int64) {
	f, d := &r.Figures, did.Difference
	r.Planner.Removed(did.Plain, did.First, cost)
	f.FirstBytes += did.First
	f.MetaBytes += d.Meta
	if len(d.Sources) > 0 {
		f.Differences++
	}
	if r.Lineage != nil { // otherwise the history has got another method meanwhile
		r.Lineage.Wrote(d.Bytes())
	}
}
