// Package virtual is virtual time: a queue of events, each at a moment. What takes days of computation or thousands of nodes is played in milliseconds.
package virtual

// Clock is virtual time with a queue of events. Its zero value is ready to be used.
type Clock struct {
	now   int64
	order int64
	queue []event // a binary heap
}

type event struct {
	at, order int64
	do        func()
}

func (e *event) before(other *event) bool {
	return e.at < other.at || (e.at == other.at && e.order < other.order)
}

// Now is the virtual time, ns.
func (c *Clock) Now() int64 { return c.now }

// At schedules do; for the present, if the moment has passed. Of two events at the same time, the one scheduled first comes first.
func (c *Clock) At(t int64, do func()) {
	c.order++
	e := event{at: max(t, c.now), order: c.order, do: do}
	c.queue = append(c.queue, e)
	i := len(c.queue) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&c.queue[parent]) {
			break
		}
		c.queue[i] = c.queue[parent]
		i = parent
	}
	c.queue[i] = e
}

// Step runs the next event; false when there is none.
func (c *Clock) Step() bool {
	if len(c.queue) == 0 {
		return false
	}
	e := c.pop()
	c.now = e.at
	e.do()
	return true
}

// pop takes the first event off the heap.
func (c *Clock) pop() event {
	first, n := c.queue[0], len(c.queue)-1
	e := c.queue[n]
	c.queue[n] = event{}
	c.queue = c.queue[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && c.queue[child+1].before(&c.queue[child]) {
			child++
		}
		if !c.queue[child].before(&e) {
			break
		}
		c.queue[i] = c.queue[child]
		i = child
	}
	c.queue[i] = e
	return first
}
