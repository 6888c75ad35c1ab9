package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

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

// pinPiece is what one turn is taken for. It is registered in quarters: a thread that calls the driver meanwhile waits for one of them to end.
const pinPiece = 256 << 20

const (
	pinParts = 4
	// pinPause is a pause between two parts. The driver's lock goes to whoever asks first when it comes free, and without a pause that is
	// the registering goroutine again: a thread that called the driver waited until all 8 GiB had been registered (240 ms on an H200).
	pinPause = 150 * time.Microsecond
	// pinAhead bounds the pieces that have been touched and not yet registered.
	pinAhead = 4
)

// touchers bounds the threads that touch pages: they are to leave the application some.
const touchers = 12

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
		s.hosted.end = s.host.Size() // some may have been touched behind the budget
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

// part is a range of the host tier.
type part struct{ off, n int64 }

// pinAll touches and registers the host tier. A goroutine of its own registers a piece while the next one is touched. By the strategies of the
// paper everything is registered in one call when all of it has been touched.
func (s *Store) pinAll() {
	defer s.pin.front.halt()
	if s.wholePinning() {
		if s.touchAll(func(part) {}) {
			s.inTurn(part{0, s.host.Size()}, s.host.Size())
		}
		return
	}
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

// touchAll makes all pages of the host tier present and tells of each piece; false when the store closes.
func (s *Store) touchAll(tell func(part)) bool {
	for off, n := int64(0), int64(0); off < s.hostBudget(); off += n {
		n = min(s.pieceAt(off), s.host.Size()-off)
		if !s.touch(off, n) {
			return false
		}
		tell(part{off, n})
	}
	return true
}

// registerAll registers pieces until one is refused. Touching goes on all the same, as it makes pageable copies faster.
func (s *Store) registerAll(touched <-chan part) {
	refused := false
	for p := range touched {
		if refused = refused || !s.inTurn(p, max(s.set.PinPiece/pinParts, 1)); refused {
			s.pin.front.halt()
		}
		time.Sleep(pinPause)
	}
}

// touch makes pages present, by several threads; false when the store closes.
func (s *Store) touch(off, n int64) bool {
	seats, open := s.takeTurns(s.pin.seats, touchers/seatThreads)
	if !open {
		return false
	}
	defer endAll(seats)
	threads := touchThreads(s.set.Copiers)
	if len(seats) > 0 {
		threads = min(threads, len(seats)*seatThreads)
	}
	next, end := atomic.NewInt64(off), off+n
	var all sync.WaitGroup
	for range threads {
		all.Add(1)
		safego.Go("touching", func() {
			defer all.Done()
			numa.Run(s.touchNode(), func() { s.touchShares(next, end) })
		})
	}
	all.Wait()
	return !s.pinStopped()
}

// touchThreads is the number of threads that touch pages: as many as copy, or three of four processors.
func touchThreads(copiers int) int {
	if copiers > 0 {
		return min(copiers+1, touchers)
	}
	return min(max(runtime.GOMAXPROCS(0)*3/4, 1), touchers)
}

// pageShare is what one thread touches between two looks at whether it should go on. It is small, so that no thread of a piece ends long after
// the others.
const pageShare = 4 << 20

// touchShares touches shares of a range that no other thread has taken.
func (s *Store) touchShares(next *atomic.Int64, end int64) {
	for off := next.Add(pageShare) - pageShare; off < end && !s.pinStopped(); off = next.Add(pageShare) - pageShare {
		if s.set.Pinning == "sequential" {
			s.waitForQuiet()
		}
		s.pages.touched(off, min(pageShare, end-off), s.now())
		if s.host.Populate(off, min(pageShare, end-off)) != nil {
			return // no memory left to populate: copies will meet the same and say so
		}
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

// inTurn registers a piece, so many bytes in one call of the driver, while no other process of the node registers: the kernel and the driver do it
// for one at a time anyway, and each process has its first piece sooner. False when that is refused.
func (s *Store) inTurn(p part, atOnce int64) bool {
	turn, open := s.takeTurns([]string{s.pin.turn}, 1)
	if !open {
		return false
	}
	defer endAll(turn)
	for off, end := p.off, p.off+p.n; off < end; off += atOnce {
		if off > p.off {
			time.Sleep(pinPause)
		}
		if s.pinStopped() || !s.register(off, min(atOnce, end-off)) {
			return false
		}
	}
	return true
}

// register pins a range for every device; false when that is refused. All know of it before the first does: what one has pinned, no copy of
// another may cross.
func (s *Store) register(off, n int64) bool {
	s.pages.pins(off, n)
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
