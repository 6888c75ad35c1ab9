package store

import (
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/coldstart"
)

// touchers bounds the threads that touch pages: they are to leave the application some.
const touchers = 12

// touchTeam is the threads that touch pages. They stay for all pieces: the kernel maps a stack for each new thread, and that waits for everybody
// who touches or registers, and these for it.
type touchTeam struct {
	size int
	work chan func()
}

func (s *Store) newTouchTeam() *touchTeam {
	t := &touchTeam{touchThreads(s.set.Copiers), make(chan func())}
	near := s.nearThreads()
	for range t.size {
		safego.Go("touching", func() {
			near(func() {
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

// touchThreads is the number of threads that touch pages: as many as copy, or three of four processors.
func touchThreads(copiers int) int {
	if copiers > 0 {
		return min(copiers+1, touchers)
	}
	return min(max(runtime.GOMAXPROCS(0)*3/4, 1), touchers)
}

// touch makes pages present, by as many threads as there are seats for; false when the store closes.
func (s *Store) touch(team *touchTeam, off, n int64) bool {
	var files []string
	if s.strategy() != coldstart.Sequential { // which touches for long, and with few threads at work
		files = s.pin.seats
	}
	seats, open := s.takeTurns(files, s.pin.most)
	if !open {
		return false
	}
	defer endAll(seats)
	threads := team.size
	if len(seats) > 0 {
		threads = min(threads, len(seats)*seatThreads)
	}
	next, end := atomic.NewInt64(off), off+n
	began, disturbed := time.Now(), s.pin.moving.Load() > 0
	team.do(threads, func() { s.touchShares(next, end) })
	if disturbed = disturbed || s.pin.moving.Load() > 0; s.strategy() == coldstart.Pipeline || !disturbed {
		s.pin.rates.touched(n, time.Since(began), disturbed)
	}
	return !s.pinStopped()
}

// pageShare is what one thread touches between two looks at whether it should go on. It is small, so that no thread of a piece ends long after
// the others.
const pageShare = 4 << 20

// touchShares touches shares of a range that no other thread has taken.
func (s *Store) touchShares(next *atomic.Int64, end int64) {
	for off := next.Add(pageShare) - pageShare; off < end && !s.pinStopped(); off = next.Add(pageShare) - pageShare {
		if s.strategy() == coldstart.Sequential {
			s.waitForQuiet()
		}
		n := min(pageShare, end-off)
		s.pages.touched(off, n, s.now())
		if s.host.Populate(off, n) != nil {
			return // no memory left to populate: copies will meet the same and say so
		}
		s.pin.touched.Add(n)
	}
}
