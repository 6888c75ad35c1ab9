package host

import (
	"sync"
	"time"
)

// Watermark is the offset up to which the tier has been pinned. A transfer to memory a little ahead of it waits for it: a pageable copy takes longer, and takes
// processors from the threads that prefault (four processes that began at once were blocked nine times as long without the wait).
type Watermark struct {
	mu      sync.Mutex
	end     int64
	moved   time.Time
	rest    time.Duration // no transfer waits for a watermark that has not moved for so long: another process may hold the turn and stand still
	next    chan struct{} // closed when it moves; nil: it does not move, or no more
	waiting int
}

const (
	// WatermarkReach is how far ahead of the watermark a transfer waits.
	WatermarkReach = 1 << 30
	// watermarkRest is the default of Options.PinRest.
	watermarkRest = time.Second
)

// start says that the watermark moves from now on, and for how long it may rest.
func (w *Watermark) start(rest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved, w.rest, w.next = time.Now(), rest, make(chan struct{})
}

// isMoving tells whether start was called, and stop was not.
func (w *Watermark) isMoving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next != nil
}

// stop says that the watermark does not move any more: every transfer that waits for it goes on.
func (w *Watermark) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
}

func (w *Watermark) advance(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end, w.moved = w.end+n, time.Now()
	if w.next != nil {
		close(w.next)
		w.next = make(chan struct{})
	}
}

// retreat notes that the last bytes before it are not pinned any more.
func (w *Watermark) retreat(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end -= n
}

// End is the offset up to which the tier is pinned.
func (w *Watermark) End() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// Await returns when everything up to an offset has been pinned, or when that is not worth waiting for; and how long it took.
func (w *Watermark) Await(offset int64) (took time.Duration) {
	for began := time.Now(); ; took = time.Since(began) {
		next, patience := w.ahead(offset)
		if next == nil || patience <= 0 {
			return took
		}
		w.countWaiting(+1)
		select {
		case <-next:
		case <-time.After(patience):
		}
		w.countWaiting(-1)
	}
}

func (w *Watermark) countWaiting(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += more
}

// ahead returns what to wait for, and how long; nil: nothing.
func (w *Watermark) ahead(offset int64) (<-chan struct{}, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil || offset <= w.end || offset > w.end+WatermarkReach {
		return nil, 0
	}
	return w.next, w.rest - time.Since(w.moved)
}
