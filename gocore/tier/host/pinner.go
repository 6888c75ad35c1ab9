package host

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/coldstart"
)

// pinner pins the memory (Maurya et al., HiPC'22): several threads prefault its pages, one registers them with the devices, while the store works; by the strategy
// that is set, or that package coldstart chooses. Copies to memory that is not registered yet work, but slower.
type pinner struct {
	*state
	transfers *transfers
	chooser   *chooser
	ended     func() // called when a goroutine that pins has ended; the cache's lock is held

	turns     turns
	once      sync.Once
	first     chan struct{} // closed when the first capture from a device is queued
	queued    sync.Once
	slots     []string     // files of the CPU slots for prefaulting
	mostSlots int          // held at once
	warned    bool         // that pinning was refused
	denied    atomic.Bool  // registering was refused, or the store closes: nothing more is registered
	touched   atomic.Int64 // bytes that were prefaulted to be pinned
	active    bool         // a goroutine pins; under the cache's lock
}

// pinPiece is the default of Options.PinPiece. All threads have prefaulted their last share of a piece before any begins with the next. A piece is registered in parts: a
// thread that calls the driver meanwhile waits for one of them to end.
const pinPiece = 512 << 20

// pinDelay is how long pinning leaves the process to a first capture, which would otherwise wait for the kernel's lock of the address space and for the driver's.
const pinDelay = 10 * time.Millisecond

const (
	pinParts = 8
	// pinPause is a pause between two parts. The driver's lock goes to the thread that asks first when it comes free, which without a pause is the registering one
	// again: a thread that called the driver waited until all 8 GiB had been registered (240 ms on an H200). The kernel adds some 50 µs: a
	// thread has to wake up meanwhile.
	pinPause = 20 * time.Microsecond
	// pinCall bounds what is registered by one call when everything is. Memory can be given back only in the parts in which it was registered.
	pinCall = 1 << 30
	// pinAhead bounds the pieces that have been prefaulted and not yet registered.
	pinAhead = 8
)

// pins tells whether the memory is pinned at all.
func (p *pinner) pins() bool { return len(p.o.Devices) > 0 && p.o.Pinning != "off" }

// start begins to pin. Direct registration ends before the store is used. The cache's lock is held.
func (p *pinner) start() {
	if !p.pins() {
		return
	}
	p.turns.stop, p.first = make(chan struct{}), make(chan struct{})
	if p.turns.file = p.o.Turns; p.turns.file == "" {
		p.turns.file = vfs.TurnFile("pinning")
	}
	p.slots, p.mostSlots = cpuSlots(p.turns.file)
	p.chooser.members.join(&p.turns)
	if p.chooser.follow(p.chooser.first()) == coldstart.Direct {
		p.registerInCalls(part{0, p.Size(), pinCall})
		p.chooser.members.leave()
		return
	}
	p.pinInBackground(p.awaitFirst)
}

// pinInBackground pins what of the budget is not pinned yet, in a goroutine and after a wait. The cache's lock is held.
func (p *pinner) pinInBackground(wait func()) {
	p.active = true
	p.background("pinning", func() {
		wait()
		p.pinAll()
	}, func() {
		p.chooser.members.leave()
		p.active = false
		p.pinMore()
		p.ended()
	})
}

// pinMore pins what a budget that has grown adds. The cache's lock is held.
func (p *pinner) pinMore() {
	if p.turns.stop == nil || p.active || p.cache.Closing() || p.denied.Load() || p.watermark.End() >= p.pinEnd() {
		return
	}
	p.chooser.follow(p.chooser.first())
	p.pinInBackground(func() {})
}

// IsPinning tells whether goroutines prefault pages to pin them. Nothing is given back meanwhile: they would prefault it again.
func (p *pinner) IsPinning() bool {
	p.cache.Lock()
	defer p.cache.Unlock()
	return p.active
}

// Advanced is how many bytes have been prefaulted, and registered: it grows while pinning gets on.
func (p *pinner) Advanced() int64 { return p.touched.Load() + p.watermark.End() }

// pinEnd is where pinning ends: the budget, and the chunk that it ends in. The cache's lock is held.
func (p *pinner) pinEnd() int64 { return p.chunks.roundUp(p.cache.Capacity()) }

// pinGoal is pinEnd for callers that do not hold the lock.
func (p *pinner) pinGoal() int64 {
	p.cache.Lock()
	defer p.cache.Unlock()
	return p.pinEnd()
}

// stop ends pinning; it does not wait for it.
func (p *pinner) stop() {
	if p.turns.stop != nil {
		p.once.Do(func() { close(p.turns.stop) })
	}
}

// awaitFirst returns when the first capture from a device has been queued, or when none has come for a while.
func (p *pinner) awaitFirst() {
	select {
	case <-p.first:
	case <-p.turns.stop:
	case <-time.After(pinDelay):
	}
}

// FirstCapture tells that a capture from a device has been queued.
func (p *pinner) FirstCapture() {
	if p.first != nil {
		p.queued.Do(func() { close(p.first) })
	}
}

