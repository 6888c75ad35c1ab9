package devicememory

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
)

// grower takes memory in the background, ahead of the captures, never beyond the budget and never into the last part of the device's memory.
type grower struct {
	*sizing
	grow   chan struct{} // more memory is wanted
	warned bool          // that the tier is smaller than its budget

	// Under the cache's lock.
	refused int64 // until then (ns) the device is not asked for more
	full    bool  // what is left of the budget is smaller than a piece
}

const (
	growFirst  = 8 << 30  // mapped when the store opens: later the driver may be busy registering host memory, and captures would wait
	spareShare = 16       // this part of the device's memory (as a divisor) stays free for the application
	growAhead  = 64 << 20 // at least so many mapped bytes lie ahead of those in use
)

// reserve sets addresses aside and maps the memory that the first captures need; a GiB takes a tenth of a millisecond.
func (g *grower) reserve(budget int64) (err error) {
	g.budget.Store(budget)
	g.reserved = budget
	if g.arena, err = g.device.Reserve(budget); err != nil {
		return err
	}
	for g.seams.mapped() < min(budget, growFirst) {
		grown, err := g.arena.Grow(budget)
		if err != nil && !errors.Is(err, device.ErrMemory) {
			return err
		}
		if err != nil || grown == g.seams.mapped() { // or else what is left of the budget is smaller than what the device maps
			break
		}
		g.seams = append(g.seams, grown)
	}
	if g.seams.mapped() == 0 {
		g.warnSmall()
	}
	free, total, err := g.device.Memory()
	g.others = total - free - g.seams.mapped()
	return err
}

// warnSmall logs, once, that the tier is smaller than its budget.
func (g *grower) warnSmall() {
	if !g.warned {
		g.warned = true
		logring.Add(logring.Warning, fmt.Sprintf("%s has no memory left for the cache: it stays at %s of %s until there is some", g.device.Name(), quantity.Sized(g.arena.Mapped()), quantity.Sized(g.budget.Load())))
	}
}

// growSome takes one piece; true when the device has no memory for it.
func (g *grower) growSome() (hungry bool) {
	err := g.growOnce()
	if errors.Is(err, device.ErrMemory) {
		g.warnSmall()
		return true
	}
	return false
}

// Grow takes one piece at once, if the budget and the application allow it, before anything is evicted. It is no error if they do not.
func (g *grower) Grow() error {
	if err := g.growOnce(); err != nil && !errors.Is(err, device.ErrMemory) {
		return Explain(err)
	}
	return nil
}

// IsShortOf tells whether the tier should have more memory for a checkpoint of so many bytes. The cache's lock is held.
func (g *grower) IsShortOf(bytes int64) bool {
	capacity := g.cache.Capacity()
	return capacity-g.cache.Used() < 2*bytes && g.mayGrow(capacity)
}

// mayGrow tells whether it is worthwhile to ask for more memory. The cache's lock is held.
func (g *grower) mayGrow(capacity int64) bool {
	return capacity < g.budget.Load() && !g.full && (g.refused == 0 || g.o.Now() >= g.refused)
}

// growOnce takes one piece, if the application leaves any. Memory that is being given back comes first.
func (g *grower) growOnce() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := device.ErrMemory
	if !g.giving {
		err = g.takePiece()
	}
	if err != nil {
		g.cache.Lock()
		defer g.cache.Unlock()
		g.refused = g.o.Now() + g.o.LookEvery.Nanoseconds()
	}
	return err
}

// takePiece is growOnce while nothing is given back.
func (g *grower) takePiece() error {
	free, total, err := g.device.Memory()
	if err != nil {
		return err
	}
	mapped, budget := g.arena.Mapped(), g.budget.Load()
	allowed := mapped + free - total/spareShare
	if g.hasShrunk() {
		if allowed < mapped {
			return device.ErrMemory
		}
		g.lengthen(mapped)
		return nil
	}
	limit := min(budget, allowed)
	grown, err := g.arena.Grow(max(limit, mapped))
	switch {
	case err != nil:
		return err
	case grown == mapped && limit < budget:
		return device.ErrMemory
	}
	g.others = total - free - mapped
	g.lengthen(grown)
	return nil
}

// hasShrunk tells whether pieces that are still mapped could be used again.
func (g *grower) hasShrunk() bool {
	g.cache.Lock()
	defer g.cache.Unlock()
	return !g.cache.Closing() && g.cache.Capacity() < g.seams.down(g.budget.Load())
}

// lengthen makes the tier use what is mapped, as far as the budget goes.
func (g *grower) lengthen(mapped int64) {
	g.cache.Lock()
	defer g.cache.Leave()
	if g.cache.Closing() {
		return
	}
	if mapped > g.seams.mapped() {
		g.seams = append(g.seams, mapped)
	}
	capacity := g.seams.down(g.budget.Load())
	g.full = capacity <= g.cache.Capacity()
	g.refused = 0
	g.cache.Grow(capacity)
}
