// Package faultlog writes the faults that GPUs report to the log ring, as long as stores use these GPUs.
package faultlog

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/device/topology"
)

// GPU is a device with its names.
type GPU struct {
	Name  string // in messages
	UUID  string
	PCI   string
	Slice bool // a part of a GPU: it shares the faults of the whole, which is found by its PCI address
}

// Log watches for faults while it has users. The zero value is unusable; see New. All methods are safe for concurrent use.
type Log struct {
	open  func() (topology.Source, error)
	add   func(level logring.Level, message string)
	delay time.Duration

	mu    sync.Mutex
	users map[int][]GPU
	next  int
	stop  chan struct{} // stops the watching goroutine; nil if there is none
}

// New returns a Log that watches through a source from open. It opens a new source for every period of use, and closes it. It opens it only a delay
// after the use began, since that may take locks of the driver that the beginning user needs. Earlier faults are not logged.
func New(open func() (topology.Source, error), add func(level logring.Level, message string), delay time.Duration) *Log {
	return &Log{open: open, add: add, delay: delay, users: map[int][]GPU{}}
}

// Watch begins to log faults of these GPUs, one warning for each, even if several users watch the same GPU. Neither it nor the function that ends it
// waits. That function may be called more than once.
func (l *Log) Watch(gpus []GPU) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	user := l.next
	l.next++
	l.users[user] = slices.Clone(gpus)
	if l.stop == nil {
		stop := make(chan struct{})
		l.stop = stop
		safego.Go("faults of GPUs", func() { l.run(stop) })
	}
	return func() { l.leave(user) }
}

func (l *Log) leave(user int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.users, user)
	if len(l.users) == 0 && l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
}

// run watches until it is stopped, or the source gives up. Without a source there is nothing to log; everything else works.
func (l *Log) run(stop chan struct{}) {
	select {
	case <-stop:
		return
	case <-time.After(l.delay):
	}
	source, err := l.open()
	if err != nil {
		return
	}
	defer func() { _ = source.Close() }()
	places := map[string]string{} // PCI addresses by UUID
	if gpus, err := source.GPUs(); err == nil {
		for _, g := range gpus {
			places[g.UUID] = g.PCI
		}
	}
	err = source.Watch(stop, func(f topology.Fault) { l.tell(stop, f, places[f.UUID]) })
	if err != nil && l.current(stop) {
		l.add(logring.Info, fmt.Sprintf("faults of GPUs are not logged any more: %v", err))
	}
}

// current tells whether this goroutine is the watching one: a stopped one may still run for a moment.
func (l *Log) current(stop chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stop == stop
}

func (l *Log) tell(stop chan struct{}, f topology.Fault, place string) {
	if !l.current(stop) {
		return
	}
	name, used := l.nameOf(f.UUID, place)
	if !used {
		return
	}
	l.add(logring.Warning, fmt.Sprintf("%s reports a fault, XID %d%s", name, f.Code, meaning(f.Code)))
}

// nameOf is the users' name of a GPU; false if none uses it.
func (l *Log) nameOf(uuid, place string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, gpus := range l.users {
		for _, g := range gpus {
			if g.UUID == uuid || g.Slice && g.PCI == place {
				return g.Name, true
			}
		}
	}
	return "", false
}

// meanings are short explanations of the vendor's fault numbers.
var meanings = map[uint64]string{
	13: "a kernel failed, ours or the application's", 31: "a kernel touched memory that is not mapped", 43: "a kernel was stopped",
	45: "the process's work was cancelled", 48: "an error of memory that could not be corrected", 63: "a row of memory was replaced",
	64: "a row of memory could not be replaced", 74: "NVLink failed", 79: "the GPU has fallen off the bus", 92: "many errors of memory were corrected",
	94: "an error of memory hit one application", 95: "an error of memory hit all applications", 119: "the GPU's system processor does not answer",
	120: "the GPU's system processor failed",
}

func meaning(code uint64) string {
	if text, ok := meanings[code]; ok {
		return " (" + text + ")"
	}
	return ""
}
