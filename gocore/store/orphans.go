package store

// orphans are captures of versions that are gone while a device may still execute them. Their checksum buffers must not be returned before the device
// has finished.
type orphans struct {
	captures map[uint64]*pendingCapture // by ticket
	turns    []uint64                   // tickets in the order of the next polls; some may have been dropped already
}

// mostOrphans is how many orphans are polled when a capture ends. Each poll calls the driver, within the application's call and under the store's
// lock. A capture leaves at most one orphan, so that two polls keep their number down.
const mostOrphans = 2

func (x *orphans) add(ticket uint64, c *pendingCapture) {
	if x.captures == nil {
		x.captures = map[uint64]*pendingCapture{}
	}
	x.captures[ticket] = c
	x.turns = append(x.turns, ticket)
}

// has tells whether a device may still execute this capture.
func (x *orphans) has(ticket uint64) bool {
	c := x.captures[ticket]
	return c != nil && !x.end(ticket, c, c.event.Passed)
}

// sweep drops some captures that the device has finished.
func (x *orphans) sweep() {
	for range min(mostOrphans, len(x.turns)) {
		ticket := x.turns[0]
		x.turns = x.turns[1:]
		if c := x.captures[ticket]; c != nil && !x.end(ticket, c, c.event.Seen) {
			x.turns = append(x.turns, ticket)
		}
	}
}

// end drops a capture if the device has finished it.
func (x *orphans) end(ticket uint64, c *pendingCapture, ask func() (bool, error)) bool {
	passed, err := ask()
	if !passed && err == nil {
		return false
	}
	c.drop()
	delete(x.captures, ticket)
	return true
}

// drop drops all captures. The devices must be idle.
func (x *orphans) drop() {
	for _, c := range x.captures {
		c.drop()
	}
	x.captures, x.turns = nil, nil
}
