package host

import (
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/coldstart"
)

// mostThreads bounds the threads that prefault pages: the application needs some processors.
const mostThreads = 12

// prefaultPool is the threads that prefault pages. They stay for all pieces: the kernel maps a stack for each new thread, and that waits for the threads that
// prefault or register, and these for it.
type prefaultPool struct {
	size int
	work chan func()
}

func (m *Memory) newPrefaultPool() *prefaultPool {
	t := &prefaultPool{prefaultThreads(m.o.Copiers), make(chan func())}
	near := m.nearThreads()
	for range t.size {
		safego.Go("prefaulting", func() {
			near(func() {
				for work := range t.work {
					work()
				}
			})
		})
	}
	return t
}

func (t *prefaultPool) close() { close(t.work) }

// do runs the same work in so many threads, and returns when all have ended it.
func (t *prefaultPool) do(threads int, work func()) {
	var all sync.WaitGroup
	for range threads {
		all.Add(1)
		t.work <- func() {
			defer all.Done()
			work()
		}
	}
	all.Wait()
}

// prefaultThreads is the number of threads that prefault pages: as many as copy, or three of four processors.
func prefaultThreads(copiers int) int {
	if copiers > 0 {
		return min(copiers+1, mostThreads)
	}
	return min(max(runtime.GOMAXPROCS(0)*3/4, 1), mostThreads)
}

// prefault makes the pages of a range resident, by as many threads as the process has CPU slots for; false when the store closes.
func (m *Memory) prefault(pool *prefaultPool, off, n int64) bool {
	p := &m.pinner
	var files []string
	if m.strategy() != coldstart.Sequential { // which prefaults for long, and with few threads at work
		files = p.slots
	}
	slots, open := p.turns.take(files, p.mostSlots)
	if !open {
		return false
	}
	defer endAll(slots)
	threads := pool.size
	if len(slots) > 0 {
		threads = min(threads, len(slots)*slotThreads)
	}
	next, end := atomic.NewInt64(off), off+n
	began, disturbed := time.Now(), p.moving.Load() > 0
	pool.do(threads, func() { m.prefaultShares(next, end) })
	if disturbed = disturbed || p.moving.Load() > 0; m.strategy() == coldstart.Pipeline || !disturbed {
		p.rates.prefaulted(n, time.Since(began), disturbed)
	}
	return !m.pinStopped()
}

// shareBytes is what one thread prefaults between two looks at whether it should go on. It is small, so that no thread of a piece ends long after the others.
const shareBytes = 4 << 20

// prefaultShares prefaults shares of a range that no other thread has taken.
func (m *Memory) prefaultShares(next *atomic.Int64, end int64) {
	for off := next.Add(shareBytes) - shareBytes; off < end && !m.pinStopped(); off = next.Add(shareBytes) - shareBytes {
		if m.strategy() == coldstart.Sequential {
			m.awaitIdle()
		}
		n := min(shareBytes, end-off)
		m.chunks.prefaulted(off, n, m.o.Now())
		if m.mapping.Populate(off, n) != nil {
			return // the system has no memory left: copies will meet the same and return the error
		}
		m.pinner.touched.Add(n)
	}
}

// awaitIdle waits until no transfer between a device and the memory is under way. A strategy that was chosen may not fit any more: then it waits for no longer than
// the watermark may rest, so that the choice is looked at again.
func (m *Memory) awaitIdle() {
	p := &m.pinner
	m.cache.Lock()
	defer m.cache.Unlock()
	p.paused.Inc()
	defer p.paused.Dec()
	if _, fixed := m.fixedStrategy(); !fixed {
		wake := time.AfterFunc(m.o.PinRest, p.idle.Broadcast)
		defer wake.Stop()
		for end := time.Now().Add(m.o.PinRest); p.moving.Load() > 0 && !m.cache.Closing() && time.Now().Before(end); {
			p.idle.Wait()
		}
		return
	}
	for p.moving.Load() > 0 && !m.cache.Closing() {
		p.idle.Wait()
	}
}
