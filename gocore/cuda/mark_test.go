package cuda_test

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/cuda/double"
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

// Marks are seen only when they have passed, and all are in the end; meanwhile the driver is asked about a stream that is behind once in
// 50 µs at the most, beside once for every mark.
func TestSeen(t *testing.T) {
	r := open(t, double.Config{Delay: 5 * time.Millisecond, Seed: 1})
	var marks []device.Mark
	for range 20 {
		if err := r.lane.Copy(r.arena.Base(), r.arena.Base()+4096, 64); err != nil {
			t.Fatal(err)
		}
		m, err := r.lane.Mark()
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, m)
	}
	before, began, asked := r.driver.Calls("QueryEvent"), time.Now(), 0
	for left := marks; len(left) > 0; asked++ {
		last := left[len(left)-1]
		seen, err := last.Seen()
		if passed, _ := last.Passed(); err != nil || seen && !passed {
			t.Fatalf("seen: %v, %v, passed: %v", seen, err, passed)
		}
		before++ // that of Passed
		if seen {
			left = left[:len(left)-1]
		}
	}
	queries, most := r.driver.Calls("QueryEvent")-before, int(time.Since(began)/(50*time.Microsecond))+2*len(marks)
	if queries > most || asked < 10*len(marks) {
		t.Errorf("%d questions to the driver for %d to marks, want at most %d", queries, asked, most)
	}
	for _, m := range marks {
		m.Drop()
	}
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
