package segment

import (
	"sync"

	"velocpy/gocore/base/safego"
)

// workers are goroutines that take part in large transfers.
type workers struct {
	count   int
	queue   chan *transfer
	running sync.WaitGroup
}

// start starts the goroutines.
func (w *workers) start(count int) {
	w.count, w.queue = count, make(chan *transfer, 16*count)
	for range count {
		w.running.Add(1)
		safego.Go("segment worker", w.work)
	}
}

// call never waits: if the queue is full, all workers are busy.
func (w *workers) call(t *transfer) {
	for range min(w.count, len(t.pieces)-1) {
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
	close(w.queue)
	w.running.Wait()
}
