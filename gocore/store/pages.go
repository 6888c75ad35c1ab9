package store

import (
	"sync"
)

// pages knows of each chunk of the host tier how many records lie in it, since when there are none, and whether its memory may be resident. Its lock is taken last.
type pages struct {
	mu       sync.Mutex
	size     int64
	grain    int64 // bytes of a chunk
	all      []chunk
	resident int64 // bytes of the chunks whose memory may be resident
	given    int64 // bytes that were given back since the store was opened
	peak     int64 // where the highest room ends that was taken since memory was given back last
	pinned   int64 // a device has pinned, or is about to pin, some of what lies before this place: none of that is given back
}

type chunk struct {
	users    int32
	resident bool
	free     int64 // since when (ns) nobody uses it; 0: from the beginning
}

const (
	chunkBytes = 2 << 20 // a huge page
	smallChunk = 64 << 10
	fewChunks  = 32 // a host tier with fewer has small ones
)

func newPages(size int64) *pages {
	p := &pages{size: size, grain: chunkBytes}
	if size < fewChunks*chunkBytes {
		p.grain = smallChunk
	}
	p.all = make([]chunk, (size+p.grain-1)/p.grain)
	return p
}

// end is where a chunk ends.
func (p *pages) end(i int) int64 { return min(int64(i+1)*p.grain, p.size) }

func (p *pages) bytes(i int) int64 { return p.end(i) - int64(i)*p.grain }

// span are the chunks of a range that is not empty: from first on, up to last.
func (p *pages) span(off, n int64) (first, last int) {
	return int(off / p.grain), int((off + n - 1) / p.grain)
}

// take notes that a record lies in a range from now on, drop that it does so no more.
func (p *pages) take(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for first, last := p.span(off, n); first <= last; first++ {
		p.all[first].users++
		p.touch(first)
	}
	p.peak = max(p.peak, off+n)
}

func (p *pages) drop(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for first, last := p.span(off, n); first <= last; first++ {
		c := &p.all[first]
		if c.users--; c.users == 0 {
			c.free = now
		}
	}
}

// touched notes that the memory of a range is about to become resident.
func (p *pages) touched(off, n, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for first, last := p.span(off, n); first <= last; first++ {
		if c := &p.all[first]; !c.resident && c.users == 0 {
			c.free = now
		}
		p.touch(first)
	}
}

func (p *pages) touch(i int) {
	if c := &p.all[i]; !c.resident {
		c.resident = true
		p.resident += p.bytes(i)
	}
}

// pins notes that a range is about to be pinned.
func (p *pages) pins(off, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pinned = max(p.pinned, off+n)
	for first, last := p.span(off, n); first <= last; first++ {
		p.touch(first)
	}
}

// idle are the chunks to give back: free since a time, or behind a place.
func (p *pages) idle(since, behind int64) (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resident == 0 {
		return nil
	}
	for i := range p.all {
		if p.may(i) && p.due(i, since, behind) {
			all = append(all, i)
		}
	}
	return all
}

// may tells whether a chunk can be given back, due whether it is to be.
func (p *pages) may(i int) bool {
	c := &p.all[i]
	return c.resident && c.users == 0 && int64(i)*p.grain >= p.pinned
}

func (p *pages) due(i int, since, behind int64) bool {
	return p.all[i].free <= since || int64(i)*p.grain >= behind
}

// give gives a chunk back by a call, if it is still to be. Whoever takes room waits meanwhile.
func (p *pages) give(i int, since, behind int64, discard func(off, n int64) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.may(i) || !p.due(i, since, behind) {
		return nil
	}
	if err := discard(int64(i)*p.grain, p.bytes(i)); err != nil {
		return err
	}
	p.all[i].resident = false
	p.resident -= p.bytes(i)
	p.given += p.bytes(i)
	return nil
}

// settled notes that memory has been given back: nothing above what is in use is expected to be used soon. It returns where that ends.
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
