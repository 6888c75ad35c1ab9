package store

import (
	"errors"
	"fmt"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/device"
	"velocpy/gocore/logring"
	"velocpy/gocore/numa"
	"velocpy/gocore/safego"
	"velocpy/gocore/vfs"
)

// pinning makes the host tier reachable by the devices at full speed (seed 004): its pages are touched by several threads and registered
// piece by piece while the store works. Copies to what has not been registered yet work, more slowly.
type pinning struct {
	stop    chan struct{}
	once    sync.Once
	turn    string   // the file by which processes of a node take turns to register
	seats   []string // and those by which they share its processors for touching
	refused bool
	front   frontier
	moving  atomic.Int64 // transfers between devices and the host tier under way: the sequential strategy pauses for them
}

// pinPiece is what is registered at once: large enough that the driver's own cost does not count, and small enough that nobody waits long.
const pinPiece = 256 << 20

// touchers bounds the threads that touch pages: they are to leave the application some.
const touchers = 8

// startPinning begins, as the strategy says. The direct one pins everything before the store is used.
func (s *Store) startPinning() {
	if len(s.accelerators) == 0 || s.set.Pinning == "off" {
		return
	}
	s.pin.stop = make(chan struct{})
	if s.set.Pinning == "direct" {
		s.register(0, s.host.Size())
		return
	}
	s.pin.turn = s.set.Turns
	if s.pin.turn == "" {
		s.pin.turn = vfs.TurnFile("pinning")
	}
	if s.set.Pinning != "sequential" { // which keeps touching for long, and with few threads at work
		s.pin.seats = seatsBeside(s.pin.turn)
	}
	if !s.wholePinning() {
		s.pin.front.set(s.set.PinRest)
	}
	s.users++
	safego.Go("pinning", func() {
		s.pinAll()
		s.mu.Lock()
		defer s.leave()
		s.users--
	})
}

func (s *Store) stopPinning() {
	if s.pin.stop != nil {
		s.pin.once.Do(func() { close(s.pin.stop) })
	}
}

// wholePinning tells whether everything is registered at the end, as the strategies of the paper do.
func (s *Store) wholePinning() bool {
	return s.set.Pinning == "concurrent" || s.set.Pinning == "sequential"
}

// pinAll touches and registers the host tier: piece by piece, or, by the strategies of the paper, everything when all of it has been touched.
// The two take turns: registering while other threads touch pages waits for the kernel's lock of the address space, and whoever calls the
// driver meanwhile waits with it (measured: several times the blocked time).
func (s *Store) pinAll() {
	defer s.pin.front.halt()
	whole := s.wholePinning()
	for off, n := int64(0), int64(0); off < s.host.Size(); off += n {
		n = min(s.pieceAt(off), s.host.Size()-off)
		if !s.touch(off, n) {
			return
		}
		if !whole && !s.inTurn(off, n) {
			whole = true // refused: touching goes on all the same, it makes pageable copies faster
			s.pin.front.halt()
		}
	}
	if whole && s.pin.front.reached() == 0 && !s.pin.refused && !s.pinStopped() {
		s.inTurn(0, s.host.Size())
	}
}

// touch makes pages present, by several threads; false when the store closes.
func (s *Store) touch(off, n int64) bool {
	seats, open := s.takeTurns(s.pin.seats, touchers/seatThreads)
	if !open {
		return false
	}
	defer endAll(seats)
	threads := int64(min(helpers(s.set.Copiers)+1, touchers))
	if len(seats) > 0 {
		threads = min(threads, int64(len(seats)*seatThreads))
	}
	share := (n/threads + pageShare - 1) / pageShare * pageShare
	var all sync.WaitGroup
	for from := off; from < off+n; from += share {
		all.Add(1)
		safego.Go("touching", func() {
			defer all.Done()
			numa.Run(s.touchNode(), func() { s.touchShare(from, min(share, off+n-from)) })
		})
	}
	all.Wait()
	return !s.pinStopped()
}

// pageShare is what one thread touches between two looks at whether it should go on.
const pageShare = 16 << 20

func (s *Store) touchShare(off, n int64) {
	for end := off + n; off < end && !s.pinStopped(); off += pageShare {
		if s.set.Pinning == "sequential" {
			s.waitForQuiet()
		}
		if s.host.Populate(off, min(pageShare, end-off)) != nil {
			return // no memory left to populate: copies will meet the same and say so
		}
	}
}

// pieceAt is what is registered at once from a place on: little at first, so that the first flushes find a pinned place.
func (s *Store) pieceAt(off int64) int64 {
	if off < s.set.PinPiece {
		return max(s.set.PinPiece/4, 1)
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

// inTurn registers while no other process of the node does: the kernel and the driver do it for one at a time anyway, and everybody's first
// piece is there sooner. Nobody's caller waits for that.
func (s *Store) inTurn(off, n int64) bool {
	turn, open := s.takeTurns([]string{s.pin.turn}, 1)
	if !open {
		return false
	}
	defer endAll(turn)
	return s.register(off, n)
}

// register pins a range for every device; false when that is refused. All know of it before the first does: what one has pinned, no copy of
// another may cross.
func (s *Store) register(off, n int64) bool {
	if len(s.accelerators) > 1 {
		for _, a := range s.accelerators {
			_ = a.dev.Border(s.host, off, n) // what is wrong, Pin finds too
		}
	}
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
	s.pin.front.advance(n)
	return true
}

// waitForQuiet waits until no transfer between a device and the host tier is under way.
func (s *Store) waitForQuiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.pin.moving.Load() > 0 && !s.closing {
		s.quiet.Wait()
	}
}
