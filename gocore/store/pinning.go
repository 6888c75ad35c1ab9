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
	first   chan struct{} // closed when the first capture from a device is queued
	queued  sync.Once
	turn    string   // the file by which processes of a node take turns to register
	seats   []string // and those by which they share its processors for touching
	refused bool
	front   frontier
	moving  atomic.Int64 // transfers between devices and the host tier under way: the sequential strategy pauses for them
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

// touchers bounds the threads that touch pages: they are to leave the application some.
const touchers = 12

// startPinning begins, as the strategy says. The direct one pins everything before the store is used.
func (s *Store) startPinning() {
	if len(s.accelerators) == 0 || s.set.Pinning == "off" {
		return
	}
	s.pin.stop, s.pin.first = make(chan struct{}), make(chan struct{})
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
		s.awaitFirst()
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
	team := s.newTouchTeam()
	defer team.dismiss()
	for off, n := int64(0), int64(0); off < s.host.Size(); off += n {
		n = min(s.pieceAt(off), s.host.Size()-off)
		if !s.touch(team, off, n) {
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

// touchTeam is the threads that touch pages. They stay for all pieces: the kernel maps a stack for each new thread, and that waits for everybody
// who touches or registers, and these for it.
type touchTeam struct {
	size int
	work chan func()
}

func (s *Store) newTouchTeam() *touchTeam {
	t := &touchTeam{touchThreads(s.set.Copiers), make(chan func())}
	for range t.size {
		safego.Go("touching", func() {
			numa.Run(s.touchNode(), func() {
				for work := range t.work {
					work()
				}
			})
		})
	}
	return t
}

func (t *touchTeam) dismiss() { close(t.work) }

// do has so many threads do the same, and returns when all have.
func (t *touchTeam) do(threads int, work func()) {
	var all sync.WaitGroup
	for range threads {
		all.Add(1)
		t.work <- func() {
			defer all.Done()
			work()
		}
	}
	all.Wait()
}

// touch makes pages present, by as many threads as there are seats for; false when the store closes.
func (s *Store) touch(team *touchTeam, off, n int64) bool {
	seats, open := s.takeTurns(s.pin.seats, touchers/seatThreads)
	if !open {
		return false
	}
	defer endAll(seats)
	threads := team.size
	if len(seats) > 0 {
		threads = min(threads, len(seats)*seatThreads)
	}
	next := atomic.NewInt64(off)
	team.do(threads, func() { s.touchShares(next, off+n) })
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
