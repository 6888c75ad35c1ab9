package host

import (
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/policy/coldstart"
)

// prefault makes the pages of a range resident, by as many threads as the process has CPU slots for; false when the store closes.
func (p *pinner) prefault(pool *prefaultPool, off, n int64) bool {
	var files []string
	if p.chooser.current() != coldstart.Sequential { // which prefaults for long, and with few threads at work
		files = p.slots
	}
	slots, open := p.turns.take(files, p.mostSlots)
	if !open {
		return false
	}
	defer endAll(slots)
	threads := pool.size
	if len(slots) > 0 {
		threads = min(threads, len(slots)*slotThreads)
	}
	next, end := atomic.NewInt64(off), off+n
	began, disturbed := time.Now(), p.transfers.moving.Load() > 0
	pool.do(threads, func() { p.prefaultShares(next, end) })
	if disturbed = disturbed || p.transfers.moving.Load() > 0; p.chooser.current() == coldstart.Pipeline || !disturbed {
		p.chooser.rates.prefaulted(n, time.Since(began), disturbed)
	}
	return !p.isStopped()
}

// prefaultShares prefaults shares of a range that no other thread has taken.
func (p *pinner) prefaultShares(next *atomic.Int64, end int64) {
	for off := next.Add(shareBytes) - shareBytes; off < end && !p.isStopped(); off = next.Add(shareBytes) - shareBytes {
		if p.chooser.current() == coldstart.Sequential {
			p.transfers.awaitIdle(p.chooser.patience())
		}
		n := min(shareBytes, end-off)
		p.chunks.prefaulted(off, n, p.o.Now())
		if p.mapping.Populate(off, n) != nil {
			return // the system has no memory left: copies will meet the same and return the error
		}
		p.touched.Add(n)
	}
}
