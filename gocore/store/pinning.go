package store

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
)

// pinning makes the host tier reachable by the devices at full speed (Maurya et al., HiPC'22): its pages are touched by several threads and
// registered while the store works, by the strategy that is set or that package coldstart chooses. Copies to what has not been registered yet
// work, more slowly.
type pinning struct {
	stop     chan struct{}
	once     sync.Once
	first    chan struct{} // closed when the first capture from a device is queued
	queued   sync.Once
	turn     string   // the file by which processes of a node take turns to register
	seats    []string // and those by which they share its processors for touching …
	most     int      // so many of them at once
	refused  bool     // a warning has been given
	denied   atomic.Bool
	front    frontier
	moving   atomic.Int64 // transfers between devices and the host tier under way: sequential touching pauses for them
	paused   atomic.Int64 // threads that pause
	touched  atomic.Int64 // bytes of the host tier
	active   bool         // a goroutine pins; the store's lock guards it
	strategy atomic.Uint32
	rhythm   rhythm
	rates    pinRates
	member   *vfs.Place // among the processes of the node that make their host tiers ready; nil: not known
}

// pinPiece is what one turn is taken for. It is registered in quarters: a thread that calls the driver meanwhile waits for one of them to end.
const pinPiece = 256 << 20

// pinDelay is how long pinning leaves the process to a first capture. One that comes sooner would wait for the kernel's lock of the address space and
// for the driver's.
const pinDelay = 10 * time.Millisecond

const (
	pinParts = 4
	// pinPause is a pause between two parts. The driver's lock goes to whoever asks first when it comes free, and without a pause that is
	// the registering goroutine again: a thread that called the driver waited until all 8 GiB had been registered (240 ms on an H200).
	pinPause = 150 * time.Microsecond
	// pinCall bounds what is registered in one call when everything is. Memory can be given back only in the parts in which it was registered.
	pinCall = 1 << 30
	// pinAhead bounds the pieces that have been touched and not yet registered.
	pinAhead = 4
)

// startPinning begins. Direct registration ends before the store is used. The lock is held.
func (s *Store) startPinning() {
	if len(s.accelerators) == 0 || s.set.Pinning == "off" {
		return
	}
	s.pin.stop, s.pin.first = make(chan struct{}), make(chan struct{})
	s.pin.turn = s.set.Turns
	if s.pin.turn == "" {
		s.pin.turn = vfs.TurnFile("pinning")
	}
	s.pin.seats, s.pin.most = seatsBeside(s.pin.turn)
	s.joinPinning()
	if s.follow(s.firstStrategy()) == coldstart.Direct {
		s.registerInCalls(part{0, s.host.Size(), pinCall})
		s.leavePinning()
		return
	}
	s.pinBeside(s.awaitFirst)
}

// pinBeside pins what of the host tier's budget is not pinned yet, in a goroutine of its own and after a wait. The lock is held.
func (s *Store) pinBeside(wait func()) {
	s.pin.active = true
	s.users++
	safego.Go("pinning", func() {
		wait()
		s.pinAll()
		s.mu.Lock()
		defer s.leave()
		s.leavePinning()
		s.pin.active = false
		s.users--
		s.pinMore()
		s.hosted.settled = false // the goroutine may have touched pages behind a budget that has become smaller
		tell(s.hosted.bell)
	})
}

// pinMore pins what a budget that has grown adds. The lock is held.
func (s *Store) pinMore() {
	if s.pin.stop == nil || s.pin.active || s.closing || s.pin.denied.Load() || s.pin.front.reached() >= s.pinEnd() {
		return
	}
	s.follow(s.firstStrategy())
	s.pinBeside(func() {})
}

// pinEnd is where pinning ends: the budget, and the chunk that it ends in. The lock is held.
func (s *Store) pinEnd() int64 { return s.pages.whole(s.eng.Capacity(s.hostTier())) }

// pinGoal is pinEnd for callers that do not hold the lock.
func (s *Store) pinGoal() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pinEnd()
}

func (s *Store) stopPinning() {
	if s.pin.stop != nil {
		s.pin.once.Do(func() { close(s.pin.stop) })
	}
}

// awaitFirst returns when the first capture from a device has been queued, or when none has come for a while.
func (s *Store) awaitFirst() {
	select {
	case <-s.pin.first:
	case <-s.pin.stop:
	case <-time.After(pinDelay):
	}
}

// tookFirst tells that a capture from a device has been queued.
func (s *Store) tookFirst() {
	if s.pin.first != nil {
		s.pin.queued.Do(func() { close(s.pin.first) })
	}
}

// part is a range of the host tier that is registered in one turn, so many bytes in one call of the driver.
type part struct{ off, n, call int64 }

