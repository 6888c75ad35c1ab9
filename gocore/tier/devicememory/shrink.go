package devicememory

import (
	"fmt"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier"
)

// When others have left only this part of a device's memory, the tier gives back as much as doubles it. Growth stops long before, so that the two do not alternate.
const (
	scarce = 64 // as divisors of the device's memory
	enough = 32
)

// relieve shrinks the tier when others have come to use nearly all memory of the device.
func (m *Memory) relieve() {
	x := &m.sizing
	free, total, err := m.Device.Memory()
	if err != nil {
		return
	}
	others := m.othersSince(total - free)
	if free >= total/scarce || others <= 0 {
		return
	}
	if m.shorten(total/enough - free) {
		if !x.relieved {
			x.relieved = true
			logring.Add(logring.Warning, fmt.Sprintf("%s has %s left: the cache gives memory back, and takes some again when there is more", m.Device.Name(), quantity.Sized(free)))
		}
		m.giveBack()
	}
}

// othersSince is how many more bytes others use than when the tier took memory last, or than at the least since.
func (m *Memory) othersSince(used int64) int64 {
	x := &m.sizing
	x.mu.Lock()
	defer x.mu.Unlock()
	others := used - m.arena.Mapped()
	more := others - x.others
	x.others = min(x.others, others)
	return more
}

// shorten takes so many bytes, in whole pieces, out of use, counting those that already are; false when there is nothing more to take.
func (m *Memory) shorten(bytes int64) bool {
	m.cache.Lock()
	defer m.cache.Leave()
	x := &m.sizing
	if to := max(x.down(max(x.mapped()-bytes, 0)), x.up(x.floor)); !m.cache.Closing() && !x.fixed.Load() && to < m.cache.Capacity() {
		m.cache.Shrink(to)
		return true
	}
	return false
}

// giveBack empties what lies behind the end of a tier that has shrunk, and gives the empty pieces back, the last ones first.
func (m *Memory) giveBack() {
	for {
		if !m.drain() {
			return
		}
		to, mapped := m.emptied()
		if to == mapped {
			break
		}
		m.release(to, mapped)
	}
	m.endRound()
	m.cache.Resized()
}

// endRound notes how far giving back has come, and begins another round for changes of which the busy goroutine was not notified.
func (m *Memory) endRound() {
	m.cache.Lock()
	defer m.cache.Unlock()
	x := &m.sizing
	x.busy = false
	if m.hasWork() {
		tier.Notify(x.shrink)
		return
	}
	x.settled = m.cache.Settled()
}

// drain does what can be done now to empty the end of the tier; false when the store closes.
func (m *Memory) drain() bool {
	for {
		if more, closing := m.drainSome(); closing || !more {
			return !closing
		}
	}
}

func (m *Memory) drainSome() (more, closing bool) {
	m.cache.Lock()
	defer m.cache.Leave()
	if _, bad := safego.Poisoned(); bad || m.cache.Closing() {
		return false, true
	}
	m.sizing.busy = true
	m.cache.Drain(tier.DrainSteps)
	return m.cache.Draining(), false
}

// emptied says which pieces can be given back: those behind the first offset returned. None are taken until they are released.
func (m *Memory) emptied() (to, mapped int64) {
	x := &m.sizing
	x.mu.Lock()
	defer x.mu.Unlock()
	m.cache.Lock()
	defer m.cache.Unlock()
	mapped = x.mapped()
	if reach := m.cache.Reach(); !m.cache.Closing() && x.hasExcess(reach) {
		x.giving = true
		return x.up(reach), mapped
	}
	return mapped, mapped
}

// release gives memory back when the work that read or wrote there has ended. Nothing lay there when it was called, and nothing will be placed there.
func (m *Memory) release(to, mapped int64) {
	err := m.AwaitRange(to, mapped-to)
	if err == nil {
		_, err = m.arena.Shrink(to)
	}
	x := &m.sizing
	if err != nil {
		x.fixed.Store(true) // another attempt would fail the same way
		if m.Device.Lost() == nil {
			logring.Add(logring.Warning, fmt.Sprintf("%s: the cache cannot give memory back: %v", m.Device.Name(), err))
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.giving = false
	m.cache.Lock()
	defer m.cache.Leave()
	for left := m.arena.Mapped(); x.mapped() > left; {
		x.seams = x.seams[:len(x.seams)-1]
	}
	x.full = false
}
