package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/policy/coldstart"
)

// Taken for the captures to come until a few have been seen: the sizes and the mean interval of the traces of Maurya et al., HiPC'22, section V-E.
const (
	expectedInterval   = 20 * time.Millisecond
	expectedCheckpoint = 128 << 20
	enoughCaptures     = 3
)

// Rates that are taken for those of the machine until they have been measured, or that cannot be measured before it is too late.
const (
	assumedTouch         = 2.0e9 // a thread; 2.7 of them on huge pages of a machine whose memory was in use before (measured)
	assumedRegister      = 70e9  // touched huge pages: 15 ms for 1 GiB (measured)
	assumedRegisterFresh = 2.7e9 // pages that the driver's one thread has to make first (measured)
	assumedPageable      = 6e9   // and Fresh: section IV-A of the paper
	assumedFresh         = 3e9
	assumedShare         = 0.5 // touching and pageable copies together do no more than in turn
	assumedShareDMA      = 0.8
)

// rhythm is how often and how much the application captures on devices: moving averages. The store's lock guards it.
type rhythm struct {
	count           int
	interval, bytes float64 // ns from the end of a capture to the next one
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

// pinRates are the rates that touching and registering had, bytes/s: moving averages; 0: not measured yet.
type pinRates struct {
	mu                      sync.Mutex
	alone, beside, register float64
}

// touched notes that a piece has been touched, alone or beside transfers to registered memory.
func (r *pinRates) touched(n int64, took time.Duration, beside bool) {
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

// of are the rates for the model, with so many threads that touch and a link of that rate.
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

// strategy is the one that the host tier is made ready by now.
func (s *Store) strategy() coldstart.Strategy { return coldstart.Strategy(s.pin.strategy.Load()) }

// fixedStrategy is the one that the application has asked for; false: the store chooses.
func (s *Store) fixedStrategy() (coldstart.Strategy, bool) {
	for _, strategy := range coldstart.Strategies() {
		if s.set.Pinning == strategy.String() {
			return strategy, true
		}
	}
	return coldstart.Pipeline, false
}

// firstStrategy is that of a new store. The lock is held.
func (s *Store) firstStrategy() coldstart.Strategy {
	strategy, fixed := s.fixedStrategy()
	if !fixed {
		strategy, _ = coldstart.Choose(s.pinWork(0, 0), s.ratesNow())
	}
	return strategy
}

// chooseStrategy looks again, when the host tier has been touched up to one place and handed over for registering up to another.
func (s *Store) chooseStrategy(touched, kept int64) coldstart.Strategy {
	if _, fixed := s.fixedStrategy(); fixed || s.pin.denied.Load() {
		return s.strategy()
	}
	s.mu.Lock()
	work, rates, seen := s.pinWork(touched, kept), s.ratesNow(), s.pin.rhythm.count >= enoughCaptures
	s.mu.Unlock()
	if !seen {
		return s.strategy()
	}
	before := s.strategy()
	strategy, blocked := coldstart.Choose(work, rates)
	if s.follow(strategy) != before {
		logring.Add(logring.Debug, fmt.Sprintf("from byte %d on the host tier is made ready by another strategy: %v instead of %v; it is predicted to block captures for %.3g s instead of %.3g s",
			touched, strategy, before, blocked[strategy], blocked[before]))
	}
	return strategy
}

// follow goes on by a strategy. Flushes wait for the place that registering has reached only while it moves.
func (s *Store) follow(strategy coldstart.Strategy) coldstart.Strategy {
	was := coldstart.Strategy(s.pin.strategy.Swap(uint32(strategy)))
	switch {
	case strategy != coldstart.Pipeline:
		s.pin.front.halt()
	case was != strategy || !s.pin.front.moves():
		s.pin.front.set(s.set.PinRest)
	}
	return strategy
}

// pinWork is what the model has to know of the application and of the node. The lock is held.
func (s *Store) pinWork(touched, kept int64) coldstart.Workload {
	w := coldstart.Workload{
		Interval: expectedInterval.Seconds(), Checkpoint: expectedCheckpoint, Host: float64(s.host.Size() - kept), Touched: float64(touched - kept),
		Ready: float64(max(kept-s.hostUsed(), 0)), Processes: s.pinProcesses(),
	}
	for _, a := range s.accelerators {
		u := s.eng.Use(a.tier)
		w.Buffer += float64(max(u.Capacity-u.Dirty-u.Flushing, 0))
	}
	if r := &s.pin.rhythm; r.count >= enoughCaptures {
		w.Interval, w.Checkpoint = r.interval/1e9, r.bytes
	}
	return w
}

// ratesNow are the rates for the model. The lock is held.
func (s *Store) ratesNow() coldstart.Rates {
	if s.set.PinRates != nil {
		return *s.set.PinRates
	}
	link := 0.0
	for _, a := range s.accelerators {
		if rate := s.eng.Use(a.tier).WriteRate; s.strategy() == coldstart.Pipeline {
			link += rate // measured on registered memory
		} else {
			link += firstRate(a.dev)
		}
	}
	rates := s.pin.rates.of(touchThreads(s.set.Copiers), link)
	rates.Call = float64(max(s.set.PinPiece/pinParts, 1))
	return rates
}

// joinPinning counts this store among those of the node that make their host tiers ready.
func (s *Store) joinPinning() {
	for range mostJoins {
		member, err := vfs.LineUp(s.pin.turn + "-members")
		if s.pin.member = member; !errors.Is(err, vfs.ErrTaken) || !s.pauseInQueue() {
			return
		}
	}
}

// mostJoins bounds how often a store that is opened tries to be counted.
const mostJoins = 5

// leavePinning takes it out again. The lock is held.
func (s *Store) leavePinning() {
	if s.pin.member != nil {
		_ = s.pin.member.Leave() // the lock is gone either way
		s.pin.member = nil
	}
}

// pinProcesses is how many stores of the node, in whatever process, make their host tiers ready now. The lock is held.
func (s *Store) pinProcesses() int {
	if s.pin.member == nil {
		return 1
	}
	others, err := s.pin.member.Others()
	if err != nil {
		return 1
	}
	return int(others) + 1
}