// part is a range that is registered in one turn, so many bytes by one call of the driver.
type part struct{ off, n, call int64 }

// pinAll pins the memory. Another goroutine registers a piece while this one prefaults the next.
func (p *pinner) pinAll() {
	defer p.watermark.stop()
	ready, registered := make(chan part, pinAhead), make(chan struct{})
	safego.Go("registering", func() {
		defer close(registered)
		p.registerAll(ready)
	})
	p.prefaultAll(func(x part) {
		select {
		case ready <- x:
		case <-p.turns.stop:
		}
	})
	close(ready)
	<-registered
}

// prefaultAll prefaults the memory piece by piece, and hands over what is to be registered: each piece at once, or everything that was prefaulted at the end. The
// strategy may change between two pieces, and so may the budget.
func (p *pinner) prefaultAll(hand func(part)) {
	pool := newPrefaultPool(prefaultThreads(p.o.Copiers), nearThreads(p.o.Devices))
	defer pool.close()
	off := p.watermark.End()
	handed := off // what lies from here on has not been handed over
	for goal := p.pinGoal(); off < goal; goal = p.pinGoal() {
		strategy := p.chooser.current()
		if !p.denied.Load() {
			strategy = p.chooser.choose(off, handed)
		}
		if strategy == coldstart.Direct {
			off = goal
			break
		}
		n := min(p.pieceAt(off), goal-off)
		if p.o.Prefaulting != nil {
			p.o.Prefaulting(off)
		}
		if !p.prefault(pool, off, n) {
			return
		}
		off += n
		for ; strategy == coldstart.Pipeline && handed < off; handed += n {
			n = min(p.pieceAt(handed), off-handed)
			hand(part{handed, n, max(p.o.PinPiece/pinParts, 1)})
		}
	}
	if handed < off {
		hand(part{handed, off - handed, pinCall})
	}
}

// registerAll registers parts until one is refused. Prefaulting goes on all the same, as it makes pageable copies faster.
func (p *pinner) registerAll(ready <-chan part) {
	for x := range ready {
		if !p.denied.Load() && !p.registerInTurn(x) {
			p.denied.Store(true)
			p.watermark.stop()
		}
		leaveDriver()
	}
}

// leaveDriver lets other threads call the driver, for pinPause. The runtime's own sleep takes a millisecond where no other goroutine is ready, as long as a part.
func leaveDriver() {
	t := unix.NsecToTimespec(int64(pinPause))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // a signal ends the pause early
}

// pieceAt is how many bytes one turn is taken for at an offset: few at first, so that the first flushes find pinned memory.
func (p *pinner) pieceAt(off int64) int64 {
	if off < p.o.PinPiece {
		return max(p.o.PinPiece/pinParts, 1)
	}
	return p.o.PinPiece
}

func (p *pinner) isStopped() bool { return isClosed(p.turns.stop) }

// registerInTurn registers a part while no other process of the node registers: the kernel and the driver do it for one at a time anyway, and so each process has
// its first piece sooner. False when that is refused.
func (p *pinner) registerInTurn(x part) bool {
	turn, open := p.turns.take([]string{p.turns.file}, 1)
	if !open {
		return false
	}
	defer endAll(turn)
	return p.registerInCalls(x)
}

// registerInCalls registers a part; false when that is refused, or when the store closes.
func (p *pinner) registerInCalls(x part) bool {
	for off, end := x.off, x.off+x.n; off < end; off += x.call {
		if off > x.off {
			leaveDriver()
		}
		if p.isStopped() || !p.register(off, min(x.call, end-off)) {
			return false
		}
	}
	return true
}

// register pins a range for every device; false when that is refused. All devices are told of it before the first pins it: no copy of another device may cross
// the border of a pinned range.
func (p *pinner) register(off, n int64) bool {
	p.chunks.pin(off, n)
	if len(p.o.Devices) > 1 {
		for _, d := range p.o.Devices {
			_ = d.Border(p.mapping, off, n) // Pin finds the same error
		}
	}
	began := time.Now()
	for i, d := range p.o.Devices {
		err := d.Pin(p.mapping, off, n)
		if err != nil && i == 0 {
			p.chunks.unpinned(off)
		}
		switch {
		case err == nil:
		case errors.Is(err, device.ErrPinning) && !p.warned:
			p.warned = true
			logring.Add(logring.Warning, fmt.Sprintf("the host tier stays pageable from byte %d on, and copies to it slower: %v", off, err))
			return false
		default:
			return false
		}
	}
	p.chunks.registered(off, n)
	p.chooser.rates.registered(n, time.Since(began))
	p.watermark.advance(n)
	return true
}

// unregister takes back what one call of register pinned, for all devices. The device that registered the range with the driver comes last.
func (p *pinner) unregister(x pin) error {
	var failed []error
	for _, d := range slices.Backward(p.o.Devices) {
		if err := d.Unpin(p.mapping, x.off, x.n); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
