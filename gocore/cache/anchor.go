package cache

import (
	"slices"

	"velocpy/gocore/policy/engine"
)

// Anchor is a checkpoint whose plain bytes a device keeps, so that it encodes later ones of the same layout with them. Their copies on the host need that of the
// anchor. It was not encoded with another. The cache's lock guards it.
type Anchor struct {
	Kept  engine.Reading // its copy on the device
	host  engine.Reading // its copy on the host, once one has been encoded with it and there is a disk below; Obj nil: not yet
	Users int            // transfers that encode with it
	Count int            // these, and the checkpoints that have been encoded with it
	of    *Reduction
	own   int64 // bytes of its copy on the host
	sizes int64 // the same of all that have been encoded with it, its own included
	ended int   // how many these are
	over  bool  // no more are encoded with it
}

// anchors keeps the anchors of all histories, and finds the one with which a checkpoint is encoded.
type anchors struct {
	*state
	stagings *stagings
	kept     []*Anchor // also those that are about to be let go
}

const (
	// mostRelated bounds how many checkpoints a damaged anchor damages.
	mostRelated = 64
	// firstAlone is how many checkpoints are encoded alone when one had hardly anything in common with its anchor. It doubles each time, up to mostAlone.
	firstAlone, mostAlone = 8, 1024
)

// anchorShare is the part (as a divisor) of a device's tier that an anchor may take.
const anchorShare = 4

// Relates tells whether a device may encode checkpoints with others.
func (an *anchors) Relates() bool { return an.Host != nil }

// Left is with how many checkpoints more the anchor can be encoded.
func (a *Anchor) Left() int { return mostRelated - a.Count }

// Took tells what became of a checkpoint that was encoded with the anchor. The farther the values have moved since the anchor, the more bytes that is: the next one is
// better encoded alone, to be the next anchor, when this one has more bytes than all have on average.
func (a *Anchor) Took(bytes int64) {
	a.sizes, a.ended = a.sizes+bytes, a.ended+1
	a.over = a.over || bytes*int64(a.ended) > a.sizes
	if r := a.of; bytes >= a.own/10*9 {
		a.over, r.rest = true, min(max(firstAlone, 2*r.rest), mostAlone)
		r.alone = r.rest
	} else {
		r.rest = 0
	}
}

// LacksAnchor tells whether no more checkpoints can be encoded with the one there is, if there is one.
func (r *Reduction) LacksAnchor() bool {
	return r.Anchor == nil || r.Anchor.over || r.Anchor.Left() <= 0
}

// BeginsAnchor tells whether the next checkpoint that is flushed alone becomes an anchor.
func (r *Reduction) BeginsAnchor() bool { return r.LacksAnchor() && r.alone == 0 }

// EndAnchor ends the use of an anchor for checkpoints of a layout, which are encoded in another way now.
func (r *Reduction) EndAnchor(layout uint64) {
	if a := r.Anchor; a != nil && a.Kept.Obj.Made().Version.Layout.ID == layout {
		a.End()
	}
}

// End lets no more checkpoints be encoded with the anchor.
func (a *Anchor) End() { a.over = true }

// KeepAnchor keeps a checkpoint of a device, which became so many bytes, for later ones of its history, if there is no other anchor for them. Its flush is about to end.
func (an *anchors) KeepAnchor(r *Reduction, rec *engine.Record, t int, bytes int64) {
	switch {
	case an.Closing, !r.LacksAnchor(), an.stagings.PartOf(t) == 0, rec.Size > an.Engine.Capacity(t)/anchorShare:
		return
	case r.alone > 0:
		r.alone--
		return
	}
	if kept, ok := an.Engine.Keep(an.Now(), rec, t); ok {
		rec.Version.Anchor = true
		r.Anchor = &Anchor{Kept: kept, of: r, own: bytes, sizes: bytes, ended: 1}
		an.kept = append(an.kept, r.Anchor)
	}
}

// AnchorFor is the anchor with which a checkpoint of the device with tier t can be encoded on its way to the host; nil: none.
func (an *anchors) AnchorFor(r *Reduction, rec *engine.Record, t int) *Anchor {
	a := r.Anchor
	switch {
	case a == nil || a.over || a.Kept.Tier != t || a.Kept.Obj.Made() == rec || a.Left() <= 0:
		return nil
	case a.Kept.Obj.Made().Version.Layout.ID != rec.Version.Layout.ID, an.lacksHost(a):
		return nil
	}
	return a
}

// lacksHost tells whether the host has given up its copy of an anchor with which nothing was encoded for long.
func (an *anchors) lacksHost(a *Anchor) bool { return !an.Engine.HasRoom(a.Kept.Obj, an.HostTier()) }

// KeepOnHost keeps the anchor's copy on the host, which the next ones need, too, when one has been encoded with it that may soon be on the disk.
func (an *anchors) KeepOnHost(a *Anchor) {
	t := an.HostTier()
	if a.host.Obj == nil && an.Engine.Below(t) >= 0 && a.own <= an.Engine.Capacity(t)/anchorShare {
		a.host, _ = an.Engine.KeepCopy(an.Now(), a.Kept.Obj, t)
	}
}

// ForgetAnchors forgets all anchors, together with the engine that keeps them.
func (an *anchors) ForgetAnchors() {
	an.kept = nil
	for _, r := range an.Reductions {
		r.Anchor = nil
	}
}

// LetGoAnchors ends the use of anchors that are used up, in the way, or, if the store closes, all.
func (an *anchors) LetGoAnchors(all bool) (some bool) {
	an.kept = slices.DeleteFunc(an.kept, func(a *Anchor) bool {
		a.over = a.over || all || a.Left() <= 0 || an.lacksHost(a) || an.Engine.Obstructs(a.Kept) || a.host.Obj != nil && an.Engine.ObstructsThere(a.host)
		if a.over && a.of.Anchor == a {
			a.of.Anchor = nil
		}
		if !a.over || a.Users > 0 {
			return false
		}
		some = true
		an.Engine.EndReading(an.Now(), a.Kept)
		if a.host.Obj != nil {
			an.Engine.EndReading(an.Now(), a.host)
		}
		return true
	})
	return some
}
