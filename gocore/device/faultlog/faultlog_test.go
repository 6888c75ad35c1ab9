package faultlog

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/device/topology"
)

// source delivers faults that the test sends; told signals when each has been handled.
type source struct {
	gpus   []topology.GPU
	faults chan topology.Fault
	told   chan struct{}
	broken chan error
	closed chan struct{}
	watch  chan struct{} // one signal for each watch that began
}

func newSource(gpus ...topology.GPU) *source {
	return &source{gpus, make(chan topology.Fault), make(chan struct{}), make(chan error), make(chan struct{}, 9), make(chan struct{}, 9)}
}

func (s *source) Driver() (string, error)        { return "", nil }
func (s *source) GPUs() ([]topology.GPU, error)  { return s.gpus, nil }
func (s *source) open() (topology.Source, error) { return s, nil }
func (s *source) Close() error                   { s.closed <- struct{}{}; return nil }
func (s *source) Watch(stop <-chan struct{}, f func(topology.Fault)) error {
	s.watch <- struct{}{}
	for {
		select {
		case <-stop:
			return nil
		case err := <-s.broken:
			return err
		case fault := <-s.faults:
			f(fault)
			s.told <- struct{}{}
		}
	}
}

func (s *source) report(uuid string, code uint64) {
	s.faults <- topology.Fault{UUID: uuid, Code: code}
	<-s.told
}

type records struct {
	mu  sync.Mutex
	all []string
}

func (r *records) add(level logring.Level, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, map[logring.Level]string{logring.Warning: "warning: ", logring.Info: "info: "}[level]+message)
}

func (r *records) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func TestOneWarningForEachFaultOfAGPUInUse(t *testing.T) {
	s, r := newSource(topology.GPU{UUID: "GPU-1"}, topology.GPU{UUID: "GPU-2", PCI: "bus 2"}), &records{}
	l := New(s.open, r.add, 0)
	end := l.Watch([]GPU{{Name: "cuda:0", UUID: "GPU-1"}})
	again := l.Watch([]GPU{{Name: "cuda:0", UUID: "GPU-1"}, {Name: "cuda:1", UUID: "MIG-7", PCI: "bus 2", Slice: true}})
	<-s.watch
	s.report("GPU-1", 79)
	s.report("GPU-1", 9999)
	s.report("GPU-2", 48)
	s.report("GPU-3", 79) // of a GPU without users
	want := []string{"warning: cuda:0 reports a fault, XID 79 (the GPU has fallen off the bus)", "warning: cuda:0 reports a fault, XID 9999", "warning: cuda:1 reports a fault, XID 48"}
	got := r.take()
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q instead of %q", got[i], want[i])
		}
	}
	again()
	again()
	s.report("GPU-2", 48)
	if got := r.take(); len(got) != 0 {
		t.Errorf("of a GPU that nobody uses any more: %q", got)
	}
	end()
	<-s.closed
	if len(s.watch) != 0 {
		t.Error("watched twice at once")
	}
}

func TestEndingWaitsForNothing(t *testing.T) {
	entered, held := make(chan struct{}), make(chan struct{})
	r := &records{}
	s := newSource()
	l := New(func() (topology.Source, error) { entered <- struct{}{}; <-held; return s, nil }, r.add, 0) // a library that loads slowly
	for range 2 {
		end := l.Watch([]GPU{{UUID: "GPU-1"}})
		<-entered
		end()
	}
	close(held)
	<-s.closed
	<-s.closed
	if got := r.take(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestTheSourceIsLeftAloneAtFirst(t *testing.T) {
	opened := make(chan struct{})
	l := New(func() (topology.Source, error) { close(opened); return nil, topology.ErrUnknown }, (&records{}).add, time.Hour)
	end := l.Watch(nil)
	select {
	case <-opened:
		t.Error("opened at once")
	case <-time.After(20 * time.Millisecond):
	}
	end()
	select {
	case <-opened:
		t.Error("opened when it was over")
	case <-time.After(20 * time.Millisecond):
	}
}

// A stopped watcher that has not noticed it must not report its successor's faults.
func TestTheStoppedOneIsSilent(t *testing.T) {
	s, r := newSource(), &records{}
	l := New(s.open, r.add, 0)
	gpus := []GPU{{Name: "cuda:0", UUID: "GPU-1"}}
	l.Watch(gpus)()
	end := l.Watch(gpus)
	defer end()
	l.tell(make(chan struct{}), topology.Fault{UUID: "GPU-1", Code: 1}, "")
	if got := r.take(); len(got) != 0 {
		t.Errorf("the stopped one told %q", got)
	}
	l.tell(l.stop, topology.Fault{UUID: "GPU-1", Code: 1}, "")
	if got := r.take(); len(got) != 1 {
		t.Errorf("its successor told %q", got)
	}
}

func TestSourcesThatFail(t *testing.T) {
	r := &records{}
	l := New(func() (topology.Source, error) { return nil, topology.ErrUnknown }, r.add, 0)
	l.run(make(chan struct{}))
	if got := r.take(); len(got) != 0 {
		t.Errorf("a machine without the library is told of it: %q", got)
	}
	s := newSource()
	l = New(s.open, r.add, 0)
	end := l.Watch(nil)
	<-s.watch
	s.broken <- errors.New("gone")
	<-s.closed
	if got := r.take(); len(got) != 1 || got[0] != "info: faults of GPUs are not logged any more: gone" {
		t.Errorf("%q", got)
	}
	end()
}
