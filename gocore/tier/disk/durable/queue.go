package durable

import (
	"sync"
	"time"
)

// queue has the changes that callers have handed over, until the committing goroutine takes them.
type queue struct {
	mu      sync.Mutex
	work    *sync.Cond
	changes []*Change
	nudged  bool
	idled   bool // no commit has come for idleDelay
	closed  bool
	idle    *time.Timer   // the committing goroutine owns it
	ended   chan struct{} // closed when nothing is committed any more
}

// open prepares the queue for changes.
func (q *queue) open() {
	q.work, q.ended = sync.NewCond(&q.mu), make(chan struct{})
}

// Commit hands changes over, in this order, without waiting; Land is called with their outcome. Changes that arrive together share their syncs.
func (q *queue) Commit(changes ...*Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changes = append(q.changes, changes...)
	q.work.Signal()
}

// Ended is closed when nothing is committed any more: the directory was closed, or the goroutine that commits has panicked.
func (q *queue) Ended() <-chan struct{} { return q.ended }

// Sync waits until all changes that were handed over before have landed.
func (q *queue) Sync() error { return q.await(&Change{Clarify: true}) }

// await hands a change over, and waits until it has landed.
func (q *queue) await(c *Change) error {
	landed := make(landing)
	c.Watcher = landed
	q.Commit(c)
	select {
	case <-landed:
		return c.Err
	case <-q.ended:
	}
	select {
	case <-landed: // with the last changes before the end
		return c.Err
	default:
		return ErrClosed
	}
}

// landing is closed when a change has landed.
type landing chan struct{}

// Landed implements Watcher.
func (l landing) Landed(*Change) { close(l) }

// Nudge causes a call of Options.Landed soon, whether there are changes or not.
func (q *queue) Nudge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nudged = true
	q.work.Signal()
}

// take waits for changes, or for another reason to work, and takes all of them. idle: the deferred work is due.
func (q *queue) take() (group []*Change, nudged, idle, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.changes) == 0 && !q.nudged && !q.idled && !q.closed {
		q.work.Wait()
	}
	group, nudged, idle, closed = q.changes, q.nudged, q.idled || q.closed, q.closed
	q.changes, q.nudged, q.idled = nil, false, false
	return group, nudged, idle, closed
}

// wakeAfter wakes the committing goroutine after delay without a commit.
func (q *queue) wakeAfter(delay time.Duration) {
	if q.idle == nil {
		q.idle = time.AfterFunc(delay, q.becameIdle)
	} else {
		q.idle.Reset(delay)
	}
}

// becameIdle is called by the timer.
func (q *queue) becameIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idled = true
	q.work.Signal()
}

// close returns when the changes that were handed over have landed.
func (q *queue) close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.closed = true
	q.work.Signal()
	q.mu.Unlock()
	<-q.ended
	if q.idle != nil {
		q.idle.Stop()
	}
	return nil
}
