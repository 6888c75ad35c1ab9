// Package safego starts every goroutine of the core and keeps the record of its first panic.
//
// A panic that leaves a goroutine would end the whole Python process. Here it poisons the core instead. The text, with all goroutine stacks, is kept,
// and the callbacks of OnPoison run. From then on Poisoned returns true for the rest of the process. Nothing is ever printed.
package safego

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"

	"velocpy/gocore/base/pytext"

	"go.uber.org/atomic"
)

// MaxText bounds the text that Poisoned returns: enough for some hundred goroutines, small enough for the text of an exception.
const MaxText = 64 << 10

// ErrPoisoned marks errors of calls that panicked or that came after a panic.
var ErrPoisoned = errors.New("the core panicked and is in an unknown state")

var core poison

// poison is the once-written record of a panic.
type poison struct {
	set  atomic.Bool // true once text is final
	mu   sync.Mutex
	text string
	wake map[int]func()
	next int
}

// Go runs fn in a new goroutine. A panic in fn poisons the core and ends only that goroutine.
func Go(name string, fn func()) {
	running.add(name, 1)
	go func() {
		defer running.add(name, -1)
		defer func() {
			if v := recover(); v != nil {
				core.record("goroutine "+name, v)
			}
		}()
		fn()
	}()
}

// Running returns the names of the goroutines that Go has started and that have not ended, and how many there are of each name.
func Running() map[string]int { return running.copy() }

var running names

// names counts goroutines by their names.
type names struct {
	mu    sync.Mutex
	count map[string]int
}

func (n *names) add(name string, change int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count == nil {
		n.count = map[string]int{}
	}
	if n.count[name] += change; n.count[name] == 0 {
		delete(n.count, name)
	}
}

func (n *names) copy() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.count)
}

// Poison records v as a panic at where. Only the first one of the process is kept.
func Poison(where string, v any) { core.record(where, v) }

// Poisoned returns the text of the first panic, with the stacks of all goroutines at that time,
// cut to MaxText bytes; false while there was none. It costs one atomic load while there was none.
func Poisoned() (string, bool) { return core.read() }

// OnPoison registers fn to run once, in its own goroutine, when the core is poisoned; at once if it is already. fn wakes waiters. It must not take a
// lock that a goroutine may hold across code that can panic. The returned function removes the registration.
func OnPoison(fn func()) (remove func()) { return core.onPoison(fn) }

// Guard turns a panic of the calling function into an error that wraps ErrPoisoned, and poisons the core. It has to be deferred directly: defer
// safego.Guard("open", &err).
func Guard(where string, errp *error) {
	if v := recover(); v != nil {
		core.record(where, v)
		if errp != nil {
			*errp = fmt.Errorf("%s: %w: %v", where, ErrPoisoned, v)
		}
	}
}

func (p *poison) record(where string, v any) {
	text := describe(where, v)
	p.mu.Lock()
	if p.set.Load() {
		p.mu.Unlock()
		return
	}
	p.text = text
	p.set.Store(true)
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	for _, fn := range wake {
		run(fn)
	}
}

func (p *poison) read() (string, bool) {
	if !p.set.Load() {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text, true
}

func (p *poison) onPoison(fn func()) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set.Load() {
		run(fn)
		return func() {}
	}
	if p.wake == nil {
		p.wake = make(map[int]func())
	}
	id := p.next
	p.next++
	p.wake[id] = fn
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.wake, id)
	}
}

// run gives each callback its own goroutine: one that blocks or panics must not keep the others from running.
func run(fn func()) {
	go func() {
		defer func() { _ = recover() }()
		fn()
	}()
}

// describe puts the panicking goroutine's stack first, like runtime.Stack.
func describe(where string, v any) string {
	head := fmt.Sprintf("panic in %s: %v\n\n", where, v)
	if len(head) > MaxText/4 {
		head = pytext.Cut(head, MaxText/4) + "\n\n"
	}
	stacks := make([]byte, MaxText-len(head))
	return head + string(stacks[:runtime.Stack(stacks, true)])
}
