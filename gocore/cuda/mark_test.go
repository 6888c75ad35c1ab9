package cuda_test

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/cuda/double"
	"velocpy/gocore/cuda/kernel"
	"velocpy/gocore/device"
)

func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Events are used again, but none that somebody holds.
func TestEventsAreUsedAgain(t *testing.T) {
	r := open(t, double.Config{})
	for range 100 {
		m, err := r.lane.Mark()
		if err != nil {
			t.Fatal(err)
		}
		m.Keep().Drop()
		m.Drop()
		m.Drop() // once too often: the event may be somebody else's by then
	}
	if n := r.driver.Calls("CreateEvent"); n != 1 {
		t.Errorf("%d events for one mark at a time", n)
	}
	var held []device.Mark
	for range 10 {
		m, err := r.lane.Mark()
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

// A mark tells of its own point for as long as it is held, however many others come and go.
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
				m, err := l.Mark()
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

// Marks are seen only when they have passed, and all are in the end. While a stream is held up the driver is asked about it no more than once in
// 50 µs, but about a mark before the one that it was asked about all the same: that makes two questions each time round these marks.
func TestSeen(t *testing.T) {
	gate := make(chan struct{})
	lift := sync.OnceFunc(func() { close(gate) })
	defer lift()
	r := open(t, double.Config{
		Twins:   func(string) func(int, int, []byte) error { return func(int, int, []byte) error { <-gate; return nil } },
		Touches: func(string, []byte) (reads, writes []kernel.Range) { return nil, nil },
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	context, err := r.driver.RetainPrimary(0)
	must(err)
	module, err := r.driver.LoadModule(context, image)
	must(err)
	f, err := r.driver.Function(context, module, "gate")
	must(err)
	stream, err := r.driver.CreateStream(context, 0)
	must(err)
	must(r.driver.Launch(context, f, 1, 1, 0, stream, nil))
	lane := r.dev.Borrow(uint64(stream))
	var marks []device.Mark
	for range 20 {
		m, err := lane.Mark()
		must(err)
		marks = append(marks, m)
	}
	asked := func(m device.Mark) int {
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
	lift()
	for _, m := range marks {
		for seen := false; !seen; {
			seen, err = m.Seen()
			must(err)
		}
		if passed, err := m.Passed(); !passed || err != nil {
			t.Errorf("seen, and not passed: %v", err)
		}
		m.Drop()
	}
	must(r.driver.DestroyStream(context, stream))
	must(r.driver.UnloadModule(context, module))
	must(r.driver.ReleasePrimary(0))
	r.close()
}

// A foreign mark is refused rather than not waited for.
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
func (f foreign) Keep() device.Mark   { return f }
func (foreign) Drop()                 {}
