package segment

import (
	"sync"

	"velocpy/gocore/base/safego"
)

// workers are goroutines that take part in large transfers. The first such transfer starts them: a process that only plans opens thousands of spaces, and moves no bytes.
type workers struct {
	count   int
	begun   sync.Once
	queue   chan *transfer
	running sync.WaitGroup
}

// start starts the goroutines, once.
func (w *workers) start() {
	w.begun.Do(func() {
		w.queue = make(chan *transfer, 16*w.count)
		for range w.count {
			w.running.Add(1)
			safego.Go("segment worker", w.work)
		}
	})
}

// call asks so many workers at most to take part. It never waits: if the queue is full, all workers are busy.
func (w *workers) call(t *transfer, calls int) {
	if calls = min(calls, w.count); calls <= 0 {
		return
	}
	w.start()
	for range calls {
		select {
		case w.queue <- t:
		default:
			return
		}
	}
}

func (w *workers) work() {
	defer w.running.Done()
	for t := range w.queue {
		t.work()
	}
}

// close returns when the goroutines have ended. No transfer is under way.
func (w *workers) close() {
	if w.queue == nil {
		return // nothing has started them
	}
	close(w.queue)
	w.running.Wait()
}
