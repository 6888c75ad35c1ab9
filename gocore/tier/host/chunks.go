package host

import "sync"

// chunks is the tier's memory by chunks: how many records lie in each, since when none does, and whether its memory may be resident. Its lock is taken last.
type chunks struct {
	mu       sync.Mutex
	size     int64
	grain    int64 // bytes of a chunk
	limit    int64 // the budget: free chunks that begin behind it are to be given back
	all      []chunk
	resident int64 // bytes of the chunks whose memory may be resident
	excess   int   // chunks behind the limit that can be given back
	refused  bool  // the system has refused to take memory back, and is not asked again
	given    int64 // bytes that were given back since the store was opened
	peak     int64 // end of the highest range that was taken since memory was given back last
	pinned   int64 // a device has pinned, or is about to pin, some of the bytes before this offset: none of them is given back
	pins     []pin // registered ranges, ascending
}

type chunk struct {
	users    int32 // records that lie in it
	resident bool
	free     int64 // since when (ns) no record lies in it; 0: from the beginning
}

// pin is a range that was registered by one call. The driver takes it back only as a whole.
type pin struct{ off, n int64 }

const (
	chunkBytes = 2 << 20 // a huge page
	smallChunk = 64 << 10
	fewChunks  = 32 // a tier with fewer chunks has small ones
)

func newChunks(size int64) *chunks {
	p := &chunks{size: size, grain: chunkBytes, limit: size}
	if size < fewChunks*chunkBytes {
		p.grain = smallChunk
	}
	p.all = make([]chunk, (size+p.grain-1)/p.grain)
	return p
}

// roundUp is the end of the chunk in which a budget ends.
func (p *chunks) roundUp(budget int64) int64 {
	return min((budget+p.grain-1)/p.grain*p.grain, p.size)
}

func (p *chunks) start(i int) int64 { return int64(i) * p.grain }

func (p *chunks) end(i int) int64 { return min(p.start(i+1), p.size) }

func (p *chunks) bytes(i int) int64 { return p.end(i) - p.start(i) }

// span returns the first and the last chunk of a range that is not empty.
func (p *chunks) span(off, n int64) (first, last int) {
	return int(off / p.grain), int((off + n - 1) / p.grain)
}

// change applies f to the chunks of a range and keeps the sums right. The lock is held.
func (p *chunks) change(off, n int64, f func(c *chunk)) {
	for i, last := p.span(off, n); i <= last; i++ {
		before, resident := p.isExcess(i), p.all[i].resident
		f(&p.all[i])
		if p.all[i].resident != resident {
			p.resident += p.bytes(i) * sign(p.all[i].resident)
		}
		if p.isExcess(i) != before {
			p.excess += int(sign(!before))
		}
	}
}

func sign(positive bool) int64 {
	if positive {
		return 1
	}
	return -1
}

// recount counts the excess chunks again, after the limit or the pinned range has changed. The lock is held.
func (p *chunks) recount() {
	p.excess = 0
	for i := range p.all {
		if p.isExcess(i) {
			p.excess++
		}
	}
}

// isExcess tells whether a chunk is to be given back because it lies behind the budget. The lock is held.
func (p *chunks) isExcess(i int) bool { return p.start(i) >= p.limit && p.isReclaimable(i) }

// isReclaimable tells whether a chunk can be given back. The lock is held.
func (p *chunks) isReclaimable(i int) bool {
	c := &p.all[i]
	return c.resident && c.users == 0 && p.start(i) >= p.pinned && !p.refused
}

// isDue tells whether a chunk is to be given back: it has been free since a time, or it is excess. The lock is held.
func (p *chunks) isDue(i int, since int64) bool {
	return p.isReclaimable(i) && (p.all[i].free <= since || p.start(i) >= p.limit)
}

// take notes that a record lies in a range from now on.
func (p *chunks) take(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faulted(off, n)
	p.change(off, n, func(c *chunk) { c.users++ })
	p.peak = max(p.peak, off+n)
}

