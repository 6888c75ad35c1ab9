package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/coldstart"
	"velocpy/gocore/device"
	"velocpy/gocore/logring"
	"velocpy/gocore/safego"
	"velocpy/gocore/vfs"
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
		s.register(0, s.host.Size())
		s.leavePinning()
		return
	}
	s.users++
	safego.Go("pinning", func() {
		s.awaitFirst()
		s.pinAll()
		s.mu.Lock()
		defer s.leave()
		s.leavePinning()
		s.users--
	})
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
// in one call at the end. The strategy may change between two pieces.
func (s *Store) touchAll(hand func(part)) {
	team := s.newTouchTeam()
	defer team.dismiss()
	size, kept := s.host.Size(), int64(0) // what lies from kept on has not been handed over
	for off := int64(0); off < size; {
		strategy := s.chooseStrategy(off, kept)
		if strategy == coldstart.Direct {
			break
		}
		n := min(s.pieceAt(off), size-off)
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
	if kept < size {
		hand(part{kept, size - kept, size - kept})
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

func (s *Store) pinStopped() bool {
	select {
	case <-s.pin.stop:
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
	if len(s.accelerators) > 1 {
		for _, a := range s.accelerators {
			_ = a.dev.Border(s.host, off, n) // what is wrong, Pin finds too
		}
	}
	began := time.Now()
	for _, a := range s.accelerators {
		err := a.dev.Pin(s.host, off, n)
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
	s.pin.rates.registered(n, time.Since(began))
	s.pin.front.advance(n)
	return true
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
