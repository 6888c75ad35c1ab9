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
	wake chan struct{} // there may be something to do
	stop chan struct{}
	once sync.Once

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

func (m *Memory) startResizer() {
	r := &m.resizer
	r.wake, r.stop, r.budget = make(chan struct{}, 1), make(chan struct{}), m.Size()
	m.prefaulter.near = m.nearThreads()
	m.prefaulter.active.Store(!m.pins()) // pinning prefaults everything
	r.running = 1
	m.background("host memory", m.runResizer, func() { r.running = 0 })
}

func (m *Memory) stopResizer() {
	if m.resizer.stop != nil {
		m.resizer.once.Do(func() { close(m.resizer.stop) })
	}
}

// runResizer runs until the store closes, or until a panic has left it in an unknown state.
func (m *Memory) runResizer() {
	r := &m.resizer
	var look <-chan time.Time
	if m.o.Idle > 0 {
		ticker := time.NewTicker(max(m.o.Idle/idleLooks, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for !isClosed(r.stop) {
		if m.prefaultSome() {
			continue
		}
		select {
		case <-r.stop:
		case <-look:
			m.giveBackIdle()
		case <-r.wake:
			m.giveBackExcess()
		}
		if _, bad := safego.Poisoned(); bad {
			return
		}
	}
}

// giveBackIdle gives back the memory in which no record has lain for the time of Options.Idle.
func (m *Memory) giveBackIdle() {
	if !m.isPinning() {
		m.giveBackSince(m.o.Now() - m.o.Idle.Nanoseconds())
	}
}

// isPinning tells whether goroutines prefault pages to pin them. Nothing is given back meanwhile: they would prefault it again.
func (m *Memory) isPinning() bool {
	m.cache.Lock()
	defer m.cache.Unlock()
	return m.pinner.active
}

// giveBackExcess empties the range behind the budget, gives its memory back, and, if a trim was asked for, all memory that is free.
func (m *Memory) giveBackExcess() {
	for m.drainSome() {
	}
	m.unpinExcess()
	m.cache.Lock()
	pinning, trims, since := m.pinner.active, m.resizer.trims, int64(-1)
	if trims > m.resizer.trimmed {
		since = m.o.Now()
	}
	m.cache.Unlock()
	if !pinning {
		m.giveBackSince(since)
	}
	m.endRound(!pinning, trims)
	m.cache.Resized()
}

// unpinExcess unregisters the pinned ranges behind the budget, in which no record lies and none will.
func (m *Memory) unpinExcess() {
	for p, some := m.beginUnpin(); some; p, some = m.beginUnpin() {
		err := m.unregister(p)
		if err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("pinned memory of the host tier stays with the process: %v", err))
			m.chunks.refuse()
		} else {
			m.chunks.unpinned(p.off)
			m.pinner.watermark.retreat(p.n)
		}
		m.endUnpin()
	}
}

func (m *Memory) beginUnpin() (p pin, some bool) {
	m.cache.Lock()
	defer m.cache.Unlock()
	if m.cache.Closing() || m.pinner.active {
		return pin{}, false
	}
	p, some = m.chunks.unpinnable()
	m.resizer.unpinning = some
	return p, some
}

func (m *Memory) endUnpin() {
	m.cache.Lock()
	defer m.cache.Leave()
	m.resizer.unpinning = false
	m.grow()
}

// drainSome does a part of what can be done now to empty the range behind the capacity; false when nothing more can, or the store closes.
func (m *Memory) drainSome() (more bool) {
	m.cache.Lock()
	defer m.cache.Leave()
	if _, bad := safego.Poisoned(); bad || m.cache.Closing() {
		return false
	}
	m.resizer.busy = true
	m.cache.Drain(tier.DrainSteps)
	return m.cache.Draining()
}

// endRound notes how far giving back has come, and begins another round for changes of which the busy goroutine was not notified.
func (m *Memory) endRound(given bool, trims int64) {
	m.cache.Lock()
	defer m.cache.Unlock()
	r := &m.resizer
	r.busy = false
	if given {
		r.trimmed = trims
	}
	if m.hasWork() {
		tier.Notify(r.wake)
		return
	}
	r.settled = given && m.cache.Settled()
}

// hasWork tells whether there is something to empty or to give back now. The cache's lock is held.
func (m *Memory) hasWork() bool {
	if m.cache.Draining() {
		return true
	}
	if m.pinner.active {
		return false // the end of pinning wakes the goroutine
	}
	return m.resizer.trims > m.resizer.trimmed || m.chunks.hasExcess()
}

// Follow wakes the goroutine when captures have come near the end of the prefaulted pages, or when something can leave the end of a tier that has shrunk. The cache's
// lock is held.
func (m *Memory) Follow() {
	r := &m.resizer
	if r.wake == nil || m.cache.Closing() {
		return
	}
	if m.prefaulter.isBehind(m.chunks.reached()) || !r.busy && (m.hasWork() || m.cache.Resizing() && !r.settled) {
		tier.Notify(r.wake)
	}
}

// giveBackSince gives back the chunks that have been free since a time, or that lie behind the budget.
func (m *Memory) giveBackSince(since int64) {
	all := m.chunks.due(since)
	for _, i := range all {
		if isClosed(m.resizer.stop) {
			return
		}
		if err := m.chunks.giveBack(i, since, m.mapping.Discard); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("free memory of the host tier stays with the process: %v", err))
			m.chunks.refuse()
			return
		}
	}
	if len(all) > 0 {
		m.prefaulter.restart(m.chunks.start(all[0]), m.chunks.resetPeak())
	}
}

// SetBudget makes the tier keep to another budget. The cache's lock is held.
func (m *Memory) SetBudget(budget int64) {
	r := &m.resizer
	r.budget, r.settled = budget, false
	if budget <= m.cache.Capacity() {
		m.cache.Shrink(budget)
		m.chunks.setLimit(budget)
	} else {
		m.grow()
	}
	tier.Notify(r.wake)
}

// grow lets the tier have its budget, unless memory is being unregistered that it would reach. The cache's lock is held.
func (m *Memory) grow() {
	r := &m.resizer
	if r.unpinning || m.cache.Closing() || r.budget <= m.cache.Capacity() {
		return
	}
	m.chunks.setLimit(r.budget)
	m.cache.Grow(r.budget)
	m.pinMore()
}

// CheckBudget is the error of a budget that the tier cannot have.
func (m *Memory) CheckBudget(budget int64) error {
	switch {
	case budget < 0:
		return status.New(status.Invalid, "the budget of host is %s; it cannot be negative", quantity.Exact(budget)).AtTier(status.TierHost)
	case budget > m.Size():
		return status.New(status.Invalid, "a budget of %s for host: the store was opened with %s, and a budget cannot become larger than that", quantity.Exact(budget), quantity.Exact(m.Size())).AtTier(status.TierHost)
	}
	return nil
}

// Trim asks for all free memory to be given back; Trimmed tells whether the request of this number has been carried out. The cache's lock is held.
func (m *Memory) Trim() (request int64) {
	m.resizer.trims++
	tier.Notify(m.resizer.wake)
	return m.resizer.trims
}

func (m *Memory) Trimmed(request int64) bool { return m.resizer.trimmed >= request }

// Settled tells whether the tier has its budget, and has given back what it can without the application. The cache's lock is held.
func (m *Memory) Settled() bool {
	return m.resizer.budget == m.cache.Capacity() && m.resizer.settled && !m.hasWork()
}

// InUse is how many bytes the tier may use: its budget, and what still lies behind it. The cache's lock is held.
func (m *Memory) InUse() int64 { return m.cache.Capacity() + m.cache.Behind() }
