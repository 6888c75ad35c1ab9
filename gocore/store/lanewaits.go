package store

import (
	"slices"
	"sync"

	"velocpy/gocore/device"
)

// whose says for whom work is put into a lane.
type whose uint8

// The store's own lanes may wait as they like. A caller's stream that waits is time that the caller loses, although no call of his takes longer.
const (
	ours whose = iota
	capturing
	restoring
	callers // how many there are
)

// laneWaits adds up for how long the streams of callers have waited, on a device, for a slot to be left by others (a capture), or for bytes to get there
// (a restore).
type laneWaits struct {
	mu    sync.Mutex
	total [callers]int64 // ns
	open  []laneWait
	next  int // of them, which is looked at next
}

// laneWait lies between two stamps.
type laneWait struct {
	why      whose
	from, to device.Stamp
}

// looks is how many waits are looked at for each that is added: they end sooner than they come.
const looks = 4

// after makes a lane wait for marks and drops them. Of a caller's stream it notes for how long that is.
func (a *accelerator) after(lane device.Lane, marks []device.Mark, why whose) error {
	if why == ours || !slices.ContainsFunc(marks, func(m device.Mark) bool { return !m.Of(lane) }) {
		return after(lane, marks)
	}
	from := stampOf(lane)
	err := after(lane, marks)
	a.waits.add(laneWait{why, from, stampOf(lane)})
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
	w.total[x.why] += max(ns, 0)
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
func (w *laneWaits) sums() [callers]int64 {
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
