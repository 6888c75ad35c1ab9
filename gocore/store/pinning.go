package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/device"
	"velocpy/gocore/logring"
	"velocpy/gocore/safego"
	"velocpy/gocore/vfs"
)

// pinning makes the host tier reachable by the devices at full speed (seed 004): its pages are touched by several threads and registered
// piece by piece while the store works. Copies to what has not been registered yet work, more slowly.
type pinning struct {
	stop    chan struct{}
	once    sync.Once
	refused bool
	pinned  atomic.Int64
	moving  atomic.Int64 // transfers between devices and the host tier under way: the sequential strategy pauses for them
}

// pinPiece is what is registered at once. The driver lets nobody else in meanwhile, a millisecond for so much: a capture that comes then waits for
// half of that.
const pinPiece = 64 << 20

// toucher bounds the threads that touch pages: they are to leave the application some.
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

// pinAll touches and registers the host tier: piece by piece, while the pages behind are being touched, or, by the strategies of the paper,
// everything when all of it has been touched.
func (s *Store) pinAll() {
	t := s.startTouching()
	whole := s.set.Pinning == "concurrent" || s.set.Pinning == "sequential"
	for off := int64(0); off < s.host.Size() && !whole; {
		n := min(s.pieceAt(off), s.host.Size()-off)
		if !t.wait(off + n) {
			break
		}
		whole = !s.inTurn(off, n) // refused: touching goes on all the same, it makes pageable copies faster
		off += n
	}
	touched := t.wait(s.host.Size())
	t.end()
	if touched && whole && s.pin.pinned.Load() == 0 && !s.pin.refused && !s.pinStopped() {
		s.inTurn(0, s.host.Size())
	}
}

// pieceAt is what is registered at once from a place on: little at first, so that the first flushes find a pinned place.
func (s *Store) pieceAt(off int64) int64 {
	if off < s.set.PinPiece {
		return max(s.set.PinPiece/4, 1)
	}
	return s.set.PinPiece
}

// pageShare is what one thread touches between two looks at whether it should go on.
const pageShare = 16 << 20

// touching is the pages of the host tier being touched by several threads, from the first on.
type touching struct {
	mu      sync.Mutex
	more    *sync.Cond
	next    int64          // where the next thread goes on
	ended   map[int64]bool // shares beyond done that are present, by where they begin
	done    int64          // all before it is present
	threads int
}

func (s *Store) startTouching() *touching {
	t := &touching{ended: map[int64]bool{}, threads: min(helpers(s.set.Copiers)+1, touchers)}
	t.more = sync.NewCond(&t.mu)
	for range t.threads {
		safego.Go("touching", func() {
			defer t.leave()
			for off := t.take(s.host.Size()); off >= 0 && s.touch(off); off = t.take(s.host.Size()) {
				t.touched(off)
			}
		})
	}
	return t
}

// take is where the next share begins, or -1.
func (t *touching) take(size int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next >= size {
		return -1
	}
	t.next += pageShare
	return t.next - pageShare
}

// touched notes that the share that begins at off is present.
func (t *touching) touched(off int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ended[off] = true; t.ended[t.done]; t.done += pageShare {
		delete(t.ended, t.done)
	}
	t.more.Broadcast()
}

func (t *touching) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.threads--
	t.more.Broadcast()
}

// wait waits until everything before a place is present; false when that will not be.
func (t *touching) wait(until int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.done < until && t.threads > 0 {
		t.more.Wait()
	}
	return t.done >= until
}

// end waits until no thread touches anything any more.
func (t *touching) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.threads > 0 {
		t.more.Wait()
	}
}

// touch makes one share present; false when the store closes, or when there is no memory left: copies will meet the same and say so.
func (s *Store) touch(off int64) bool {
	if s.set.Pinning == "sequential" {
		s.waitForQuiet()
	}
	return !s.pinStopped() && s.host.Populate(off, min(pageShare, s.host.Size()-off)) == nil
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
	turn, open := s.takeTurn()
	if !open {
		return false
	}
	if turn != nil {
		defer func() { _ = turn.End() }() // the lock is gone either way
	}
	return s.register(off, n)
}

// turnAgain is how soon a turn is asked for again.
const turnAgain = 2 * time.Millisecond

// takeTurn waits for the turn; false when the store closes. Where there is no file to meet at, nobody is waited for.
func (s *Store) takeTurn() (*vfs.Turn, bool) {
	file := s.set.Turns
	if file == "" {
		file = vfs.TurnFile("pinning")
	}
	for {
		turn, err := vfs.TryTurn(file)
		if err == nil || !errors.Is(err, vfs.ErrTaken) {
			return turn, true
		}
		select {
		case <-s.pin.stop:
			return nil, false
		case <-time.After(turnAgain):
		}
	}
}

// register pins a range for every device; false when that is refused.
func (s *Store) register(off, n int64) bool {
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
	s.pin.pinned.Add(n)
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
