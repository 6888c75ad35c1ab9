package devicememory

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"velocpy/gocore/device"
)

// Kind is what work in a lane is for. The store's own lanes may wait as long as they like. A caller's stream that waits is time that the caller loses, although
// no call of his takes longer: the waits of captures and restores are counted, by the kind of work that they wait for.
type Kind uint8

const (
	Flushes  Kind = iota // copies of a slot to the host tier
	Loads                // copies to a slot from there, and their verification
	Reads                // copies of a slot to host memory, for callers
	Restores             // copies of a slot in a caller's stream, and all work of such a stream on a lease
	Captures             // copies to a slot in a caller's stream
	Checks               // all other work of the store
	kinds                // how many there are
)

// kindEvent is an event behind work of a known kind, as the account of the memory has it.
type kindEvent struct {
	device.Event
	kind Kind
}

// Keep implements device.Event: an event that is kept is itself.
func (x *kindEvent) Keep() device.Event {
	x.Event.Keep()
	return x
}

// kindOf is the kind of the work before an event of the account.
func kindOf(m device.Event) Kind {
	if x, ok := m.(*kindEvent); ok {
		return x.kind
	}
	return Checks
}

// plain is the event as its device knows it.
func plain(m device.Event) device.Event {
	if x, ok := m.(*kindEvent); ok {
		return x.Event
	}
	return m
}

// Waits are for how long captures and restores (the first index) have waited behind work (the second), ns.
type Waits [kinds][kinds]int64

// waits adds up for how long the streams of callers have waited on the device: a capture for its slot to be left by other work, a restore for bytes to arrive.
type waits struct {
	mu    sync.Mutex
	total Waits
	open  []interval
	next  int // of the open ones: looked at next
}

// interval lies between two stamps.
type interval struct {
	waiting, behind Kind
	from, to        device.Stamp
}

// looks is how many open waits are looked at for each that is added: so they end sooner than they come.
const looks = 4

// after makes a lane wait for events and drops them. Of a caller's stream it notes for how long: the kinds of work are waited for one after the other, so that each
// has the time that it takes longer than those before it.
func (w *waits) after(lane device.Lane, marks []device.Event, waiting Kind) error {
	if waiting != Captures && waiting != Restores {
		return afterAll(lane, marks)
	}
	slices.SortStableFunc(marks, func(x, y device.Event) int { return cmp.Compare(kindOf(x), kindOf(y)) })
	var failed error
	for len(marks) > 0 {
		kind, n := kindOf(marks[0]), 1
		for n < len(marks) && kindOf(marks[n]) == kind {
			n++
		}
		failed = errors.Join(failed, w.afterKind(lane, marks[:n], waiting, kind))
		marks = marks[n:]
	}
	return failed
}

// afterKind is after for events behind one kind of work.
func (w *waits) afterKind(lane device.Lane, marks []device.Event, waiting, kind Kind) error {
	if !slices.ContainsFunc(marks, func(x device.Event) bool { return !x.Of(lane) }) {
		return afterAll(lane, marks)
	}
	from := stampOf(lane)
	err := afterAll(lane, marks)
	w.add(interval{waiting, kind, from, stampOf(lane)})
	return err
}

// stampOf is nil for a lane that takes no stamps: the next work that is put into it returns why.
func stampOf(lane device.Lane) device.Stamp {
	s, err := lane.Stamp()
	if err != nil {
		return nil
	}
	return s
}

func (w *waits) add(x interval) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, x)
	for range looks {
		if len(w.open) == 0 {
			return
		}
		w.next %= len(w.open)
		w.look()
	}
}

// look takes the next open wait out if it has ended, or else goes on to the one behind it.
func (w *waits) look() {
	x := w.open[w.next]
	ns, over, err := x.lasted()
	if !over && err == nil {
		w.next++
		return
	}
	w.total[x.waiting][x.behind] += max(ns, 0)
	x.drop()
	n := len(w.open) - 1
	w.open[w.next] = w.open[n]
	w.open[n] = interval{}
	w.open = w.open[:n]
}

// lasted returns how long the wait was; over: it has ended, or its length will never be known.
func (x interval) lasted() (ns int64, over bool, err error) {
	if x.from == nil || x.to == nil {
		return 0, true, nil
	}
	return x.to.Since(x.from)
}

func (x interval) drop() {
	for _, s := range []device.Stamp{x.from, x.to} {
		if s != nil {
			s.Drop()
		}
	}
}

// Waits are the sums of the waits that have ended, and how many have not. It asks the device about each that is open.
func (w *waits) Waits() (total Waits, open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next = 0; w.next < len(w.open); {
		w.look()
	}
	return w.total, len(w.open)
}

// close drops what is open.
func (w *waits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.open {
		x.drop()
	}
	w.open = nil
}
