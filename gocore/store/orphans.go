package store

// orphans are captures of versions that have gone, as long as a device may still be at them: their checksums must not be given back before.
type orphans struct {
	captures map[uint64]*pendingCapture // by ticket
	turns  []uint64           // tickets in the order in which they are looked at next; some have been let go of
}

// mostOrphans is how many are looked at when a capture ends. Each look calls the driver, in the time of the application's call and under the
// store's lock. A capture leaves one stray at most, so that two looks keep their number down.
const mostOrphans = 2

func (x *orphans) add(ticket uint64, c *pendingCapture) {
	if x.captures == nil {
		x.captures = map[uint64]*pendingCapture{}
	}
	x.captures[ticket] = c
	x.turns = append(x.turns, ticket)
}

// has tells whether a device is still at this one.
func (x *orphans) has(ticket uint64) bool {
	c := x.captures[ticket]
	return c != nil && !x.end(ticket, c, c.mark.Passed)
}

// sweep lets go of some that the device has finished with.
func (x *orphans) sweep() {
	for range min(mostOrphans, len(x.turns)) {
		ticket := x.turns[0]
		x.turns = x.turns[1:]
		if c := x.captures[ticket]; c != nil && !x.end(ticket, c, c.mark.Seen) {
			x.turns = append(x.turns, ticket)
		}
	}
}

// end lets go of a capture if the device has finished with it.
func (x *orphans) end(ticket uint64, c *pendingCapture, ask func() (bool, error)) bool {
	passed, err := ask()
	if !passed && err == nil {
		return false
	}
	c.drop()
	delete(x.captures, ticket)
	return true
}

// drop lets go of all. Nobody uses the devices any more.
func (x *orphans) drop() {
	for _, c := range x.captures {
		c.drop()
	}
	x.captures, x.turns = nil, nil
}
