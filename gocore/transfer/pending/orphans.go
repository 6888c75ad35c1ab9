package pending

import "velocpy/gocore/checkpoint"

// Orphans are captures of versions that are gone while a device may still execute them. Their checksum buffers must not be returned before the device
// has finished.
type Orphans struct {
	captures map[uint64]*Capture // by ticket
	turns    []uint64            // tickets in the order of the next polls; some may have been dropped already
}

// MostSwept is how many orphans are polled when a capture ends. Each poll calls the driver, within the application's call and under the store's
// lock. A capture leaves at most one orphan, so that two polls keep their number down.
const MostSwept = 2

// Release releases the capture of a version that is gone. If a device still reads the source and writes the checksums, the capture becomes an orphan and is
// released later.
func (x *Orphans) Release(ticket uint64, b *checkpoint.Version) {
	c := Of(b)
	b.Pending = nil
	if c == nil {
		return
	}
	if c.Event == nil {
		c.Source.Forget()
		return
	}
	x.add(ticket, c)
}

// Of returns the orphaned capture of a ticket, or nil.
func (x *Orphans) Of(ticket uint64) *Capture { return x.captures[ticket] }

// Len returns the number of orphans.
func (x *Orphans) Len() int { return len(x.captures) }

func (x *Orphans) add(ticket uint64, c *Capture) {
	if x.captures == nil {
		x.captures = map[uint64]*Capture{}
	}
	x.captures[ticket] = c
	x.turns = append(x.turns, ticket)
}

// Has tells whether a device may still execute this capture.
func (x *Orphans) Has(ticket uint64) bool {
	c := x.captures[ticket]
	return c != nil && !x.end(ticket, c, c.Event.Passed)
}

// Sweep drops some captures that the device has finished.
func (x *Orphans) Sweep() {
	for range min(MostSwept, len(x.turns)) {
		ticket := x.turns[0]
		x.turns = x.turns[1:]
		if c := x.captures[ticket]; c != nil && !x.end(ticket, c, c.Event.Seen) {
			x.turns = append(x.turns, ticket)
		}
	}
}

// end drops a capture if the device has finished it.
func (x *Orphans) end(ticket uint64, c *Capture, ask func() (bool, error)) bool {
	passed, err := ask()
	if !passed && err == nil {
		return false
	}
	c.drop()
	delete(x.captures, ticket)
	return true
}

// Drop drops all captures. The devices must be idle.
func (x *Orphans) Drop() {
	for _, c := range x.captures {
		c.drop()
	}
	x.captures, x.turns = nil, nil
}
