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

// newPrefaultPool starts so many threads. near runs work on the processors that they are to use.
func newPrefaultPool(threads int, near func(work func())) *prefaultPool {
	t := &prefaultPool{threads, make(chan func())}
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
func (p *pinner) prefault(pool *prefaultPool, off, n int64) bool {
	var files []string
	if p.chooser.current() != coldstart.Sequential { // which prefaults for long, and with few threads at work
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
	began, disturbed := time.Now(), p.transfers.moving.Load() > 0
	pool.do(threads, func() { p.prefaultShares(next, end) })
	if disturbed = disturbed || p.transfers.moving.Load() > 0; p.chooser.current() == coldstart.Pipeline || !disturbed {
		p.chooser.rates.prefaulted(n, time.Since(began), disturbed)
	}
	return !p.isStopped()
}

// shareBytes is what one thread prefaults between two looks at whether it should go on. It is small, so that no thread of a piece ends long after the others.
const shareBytes = 4 << 20

// prefaultShares prefaults shares of a range that no other thread has taken.
func (p *pinner) prefaultShares(next *atomic.Int64, end int64) {
	for off := next.Add(shareBytes) - shareBytes; off < end && !p.isStopped(); off = next.Add(shareBytes) - shareBytes {
		if p.chooser.current() == coldstart.Sequential {
			p.transfers.awaitIdle(p.chooser.patience())
		}
		n := min(shareBytes, end-off)
		p.chunks.prefaulted(off, n, p.o.Now())
		if p.mapping.Populate(off, n) != nil {
			return // the system has no memory left: copies will meet the same and return the error
		}
		p.touched.Add(n)
	}
}
