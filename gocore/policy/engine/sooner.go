package engine

import (
	"slices"

	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

// A capture that finds no room waits for flushes. If it is predicted to end clearly sooner in the tier below, it goes there at once. The flushes
// that it would wait for may be of more bytes than it has, or have a slow transfer before them. Predictions are estimates: a wrong one costs
// time only.

// The tier below is clearly sooner if it saves one clearPart of the wait, and at least clearLeast (ns). Rates vary from one transfer to the next by
// much less than that part.
const (
	clearPart  = 3
	clearLeast = 1e6
)

// isSooner tells whether a capture that takes straight ns to the tier below ends clearly sooner than one that waits wait ns for room. The copy
// into the room would come on top of the wait. It is left out: it is short, and its measured rate varies.
func isSooner(wait, straight int64) bool { return wait-straight >= max(wait/clearPart, clearLeast) }

// goDown sends a waiting capture to the tier below if it ends clearly sooner there. w is the window that makes room in its own tier; its First is
// None if no flush makes room.
func (cs *captures) goDown(now int64, c *Capture, w evict.Window) bool {
	from := c.Tier
	t := cs.Below(from)
	if cs.cfg.Stay || !cs.mayGoDown(c, t) || !cs.soonerBelow(now, c, w) || !cs.rooms.roomNow(now, t, &c.Rec.own) {
		return false
	}
	if w.First != fragment.None {
		cs.rooms.flushUrgently(now, from, w) // makes room for the next capture; this capture's transfer precedes flushes
	}
	c.claim.over = true
	cs.ask(now, c, t)
	return true
}

// mayGoDown tells whether a capture may go from its tier to tier t, the one below. The caller copies into memory itself. Straight to a disk, a
// transfer reads the caller's memory: only the call that begins the capture prepares for that, and only for host memory.
func (cs *captures) mayGoDown(c *Capture, t int) bool {
	from := cs.tiers[c.Tier]
	switch {
	case t < 0 || c.stays || !cs.tiers[t].fits(&c.Rec.own):
		return false
	case from.claims.len() > 0 && from.claims.at(0) != c.claim: // it would overtake captures and loads that have waited longer
		return false
	case cs.tiers[t].Remote:
		return c.quiet && c.Tier == c.Rec.Top() && !from.Device
	}
	return true
}

// soonerBelow compares the predicted ends of a capture in its tier and in the tier below. While bytes come into its tier faster than the link takes
// them away, the room of each capture has to be flushed in any case. Then it is never sooner below.
func (cs *captures) soonerBelow(now int64, c *Capture, w evict.Window) bool {
	tr, l := cs.tiers[c.Tier], cs.links[c.Tier]
	switch {
	case w.First == fragment.None:
		return cs.heldByCallers(c)
	case cs.alwaysDown:
		return true
	case !l.down.Trusted(): // an assumed rate is no prediction
		return false
	case tr.inflow.pressing(now, l.drain(cs.state)):
		return false
	}
	wait, known := cs.predictions.roomIn(now, c.Tier, tr.extent(&c.Rec.own), w)
	return known && isSooner(wait, cs.predictions.straightIn(now, l, &c.Rec.own))
}

// heldByCallers tells whether a device has no room for a capture until the application releases some, whatever moves in other tiers.
func (cs *captures) heldByCallers(c *Capture) bool {
	tr, l := cs.tiers[c.Tier], cs.links[c.Tier]
	if !tr.Device || l.stuck > 0 || l.queued > 0 || l.loads > 0 || len(l.crossing) > 0 || cs.capturing+cs.restores.copying+cs.readings.verifying > 0 {
		return false
	}
	old := c.Rec.Hist.Get(c.Rec.Key) // it gives way to the capture as soon as nothing moves
	return old == nil || !slices.ContainsFunc(old.Objects(), func(o *Object) bool { return o.copies[c.Tier] != fragment.None && !o.isShared() })
}
