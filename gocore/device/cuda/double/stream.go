package double

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device/cuda"

	"golang.org/x/sys/unix"
)

// stream is a queue. Its goroutine runs while the queue is not empty.
type stream struct {
	gpu       *gpu
	name      string
	blocking  bool // ordered relative to the legacy stream
	foreign   bool
	capturing bool
	destroyed bool
	running   bool
	queue     []*work // the first one is running
	tail      *work   // the entry queued last
	lane      int     // for watch; 0: not assigned yet
	clock     clock
}

// thread identifies the default stream of an OS thread in a context.
type thread struct {
	gpu *gpu
	id  int
}

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

// The priorities that the double reports.
const (
	leastPriority    = 0
	greatestPriority = -5
)

// CreateStream implements cuda.Driver.
func (d *Driver) CreateStream(c cuda.Context, priority int) (cuda.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("CreateStream", c)
	if err != nil {
		return 0, err
	}
	return d.open(&stream{gpu: g}, fmt.Sprintf("stream of priority %d", priority)), nil
}

// Foreign makes a stream like the application's: blocking if it is to be ordered relative to the legacy stream.
func (d *Driver) Foreign(device int, blocking bool) cuda.Stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open(&stream{gpu: d.gpus[device], blocking: blocking, foreign: true}, "foreign stream")
}

func (d *Driver) open(s *stream, name string) cuda.Stream {
	h := cuda.Stream(d.handle())
	s.name = fmt.Sprintf("%s %#x", name, uintptr(h))
	d.streams[h] = s
	return h
}

// StreamPriorities implements cuda.Driver.
func (d *Driver) StreamPriorities(c cuda.Context) (least, greatest int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err = d.within("StreamPriorities", c)
	return leastPriority, greatestPriority, err
}

// DestroyStream implements cuda.Driver. Queued work still runs.
func (d *Driver) DestroyStream(c cuda.Context, h cuda.Stream) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in("DestroyStream", c, h)
	if err != nil {
		return err
	}
	if d.streams[h] == nil {
		return fail("DestroyStream", cuda.InvalidHandle)
	}
	s.destroyed = true
	return nil
}

// StreamIsCapturing implements cuda.Driver.
func (d *Driver) StreamIsCapturing(c cuda.Context, h cuda.Stream) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in("StreamIsCapturing", c, h)
	if err != nil {
		return false, err
	}
	return s.capturing, nil
}

// SetCapturing marks whether a stream is being captured into a graph. Work queued in it meanwhile is misuse.
func (d *Driver) SetCapturing(h cuda.Stream, capturing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[h].capturing = capturing
}

// Hold queues a kernel in a stream that ends when release is called, once: long work of the application.
func (d *Driver) Hold(device int, h cuda.Stream) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gpus[device]
	s, err := d.in("Hold", g.context(), h)
	if err != nil {
		return nil, err
	}
	shut := make(chan struct{})
	d.put(s, &work{what: "hold", run: func() cuda.Code { <-shut; return 0 }})
	return func() { close(shut) }, nil
}

// in begins a call on a stream.
func (d *Driver) in(call string, c cuda.Context, h cuda.Stream) (*stream, error) {
	g, err := d.within(call, c)
	if err != nil {
		return nil, err
	}
	switch h {
	case 0, cuda.LegacyStream:
		return g.legacy, nil
	case cuda.PerThreadStream:
		return d.own(thread{g, unix.Gettid()}), nil
	}
	s := d.streams[h]
	if s == nil || s.destroyed || s.gpu != g {
		d.wrong("%s on stream %#x, which is destroyed or not of this context", call, uintptr(h))
		return nil, fail(call, cuda.InvalidHandle)
	}
	return s, nil
}

func (d *Driver) own(t thread) *stream {
	s := d.threads[t]
	if s == nil {
		s = &stream{gpu: t.gpu, blocking: true, name: fmt.Sprintf("the stream of thread %d", t.id)}
		d.threads[t] = s
	}
	return s
}

