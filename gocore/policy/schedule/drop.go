package schedule

// drop removes the chains' entries from an index on that no kept state has as its newest one. The search adds an entry for each state that it reaches,
// and keeps few of these states. Each of the entries is the newest one of one state at most, and no other entry refers to it.
func (p *search) drop(from int) {
	p.added = append(p.added[:0], p.chains[from:]...)
	p.chains = p.chains[:from]
	for _, list := range [...][]state{p.closed, p.open} {
		for k := range list {
			s := &list[k]
			s.flushes, s.encodes = p.restore(from, s.flushes), p.restore(from, s.encodes)
		}
	}
}

// restore puts an entry back that was removed, and returns its index.
func (p *search) restore(from int, index int32) int32 {
	k := int(index) - from
	if k < 0 {
		return index
	}
	p.chains = append(p.chains, p.added[k])
	return int32(len(p.chains) - 1)
}
