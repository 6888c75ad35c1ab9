package cache

import (
	"slices"

	"velocpy/gocore/policy/engine"
)

// Anchor is a checkpoint whose plain bytes a device keeps, so that it encodes later ones of the same layout with them. Their copies on the host need that of the
// anchor. It was not encoded with another. The cache's lock guards it.
type Anchor struct {
	Kept  engine.Reading // its copy on the device
	Users int            // transfers that encode with it
	Count int            // checkpoints that were encoded with it, or are being
	of    *Reduction
	over  bool // no more are
}

// mostRelated is how many checkpoints are encoded with one anchor: they have less and less in common with it.
const mostRelated = 16

// anchorShare is the part (as a divisor) of a device's tier that an anchor may take.
const anchorShare = 4

// Relates tells whether a device may encode checkpoints with others. A tier below the host would need the anchor's copy there, too.
func (c *Cache) Relates() bool {
	return c.Host != nil && c.Engine.Below(c.HostTier()) < 0
}

// Left is with how many checkpoints more the anchor can be encoded.
func (a *Anchor) Left() int { return mostRelated - a.Count }

// KeepAnchor keeps a checkpoint of a device for later ones of its history, if there is no other anchor for them. Its flush is about to end.
func (c *Cache) KeepAnchor(r *Reduction, rec *engine.Record, t int) {
	if r.Anchor != nil && !r.Anchor.over && r.Anchor.Left() > 0 || rec.Size > c.Engine.Capacity(t)/anchorShare {
		return
	}
	if kept, ok := c.Engine.Keep(c.Now(), rec, t); ok {
		r.Anchor = &Anchor{Kept: kept, of: r}
		c.anchors = append(c.anchors, r.Anchor)
	}
}

// AnchorFor is the anchor with which a checkpoint of the device with tier t can be encoded on its way to the host; nil: none.
func (c *Cache) AnchorFor(r *Reduction, rec *engine.Record, t int) *Anchor {
	a := r.Anchor
	switch {
	case a == nil || a.over || a.Kept.Tier != t || a.Kept.Obj.Made() == rec || a.Left() <= 0:
		return nil
	case a.Kept.Obj.Made().Version.Layout.ID != rec.Version.Layout.ID:
		return nil
	}
	return a
}

// LetGoAnchors ends the use of anchors that are used up, in the way, or whose history is about to close.
func (c *Cache) LetGoAnchors(all bool) (some bool) {
	c.anchors = slices.DeleteFunc(c.anchors, func(a *Anchor) bool {
		a.over = a.over || all || a.Left() <= 0 || c.Engine.Obstructs(a.Kept)
		if a.over && a.of.Anchor == a {
			a.of.Anchor = nil
		}
		if !a.over || a.Users > 0 {
			return false
		}
		some = true
		c.Engine.EndReading(c.Now(), a.Kept)
		return true
	})
	return some
}
