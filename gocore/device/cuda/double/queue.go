package double

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device/cuda"
)

// work is one entry of a queue: a wait for another entry, an operation to run, or an event's record (neither).
type work struct {
	what          string
	after         *work
	run           func() cuda.Code
	reads, writes []Span
	kernel        bool  // reaches only pinned host memory and device memory
	asked         clock // the host's clock when it was queued
	clock         clock // the operations that happened before its end
	finished      bool
	at            time.Time // time of its end
	done          chan struct{}
}

// queues puts work into the streams' queues, and runs it.
type queues struct {
	*state

	random *rand.Rand // of pauses
	watch  watch
}

// Hold queues a kernel in a stream that ends when release is called, once: long work of the application.
func (qs *queues) Hold(device int, h cuda.Stream) (release func(), err error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	g := qs.gpus[device]
	s, err := qs.streams.in("Hold", g.context(), h)
	if err != nil {
		return nil, err
	}
	shut := make(chan struct{})
	qs.put(s, &work{what: "hold", run: func() cuda.Code { <-shut; return 0 }})
	return func() { close(shut) }, nil
}

// put queues work after the work that it is ordered behind.
func (qs *queues) put(s *stream, w *work) {
	if s.capturing {
		qs.checks.wrong("%s put into %s, which is being captured", w.what, s.name)
	}
	switch {
	case s == s.gpu.legacy:
		for other := range qs.streams.blocking(s.gpu) {
			qs.waitFor(s, other.tail)
		}
	case s.blocking:
		qs.waitFor(s, s.gpu.legacy.tail)
	}
	qs.push(s, w)
}

func (qs *queues) waitFor(s *stream, w *work) {
	if w != nil && w != s.tail {
		qs.push(s, &work{what: "wait", after: w})
	}
}

func (qs *queues) push(s *stream, w *work) {
	w.done = make(chan struct{})
	w.asked = qs.watch.asked()
	s.queue = append(s.queue, w)
	s.tail = w
	if !s.running {
		s.running = true
		safego.Go(s.name, func() { qs.drain(s) })
	}
}

// drain runs the entries of a queue until it is empty.
func (qs *queues) drain(s *stream) {
	debug.SetPanicOnFault(true)
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for len(s.queue) > 0 {
		w := s.queue[0]
		qs.do(s, w)
		w.finished, w.at = true, time.Now()
		close(w.done)
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	s.running = false
}

// do is entered and left with the lock held.
func (qs *queues) do(s *stream, w *work) {
	if s.gpu.lost != 0 {
		return
	}
	if w.after != nil {
		qs.outside(func() { <-w.after.done })
	} else {
		qs.pause()
	}
	qs.watch.begin(s, w)
	if w.run == nil || s.gpu.lost != 0 || !qs.allowed(s.gpu) {
		return
	}
	for _, race := range qs.watch.access(s, w) {
		qs.checks.wrong("%s", race)
	}
	for _, touched := range append(w.reads, w.writes...) {
		if !qs.virtual.reachable(touched) || w.kernel && !qs.virtual.pinnedOrDevice(touched) {
			s.gpu.lose(cuda.IllegalAddress)
			return
		}
	}
	var code cuda.Code
	qs.outside(func() { code = w.guarded() })
	if code != 0 {
		s.gpu.lose(code)
	}
}

// allowed counts down to the loss of the context.
func (qs *queues) allowed(g *gpu) bool {
	if g.countdown == 0 {
		g.lose(cuda.IllegalAddress)
		return false
	}
	if g.countdown > 0 {
		g.countdown--
	}
	return true
}

// guarded turns an access to protected memory into the fault that a device would report.
func (w *work) guarded() (code cuda.Code) {
	defer func() {
		if v := recover(); v != nil {
			code = cuda.IllegalAddress
			if _, fault := v.(interface{ Addr() uintptr }); !fault {
				safego.Poison(w.what, v)
			}
		}
	}()
	return w.run()
}

// pause lets other goroutines run first, without the lock.
func (qs *queues) pause() {
	if qs.cfg.Delay <= 0 {
		return
	}
	switch qs.random.IntN(4) {
	case 0:
		long := time.Duration(qs.random.Int64N(int64(qs.cfg.Delay)))
		qs.outside(func() { time.Sleep(long) })
	case 1:
		qs.outside(runtime.Gosched)
	}
}

// Settle waits until every queue is empty.
func (qs *queues) Settle() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for {
		w := qs.unfinished()
		if w == nil {
			return
		}
		qs.outside(func() { <-w.done })
	}
}

func (qs *queues) unfinished() *work {
	for s := range qs.streams.all() {
		if s.tail != nil && !s.tail.finished {
			return s.tail
		}
	}
	return nil
}

// queued describes queued or running work that touches the range.
func (qs *queues) queued(touched Span) string {
	for s := range qs.streams.all() {
		for _, w := range s.queue {
			if slices.ContainsFunc(append(slices.Clone(w.reads), w.writes...), touched.meets) {
				return w.what + " in " + s.name
			}
		}
	}
	return ""
}

// taken records memory that is freed under queued work.
func (qs *queues) taken(call string, s Span) {
	if what := qs.queued(s); what != "" {
		qs.checks.wrong("%s of %v, which %s touches", call, s, what)
	}
}
