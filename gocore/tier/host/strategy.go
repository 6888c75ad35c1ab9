package host

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/policy/coldstart"
)

// chooser has the strategy by which the memory is pinned: the one that is set, or the one that package coldstart chooses by what is known of the application and of the
// node.
type chooser struct {
	*state
	strategy atomic.Uint32
	rhythm   rhythm
	rates    pinRates
	members  members
}

// Assumed of the captures to come until a few have been seen: the sizes and the mean interval of the traces of Maurya et al., HiPC'22, section V-E.
const (
	expectedInterval   = 20 * time.Millisecond
	expectedCheckpoint = 128 << 20
	enoughCaptures     = 3
)

// Rates that are assumed of the machine until they have been measured, or that cannot be measured before it is too late.
const (
	assumedTouch         = 2.0e9 // of a thread; 2.7 of them on huge pages of a machine whose memory was in use before (measured)
	assumedRegister      = 70e9  // of prefaulted huge pages: 15 ms for 1 GiB (measured)
	assumedRegisterFresh = 2.7e9 // of pages that the driver's one thread has to make first (measured)
	assumedPageable      = 6e9   // this and Fresh: section IV-A of the paper
	assumedFresh         = 3e9
	assumedShare         = 0.5 // prefaulting and pageable copies beside each other do no more than one after the other
	assumedShareDMA      = 0.8
)

// rhythm is how often and how much the application captures on devices: moving averages. The cache's lock guards it.
type rhythm struct {
	count           int
	interval, bytes float64 // interval: ns from the end of a capture to the next one
	ended           int64
}

// captured notes a capture that was asked for and ended at these times.
func (r *rhythm) captured(asked, ended, bytes int64) {
	const weight = 0.2
	switch interval := float64(max(asked-r.ended, 0)); r.count {
	case 0:
		r.bytes = float64(bytes)
	case 1:
		r.interval = interval
		fallthrough
	default:
		r.interval += weight * (interval - r.interval)
		r.bytes += weight * (float64(bytes) - r.bytes)
	}
	r.count++
	r.ended = ended
}

// Captured notes that a capture of a device was asked for and ended at these times (ns). The cache's lock is held.
func (c *chooser) Captured(asked, ended, bytes int64) { c.rhythm.captured(asked, ended, bytes) }

// pinRates are the measured rates of prefaulting and registering, bytes/s: moving averages; 0: not measured yet.
type pinRates struct {
	mu                      sync.Mutex
	alone, beside, register float64
}

// prefaulted notes that a piece was prefaulted, alone or beside transfers to registered memory.
func (r *pinRates) prefaulted(n int64, took time.Duration, beside bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if beside {
		blend(&r.beside, n, took)
	} else {
		blend(&r.alone, n, took)
	}
}

func (r *pinRates) registered(n int64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	blend(&r.register, n, took)
}

// blend takes a rate into a moving average.
func blend(mean *float64, n int64, took time.Duration) {
	const weight = 0.3
	rate := float64(n) / max(took.Seconds(), 1e-9)
	if *mean == 0 {
		*mean = rate
	}
	*mean += weight * (rate - *mean)
}

// of returns the rates for the model, with so many threads that prefault and a link of that rate.
func (r *pinRates) of(threads int, link float64) coldstart.Rates {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := coldstart.Rates{Touch: r.alone, Register: r.register, Pinned: link, Share: assumedShare, ShareDMA: assumedShareDMA}
	if out.Register == 0 {
		out.Register = assumedRegister
	}
	switch {
	case r.alone > 0 && r.beside > 0:
		out.ShareDMA = min(max(r.beside/r.alone, 0.05), 1)
	case r.beside > 0:
		out.Touch = r.beside / assumedShareDMA
	case r.alone == 0:
		out.Touch = assumedTouch * float64(threads)
	}
	out.RegisterFresh, out.Fresh = min(assumedRegisterFresh, out.Touch), min(assumedFresh, out.Touch)
	out.Pageable = max(min(assumedPageable, link/2), out.Fresh)
	return out
}

// current is the one by which the memory is pinned now.
func (c *chooser) current() coldstart.Strategy {
	return coldstart.Strategy(c.strategy.Load())
}

// fixed is the one that the application asked for; false: the store chooses.
func (c *chooser) fixed() (coldstart.Strategy, bool) {
	for _, strategy := range coldstart.Strategies() {
		if c.o.Pinning == strategy.String() {
			return strategy, true
		}
	}
	return coldstart.Pipeline, false
}

// patience is for how long sequential prefaulting pauses at most; 0: as long as transfers are under way. A strategy that was chosen may not fit any more, so it is looked
// at again when the watermark has rested for as long as it may.
func (c *chooser) patience() time.Duration {
	if _, isFixed := c.fixed(); isFixed {
		return 0
	}
	return c.o.PinRest
}

// first is that of a new store. The cache's lock is held.
func (c *chooser) first() coldstart.Strategy {
	strategy, isFixed := c.fixed()
	if !isFixed {
		strategy, _ = coldstart.Choose(c.workload(0, 0), c.currentRates())
	}
	return strategy
}

// choose chooses again, when the memory has been prefaulted up to one offset and handed over for registering up to another.
func (c *chooser) choose(touched, handed int64) coldstart.Strategy {
	if _, isFixed := c.fixed(); isFixed {
		return c.current()
	}
	c.cache.Lock()
	work, rates, seen := c.workload(touched, handed), c.currentRates(), c.rhythm.count >= enoughCaptures
	c.cache.Unlock()
	if !seen {
		return c.current()
	}
	before := c.current()
	strategy, blocked := coldstart.Choose(work, rates)
	if c.follow(strategy) != before {
		logring.Add(logring.Debug, fmt.Sprintf("from byte %d on the host tier is made ready by another strategy: %v instead of %v; it is predicted to block captures for %.3g s instead of %.3g s",
			touched, strategy, before, blocked[strategy], blocked[before]))
	}
	return strategy
}

// follow goes on by a strategy. Transfers wait for the watermark only while it moves.
func (c *chooser) follow(strategy coldstart.Strategy) coldstart.Strategy {
	was := coldstart.Strategy(c.strategy.Swap(uint32(strategy)))
	switch {
	case strategy != coldstart.Pipeline:
		c.watermark.stop()
	case was != strategy || !c.watermark.isMoving():
		c.watermark.start(c.o.PinRest)
	}
	return strategy
}

// workload is what the model has to know of the application and of the node. The cache's lock is held.
func (c *chooser) workload(touched, handed int64) coldstart.Workload {
	w := coldstart.Workload{
		Interval: expectedInterval.Seconds(), Checkpoint: expectedCheckpoint, Host: float64(c.Size() - handed), Touched: float64(touched - handed),
		Ready: float64(max(handed-c.cache.HighWater(), 0)), Processes: c.members.processes(), Buffer: float64(c.cache.Room()),
	}
	if r := &c.rhythm; r.count >= enoughCaptures {
		w.Interval, w.Checkpoint = r.interval/1e9, r.bytes
	}
	return w
}

// currentRates are the rates for the model. The link's was measured on registered memory under the pipeline alone. The cache's lock is held.
func (c *chooser) currentRates() coldstart.Rates {
	if c.o.PinRates != nil {
		return *c.o.PinRates
	}
	rates := c.rates.of(prefaultThreads(c.o.Copiers), c.cache.LinkRate(c.current() == coldstart.Pipeline))
	rates.Call = float64(max(c.o.PinPiece/pinParts, 1))
	return rates
}
