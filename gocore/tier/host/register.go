package host

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/coldstart"
	"velocpy/gocore/tier"
)

// pinner pins the memory (Maurya et al., HiPC'22): several threads prefault its pages, one registers them with the devices, while the store works; by the strategy
// that is set, or that package coldstart chooses. Copies to memory that is not registered yet work, but slower.
type pinner struct {
	turns     turns
	once      sync.Once
	first     chan struct{} // closed when the first capture from a device is queued
	queued    sync.Once
	slots     []string    // files of the CPU slots for prefaulting
	mostSlots int         // held at once
	warned    bool        // that pinning was refused
	denied    atomic.Bool // registering was refused, or the store closes: nothing more is registered
	watermark Watermark
	idle      *sync.Cond   // broadcast when transfers may have ended; its lock is the cache's
	moving    atomic.Int64 // transfers between devices and the memory under way: sequential prefaulting pauses for them
	paused    atomic.Int64 // threads that pause
	touched   atomic.Int64 // bytes that were prefaulted to be pinned
	active    bool         // a goroutine pins; under the cache's lock
	strategy  atomic.Uint32
	rhythm    rhythm
	rates     pinRates
	member    *vfs.Place // among the processes of the node that pin; nil: not known
}

// pinPiece is the default of Options.PinPiece. A piece is registered in quarters: a thread that calls the driver meanwhile waits for one of them to end.
const pinPiece = 256 << 20

// pinDelay is how long pinning leaves the process to a first capture, which would otherwise wait for the kernel's lock of the address space and for the driver's.
const pinDelay = 10 * time.Millisecond

const (
	pinParts = 4
	// pinPause is a pause between two parts. The driver's lock goes to the thread that asks first when it comes free, which without a pause is the registering one
	// again: a thread that called the driver waited until all 8 GiB had been registered (240 ms on an H200).
	pinPause = 150 * time.Microsecond
	// pinCall bounds what is registered by one call when everything is. Memory can be given back only in the parts in which it was registered.
	pinCall = 1 << 30
	// pinAhead bounds the pieces that have been prefaulted and not yet registered.
	pinAhead = 4
)

// pins tells whether the memory is pinned at all.
func (m *Memory) pins() bool { return len(m.o.Devices) > 0 && m.o.Pinning != "off" }

// startPinning begins. Direct registration ends before the store is used. The cache's lock is held.
func (m *Memory) startPinning() {
	p := &m.pinner
	p.idle = sync.NewCond(m.cache)
	if !m.pins() {
		return
	}
	p.turns.stop, p.first = make(chan struct{}), make(chan struct{})
	if p.turns.file = m.o.Turns; p.turns.file == "" {
		p.turns.file = vfs.TurnFile("pinning")
	}
	p.slots, p.mostSlots = cpuSlots(p.turns.file)
	m.joinPinning()
	if m.follow(m.firstStrategy()) == coldstart.Direct {
		m.registerInCalls(part{0, m.Size(), pinCall})
		m.leavePinning()
		return
	}
	m.pinInBackground(m.awaitFirst)
}

// pinInBackground pins what of the budget is not pinned yet, in a goroutine and after a wait. The cache's lock is held.
func (m *Memory) pinInBackground(wait func()) {
	m.pinner.active = true
	m.background("pinning", func() {
		wait()
		m.pinAll()
	}, func() {
		m.leavePinning()
		m.pinner.active = false
		m.pinMore()
		m.resizer.settled = false // the goroutine may have prefaulted pages behind a budget that became smaller meanwhile
		tier.Notify(m.resizer.wake)
	})
}

// pinMore pins what a budget that has grown adds. The cache's lock is held.
func (m *Memory) pinMore() {
	p := &m.pinner
	if p.turns.stop == nil || p.active || m.cache.Closing() || p.denied.Load() || p.watermark.End() >= m.pinEnd() {
		return
	}
	m.follow(m.firstStrategy())
	m.pinInBackground(func() {})
}

// pinEnd is where pinning ends: the budget, and the chunk that it ends in. The cache's lock is held.
func (m *Memory) pinEnd() int64 { return m.chunks.roundUp(m.cache.Capacity()) }

// pinGoal is pinEnd for callers that do not hold the lock.
func (m *Memory) pinGoal() int64 {
	m.cache.Lock()
	defer m.cache.Unlock()
	return m.pinEnd()
}

func (m *Memory) stopPinning() {
	p := &m.pinner
	if p.turns.stop != nil {
		p.once.Do(func() { close(p.turns.stop) })
	}
	if p.idle != nil {
		p.idle.Broadcast()
	}
}

// awaitFirst returns when the first capture from a device has been queued, or when none has come for a while.
func (m *Memory) awaitFirst() {
	select {
	case <-m.pinner.first:
	case <-m.pinner.turns.stop:
	case <-time.After(pinDelay):
	}
}

// FirstCapture tells that a capture from a device has been queued.
func (m *Memory) FirstCapture() {
	if m.pinner.first != nil {
		m.pinner.queued.Do(func() { close(m.pinner.first) })
	}
}

