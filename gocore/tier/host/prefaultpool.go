package host

import (
	"runtime"
	"sync"

	"velocpy/gocore/base/safego"
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

// shareBytes is what one thread prefaults between two looks at whether it should go on. It is small, so that no thread of a piece ends long after the others: a huge page.
const shareBytes = 2 << 20
