package schedule

// entry is room of the cache that becomes free at a known time, behind the entries before it.
type entry struct {
	end    int64 // nanoseconds; never before the end of the entry before
	total  int64 // bytes of this entry and all before it
	before int32
	jump   int32 // an older entry: searches take a logarithmic number of steps (Myers, IPL 1983: applicative random-access stacks)
	depth  int32
}

// chains holds the entries of all states: each state names its newest entry, and states with a common past share it. Entry 0 is the root, the oldest
// one of every chain.
type chains []entry

func newChains(capacity int) chains { return append(make(chains, 0, capacity), entry{end: -1}) }

// add puts an entry behind another one and returns its index.
func (c *chains) add(before int32, end, bytes int64) int32 {
	b := &(*c)[before]
	j := &(*c)[b.jump]
	e := entry{end: end, total: b.total + bytes, before: before, jump: before, depth: b.depth + 1}
	if b.depth-j.depth == j.depth-(*c)[j.jump].depth {
		e.jump = j.jump
	}
	*c = append(*c, e)
	return int32(len(*c) - 1)
}

// left is the number of bytes that are not free at the time yet.
func (c chains) left(newest int32, at int64) int64 {
	return c[newest].total - c[c.due(newest, at)].total
}

// due is the newest entry that has ended at the time.
func (c chains) due(newest int32, at int64) int32 {
	v := newest
	for c[v].end > at {
		if j := c[v].jump; c[j].end > at {
			v = j
		} else {
			v = c[v].before
		}
	}
	return v
}

// freed is the earliest time at which at most room bytes are left; room is at least 0.
func (c chains) freed(newest int32, room int64) int64 {
	v, floor := newest, c[newest].total-room
	for v != 0 {
		if j := c[v].jump; c[j].total >= floor {
			v = j
		} else if b := c[v].before; c[b].total >= floor {
			v = b
		} else {
			break
		}
	}
	return c[v].end
}

// next is the first end behind a time; ok is false if none is left.
func (c chains) next(newest int32, after int64) (end int64, ok bool) {
	v := newest
	for c[v].end > after {
		if j := c[v].jump; c[j].end > after {
			v = j
			continue
		}
		if b := c[v].before; c[b].end > after {
			v = b
			continue
		}
		return c[v].end, true
	}
	return 0, false
}