// pinAll makes the host tier ready. A goroutine of its own registers, while this one touches the next piece.
func (s *Store) pinAll() {
	defer s.pin.front.halt()
	touched, registered := make(chan part, pinAhead), make(chan struct{})
	safego.Go("registering", func() {
		defer close(registered)
		s.registerAll(touched)
	})
	s.touchAll(func(p part) {
		select {
		case touched <- p:
		case <-s.pin.stop:
		}
	})
	close(touched)
	<-registered
}

// touchAll touches the host tier piece by piece, and hands over what is to be registered: each piece at once, or everything that has been touched
// at the end. The strategy may change between two pieces, and so may the budget.
func (s *Store) touchAll(hand func(part)) {
	team := s.newTouchTeam()
	defer team.dismiss()
	off := s.pin.front.reached()
	kept := off // what lies from kept on has not been handed over
	for goal := s.pinGoal(); off < goal; goal = s.pinGoal() {
		strategy := s.chooseStrategy(off, kept)
		if strategy == coldstart.Direct {
			off = goal
			break
		}
		n := min(s.pieceAt(off), goal-off)
		if s.set.Touching != nil {
			s.set.Touching(off)
		}
		if !s.touch(team, off, n) {
			return
		}
		off += n
		for ; strategy == coldstart.Pipeline && kept < off; kept += n {
			n = min(s.pieceAt(kept), off-kept)
			hand(part{kept, n, max(s.set.PinPiece/pinParts, 1)})
		}
	}
	if kept < off {
		hand(part{kept, off - kept, pinCall})
	}
}

// registerAll registers parts until one is refused. Touching goes on all the same, as it makes pageable copies faster.
func (s *Store) registerAll(touched <-chan part) {
	for p := range touched {
		if !s.pin.denied.Load() && !s.inTurn(p) {
			s.pin.denied.Store(true)
			s.pin.front.halt()
		}
		time.Sleep(pinPause)
	}
}

// pieceAt is what one turn is taken for from a place on: little at first, so that the first flushes find a pinned place.
func (s *Store) pieceAt(off int64) int64 {
	if off < s.set.PinPiece {
		return max(s.set.PinPiece/pinParts, 1)
	}
	return s.set.PinPiece
}

func (s *Store) pinStopped() bool { return isClosed(s.pin.stop) }

// isClosed tells whether a channel has been closed on which nothing is sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// inTurn registers a part while no other process of the node registers: the kernel and the driver do it for one at a time anyway, and each process
// has its first piece sooner. False when that is refused.
func (s *Store) inTurn(p part) bool {
	turn, open := s.takeTurns([]string{s.pin.turn}, 1)
	if !open {
		return false
	}
	defer endAll(turn)
	return s.registerInCalls(p)
}

// registerInCalls registers a part; false when that is refused, or when the store closes.
func (s *Store) registerInCalls(p part) bool {
	for off, end := p.off, p.off+p.n; off < end; off += p.call {
		if off > p.off {
			time.Sleep(pinPause)
		}
		if s.pinStopped() || !s.register(off, min(p.call, end-off)) {
			return false
		}
	}
	return true
}

// register pins a range for every device; false when that is refused. All know of it before the first does: what one has pinned, no copy of
// another may cross.
func (s *Store) register(off, n int64) bool {
	s.pages.pin(off, n)
	if len(s.accelerators) > 1 {
		for _, a := range s.accelerators {
			_ = a.dev.Border(s.host, off, n) // what is wrong, Pin finds too
		}
	}
	began := time.Now()
	for i, a := range s.accelerators {
		err := a.dev.Pin(s.host, off, n)
		if err != nil && i == 0 {
			s.pages.unpinned(off)
		}
		switch {
		case err == nil:
		case errors.Is(err, device.ErrPinning) && !s.pin.refused:
			s.pin.refused = true
			logring.Add(logring.Warning, fmt.Sprintf("the host tier stays pageable from byte %d on, and copies to it slower: %v", off, err))
			return false
		default:
			return false
		}
	}
	s.pages.registered(off, n)
	s.pin.rates.registered(n, time.Since(began))
	s.pin.front.advance(n)
	return true
}

// unregister takes back what one call of register pinned, for all devices; the one that registered it with the driver comes last.
func (s *Store) unregister(p pin) error {
	var failed []error
	for _, a := range slices.Backward(s.accelerators) {
		if err := a.dev.Unpin(s.host, p.off, p.n); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// waitForQuiet waits until no transfer between a device and the host tier is under way.
func (s *Store) waitForQuiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pin.paused.Inc()
	defer s.pin.paused.Dec()
	if _, fixed := s.fixedStrategy(); !fixed { // a choice that does not fit any more must be looked at again
		wake := time.AfterFunc(s.set.PinRest, s.quiet.Broadcast)
		defer wake.Stop()
		for end := time.Now().Add(s.set.PinRest); s.pin.moving.Load() > 0 && !s.closing && time.Now().Before(end); {
			s.quiet.Wait()
		}
		return
	}
	for s.pin.moving.Load() > 0 && !s.closing {
		s.quiet.Wait()
	}
}
