package host

import (
	"go.uber.org/atomic"

	"velocpy/gocore/base/numa"
	"velocpy/gocore/device"
)

// prefaulter prefaults pages ahead of the range that captures have reached, so that no capture pays for a page fault. Pages that captures never reach are never
// prefaulted: a generous budget costs nothing until it is used. Pages that were given back are prefaulted again when captures come near.
type prefaulter struct {
	active  atomic.Bool
	near    func(work func()) // runs work on the processors of the devices' node
	reached atomic.Int64      // end of the range that captures had reached when they were looked at last
	resting atomic.Bool       // memory was given back, and no capture has come near since
	done    int64             // the pages before it are resident; only the goroutine that prefaults uses it
}

const (
	prefaultFirst = 64 << 20  // prefaulted when the store opens, and the least ahead of the captures afterwards
	prefaultAhead = 512 << 20 // the most ahead of the captures: as much as they have reached, up to this
	prefaultPiece = 32 << 20  // prefaulted by one call
)

// prefaultGoal is the offset up to which pages should be resident when captures have reached an offset.
func prefaultGoal(reached int64) int64 {
	return reached + min(max(reached, prefaultFirst), prefaultAhead)
}

// prefaultSome prefaults one piece; false when nothing is to be done.
func (r *resizer) prefaultSome() bool {
	p := &r.prefaulter
	return p.active.Load() && !p.resting.Load() && p.some(r.capacity(), func(off, n int64) error {
		r.chunks.prefaulted(off, n, r.o.Now())
		return r.mapping.Populate(off, n)
	})
}

// some prefaults the next piece; false when none is wanted.
func (p *prefaulter) some(budget int64, populate func(off, n int64) error) bool {
	n := min(prefaultPiece, budget-p.done)
	if n <= 0 || p.done >= prefaultGoal(p.reached.Load()) {
		return false
	}
	var failed error
	if p.near(func() { failed = populate(p.done, n) }); failed != nil {
		p.active.Store(false) // the system has no memory left: captures will meet the same and return the error
		return false
	}
	p.done += n
	return true
}

// isBehind notes the offset that captures have reached; true when pages are to be prefaulted.
func (p *prefaulter) isBehind(used int64) bool {
	if !p.active.Load() || used < p.reached.Load()+prefaultFirst/2 {
		return false
	}
	p.reached.Store(used)
	p.resting.Store(false)
	return true
}

// wait lets the first use of the memory begin to prefault, in place of the start.
func (p *prefaulter) wait() {
	p.reached.Store(1 - prefaultFirst/2)
	p.resting.Store(true)
}

// restart notes that pages from an offset on were given back, and the end of the bytes in use.
func (p *prefaulter) restart(from, used int64) {
	p.done = min(p.done, from)
	p.reached.Store(used)
	p.resting.Store(true)
}

// nearThreads runs work on the processors of the devices' NUMA node, if they all hang on one, and else on any.
func nearThreads(devices []device.Device) func(work func()) {
	nodes := device.Nodes(devices)
	if len(nodes) != 1 {
		return func(work func()) { work() }
	}
	return func(work func()) { numa.Run(nodes[0], work) }
}
