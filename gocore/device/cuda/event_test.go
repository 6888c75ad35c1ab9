package cuda_test

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/cuda/kernel"
)

func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Events are reused, except those that an event still holds.
func TestEventsAreUsedAgain(t *testing.T) {
	r := open(t, double.Config{})
	for range 100 {
		m, err := r.lane.Event()
		if err != nil {
			t.Fatal(err)
		}
		m.Keep().Drop()
		m.Drop()
		m.Drop() // once too often: another event may use the event by then
	}
	if n := r.driver.Calls("CreateEvent"); n != 1 {
		t.Errorf("%d events for one mark at a time", n)
	}
	var held []device.Event
	for range 10 {
		m, err := r.lane.Event()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, m)
	}
	if n := r.driver.Calls("CreateEvent"); n != 10 {
		t.Errorf("%d events for ten marks at a time", n)
	}
	for _, m := range held {
		m.Drop()
	}
	r.close()
}

// An event reports its own point as long as it is held, however many other events are made and dropped.
func TestMarksDoNotMix(t *testing.T) {
	r := open(t, double.Config{Delay: 300 * time.Microsecond, Seed: 3})
	var all sync.WaitGroup
	for g := range 4 {
		l, err := r.dev.Lane(device.Priority(g % 3))
		if err != nil {
			t.Fatal(err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			slot := r.arena.Base() + uintptr(g<<20)
			bytes := r.driver.Bytes(slot, 64)
			source := r.host.Bytes(int64(g)<<20, 64)
			for i := range 60 {
				source[7] = byte(i)
				if err := l.Copy(slot, device.AddressOf(source), 64); err != nil {
					t.Error(err)
				}
				m, err := l.Event()
				if err != nil {
					t.Error(err)
					return
				}
				if err := m.Wait(); err != nil {
					t.Error(err)
				}
				if passed, err := m.Passed(); !passed || err != nil || bytes[7] != byte(i) {
					t.Errorf("lane %d, round %d: %v, %v, byte %d", g, i, passed, err, bytes[7])
				}
				m.Drop()
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	r.close()
}

// gates block streams.
type gates struct {
	*rig
	context cuda.Context
	module  cuda.Module
	kernel  cuda.Function
	next    chan chan struct{}
	streams []cuda.Stream
}

func gated(t *testing.T) *gates {
	g := &gates{next: make(chan chan struct{})}
	g.rig = open(t, double.Config{
		Twins: func(string) func(int, int, []byte) error {
			return func(int, int, []byte) error { <-<-g.next; return nil }
		},
		Touches: func(string, []byte) (reads, writes []kernel.Range) { return nil, nil },
	})
	var err error
	g.context, err = g.driver.RetainPrimary(0)
	g.must(err)
	g.module, err = g.driver.LoadModule(g.context, image)
	g.must(err)
	g.kernel, err = g.driver.Function(g.context, g.module, "gate")
	g.must(err)
	return g
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// shut borrows a stream of the application that is blocked until it is opened.
func (g *gates) shut() (lane device.Lane, open func()) {
	g.t.Helper()
	stream, err := g.driver.CreateStream(g.context, 0)
	g.must(err)
	g.streams = append(g.streams, stream)
	gate := make(chan struct{})
	g.must(g.driver.Launch(g.context, g.kernel, 1, 1, 0, stream, nil))
	g.next <- gate // taken by this stream: only this one has no gate
	open = sync.OnceFunc(func() { close(gate) })
	g.t.Cleanup(open)
	return g.dev.Borrow(uint64(stream)), open
}

func (g *gates) mark(lane device.Lane) device.Event {
	g.t.Helper()
	m, err := lane.Event()
	g.must(err)
	return m
}

func (g *gates) close() {
	g.t.Helper()
	for _, stream := range g.streams {
		g.must(g.driver.DestroyStream(g.context, stream))
	}
	g.must(g.driver.UnloadModule(g.context, g.module))
	g.must(g.driver.ReleasePrimary(0))
	g.rig.close()
}

// Threads that wait for the application's streams block instead of spinning (the double would report it), each for its own stream.
func TestWaitForTheApplication(t *testing.T) {
	g := gated(t)
	var waits [3]chan error
	var opens [3]func()
	for i := range waits {
		lane, open := g.shut()
		waits[i], opens[i] = make(chan error, 1), open
		m := g.mark(lane)
		go func() {
			err := m.Wait()
			m.Drop()
			waits[i] <- err
		}()
	}
	for i := len(waits) - 1; i >= 0; i-- {
		for j := range i + 1 {
			select {
			case err := <-waits[j]:
				t.Fatalf("nobody let %d go: %v", j, err)
			case <-time.After(2 * time.Millisecond):
			}
		}
		opens[i]()
		g.must(<-waits[i])
	}
	streams := g.driver.Calls("CreateStream")
	for range 10 {
		lane, open := g.shut()
		m := g.mark(lane)
		open()
		g.must(m.Wait())
		m.Drop()
	}
	if n := g.driver.Calls("CreateStream") - streams; n != 10 {
		t.Errorf("%d streams for 10 waits, one after the other, in as many of the application's", n)
	}
	g.close()
}

// Any number of threads may wait at once, although only a few streams exist for that.
func TestManyWait(t *testing.T) {
	g := gated(t)
	const many = 40
	waits := make(chan error, many)
	lane, open := g.shut()
	streams := g.driver.Calls("CreateStream")
	for range many {
		m := g.mark(lane)
		go func() {
			err := m.Wait()
			m.Drop()
			waits <- err
		}()
	}
	select {
	case err := <-waits:
		open()
		t.Fatalf("nobody let it go: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	open()
	for range many {
		g.must(<-waits)
	}
	if n := g.driver.Calls("CreateStream") - streams; n > 8 {
		t.Errorf("%d streams", n)
	}
	g.close()
}

// A thread that cannot block waits all the same: its caller frees memory afterwards.
func TestWaitWithoutSleep(t *testing.T) {
	for _, call := range []string{"CreateStream", "CreateEvent", "StreamWaitEvent", "RecordEvent", "SynchronizeEvent"} {
		t.Run(call, func(t *testing.T) {
			g := gated(t)
			lane, open := g.shut()
			m := g.mark(lane)
			g.driver.Fail(call, cuda.InvalidValue, 0, 1)
			waited := make(chan error, 1)
			go func() { waited <- m.Wait() }()
			select {
			case err := <-waited:
				open()
				t.Fatalf("nobody let it go: %v", err)
			case <-time.After(5 * time.Millisecond):
			}
			open()
			g.must(<-waited)
			m.Drop()
			g.close()
		})
	}
}

// Seen is true only for passed events, and in the end for all of them. While a stream is blocked, the driver is queried about it at most once in 50
// µs. An event before the one of the last query is queried all the same: that makes two queries each time for these events.
func TestSeen(t *testing.T) {
	r := gated(t)
	lane, open := r.shut()
	var marks []device.Event
	for range 20 {
		marks = append(marks, r.mark(lane))
	}
	asked := func(m device.Event) int {
		before := r.driver.Calls("QueryEvent")
		if seen, err := m.Seen(); seen || err != nil {
			t.Fatalf("seen behind a gate that is shut: %v, %v", seen, err)
		}
		return r.driver.Calls("QueryEvent") - before
	}
	began, queries := time.Now(), 0
	for i := range 20_000 {
		queries += asked(marks[10+i%10])
	}
	if most := 2 * (int(time.Since(began)/(50*time.Microsecond)) + 1); queries > most {
		t.Errorf("%d questions to the driver, want at most %d", queries, most)
	}
	if asked(marks[9]) != 1 {
		t.Error("an earlier mark is not asked about")
	}
	open()
	for _, m := range marks {
		for seen := false; !seen; {
			var err error
			seen, err = m.Seen()
			r.must(err)
		}
		if passed, err := m.Passed(); !passed || err != nil {
			t.Errorf("seen, and not passed: %v", err)
		}
		m.Drop()
	}
	r.close()
}

// An event of another implementation is refused instead of being ignored.
func TestForeignMarks(t *testing.T) {
	r := open(t, double.Config{})
	if err := r.lane.After(foreign{}); err == nil {
		t.Error("a mark of nobody's is waited for")
	}
	r.close()
}

type foreign struct{}

func (foreign) Passed() (bool, error) { return false, nil }
func (foreign) Seen() (bool, error)   { return false, nil }
func (foreign) Wait() error           { return nil }
func (foreign) Of(device.Lane) bool   { return false }
func (f foreign) Keep() device.Event  { return f }
func (foreign) Drop()                 {}
