package encoding

type direction uint8

const (
	down direction = iota
	up
	directions
)

// costs compares what the two ways cost in time.
type costs struct {
	each  [directions][ways]average
	count [directions][ways]int // observations
	other int                   // checkpoints that went the better way since one went the other way
	wait  int                   // of them, before the other way is tried again
}

// average is a moving average of ns for each plain byte; 0: nothing was observed.
type average float64

// The other way is tried again after so many checkpoints, and each time that it loses, after twice as many.
const (
	firstWait = 8
	mostWait  = 256
)

// observe counts a transfer. Small ones say more of the system than of the ways.
func (c *costs) observe(d direction, w Way, plain, ns int64) {
	if c.each[d][w].add(plain, ns) {
		c.count[d][w]++
	}
}

// add counts a transfer of so many plain bytes; false if it does not count.
func (a *average) add(plain, ns int64) bool {
	const weight, least = 0.3, 64 << 10
	if plain < least || ns <= 0 {
		return false
	}
	x := average(ns) / average(plain)
	if *a == 0 {
		*a = x
	} else {
		*a += weight * (x - *a)
	}
	return true
}

// next is the way of the next checkpoint: the better one, or the other one to learn whether that has changed.
func (c *costs) next() Way {
	if w, ok := c.untried(); ok {
		return w
	}
	better := c.better()
	if c.other++; c.other > max(c.wait, firstWait) {
		c.other, c.wait = 0, min(2*max(c.wait, firstWait), mostWait)
		return ways - 1 - better
	}
	return better
}

// likely is the way that the next checkpoint goes, but for trials.
func (c *costs) likely() Way {
	if w, ok := c.untried(); ok {
		return w
	}
	return c.better()
}

// enough is how many observations of each way there are to be before the ways are compared.
const enough = 2

// untried is a way on which too little was observed yet.
func (c *costs) untried() (w Way, ok bool) {
	switch seen := &c.count[down]; {
	case seen[Encoded] < enough:
		return Encoded, true
	case seen[Plain] < enough:
		return Plain, true
	}
	return 0, false
}

// little is how much more than plain bytes a way may cost that saves room.
const little = 1.02

// better is the way that costs less in all. Encoding also saves room, so it may cost a little more. Loads count once both ways have been loaded.
func (c *costs) better() Way {
	plain, encoded := c.each[down][Plain], c.each[down][Encoded]
	if seen := &c.count[up]; seen[Plain] >= enough && seen[Encoded] >= enough {
		plain, encoded = plain+c.each[up][Plain], encoded+c.each[up][Encoded]
	}
	if encoded <= little*plain {
		return Encoded
	}
	return Plain
}
