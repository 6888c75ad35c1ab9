package store

import (
	"sync"
	"time"
)

// frontier is how far the host tier has been pinned, from its beginning. A transfer to what lies a little ahead of it waits: a pageable copy takes
// longer than to wait, and the processors from those who pin (four processes that began at once were blocked nine times as long).
type frontier struct {
	mu      sync.Mutex
	end     int64
	moved   time.Time
	rest    time.Duration // nobody waits for a frontier that has not moved for so long: another process may stand still with the turn
	next    chan struct{} // closed when it moves; nil: it does not, or no more
	waiting int
}

const (
	frontierReach = 1 << 30 // nobody waits for what lies further ahead
	frontierRest  = time.Second
)

// set tells that it moves from now on, and for how long it may rest.
func (f *frontier) set(rest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved, f.rest, f.next = time.Now(), rest, make(chan struct{})
}

// moves tells whether it does.
func (f *frontier) moves() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next != nil
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

// retreat notes that the last bytes before it are pinned no more.
func (f *frontier) retreat(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end -= n
}

func (f *frontier) reached() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// await returns when everything up to a place has been pinned, or when that is not worth waiting for; and how long it took.
func (f *frontier) await(place int64) (took time.Duration) {
	for began := time.Now(); ; took = time.Since(began) {
		next, patience := f.ahead(place)
		if next == nil || patience <= 0 {
			return took
		}
		f.waits(+1)
		select {
		case <-next:
		case <-time.After(patience):
		}
		f.waits(-1)
	}
}

func (f *frontier) waits(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting += more
}

// ahead is what to wait for, and how long.
func (f *frontier) ahead(place int64) (<-chan struct{}, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil || place <= f.end || place > f.end+frontierReach {
		return nil, 0
	}
	return f.next, f.rest - time.Since(f.moved)
}
