package hazard

import "velocpy/gocore/device"

// newNote keeps an event. It is dropped when it has passed, or when no segment refers to it any more.
func newNote(mark device.Event) *note { return &note{event: mark.Keep()} }

func (n *note) use() *note {
	n.uses++
	return n
}

func (n *note) release() {
	if n == nil {
		return
	}
	n.uses--
	n.settle()
}

func (n *note) settle() {
	if n.uses == 0 && !n.gone {
		n.drop()
	}
}

func (n *note) drop() {
	n.gone = true
	n.event.Drop()
	n.event = nil
}

// passed queries the event and drops it as soon as possible: a passed event seen too late makes a lane wait for nothing. If the query fails the event
// counts as not passed: a wait for it returns the error.
func (n *note) passed() bool {
	if n.gone {
		return true
	}
	passed, err := n.event.Seen()
	if err != nil || !passed {
		return false
	}
	n.drop()
	return true
}

// unlessPassed is the note, or nil if its event has passed. In the second case it releases one use.
func (n *note) unlessPassed() *note {
	if n == nil || !n.passed() {
		return n
	}
	n.release()
	return nil
}
