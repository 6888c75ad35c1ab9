package host

import (
	"fmt"
	"sync"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/tier"
)

// resizer keeps the tier to a budget that was changed, and gives free memory back to the system. One goroutine both prefaults pages and gives them back, so that
// neither undoes what the other does. Pinned memory behind the budget is unregistered before it is given back: a device would otherwise read and write pages that
// the process has lost.
type resizer struct {
	*state
	pinner     *pinner
	prefaulter prefaulter

	wake   chan struct{} // there may be something to do
	closed chan struct{} // closed when the store closes
	once   sync.Once

	// Under the cache's lock.
	running   int   // 1 while the goroutine holds the memory
	budget    int64 // the tier's capacity becomes as large once nothing is being unregistered
	unpinning bool
	busy      bool  // the goroutine is at work, and looks at everything once more before it rests
	settled   bool  // nothing more leaves the end of the tier unless the application or a lower tier does something
	trims     int64 // requests to give back all memory that is free
	trimmed   int64 // how many of them are done
}

// idleLooks is how often idle memory is looked for within the time after which it is given back; at most once a millisecond.
const idleLooks = 4

func (r *resizer) start() {
	r.wake, r.closed, r.budget = make(chan struct{}, 1), make(chan struct{}), r.Size()
	r.prefaulter.near = nearThreads(r.o.Devices)
	r.prefaulter.active.Store(!r.pinner.pins()) // pinning prefaults everything
	if r.o.Late {
		r.prefaulter.wait()
	}
	r.running = 1
	r.background("host memory", r.run, func() { r.running = 0 })
}

func (r *resizer) stop() {
	if r.closed != nil {
		r.once.Do(func() { close(r.closed) })
	}
}

// run runs until the store closes, or until a panic has left it in an unknown state.
func (r *resizer) run() {
	var look <-chan time.Time
	if r.o.Idle > 0 {
		ticker := time.NewTicker(max(r.o.Idle/idleLooks, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for !isClosed(r.closed) {
		if r.prefaultSome() {
			continue
		}
		select {
		case <-r.closed:
		case <-look:
			r.giveBackIdle()
		case <-r.wake:
			r.giveBackExcess()
		}
		if _, bad := safego.Poisoned(); bad {
			return
		}
	}
}

// pinningEnded has the goroutine look at everything once more: the one that pinned may have prefaulted pages behind a budget that became smaller meanwhile. The cache's
// lock is held.
func (r *resizer) pinningEnded() {
	r.settled = false
	tier.Notify(r.wake)
}

// giveBackIdle gives back the memory in which no record has lain for the time of Options.Idle.
func (r *resizer) giveBackIdle() {
	if !r.pinner.IsPinning() {
		r.giveBackSince(r.o.Now() - r.o.Idle.Nanoseconds())
	}
}

// giveBackExcess empties the range behind the budget, gives its memory back, and, if a trim was asked for, all memory that is free.
func (r *resizer) giveBackExcess() {
	for r.drainSome() {
	}
	r.unpinExcess()
	r.cache.Lock()
	pinning, trims, since := r.pinner.active, r.trims, int64(-1)
	if trims > r.trimmed {
		since = r.o.Now()
	}
	r.cache.Unlock()
	if !pinning {
		r.giveBackSince(since)
	}
	r.endRound(!pinning, trims)
	r.cache.Resized()
}

// unpinExcess unregisters the pinned ranges behind the budget, in which no record lies and none will.
func (r *resizer) unpinExcess() {
	for p, some := r.beginUnpin(); some; p, some = r.beginUnpin() {
		err := r.pinner.unregister(p)
		if err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("pinned memory of the host tier stays with the process: %v", err))
			r.chunks.refuse()
		} else {
			r.chunks.unpinned(p.off)
			r.watermark.retreat(p.n)
		}
		r.endUnpin()
	}
}

func (r *resizer) beginUnpin() (p pin, some bool) {
	r.cache.Lock()
	defer r.cache.Unlock()
	if r.cache.Closing() || r.pinner.active {
		return pin{}, false
	}
	p, some = r.chunks.unpinnable()
	r.unpinning = some
	return p, some
}

func (r *resizer) endUnpin() {
	r.cache.Lock()
	defer r.cache.Leave()
	r.unpinning = false
	r.grow()
}

// drainSome does a part of what can be done now to empty the range behind the capacity; false when nothing more can, or the store closes.
func (r *resizer) drainSome() (more bool) {
	r.cache.Lock()
	defer r.cache.Leave()
	if _, bad := safego.Poisoned(); bad || r.cache.Closing() {
		return false
	}
	r.busy = true
	r.cache.Drain(tier.DrainSteps)
	return r.cache.Draining()
}

// endRound notes how far giving back has come, and begins another round for changes of which the busy goroutine was not notified.
func (r *resizer) endRound(given bool, trims int64) {
	r.cache.Lock()
	defer r.cache.Unlock()
	r.busy = false
	if given {
		r.trimmed = trims
	}
	if r.hasWork() {
		tier.Notify(r.wake)
		return
	}
	r.settled = given && r.cache.Settled()
}

// hasWork tells whether there is something to empty or to give back now. The cache's lock is held.
func (r *resizer) hasWork() bool {
	if r.cache.Draining() {
		return true
	}
	if r.pinner.active {
		return false // the end of pinning wakes the goroutine
	}
	return r.trims > r.trimmed || r.chunks.hasExcess()
}

// Follow wakes the goroutine when captures have come near the end of the prefaulted pages, or when something can leave the end of a tier that has shrunk. The cache's
// lock is held.
func (r *resizer) Follow() {
	if r.wake == nil || r.cache.Closing() {
		return
	}
	if r.prefaulter.isBehind(r.chunks.reached()) || !r.busy && (r.hasWork() || r.cache.Resizing() && !r.settled) {
		tier.Notify(r.wake)
	}
}

// giveBackSince gives back the chunks that have been free since a time, or that lie behind the budget.
func (r *resizer) giveBackSince(since int64) {
	all := r.chunks.due(since)
	for _, i := range all {
		if isClosed(r.closed) {
			return
		}
		if err := r.chunks.giveBack(i, since, r.mapping.Discard); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("free memory of the host tier stays with the process: %v", err))
			r.chunks.refuse()
			return
		}
	}
	if len(all) > 0 {
		r.prefaulter.restart(r.chunks.start(all[0]), r.chunks.resetPeak())
	}
}

