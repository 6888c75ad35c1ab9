package double

import (
	"fmt"

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

// The priorities that the double reports.
const (
	leastPriority    = 0
	greatestPriority = -5
)

// streams makes the streams, and finds them by their handles.
type streams struct {
	*state

	byHandle  map[cuda.Stream]*stream
	ofThreads map[thread]*stream // the default streams of threads
}

// CreateStream implements cuda.Driver.
func (ss *streams) CreateStream(c cuda.Context, priority int) (cuda.Stream, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	g, err := ss.within("CreateStream", c)
	if err != nil {
		return 0, err
	}
	return ss.open(&stream{gpu: g}, fmt.Sprintf("stream of priority %d", priority)), nil
}

// Foreign makes a stream like the application's: blocking if it is to be ordered relative to the legacy stream.
func (ss *streams) Foreign(device int, blocking bool) cuda.Stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.open(&stream{gpu: ss.gpus[device], blocking: blocking, foreign: true}, "foreign stream")
}

func (ss *streams) open(s *stream, name string) cuda.Stream {
	h := cuda.Stream(ss.handle())
	s.name = fmt.Sprintf("%s %#x", name, uintptr(h))
	ss.byHandle[h] = s
	return h
}

// StreamPriorities implements cuda.Driver.
func (ss *streams) StreamPriorities(c cuda.Context) (least, greatest int, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, err = ss.within("StreamPriorities", c)
	return leastPriority, greatestPriority, err
}

// DestroyStream implements cuda.Driver. Queued work still runs.
func (ss *streams) DestroyStream(c cuda.Context, h cuda.Stream) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, err := ss.in("DestroyStream", c, h)
	if err != nil {
		return err
	}
	if ss.byHandle[h] == nil {
		return fail("DestroyStream", cuda.InvalidHandle)
	}
	s.destroyed = true
	return nil
}

// StreamIsCapturing implements cuda.Driver.
func (ss *streams) StreamIsCapturing(c cuda.Context, h cuda.Stream) (bool, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, err := ss.in("StreamIsCapturing", c, h)
	if err != nil {
		return false, err
	}
	return s.capturing, nil
}

// SetCapturing marks whether a stream is being captured into a graph. Work queued in it meanwhile is misuse.
func (ss *streams) SetCapturing(h cuda.Stream, capturing bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.byHandle[h].capturing = capturing
}

// in begins a call on a stream.
func (ss *streams) in(call string, c cuda.Context, h cuda.Stream) (*stream, error) {
	g, err := ss.within(call, c)
	if err != nil {
		return nil, err
	}
	switch h {
	case 0, cuda.LegacyStream:
		return g.legacy, nil
	case cuda.PerThreadStream:
		return ss.own(thread{g, unix.Gettid()}), nil
	}
	s := ss.byHandle[h]
	if s == nil || s.destroyed || s.gpu != g {
		ss.checks.wrong("%s on stream %#x, which is destroyed or not of this context", call, uintptr(h))
		return nil, fail(call, cuda.InvalidHandle)
	}
	return s, nil
}

func (ss *streams) own(t thread) *stream {
	s := ss.ofThreads[t]
	if s == nil {
		s = &stream{gpu: t.gpu, blocking: true, name: fmt.Sprintf("the stream of thread %d", t.id)}
		ss.ofThreads[t] = s
	}
	return s
}

func (ss *streams) blocking(g *gpu) map[*stream]bool {
	found := map[*stream]bool{}
	for _, s := range ss.byHandle {
		found[s] = true
	}
	for _, s := range ss.ofThreads {
		found[s] = true
	}
	for s := range found {
		if s.gpu != g || !s.blocking {
			delete(found, s)
		}
	}
	return found
}

func (ss *streams) all() map[*stream]bool {
	all := map[*stream]bool{}
	for _, s := range ss.byHandle {
		all[s] = true
	}
	for _, s := range ss.ofThreads {
		all[s] = true
	}
	for _, g := range ss.gpus {
		all[g.legacy] = true
	}
	return all
}
