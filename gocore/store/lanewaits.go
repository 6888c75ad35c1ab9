package store

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"velocpy/gocore/device"
)

// work is what is put into a lane. The store's own lanes may wait as they like. A caller's stream that waits is time that the caller loses, although no
// call of his takes longer: the waits of captures and restores are counted, by the work that they wait for.
type work uint8

const (
	flushes  work = iota // copies of a slot to the host tier
	loads                // copies to a slot from there, and their verification
	reads                // copies of a slot to host memory, for callers
	restores             // copies of a slot in a caller's stream, and whatever such a stream did with a lease
	captures             // copies to a slot in a caller's stream
	checks               // all other work of the store
	works                // how many there are
)

// workMark is a mark behind work of a known kind, as the account of a cache has it.
type workMark struct {
	device.Mark
	kind work
}

// Keep implements device.Mark: a mark that is kept is itself.
func (m *workMark) Keep() device.Mark {
	m.Mark.Keep()
	return m
}

// kindOf is the work before a mark of the account.
func kindOf(m device.Mark) work {
	if x, ok := m.(*workMark); ok {
		return x.kind
	}
	return checks
}

// plain is the mark as its device knows it.
func plain(m device.Mark) device.Mark {
	if x, ok := m.(*workMark); ok {
		return x.Mark
	}
	return m
}

// laneSums are for how long captures and restores (the first index) have waited behind work (the second), ns.
type laneSums [works][works]int64

// causes are the sums of one of the two.
func (s *laneSums) causes(waiting work) Causes {
	w := s[waiting]
	return Causes{Flush: w[flushes], Load: w[loads], Reader: w[reads] + w[restores], Other: w[captures] + w[checks]}
}

func (c Causes) sum() int64 { return c.Flush + c.Load + c.Reader + c.Full + c.Other }

// laneWaits adds up for how long the streams of callers have waited, on a device, for a slot to be left by others (a capture), or for bytes to get there
// (a restore).
type laneWaits struct {
	mu    sync.Mutex
	total laneSums
	open  []laneWait
	next  int // of them, which is looked at next
}

// laneWait lies between two stamps.
type laneWait struct {
	waiting, behind work
	from, to        device.Stamp
}

// looks is how many waits are looked at for each that is added: they end sooner than they come.
const looks = 4

// after makes a lane wait for marks and drops them. Of a caller's stream it notes for how long that is: the kinds of work are waited for one after the
// other, so that each has the time that it takes longer than those before it.
func (a *accelerator) after(lane device.Lane, marks []device.Mark, waiting work) error {
	if waiting != captures && waiting != restores {
		return after(lane, marks)
	}
	slices.SortStableFunc(marks, func(x, y device.Mark) int { return cmp.Compare(kindOf(x), kindOf(y)) })
	var failed error
	for len(marks) > 0 {
		kind, n := kindOf(marks[0]), 1
		for n < len(marks) && kindOf(marks[n]) == kind {
			n++
		}
		failed = errors.Join(failed, a.afterKind(lane, marks[:n], waiting, kind))
		marks = marks[n:]
	}
	return failed
}

// afterKind is after for marks behind one kind of work.
func (a *accelerator) afterKind(lane device.Lane, marks []device.Mark, waiting, kind work) error {
	if !slices.ContainsFunc(marks, func(m device.Mark) bool { return !m.Of(lane) }) {
		return after(lane, marks)
	}
	from := stampOf(lane)
	err := after(lane, marks)
	a.waits.add(laneWait{waiting, kind, from, stampOf(lane)})
	return err
}

// stampOf is nil for a lane that takes none: what is put into it next says why.
func stampOf(lane device.Lane) device.Stamp {
	s, err := lane.Stamp()
	if err != nil {
		return nil
	}
	return s
}

func (w *laneWaits) add(x laneWait) {
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

// look takes out the next one if it has ended, or else goes on to the one behind it.
func (w *laneWaits) look() {
	x := w.open[w.next]
	ns, passed, err := x.lasted()
	if !passed && err == nil {
		w.next++
		return
	}
	w.total[x.waiting][x.behind] += max(ns, 0)
	x.drop()
	n := len(w.open) - 1
	w.open[w.next] = w.open[n]
	w.open[n] = laneWait{}
	w.open = w.open[:n]
}

// lasted tells how long it was; true: it is over, or nobody will ever know.
func (x laneWait) lasted() (ns int64, over bool, err error) {
	if x.from == nil || x.to == nil {
		return 0, true, nil
	}
	return x.to.Since(x.from)
}

func (x laneWait) drop() {
	for _, s := range []device.Stamp{x.from, x.to} {
		if s != nil {
			s.Drop()
		}
	}
}

// sums are those of the waits that have ended.
func (w *laneWaits) sums() laneSums {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.next = 0; w.next < len(w.open); {
		w.look()
	}
	return w.total
}

// close drops what is open.
func (w *laneWaits) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.open {
		x.drop()
	}
	w.open = nil
}
