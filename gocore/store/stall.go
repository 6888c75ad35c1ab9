package store

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/engine"
	"velocpy/gocore/logring"
	"velocpy/gocore/safego"
	"velocpy/gocore/status"
)

// A disk may stop answering, for seconds or for ever, and no system call on it can be ended. The watchdog says so, and lets nobody wait any longer when it takes
// too long: the calls concerned fail with ETIMEDOUT, and the application goes on with the tiers above.

// Defaults of Config.StallAfter and Config.DespairAfter.
const (
	stallAfter   = 2 * time.Second
	despairAfter = 20 * time.Second
)

// stalls is what the watchdog knows. The store's lock guards it.
type stalls struct {
	since map[*engine.Transfer]int64 // of those that touch the disk, and have not ended: when they began
	told  bool                       // that the disk does not answer
	stop  chan struct{}
}

// touches tells whether a transfer reads or writes the disk tier.
func (s *Store) touches(x *engine.Transfer) bool {
	return s.disk != nil && max(x.From, x.To) == len(s.tiers)-1
}

// startWatchdog looks at the disk's transfers from time to time.
func (s *Store) startWatchdog() {
	s.stall.since, s.stall.stop = map[*engine.Transfer]int64{}, make(chan struct{})
	if s.disk == nil {
		return
	}
	safego.Go("watchdog", func() {
		ticker := time.NewTicker(max(s.set.StallAfter/2, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-s.stall.stop:
				return
			case <-ticker.C:
				s.lookForStalls()
			}
		}
	})
}

func (s *Store) lookForStalls() {
	s.mu.Lock()
	defer s.leave()
	if s.closing {
		return
	}
	now, oldest := s.now(), int64(0)
	for x, since := range s.stall.since {
		age := now - since
		oldest = max(oldest, age)
		if age > s.set.DespairAfter.Nanoseconds() {
			why := status.New(status.IO, "the disk in %q has not answered for %.3g s", s.set.Path, time.Duration(age).Seconds())
			why.Errno = int(unix.ETIMEDOUT)
			s.eng.Despair(now, x, why.AtTier(status.TierDisk))
		}
	}
	s.tellOfStall(time.Duration(oldest))
}

// tellOfStall says once when the disk stops answering, and once when it goes on.
func (s *Store) tellOfStall(oldest time.Duration) {
	stalled := oldest > s.set.StallAfter
	switch {
	case stalled && !s.stall.told:
		logring.Add(logring.Warning, fmt.Sprintf("the disk in %q has not answered for %.3g s: checkpoints stay in the tiers above as far as these have room", s.set.Path, oldest.Seconds()))
	case !stalled && s.stall.told:
		logring.Add(logring.Info, fmt.Sprintf("the disk in %q answers again", s.set.Path))
	}
	s.stall.told = stalled
}

// stalledFor is for how long the oldest transfer of the disk has been under way, if that is too long.
func (s *Store) stalledFor() int64 {
	now, oldest := s.now(), int64(0)
	for _, since := range s.stall.since {
		oldest = max(oldest, now-since)
	}
	if oldest <= s.set.StallAfter.Nanoseconds() {
		return 0
	}
	return oldest
}