// put queues work after the work that it is ordered behind.
func (d *Driver) put(s *stream, w *work) {
	if s.capturing {
		d.wrong("%s put into %s, which is being captured", w.what, s.name)
	}
	switch {
	case s == s.gpu.legacy:
		for other := range d.blocking(s.gpu) {
			d.waitFor(s, other.tail)
		}
	case s.blocking:
		d.waitFor(s, s.gpu.legacy.tail)
	}
	d.push(s, w)
}

func (d *Driver) blocking(g *gpu) map[*stream]bool {
	found := map[*stream]bool{}
	for _, s := range d.streams {
		found[s] = true
	}
	for _, s := range d.threads {
		found[s] = true
	}
	for s := range found {
		if s.gpu != g || !s.blocking {
			delete(found, s)
		}
	}
	return found
}

func (d *Driver) waitFor(s *stream, w *work) {
	if w != nil && w != s.tail {
		d.push(s, &work{what: "wait", after: w})
	}
}

func (d *Driver) push(s *stream, w *work) {
	w.done = make(chan struct{})
	w.asked = d.watch.asked()
	s.queue = append(s.queue, w)
	s.tail = w
	if !s.running {
		s.running = true
		safego.Go(s.name, func() { d.drain(s) })
	}
}

// drain runs the entries of a queue until it is empty.
func (d *Driver) drain(s *stream) {
	debug.SetPanicOnFault(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(s.queue) > 0 {
		w := s.queue[0]
		d.do(s, w)
		w.finished, w.at = true, time.Now()
		close(w.done)
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	s.running = false
}

// do is entered and left with the lock held.
func (d *Driver) do(s *stream, w *work) {
	if s.gpu.lost != 0 {
		return
	}
	if w.after != nil {
		d.outside(func() { <-w.after.done })
	} else {
		d.pause()
	}
	d.watch.begin(s, w)
	if w.run == nil || s.gpu.lost != 0 || !d.allowed(s.gpu) {
		return
	}
	for _, race := range d.watch.access(s, w) {
		d.wrong("%s", race)
	}
	for _, touched := range append(w.reads, w.writes...) {
		if !d.reachable(touched) || w.kernel && !d.pinnedOrDevice(touched) {
			s.gpu.lose(cuda.IllegalAddress)
			return
		}
	}
	var code cuda.Code
	d.outside(func() { code = w.guarded() })
	if code != 0 {
		s.gpu.lose(code)
	}
}

// allowed counts down to the loss of the context.
func (d *Driver) allowed(g *gpu) bool {
	if g.countdown == 0 {
		g.lose(cuda.IllegalAddress)
		return false
	}
	if g.countdown > 0 {
		g.countdown--
	}
	return true
}

// outside runs fn without the lock.
func (d *Driver) outside(fn func()) {
	d.mu.Unlock()
	defer d.mu.Lock()
	fn()
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
func (d *Driver) pause() {
	if d.cfg.Delay <= 0 {
		return
	}
	switch d.random.IntN(4) {
	case 0:
		long := time.Duration(d.random.Int64N(int64(d.cfg.Delay)))
		d.outside(func() { time.Sleep(long) })
	case 1:
		d.outside(runtime.Gosched)
	}
}

// Settle waits until every queue is empty.
func (d *Driver) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		w := d.unfinished()
		if w == nil {
			return
		}
		d.outside(func() { <-w.done })
	}
}

func (d *Driver) unfinished() *work {
	for s := range d.all() {
		if s.tail != nil && !s.tail.finished {
			return s.tail
		}
	}
	return nil
}

func (d *Driver) all() map[*stream]bool {
	all := map[*stream]bool{}
	for _, s := range d.streams {
		all[s] = true
	}
	for _, s := range d.threads {
		all[s] = true
	}
	for _, g := range d.gpus {
		all[g.legacy] = true
	}
	return all
}

// queued describes queued or running work that touches the range.
func (d *Driver) queued(touched Span) string {
	for s := range d.all() {
		for _, w := range s.queue {
			if slices.ContainsFunc(append(slices.Clone(w.reads), w.writes...), touched.meets) {
				return w.what + " in " + s.name
			}
		}
	}
	return ""
}

// taken records memory that is freed under queued work.
func (d *Driver) taken(call string, s Span) {
	if what := d.queued(s); what != "" {
		d.wrong("%s of %v, which %s touches", call, s, what)
	}
}
