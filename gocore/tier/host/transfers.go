package host

import (
	"sync"
	"time"

	"go.uber.org/atomic"
)

// transfers counts the transfers between devices and the memory: sequential prefaulting pauses for them.
type transfers struct {
	*state
	idle   *sync.Cond   // broadcast when transfers may have ended; its lock is the cache's
	moving atomic.Int64 // under way
	paused atomic.Int64 // threads that pause
}

func (t *transfers) start() { t.idle = sync.NewCond(t.cache) }

// stop lets threads that pause go on, when the store closes.
func (t *transfers) stop() {
	if t.idle != nil {
		t.idle.Broadcast()
	}
}

// BeginTransfer and EndTransfer count the transfers between devices and the memory. The cache's lock is held.
func (t *transfers) BeginTransfer() { t.moving.Inc() }

func (t *transfers) EndTransfer() {
	if t.moving.Dec() == 0 {
		t.idle.Broadcast()
	}
}

// Resting runs a wait of a transfer that has begun, and moves nothing meanwhile: it does not count as one. No lock is held.
func (t *transfers) Resting(wait func()) {
	t.cache.Lock()
	t.EndTransfer()
	t.cache.Unlock()
	defer func() {
		t.cache.Lock()
		defer t.cache.Unlock()
		t.BeginTransfer()
	}()
	wait()
}

// awaitIdle waits until no transfer between a device and the memory is under way; if patience is not zero, for no longer than that.
func (t *transfers) awaitIdle(patience time.Duration) {
	t.cache.Lock()
	defer t.cache.Unlock()
	t.paused.Inc()
	defer t.paused.Dec()
	if patience > 0 {
		wake := time.AfterFunc(patience, t.idle.Broadcast)
		defer wake.Stop()
		for end := time.Now().Add(patience); t.moving.Load() > 0 && !t.cache.Closing() && time.Now().Before(end); {
			t.idle.Wait()
		}
		return
	}
	for t.moving.Load() > 0 && !t.cache.Closing() {
		t.idle.Wait()
	}
}