// BeginTransfer and EndTransfer count the transfers between devices and the memory. The cache's lock is held.
func (m *Memory) BeginTransfer() { m.pinner.moving.Inc() }

func (m *Memory) EndTransfer() {
	if m.pinner.moving.Dec() == 0 {
		m.pinner.idle.Broadcast()
	}
}

// part is a range that is registered in one turn, so many bytes by one call of the driver.
type part struct{ off, n, call int64 }

// pinAll pins the memory. Another goroutine registers a piece while this one prefaults the next.
func (m *Memory) pinAll() {
	defer m.pinner.watermark.stop()
	ready, registered := make(chan part, pinAhead), make(chan struct{})
	safego.Go("registering", func() {
		defer close(registered)
		m.registerAll(ready)
	})
	m.prefaultAll(func(p part) {
		select {
		case ready <- p:
		case <-m.pinner.turns.stop:
		}
	})
	close(ready)
	<-registered
}

// prefaultAll prefaults the memory piece by piece, and hands over what is to be registered: each piece at once, or everything that was prefaulted at the end. The
// strategy may change between two pieces, and so may the budget.
func (m *Memory) prefaultAll(hand func(part)) {
	pool := m.newPrefaultPool()
	defer pool.close()
	off := m.pinner.watermark.End()
	handed := off // what lies from here on has not been handed over
	for goal := m.pinGoal(); off < goal; goal = m.pinGoal() {
		strategy := m.chooseStrategy(off, handed)
		if strategy == coldstart.Direct {
			off = goal
			break
		}
		n := min(m.pieceAt(off), goal-off)
		if m.o.Prefaulting != nil {
			m.o.Prefaulting(off)
		}
		if !m.prefault(pool, off, n) {
			return
		}
		off += n
		for ; strategy == coldstart.Pipeline && handed < off; handed += n {
			n = min(m.pieceAt(handed), off-handed)
			hand(part{handed, n, max(m.o.PinPiece/pinParts, 1)})
		}
	}
	if handed < off {
		hand(part{handed, off - handed, pinCall})
	}
}

// registerAll registers parts until one is refused. Prefaulting goes on all the same, as it makes pageable copies faster.
func (m *Memory) registerAll(ready <-chan part) {
	for p := range ready {
		if !m.pinner.denied.Load() && !m.registerInTurn(p) {
			m.pinner.denied.Store(true)
			m.pinner.watermark.stop()
		}
		time.Sleep(pinPause)
	}
}

// pieceAt is how many bytes one turn is taken for at an offset: few at first, so that the first flushes find pinned memory.
func (m *Memory) pieceAt(off int64) int64 {
	if off < m.o.PinPiece {
		return max(m.o.PinPiece/pinParts, 1)
	}
	return m.o.PinPiece
}

func (m *Memory) pinStopped() bool { return isClosed(m.pinner.turns.stop) }

// registerInTurn registers a part while no other process of the node registers: the kernel and the driver do it for one at a time anyway, and so each process has
// its first piece sooner. False when that is refused.
func (m *Memory) registerInTurn(p part) bool {
	turn, open := m.pinner.turns.take([]string{m.pinner.turns.file}, 1)
	if !open {
		return false
	}
	defer endAll(turn)
	return m.registerInCalls(p)
}

// registerInCalls registers a part; false when that is refused, or when the store closes.
func (m *Memory) registerInCalls(p part) bool {
	for off, end := p.off, p.off+p.n; off < end; off += p.call {
		if off > p.off {
			time.Sleep(pinPause)
		}
		if m.pinStopped() || !m.register(off, min(p.call, end-off)) {
			return false
		}
	}
	return true
}

// register pins a range for every device; false when that is refused. All devices are told of it before the first pins it: no copy of another device may cross
// the border of a pinned range.
func (m *Memory) register(off, n int64) bool {
	m.chunks.pin(off, n)
	if len(m.o.Devices) > 1 {
		for _, d := range m.o.Devices {
			_ = d.Border(m.mapping, off, n) // Pin finds the same error
		}
	}
	began := time.Now()
	for i, d := range m.o.Devices {
		err := d.Pin(m.mapping, off, n)
		if err != nil && i == 0 {
			m.chunks.unpinned(off)
		}
		switch {
		case err == nil:
		case errors.Is(err, device.ErrPinning) && !m.pinner.warned:
			m.pinner.warned = true
			logring.Add(logring.Warning, fmt.Sprintf("the host tier stays pageable from byte %d on, and copies to it slower: %v", off, err))
			return false
		default:
			return false
		}
	}
	m.chunks.registered(off, n)
	m.pinner.rates.registered(n, time.Since(began))
	m.pinner.watermark.advance(n)
	return true
}

// unregister takes back what one call of register pinned, for all devices. The device that registered the range with the driver comes last.
func (m *Memory) unregister(p pin) error {
	var failed []error
	for _, d := range slices.Backward(m.o.Devices) {
		if err := d.Unpin(m.mapping, p.off, p.n); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
