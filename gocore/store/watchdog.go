package store

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/durable"
)

// A disk may stop answering, for seconds or for ever, and no system call on it can be ended. The watchdog says so, and lets nobody wait any longer when it takes
// too long: the calls concerned fail with ETIMEDOUT, and the application goes on with the tiers above.

// Defaults of Config.StallAfter and Config.DespairAfter.
const (
	stallAfter   = 2 * time.Second
	giveUpAfter = 20 * time.Second
)

// slowest is how many bytes a second of a transfer that takes long are taken for slow, and not for standing still, as long as others get on.
const slowest = 1 << 20

// diskWatchdog is what the watchdog knows. The store's lock guards it.
type diskWatchdog struct {
	since map[*engine.Transfer]int64 // of those that touch the disk, and have not ended: when they began
	drops map[*durable.Change]int64  // … and of what is to make room there
	// seen is how many answers the disk has given, by direction, and lively when there has last been one.
	seen, lastAnswer [2]int64
	told         bool // that the disk does not answer
	stop         chan struct{}
}

func newWatchdog() diskWatchdog {
	return diskWatchdog{since: map[*engine.Transfer]int64{}, drops: map[*durable.Change]int64{}, stop: make(chan struct{})}
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
			case <-s.watchdog.stop:
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
	s.noteAnswers(now)
	s.retryWhenDue(now)
	var dead [2]error // by direction
	for x, since := range s.watchdog.since {
		d, age := directionOf(x), now-since
		silent := s.unanswered(min(age, now-s.watchdog.lastAnswer[d]))
		if silent != nil {
			dead[d] = silent
		}
		if s.unanswered(age-x.Rec.Size*int64(time.Second)/slowest) != nil || silent != nil {
			s.giveUpOn(now, x, s.unanswered(age))
		}
	}
	for _, since := range s.watchdog.drops { // as long as one is on its way nothing else lands
		if why := s.unanswered(now - since); why != nil {
			dead[engine.Down] = why
		}
	}
	for d, why := range dead {
		if why != nil {
			s.giveUpOnDisk(now, engine.Direction(d), why)
		}
	}
	s.tellOfStall(s.watchdog.oldest(now))
}

// noteAnswers notes whether the disk has done anything since it was asked last.
func (s *Store) noteAnswers(now int64) {
	var seen [2]int64
	seen[engine.Up], seen[engine.Down] = s.disk.Answers()
	for d := range seen {
		if seen[d] != s.watchdog.seen[d] {
			s.watchdog.lastAnswer[d] = now
		}
	}
	s.watchdog.seen = seen
}

// directionOf is where a transfer's bytes go.
func directionOf(x *engine.Transfer) engine.Direction {
	if x.Kind == engine.Flush || x.Kind == engine.Spill {
		return engine.Down
	}
	return engine.Up
}

// giveUpOn tells those who wait for a transfer.
func (s *Store) giveUpOn(now int64, x *engine.Transfer, why error) {
	s.eng.Despair(now, x, why)
	if x.Kind == engine.Spill && x.Capture.Notify != nil {
		x.Capture.Notify.(*Op).giveUpOnDisk(why)
	}
}

// giveUpOnDisk tells all who wait for a disk that reads, or writes, nothing at all any more, also those whose turn has not come.
func (s *Store) giveUpOnDisk(now int64, d engine.Direction, why error) {
	t := len(s.tiers) - 1
	s.eng.DespairOfTier(now, t, d, why)
	for op := range s.ops {
		if d == engine.Down && op.kind == captureOp && op.capture.Spill && op.capture.Tier == t {
			op.giveUpOnDisk(why)
		}
	}
}

// unanswered is the error of those who have waited for the disk for so long; nil while it is not too long.
func (s *Store) unanswered(age int64) error {
	if age <= s.set.GiveUpAfter.Nanoseconds() {
		return nil
	}
	why := status.New(status.IO, "the disk in %q has not answered for %.3g s", s.set.Path, time.Duration(age).Seconds())
	why.Errno = int(unix.ETIMEDOUT)
	return why.AtTier(status.TierDisk)
}

// giveUpOnDisk ends a capture whose bytes do not get to the disk; that of bytes which are there, and are being made durable, ends well: its ticket tells when they are.
func (op *Op) giveUpOnDisk(why error) {
	if op.over || op.failed != nil {
		return
	}
	if !op.cancelCapture() {
		op.failed = why
		op.source.Refuse()
	}
	op.notifier.notify()
}

// oldest is for how long the disk has owed an answer.
func (st *diskWatchdog) oldest(now int64) (age time.Duration) {
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
	case stalled && !s.watchdog.told:
		logring.Add(logring.Warning, fmt.Sprintf("the disk in %q has not answered for %.3g s: checkpoints stay in the tiers above as far as these have room", s.set.Path, oldest.Seconds()))
	case !stalled && s.watchdog.told:
		logring.Add(logring.Info, fmt.Sprintf("the disk in %q answers again", s.set.Path))
	}
	s.watchdog.told = stalled
}

// stalledFor is for how long the oldest transfer of the disk has been under way, if that is too long.
func (s *Store) stalledFor() int64 {
	oldest := s.watchdog.oldest(s.now())
	if oldest <= s.set.StallAfter {
		return 0
	}
	return int64(oldest)
}
