package copier

import (
	"time"

	"velocpy/gocore/base/safego"

	"go.uber.org/atomic"
)

// Pool is a set of goroutines that help with large jobs. Jobs of several threads may share one.
type Pool struct {
	n     int
	queue chan *Job
	quit  chan struct{}
	gone  atomic.Bool
	// Smaller jobs get no helpers.
	contiguous, strided int64
}

// NewPool starts n helpers (none for n <= 0). The best number is one less than the number of cores, since the calling thread works too.
func NewPool(n int) *Pool {
	n = max(n, 0)
	p := &Pool{
		n: n, queue: make(chan *Job, 2*n), quit: make(chan struct{}),
		contiguous: helpContiguous, strided: helpStrided,
	}
	for range n {
		safego.Go("copy helper", p.help)
	}
	return p
}

// Close ends the helpers once they have finished their unit. Jobs continue without them. Closing twice does nothing.
func (p *Pool) Close() {
	if !p.gone.Swap(true) {
		close(p.quit)
	}
}

// call asks for k helpers. It never waits: if the queue is full all are busy.
func (p *Pool) call(j *Job, k int) {
	for range k {
		select {
		case p.queue <- j:
		default:
			return
		}
	}
}

func (p *Pool) help() {
	for {
		select {
		case j := <-p.queue:
			if j.enter() {
				j.help()
			}
		case <-p.quit:
			return
		}
	}
}

// help works for the caller of Run, which must learn of a panic and must not wait for ever.
func (j *Job) help() {
	defer j.leave()
	defer func() {
		if v := recover(); v != nil {
			j.broken.Store(true)
			safego.Poison("copy helper", v)
		}
	}()
	j.work(time.Time{}, true)
}
