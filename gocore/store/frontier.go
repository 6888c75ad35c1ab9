package store

import (
	"sync"
	"time"
)

// frontier is how far the host tier has been pinned, from its beginning. A transfer to what lies a little ahead of it waits: a pageable copy takes
// longer than to wait, and the processors from those who pin (four processes that began at once were blocked seven times as long).
type frontier struct {
	mu    sync.Mutex
	end   int64
	moved time.Time
	next  chan struct{} // closed when it moves; nil: it does not, or no more
}

const (
	frontierReach = 1 << 30     // nobody waits for what lies further ahead
	frontierRest  = time.Second // … nor for a frontier that has not moved for so long: another process may stand still with the turn
)

// set makes it move from now on.
func (f *frontier) set() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved, f.next = time.Now(), make(chan struct{})
}

// halt makes everybody go on who waits.
func (f *frontier) halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		close(f.next)
		f.next = nil
	}
}

func (f *frontier) advance(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end, f.moved = f.end+n, time.Now()
	if f.next != nil {
		close(f.next)
		f.next = make(chan struct{})
	}
}

func (f *frontier) reached() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// await returns when everything up to a place has been pinned, or when that is not worth waiting for.
func (f *frontier) await(place int64) {
	for {
		next, patience := f.ahead(place)
		if next == nil || patience <= 0 {
			return
		}
		select {
		case <-next:
		case <-time.After(patience):
		}
	}
}

// ahead is what to wait for, and how long.
func (f *frontier) ahead(place int64) (<-chan struct{}, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil || place <= f.end || place > f.end+frontierReach {
		return nil, 0
	}
	return f.next, frontierRest - time.Since(f.moved)
}
