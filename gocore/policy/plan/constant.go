package plan

import "velocpy/gocore/model"

// A constant is a key that recurs every few restores beside the sweep over the other keys: a velocity model, a weight. It is kept apart from the
// sweep, which would otherwise show no order at all.
type constant struct {
	key    model.Key
	seen   int64 // tick of its last restore
	period int64
	times  int // recurrences in a row with this period
}

const (
	recentSize    = 4 // a key that recurs within so many restores is a constant
	constantLimit = 4 // constants tracked at once
	constantProof = 2 // equal periods before a constant is expected again
)

type constants struct {
	recent [recentSize]model.Key // the last restores of any kind, by tick
	list   []constant
	tick   int64 // restores so far
}

// observe counts a restore. recurs tells whether k is a constant. changed tells whether its recurrence, or another constant's absence, changes the
// expectations. A restore that the sweep foresaw is no constant, nor is a key that recurred only once.
func (c *constants) observe(k model.Key, foreseen bool) (recurs, changed bool) {
	gap := c.gap(k)
	c.recent[c.tick%recentSize] = k
	now := c.tick
	c.tick++
	changed = c.forget(now, k, foreseen)
	if foreseen {
		return false, changed
	}
	for i := range c.list {
		if c.list[i].key == k {
			return true, c.list[i].again(now) || changed
		}
	}
	if gap > 0 {
		changed = c.enlist(constant{key: k, seen: now, period: gap, times: 1}) || changed
	}
	return gap == 1, changed // the same key directly again implies nothing
}

// enlist adds a recurring key. If the list is full, the constant tracked longest is removed.
func (c *constants) enlist(x constant) (changed bool) {
	if len(c.list) == constantLimit {
		changed = c.list[0].times >= constantProof
		c.list = append(c.list[:0], c.list[1:]...)
	}
	c.list = append(c.list, x)
	return changed
}

// gap is the number of restores since the last restore of k; 0 if that is too long ago.
func (c *constants) gap(k model.Key) int64 {
	for g := int64(1); g <= min(recentSize, c.tick); g++ {
		if c.recent[(c.tick-g)%recentSize] == k {
			return g
		}
	}
	return 0
}

func (c *constant) again(now int64) (changed bool) {
	gap := now - c.seen
	c.seen = now
	if gap == c.period {
		c.times++
		return c.times == constantProof
	}
	changed = c.times >= constantProof
	c.period, c.times = gap, 1
	return changed
}

// forget removes constants that were absent for more than two periods, and k if the sweep foresaw it.
func (c *constants) forget(now int64, k model.Key, foreseen bool) (changed bool) {
	kept := c.list[:0]
	for _, x := range c.list {
		if now-x.seen > 2*x.period || (foreseen && x.key == k) {
			changed = changed || x.times >= constantProof
			continue
		}
		kept = append(kept, x)
	}
	clear(c.list[len(kept):])
	c.list = kept
	return changed
}