// SetBudget makes the tier keep to another budget. The cache's lock is held.
func (r *resizer) SetBudget(budget int64) {
	r.budget, r.settled = budget, false
	if budget <= r.cache.Capacity() {
		r.cache.Shrink(budget)
		r.chunks.setLimit(budget)
	} else {
		r.grow()
	}
	tier.Notify(r.wake)
}

// grow lets the tier have its budget, unless memory is being unregistered that it would reach. The cache's lock is held.
func (r *resizer) grow() {
	if r.unpinning || r.cache.Closing() || r.budget <= r.cache.Capacity() {
		return
	}
	r.chunks.setLimit(r.budget)
	r.cache.Grow(r.budget)
	r.pinner.pinMore()
}

// CheckBudget is the error of a budget that the tier cannot have.
func (r *resizer) CheckBudget(budget int64) error {
	switch {
	case budget < 0:
		return status.New(status.Invalid, "the budget of host is %s; it cannot be negative", quantity.Exact(budget)).AtTier(status.TierHost)
	case budget > r.Size():
		return status.New(status.Invalid, "a budget of %s for host: the store was opened with %s, and a budget cannot become larger than that", quantity.Exact(budget), quantity.Exact(r.Size())).AtTier(status.TierHost)
	}
	return nil
}

// Trim asks for all free memory to be given back; Trimmed tells whether the request of this number has been carried out. The cache's lock is held.
func (r *resizer) Trim() (request int64) {
	r.trims++
	tier.Notify(r.wake)
	return r.trims
}

func (r *resizer) Trimmed(request int64) bool { return r.trimmed >= request }

// Settled tells whether the tier has its budget, and has given back what it can without the application. The cache's lock is held.
func (r *resizer) Settled() bool {
	return r.budget == r.cache.Capacity() && r.settled && !r.hasWork()
}

// Goroutines is how many lasting goroutines hold the memory for as long as the store is open. The cache's lock is held.
func (r *resizer) Goroutines() int { return r.running }

// InUse is how many bytes the tier may use: its budget, and what still lies behind it. The cache's lock is held.
func (r *resizer) InUse() int64 { return r.cache.Capacity() + r.cache.Behind() }
