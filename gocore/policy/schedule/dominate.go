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
	if p.Overlap {
		return p.fitsBeside(a, b)
	}
	return p.fits(a, b)
}

// fits compares the use of the cache where only transfers free it. It is enough to compare at b's clock and when room of b's becomes free: in
// between, b's use is constant and a's does not grow.
func (p *search) fits(a, b *state) bool {
	c, v, w := p.chains, b.flushes, a.flushes
	useB, useA := b.raw+c[v].total, a.raw+c[w].total
	for ; c[v].end > b.time; v = c[v].before {
		for c[w].end > c[v].end {
			w = c[w].before
		}
		if useA-c[w].total > useB-c[v].total {
			return false
		}
		if v == w { // the older transfers are the same ones
			return true
		}
	}
	return useA-c[c.due(w, b.time)].total <= useB-c[v].total
}

// fitsBeside is fits where calls of the encoder free room too.
func (p *search) fitsBeside(a, b *state) bool {
	if p.used(a, b.time) > p.used(b, b.time) {
		return false
	}
	for _, newest := range [2]int32{b.flushes, b.encodes} {
		for v := newest; p.chains[v].end > b.time; v = p.chains[v].before {
			if at := p.chains[v].end; p.used(a, at) > p.used(b, at) {
				return false
			}
		}
	}
	return true
}
