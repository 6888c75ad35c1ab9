package store

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/durable"
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
	drops map[*durable.Change]int64  // … and of what is to make room there
	// answered is when the disk has last done anything.
	answered int64
	told     bool // that the disk does not answer
	stop     chan struct{}
}

func newStalls() stalls {
	return stalls{since: map[*engine.Transfer]int64{}, drops: map[*durable.Change]int64{}, stop: make(chan struct{})}
}

// touches tells whether a transfer reads or writes the disk tier.
func (s *Store) touches(x *engine.Transfer) bool {
	return s.disk != nil && max(x.From, x.To) == len(s.tiers)-1
}

// startWatchdog looks at the disk's transfers from time to time.
func (s *Store) startWatchdog() {
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
	now := s.now()
	for x, since := range s.stall.since {
		if why := s.unanswered(now - since); why != nil {
			s.eng.Despair(now, x, why)
			if x.Kind == engine.Spill && x.Capture.Notify != nil {
				x.Capture.Notify.(*Op).despair(why)
			}
		}
	}
	oldest := s.stall.oldest(now)
	if why := s.unanswered(min(int64(oldest), now-s.stall.answered)); why != nil {
		s.despairOfDisk(why)
	}
	s.tellOfStall(oldest)
}

// despairOfDisk tells all who wait for a disk that does nothing at all any more, also those whose turn has not come.
func (s *Store) despairOfDisk(why error) {
	t := len(s.tiers) - 1
	s.eng.DespairOfTier(s.now(), t, why)
	for op := range s.ops {
		if op.kind == captureOp && op.capture.Spill && op.capture.Tier == t {
			op.despair(why)
		}
	}
}

// unanswered is the error of those who have waited for the disk for so long; nil while it is not too long.
func (s *Store) unanswered(age int64) error {
	if age <= s.set.DespairAfter.Nanoseconds() {
		return nil
	}
	why := status.New(status.IO, "the disk in %q has not answered for %.3g s", s.set.Path, time.Duration(age).Seconds())
	why.Errno = int(unix.ETIMEDOUT)
	return why.AtTier(status.TierDisk)
}

// despair ends a capture whose bytes do not get to the disk; that of bytes which are there, and are being made durable, ends well: its ticket tells when they are.
func (op *Op) despair(why error) {
	if op.over || op.failed != nil {
		return
	}
	if !op.giveUp() {
		op.failed = why
		op.source.given.Store(true)
	}
	op.bell.ring()
}

// oldest is for how long the disk has owed an answer.
func (st *stalls) oldest(now int64) (age time.Duration) {
	for _, since := range st.since {
		age = max(age, time.Duration(now-since))
	}
	for _, since := range st.drops {
		age = max(age, time.Duration(now-since))
	}
	return age
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
	oldest := s.stall.oldest(s.now())
	if oldest <= s.set.StallAfter {
		return 0
	}
	return int64(oldest)
}
