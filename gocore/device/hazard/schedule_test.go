package hazard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/devicetest"
	"velocpy/gocore/device/hostdevice"

	"go.uber.org/atomic"
)

// Sizes of a schedule: small, so that ranges overlap and the pauses outweigh the copies.
const (
	areaBytes = 16 << 10
	hostBytes = 128 << 10
	laneCount = 4
	steps     = 20
	// A pause lasts at least some tens of microseconds: the system's sleep is no finer.
	delay = 10 * time.Microsecond
)

// perWorld is how many schedules one device or driver runs, so that thousands run in all.
const perWorld = 50

// world is lanes and memory, with the misuse that its device reports.
type world struct {
	memory devicetest.Memory
	lanes  []device.Lane
	misuse func() []string
}

func onHost(t *testing.T, seed uint64) *world {
	d := hostdevice.New(hostdevice.Options{Delay: delay, Seed: seed})
	arena, err := d.Reserve(areaBytes)
	must(t, err)
	_, err = arena.Grow(areaBytes)
	must(t, err)
	m, err := memory.Map("schedule", hostBytes)
	must(t, err)
	w := &world{misuse: func() []string { return nil }, memory: devicetest.Memory{
		Area: arena.Base(), Host: device.Address(m.Base()), Size: areaBytes, Bytes: m.Bytes(0, hostBytes)}}
	for range laneCount {
		l, err := d.Lane(device.Waited)
		must(t, err)
		w.lanes = append(w.lanes, l)
	}
	t.Cleanup(func() {
		must(t, arena.Free())
		must(t, m.Unmap())
	})
	return w
}

func onDouble(t *testing.T, seed uint64) *world {
	d := double.New(double.Config{Delay: delay, Seed: seed})
	t.Cleanup(d.Close)
	c, err := d.RetainPrimary(0)
	must(t, err)
	area, err := d.Allocate(0, areaBytes)
	must(t, err)
	host, err := d.AllocateHost(c, hostBytes)
	must(t, err)
	w := &world{misuse: d.Misuse, memory: devicetest.Memory{
		Area: area, Host: device.Address(host), Size: areaBytes, Bytes: unsafe.Slice((*byte)(host), hostBytes)}}
	for range laneCount {
		s, err := d.CreateStream(c, 0)
		must(t, err)
		w.lanes = append(w.lanes, &stream{d: d, c: c, s: s})
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stream is the part of a lane on a driver that a schedule needs.
type stream struct {
	device.Lane
	d *double.Driver
	c cuda.Context
	s cuda.Stream
}

func (l *stream) Copy(to, from device.Address, n int64) error { return l.d.Copy(l.c, to, from, n, l.s) }

func (l *stream) After(m device.Event) error { return l.d.StreamWaitEvent(l.c, l.s, m.(*event).e) }

func (l *stream) Event() (device.Event, error) {
	e, err := l.d.CreateEvent(l.c, true)
	if err != nil {
		return nil, err
	}
	m := &event{l: l, e: e}
	m.holds.Store(1)
	return m, l.d.RecordEvent(l.c, e, l.s)
}

// event is an event; the event is destroyed with its last reference.
type event struct {
	l     *stream
	e     cuda.Event
	holds atomic.Int64
}

func (m *event) Seen() (bool, error)   { return m.Passed() }
func (m *event) Passed() (bool, error) { return m.l.d.QueryEvent(m.l.c, m.e) }
func (m *event) Wait() error           { return m.l.d.SynchronizeEvent(m.l.c, m.e) }
func (m *event) Of(l device.Lane) bool { return l == m.l }
func (m *event) Keep() device.Event    { m.holds.Inc(); return m }
func (m *event) Drop() {
	if m.holds.Dec() == 0 {
		_ = m.l.d.DestroyEvent(m.l.c, m.e)
	}
}

// worlds run in parallel: most of their time is pauses.
const worlds = 16

// Whatever lanes do when, with the tracker's waits the bytes equal those of a sequential execution.
func TestSchedules(t *testing.T) {
	count := 1600
	if testing.Short() {
		count = 400
	}
	for name, open := range map[string]func(*testing.T, uint64) *world{"host": onHost, "double": onDouble} {
		t.Run(name, func(t *testing.T) {
			for done := 0; done < count; done += worlds * perWorld {
				failed := make(chan error, worlds)
				for i := range uint64(worlds) {
					seed := uint64(done) + i
					w := open(t, seed)
					safego.Go("world", func() { failed <- w.schedules(seed) })
				}
				var all error
				for range worlds { // all of them: the end of the test frees their memory
					all = errors.Join(all, <-failed)
				}
				must(t, all)
			}
		})
	}
}

func (w *world) schedules(seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 12))
	for i := range perWorld {
		right, err := devicetest.Schedule(random, w.memory, w.lanes, steps, false)
		if err != nil {
			return err
		}
		if wrong := w.misuse(); !right || len(wrong) > 0 {
			return fmt.Errorf("schedule %d of seed %d: right %v, %q", i, seed, right, wrong)
		}
	}
	return nil
}

// Without the waits the bytes are wrong: otherwise the test above would prove nothing.
func TestSchedulesWithoutWaitsGoWrong(t *testing.T) {
	for name, open := range map[string]func(*testing.T, uint64) *world{"host": onHost, "double": onDouble} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, 12))
			w, wrong := open(t, 1), 0
			for range 40 {
				right, err := devicetest.Schedule(random, w.memory, w.lanes, steps, true)
				must(t, err)
				if !right {
					wrong++
				}
			}
			if wrong < 20 {
				t.Fatalf("only %d of 40 careless schedules went wrong", wrong)
			}
			if name == "double" && len(w.misuse()) == 0 {
				t.Fatal("the driver saw nothing")
			}
		})
	}
}
