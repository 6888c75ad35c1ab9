package store

// strays are captures of versions that have gone, as long as a device may still be at them: their checksums must not be given back before.
type strays struct {
	coming map[uint64]*coming // by ticket
	turns  []uint64           // tickets in the order in which they are looked at next; some have been let go of
}

// mostStrays is how many are looked at when a capture ends. Each look calls the driver, in the time of the application's call and under the
// store's lock. A capture leaves one stray at most, so that two looks keep their number down.
const mostStrays = 2

func (x *strays) add(ticket uint64, c *coming) {
	if x.coming == nil {
		x.coming = map[uint64]*coming{}
	}
	x.coming[ticket] = c
	x.turns = append(x.turns, ticket)
}

// has tells whether a device is still at this one.
func (x *strays) has(ticket uint64) bool {
	c := x.coming[ticket]
	return c != nil && !x.end(ticket, c, c.mark.Passed)
}

// sweep lets go of some that the device has finished with.
func (x *strays) sweep() {
	for range min(mostStrays, len(x.turns)) {
		ticket := x.turns[0]
		x.turns = x.turns[1:]
		if c := x.coming[ticket]; c != nil && !x.end(ticket, c, c.mark.Seen) {
			x.turns = append(x.turns, ticket)
		}
	}
}

// end lets go of a capture if the device has finished with it.
func (x *strays) end(ticket uint64, c *coming, ask func() (bool, error)) bool {
	passed, err := ask()
	if !passed && err == nil {
		return false
	}
	c.drop()
	delete(x.coming, ticket)
	return true
}

// drop lets go of all. Nobody uses the devices any more.
func (x *strays) drop() {
	for _, c := range x.coming {
		c.drop()
	}
	x.coming, x.turns = nil, nil
}
