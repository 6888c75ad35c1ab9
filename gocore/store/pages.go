package store

import "sync"

// pages knows of each chunk of the host tier how many records lie in it, since when there are none, and whether its memory may be resident. Its lock is taken last.
type pages struct {
	mu       sync.Mutex
	size     int64
	grain    int64 // bytes of a chunk
	limit    int64 // the budget: free chunks that begin behind it are to be given back
	all      []chunk
	resident int64 // bytes of the chunks whose memory may be resident
	loose    int   // chunks behind the limit that can be given back
	stays    bool  // the system has refused to take memory back
	given    int64 // bytes that were given back since the store was opened
	peak     int64 // where the highest room ends that was taken since memory was given back last
	pinned   int64 // a device has pinned, or is about to pin, some of the bytes before this place: none of them is given back
	pins     []pin // registered ranges, ascending
}

type chunk struct {
	users    int32
	resident bool
	free     int64 // since when (ns) nobody uses it; 0: from the beginning
}

// pin is a range that was registered in one call, which the driver takes back only as a whole.
type pin struct{ off, n int64 }

const (
	chunkBytes = 2 << 20 // a huge page
	smallChunk = 64 << 10
	fewChunks  = 32 // a host tier with fewer has small ones
)

func newPages(size int64) *pages {
	p := &pages{size: size, grain: chunkBytes, limit: size}
	if size < fewChunks*chunkBytes {
		p.grain = smallChunk
	}
	p.all = make([]chunk, (size+p.grain-1)/p.grain)
	return p
}

// whole is where the chunk ends that a budget ends in.
func (p *pages) whole(budget int64) int64 {
	return min((budget+p.grain-1)/p.grain*p.grain, p.size)
}

func (p *pages) start(i int) int64 { return int64(i) * p.grain }

func (p *pages) end(i int) int64 { return min(p.start(i+1), p.size) }

func (p *pages) bytes(i int) int64 { return p.end(i) - p.start(i) }

// span are the chunks of a range that is not empty: from first on, up to last.
func (p *pages) span(off, n int64) (first, last int) {
	return int(off / p.grain), int((off + n - 1) / p.grain)
}

// change changes the chunks of a range. The lock is held.
func (p *pages) change(off, n int64, f func(c *chunk)) {
	for i, last := p.span(off, n); i <= last; i++ {
		before, resident := p.isLoose(i), p.all[i].resident
		f(&p.all[i])
		if p.all[i].resident != resident {
			p.resident += p.bytes(i) * sign(p.all[i].resident)
		}
		if p.isLoose(i) != before {
			p.loose += int(sign(!before))
		}
	}
}

func sign(positive bool) int64 {
	if positive {
		return 1
	}
	return -1
}

// recount counts loose chunks again, after what they are compared with has changed. The lock is held.
func (p *pages) recount() {
	p.loose = 0
	for i := range p.all {
		if p.isLoose(i) {
			p.loose++
		}
	}
}

// isLoose tells whether a chunk is to be given back because it lies behind the budget, may whether it can be given back. The lock is held.
func (p *pages) isLoose(i int) bool { return p.start(i) >= p.limit && p.may(i) }

func (p *pages) may(i int) bool {
	c := &p.all[i]
	return c.resident && c.users == 0 && p.start(i) >= p.pinned && !p.stays
}

// due tells whether a chunk that can be given back is to be: it has been free since a time, or it is loose. The lock is held.
func (p *pages) due(i int, since int64) bool {
	return p.may(i) && (p.all[i].free <= since || p.start(i) >= p.limit)
}

// take notes that a record lies in a range from now on, drop that it does so no more.
func (p *pages) take(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(off, n, func(c *chunk) {
		c.users++
		c.resident = true
	})
	p.peak = max(p.peak, off+n)
}

func (p *pages) drop(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(off, n, func(c *chunk) {
		if c.users--; c.users == 0 {
			c.free = now
		}
	})
}

// touched notes that the memory of a range is about to become resident.
func (p *pages) touched(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(off, n, func(c *chunk) {
		if !c.resident && c.users == 0 {
			c.free = now
		}
		c.resident = true
	})
}

// budget notes another budget.
func (p *pages) budget(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
	p.recount()
}

// pin notes that a range is about to be pinned, registered that it has been, and unpinned that everything from a place on is not pinned any more.
func (p *pages) pin(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = max(p.pinned, off+n)
	p.change(off, n, func(c *chunk) { c.resident = true })
	p.recount()
}

func (p *pages) registered(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins = append(p.pins, pin{off, n})
}

func (p *pages) unpinned(off int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = off
	for len(p.pins) > 0 && p.pins[len(p.pins)-1].off >= off {
		p.pins = p.pins[:len(p.pins)-1]
	}
	p.recount()
}

// unpinnable is the last registered range, if it lies behind the budget and nothing lies in it.
func (p *pages) unpinnable() (last pin, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastPin()
}

func (p *pages) lastPin() (last pin, some bool) {
	if len(p.pins) == 0 || p.stays {
		return pin{}, false
	}
	last = p.pins[len(p.pins)-1]
	if last.off < p.limit || last.off+last.n != p.pinned { // else a range behind it has been pinned for some devices, and not for all
		return pin{}, false
	}
	for i, end := p.span(last.off, last.n); i <= end; i++ {
		if p.all[i].users > 0 {
			return pin{}, false
		}
	}
	return last, true
}

// keep notes that the system has refused to take memory back, so that nobody tries again.
func (p *pages) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stays = true
	p.recount()
}

// leaves tells whether there is memory behind the budget to unpin or to give back.
func (p *pages) leaves() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loose > 0 {
		return true
	}
	_, some := p.lastPin()
	return some
}

// idle are the chunks to give back: free since a time, or behind the budget.
func (p *pages) idle(since int64) (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resident == 0 {
		return nil
	}
	for i := range p.all {
		if p.due(i, since) {
			all = append(all, i)
		}
	}
	return all
}

// give gives a chunk back by a call, if it is still to be. A goroutine that takes room waits meanwhile.
func (p *pages) give(i int, since int64, discard func(off, n int64) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.due(i, since) {
		return nil
	}
	if err := discard(p.start(i), p.bytes(i)); err != nil {
		return err
	}
	p.change(p.start(i), 1, func(c *chunk) { c.resident = false })
	p.given += p.bytes(i)
	return nil
}

// settled notes that memory has been given back: nothing above the bytes in use is expected to be used soon. It returns where those end.
func (p *pages) settled() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = 0
	for i := len(p.all) - 1; i >= 0; i-- {
		if p.all[i].users > 0 {
			p.peak = p.end(i)
			break
		}
	}
	return p.peak
}

// reached is where the highest room ends that was taken since memory was given back last.
func (p *pages) reached() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// counts are the bytes that may be resident, and those that were given back.
func (p *pages) counts() (resident, given int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resident, p.given
}
