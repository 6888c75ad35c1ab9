package encoding

type direction uint8

const (
	down direction = iota
	up
	directions
)

// can says which ways a checkpoint can go.
type can [ways]bool

// costs compares what the ways cost in time. Each is tried with a few checkpoints at first, and again from time to time, since what it costs may have changed.
type costs struct {
	each  [directions][ways]median
	old   [ways]median // of flushes before the present trial
	begun bool         // a flush of plain bytes was observed
	again bool         // plain bytes have been tried more than once, or nothing is being made ready
	tried [ways]int    // checkpoints of the present trial; with trial of them it is over
	since [ways]int    // checkpoints since then that went other ways
}

// trial is how many checkpoints a trial has. The median of fewer costs says little, since costs differ by a half and more.
const trial = 3

// A way that is not the best one is tried again when its trial will have cost the part allowed of the time since the last one, but after firstWait checkpoints at the
// earliest and mostWait at the latest. Plain bytes may cost more: where they lose, the history takes less time than one of plain bytes. They are tried for the second
// time after firstWait checkpoints, since the first time files and memory are still being made ready.
const (
	allowed      = 0.005
	allowedPlain = 0.01
	firstWait    = 16
	mostWait     = 1024
)

// observe counts a transfer. Small ones say more of the system than of the ways, and the first flush of a history makes files and memory ready for those after it.
func (c *costs) observe(d direction, w Way, plain, ns int64) {
	const least = 64 << 10
	if plain < least || ns <= 0 {
		return
	}
	if d == down && w == Plain && !c.begun {
		c.begun = true
		return
	}
	c.each[d][w].add(float64(ns) / float64(plain))
	if d == down && c.each[d][w].count == trial && c.old[w].isLike(&c.each[d][w]) {
		c.each[d][w].addBefore(&c.old[w])
	}
}

// next is the way of the next checkpoint. few: little is new in differences. queued: see Checkpoint.
func (c *costs) next(may can, few, queued bool) Way {
	c.again = c.again || queued // nothing is being made ready
	if w, ok := c.underTrial(may, queued); ok {
		c.tried[w]++
		return w
	}
	best := c.best(may, few)
	for w := range ways {
		if w != best && (may[w] || w == Difference && queued) { // a device keeps a checkpoint to be encoded with only when differences are to be tried
			c.since[w]++
		}
	}
	w := c.dueOr(best, may, 0)
	if w != best {
		c.since[w], c.tried[w] = 0, 1
		c.begin(w)
		c.again = c.again || w == Plain
	}
	return w
}

// begin begins another trial of a way. What was known of it counts again if the trial says the same.
func (c *costs) begin(w Way) { c.old[w], c.each[down][w] = c.each[down][w], median{} }

// knows tells whether enough flushes say what a way costs.
func (c *costs) knows(w Way) bool { return c.each[down][w].count >= trial }

// soon is what next will return.
func (c *costs) soon(may can, few, queued bool) Way {
	if w, ok := c.underTrial(may, queued); ok {
		return w
	}
	return c.dueOr(c.best(may, few), may, 1)
}

// underTrial is the way that is being tried. Plain and encoded bytes take turns, since flushes become faster while a history begins. Differences come one behind
// the other, as each is compared with the one before. In a queue encoded bytes come first until it is known what they cost: pieces of them that wait for plain ones
// would take as long.
func (c *costs) underTrial(may can, queued bool) (w Way, ok bool) {
	plain, encoded := may[Plain] && c.tries(Plain), may[Encoded] && c.tries(Encoded)
	switch {
	case queued && may[Encoded] && c.awaits(Encoded):
		return Encoded, true
	case encoded && (!plain || c.tried[Encoded] < c.tried[Plain]):
		return Encoded, true
	case plain:
		return Plain, true
	}
	return Difference, may[Difference] && c.triesDifference(queued)
}

// triesDifference is tries of differences. On a device the first one has an end before the next begins, since it may say that no others are to be tried.
func (c *costs) triesDifference(queued bool) bool {
	switch {
	case !queued:
		return c.tries(Difference)
	case c.tried[Difference] == 1 && c.each[down][Difference].count == 0:
		return false
	}
	return c.awaits(Difference)
}

// awaits tells whether a way that is being tried has not had enough checkpoints, some of which may have gone another way after all.
func (c *costs) awaits(w Way) bool { return c.each[down][w].count < trial && c.tried[w] < 2*trial }

// dueOr is a way that is to be tried again after so many more checkpoints, or the best.
func (c *costs) dueOr(best Way, may can, more int) Way {
	for w := range ways {
		if may[w] && w != best && c.due(w, best, c.since[w]+more) {
			return w
		}
	}
	return best
}

// skip ends the trial of a way that has just begun.
func (c *costs) skip(w Way) { c.tried[w] = 2 * trial }

// tries tells whether the way has a trial that goes on. The first one of plain bytes has one checkpoint more, which does not count.
func (c *costs) tries(w Way) bool {
	if w == Plain && !c.again {
		return c.tried[Plain] <= trial
	}
	return c.tried[w] < trial
}

// due tells whether a way is to be tried again that n checkpoints have not gone.
func (c *costs) due(w, best Way, n int) bool {
	switch {
	case n < firstWait:
		return false
	case n >= mostWait, w == Plain && !c.again:
		return true
	}
	part := allowed
	if w == Plain {
		part = allowedPlain
	}
	more := c.each[down][w].value - c.each[down][best].value
	return trial*more <= part*float64(n)*c.each[down][best].value
}

// little is how much more than plain bytes a way may cost that saves room.
const little = 1.02

// best is the way that costs least, of those that have been tried. Others save room that plain bytes take, so they may cost a little more. A difference of which too
// much is new is none.
func (c *costs) best(may can, few bool) Way {
	for w := range ways {
		may[w] = may[w] && c.knows(w) && (few || w != Difference)
	}
	best, least := Plain, little*c.total(Plain, may)
	for w := Encoded; w < ways && may[Plain]; w++ {
		if x := c.total(w, may); may[w] && x <= least {
			best, least = w, x
		}
	}
	return best
}

// bestOther is the best of the ways that are chosen at the flush.
func (c *costs) bestOther(few bool) Way {
	return c.best(can{Plain: true, Encoded: true, Difference: true}, few)
}

// total is what a way costs, of some that are compared. Loads count once all of these have been loaded.
func (c *costs) total(w Way, among can) float64 {
	for other := range ways {
		if among[other] && c.each[up][other].count < trial {
			return c.each[down][w].value
		}
	}
	return c.each[down][w].value + c.each[up][w].value
}
