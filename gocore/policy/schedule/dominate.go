package schedule

// dominates tells whether a is at least as good as b, both after the same number of decisions, whatever follows.
//
// Rule: a accumulates no more than b, in bytes and in encoded bytes (nothing at all, if b accumulates nothing); a's application, its link and its
// encoder are free no later; and at no time from b's clock on, without further captures, is more of a's cache in use.
//
// Proof. Let b continue with decisions D, to the end of its plan. Let a continue with D too, except that an X becomes C where a has not accumulated
// anything, which is the same call of the encoder. By induction over D the rule holds after every decision:
//
//  1. rules.work never falls when the application's clock or the encoder's grows, so a asks for room no later than b.
//  2. a needs no more room than b: rules.hold never falls when bytes grow, and what a has accumulated counts in its use of the cache. Once b has
//     room, at a time from b's clock on, a has room as well, since less of its cache is in use. So a gets room no later.
//  3. Hence a's call of the encoder begins no later (the encoder is free no later) and ends no later (encodeTime never falls when bytes grow). The
//     same holds for the transfer: the link is free no later, the data is ready no later, and no more bytes are carried.
//  4. The new bytes occupy the cache in steps that fall with time: what the call holds, then what is encoded, then nothing. Each of a's steps is no
//     higher and ends no later. So the sum with the old bytes is no greater, from b's new clock on.
//
// After the last decision a's application and a's last transfer end no later, which is the objective.
//
// A time that lies before b's clock counts as b's clock, since nothing that follows can begin earlier. The states hold it so.
func (p *search) dominates(a, b *state) bool {
	if a.time > b.time || a.link > b.link || a.encoder > b.encoder || a.raw > b.raw || a.encoded > b.encoded {
		return false
	}
	if a.members > 0 && b.members == 0 {
		return false
	}
	return p.chains.fits(a, b)
}

// fits tells whether from b's clock on a never uses more of the cache than b, if no captures follow. It is enough to compare at b's clock and whenever
// room of b's becomes free: in between, b's use is constant and a's does not grow. The walk goes from the newest entries to the oldest ones.
func (c chains) fits(a, b *state) bool {
	if c.same(a.encodes, b.encodes, b.time) {
		return c.below(a, b)
	}
	flushA, encodeA, flushB, encodeB := a.flushes, a.encodes, b.flushes, b.encodes
	more := a.raw + c[flushA].total + c[encodeA].total - b.raw - c[flushB].total - c[encodeB].total // a's use less b's, before anything is free
	for {
		at := max(c[flushB].end, c[encodeB].end, b.time)
		for c[flushA].end > at {
			flushA = c[flushA].before
		}
		for c[encodeA].end > at {
			encodeA = c[encodeA].before
		}
		if more > c[flushA].total+c[encodeA].total-c[flushB].total-c[encodeB].total {
			return false
		}
		if c.same(flushA, flushB, b.time) && c.same(encodeA, encodeB, b.time) {
			return true
		}
		if c[flushB].end == at {
			flushB = c[flushB].before
		}
		if c[encodeB].end == at {
			encodeB = c[encodeB].before
		}
	}
}

// same tells whether both chains free the same room after a time: their entries are common, or have ended.
func (c chains) same(a, b int32, after int64) bool {
	return a == b || c[a].end <= after && c[b].end <= after
}

// below is fits for states whose calls of the encoder free the same room.
func (c chains) below(a, b *state) bool {
	x, y := &c[a.flushes], &c[b.flushes]
	more := a.raw + x.total - b.raw - y.total
	for {
		at := max(y.end, b.time)
		for x.end > at {
			x = &c[x.before]
		}
		if more > x.total-y.total {
			return false
		}
		if x == y || at == b.time {
			return true
		}
		y = &c[y.before]
	}
}
