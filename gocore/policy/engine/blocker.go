package engine

import "velocpy/gocore/policy/fragment"

// Blocker is the reason why a capture waits for room.
type Blocker uint8

// The reasons. Where several apply, the one with most of the bytes that cannot be moved counts.
const (
	ByOther  Blocker = iota // captures still being copied in, checksums being verified, a spill under way
	ByFlush                 // flushes out of its tier, queued or running
	ByLoad                  // transfers up into its tier
	ByReader                // leases, and restores that copy out
	ByFull                  // no tier below has room for the bytes that would have to go
	Blockers                // number of blockers
)

// Blocker tells why a capture waits now. A capture behind others in the queue of its tier waits for the reason of the first of them. O(1).
func (cs *captures) Blocker(c *Capture) Blocker {
	if c.Phase != Waiting || c.claim == nil || c.claim.over {
		return ByOther
	}
	tr, first := cs.tiers[c.Tier], c.claim
	if front, ok := tr.claims.peek(); ok && !front.over {
		first = front
	}
	var l *link
	if c.Tier < len(cs.links) {
		l = cs.links[c.Tier]
	}
	dirty := tr.bytes[fragment.Dirty]
	full := dirty > 0 && (l == nil || len(l.refused) > 0)
	switch {
	case first.verdict == waits && l != nil && l.flushing == 0 && l.paused == cs.tiers[l.lower].version+1:
		return ByFull
	case first.verdict == waits:
		return ByFlush
	case tr.pinned > 0 && (!full || tr.pinned >= dirty):
		return ByReader
	case full:
		return ByFull
	case l != nil && l.loading > 0:
		return ByLoad
	}
	return ByOther
}