// faulted notes that a range may be resident once it is touched. The system maps a huge page at a time, so small chunks beside the range become resident with it, also
// behind the budget. The lock is held.
func (p *chunks) faulted(off, n int64) {
	for i, last := p.span(off, n); i <= last; i++ {
		if p.all[i].resident {
			continue
		}
		from, bytes := p.start(i), int64(1)
		if page := from / chunkBytes * chunkBytes; page+chunkBytes <= p.size {
			from, bytes = page, chunkBytes
		}
		p.change(from, bytes, func(c *chunk) { c.resident = true })
	}
}

// drop notes that a record has left a range.
func (p *chunks) drop(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(off, n, func(c *chunk) {
		if c.users--; c.users == 0 {
			c.free = now
		}
	})
}

// prefaulted notes that the memory of a range is about to become resident.
func (p *chunks) prefaulted(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(off, n, func(c *chunk) {
		if !c.resident && c.users == 0 {
			c.free = now
		}
	})
	p.faulted(off, n)
}

// setLimit notes another budget.
func (p *chunks) setLimit(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
	p.recount()
}

// pin notes that a range is about to be registered with a device.
func (p *chunks) pin(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = max(p.pinned, off+n)
	p.change(off, n, func(c *chunk) { c.resident = true })
	p.recount()
}

// registered notes that a range has been registered with every device.
func (p *chunks) registered(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins = append(p.pins, pin{off, n})
}

// unpinned notes that no byte from an offset on is registered any more.
func (p *chunks) unpinned(off int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = off
	for len(p.pins) > 0 && p.pins[len(p.pins)-1].off >= off {
		p.pins = p.pins[:len(p.pins)-1]
	}
	p.recount()
}

// unpinnable is the last registered range, if it lies behind the budget and no record lies in it.
func (p *chunks) unpinnable() (last pin, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastPin()
}

func (p *chunks) lastPin() (last pin, some bool) {
	if len(p.pins) == 0 || p.refused {
		return pin{}, false
	}
	last = p.pins[len(p.pins)-1]
	if last.off < p.limit || last.off+last.n != p.pinned { // else a range behind it is registered with some of the devices only
		return pin{}, false
	}
	for i, end := p.span(last.off, last.n); i <= end; i++ {
		if p.all[i].users > 0 {
			return pin{}, false
		}
	}
	return last, true
}

// refuse notes that the system has refused to take memory back.
func (p *chunks) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = true
	p.recount()
}

// hasExcess tells whether there is memory behind the budget to unpin or to give back.
func (p *chunks) hasExcess() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.excess > 0 {
		return true
	}
	_, some := p.lastPin()
	return some
}

// due lists the chunks to give back: free since a time, or behind the budget.
func (p *chunks) due(since int64) (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resident == 0 {
		return nil
	}
	for i := range p.all {
		if p.isDue(i, since) {
			all = append(all, i)
		}
	}
	return all
}

// giveBack discards the memory of a chunk, if that is still due, and of the chunks beside it that its huge page may have brought back. A goroutine that takes a range
// waits for the lock meanwhile.
func (p *chunks) giveBack(i int, since int64, discard func(off, n int64) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isDue(i, since) {
		return nil
	}
	from, end := p.vacant(i)
	if err := discard(from, end-from); err != nil {
		return err
	}
	p.change(p.start(i), 1, func(c *chunk) { c.resident = false })
	p.given += p.bytes(i)
	return nil
}

// vacant is a chunk with the chunks beside it in the same huge page that were given back. The kernel (khugepaged) joins the small pages of a huge page again as long as one
// of them is resident, and the ones that were given back become resident with it. Nobody is told. The lock is held.
func (p *chunks) vacant(i int) (from, end int64) {
	isVacant := func(k int) bool {
		return k >= 0 && k < len(p.all) && p.start(k)/chunkBytes == p.start(i)/chunkBytes && p.start(k) >= p.pinned && !p.all[k].resident
	}
	first, last := i, i
	for isVacant(first - 1) {
		first--
	}
	for isVacant(last + 1) {
		last++
	}
	return p.start(first), p.end(last)
}

// resetPeak lowers the peak to the end of the bytes in use, and returns it. It is called after memory was given back: the application is not expected to use what
// lies above soon.
func (p *chunks) resetPeak() int64 {
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

// reached is the end of the highest range that was taken since memory was given back last.
func (p *chunks) reached() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// counts returns the bytes that may be resident, and those that were given back.
func (p *chunks) counts() (resident, given int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resident, p.given
}
