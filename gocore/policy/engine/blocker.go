package engine

import "velocpy/gocore/policy/fragment"

// Blocker is what keeps room from a capture that waits for it.
type Blocker uint8

// The blockers. One that names bytes means the larger part of what could not be moved.
const (
	ByOther  Blocker = iota // captures that are still copied in, checksums that are compared, a spill under way
	ByFlush                 // flushes out of its tier, queued or running
	ByLoad                  // bytes on their way up into its tier
	ByReader                // leases, and copies out
	ByFull                  // no tier below has room for what would have to go
	Blockers                // how many there are
)

// Blocker tells what a capture waits for now. A capture behind others in the queue of its tier waits for what the first of them waits for. O(1).
func (e *Engine) Blocker(c *Capture) Blocker {
	if c.Phase != Waiting || c.claim == nil || c.claim.over {
		return ByOther
	}
	tr, first := e.tiers[c.Tier], c.claim
	if front, ok := tr.claims.peek(); ok && !front.over {
		first = front
	}
	var l *link
	if c.Tier < len(e.links) {
		l = e.links[c.Tier]
	}
	dirty := tr.bytes[fragment.Dirty]
	full := dirty > 0 && (l == nil || len(l.refused) > 0)
	switch {
	case first.verdict == waits && l != nil && l.flushing == 0 && l.paused == e.tiers[l.lower].version+1:
		return ByFull
	case first.verdict == waits:
		return ByFlush
	case tr.lent > 0 && (!full || tr.lent >= dirty):
		return ByReader
	case full:
		return ByFull
	case l != nil && l.loading > 0:
		return ByLoad
	}
	return ByOther
}

// hold notes that one reader more, or one less, pins r's copy in tier t.
func (e *Engine) hold(r *Record, t int, readers int32) {
	f := e.Fragment(r, t)
	was := f.Pins > 0
	f.Pins += readers
	switch now := f.Pins > 0; {
	case now && !was:
		e.tiers[t].lent += f.Size
	case was && !now:
		e.tiers[t].lent -= f.Size
	}
}
