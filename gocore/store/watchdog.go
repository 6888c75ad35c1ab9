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

// A disk may stop answering, for seconds or for ever, and no system call on it can be cancelled. The watchdog logs this. After a longer time it ends
// the callers' waits: the calls concerned fail with ETIMEDOUT, and the application continues with the tiers above.

// Defaults of Config.StallAfter and Config.GiveUpAfter.
const (
	stallAfter  = 2 * time.Second
	giveUpAfter = 20 * time.Second
)

// slowest is the rate, bytes/s, at which a long transfer still counts as slow rather than stalled, as long as other transfers progress.
const slowest = 1 << 20

// diskWatchdog is the watchdog's state. The store's lock guards it.
type diskWatchdog struct {
	since map[*engine.Transfer]int64 // transfers that access the disk and have not ended, with their begin, ns
	drops map[*durable.Change]int64  // … and changes that are to release disk space
	// seen counts the disk's answers by direction. lastAnswer is the time of the latest one, ns.
	seen, lastAnswer [2]int64
	told             bool // the stall has been logged
	stop             chan struct{}
}

func newWatchdog() diskWatchdog {
	return diskWatchdog{since: map[*engine.Transfer]int64{}, drops: map[*durable.Change]int64{}, stop: make(chan struct{})}
}

// touches tells whether a transfer reads or writes the disk tier.
func (s *Store) touches(x *engine.Transfer) bool {
	return s.disk != nil && max(x.From, x.To) == len(s.tiers)-1
}

// startWatchdog starts the goroutine that checks the disk's transfers periodically.
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
	for _, since := range s.watchdog.drops { // while one of these is in flight, no other change lands
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

// noteAnswers records whether the disk has answered since the last check.
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

// directionOf returns the direction in which a transfer moves bytes.
func directionOf(x *engine.Transfer) engine.Direction {
	if x.Kind == engine.Flush || x.Kind == engine.Spill {
		return engine.Down
	}
	return engine.Up
}

// giveUpOn returns the error to the callers that wait for a transfer.
func (s *Store) giveUpOn(now int64, x *engine.Transfer, why error) {
	s.eng.GiveUpOn(now, x, why)
	if x.Kind == engine.Spill && x.Capture.Notify != nil {
		x.Capture.Notify.(*Op).giveUpOnDisk(why)
	}
}

// giveUpOnDisk returns the error to all callers that wait for a disk on which reads, or writes, make no progress. They include callers whose
// transfers have not begun.
func (s *Store) giveUpOnDisk(now int64, d engine.Direction, why error) {
	t := len(s.tiers) - 1
	s.eng.GiveUpOnTier(now, t, d, why)
	for op := range s.ops {
		if d == engine.Down && op.kind == captureOp && op.capture.Spill && op.capture.Tier == t {
			op.giveUpOnDisk(why)
		}
	}
}

// unanswered is the error of callers that have waited for the disk for so long; nil while that is not too long.
func (s *Store) unanswered(age int64) error {
	if age <= s.set.GiveUpAfter.Nanoseconds() {
		return nil
	}
	why := status.New(status.IO, "the disk in %q has not answered for %.3g s", s.set.Path, time.Duration(age).Seconds())
	why.Errno = int(unix.ETIMEDOUT)
	return why.AtTier(status.TierDisk)
}

// giveUpOnDisk ends a capture whose bytes cannot be written to the disk. A capture whose bytes are written and being made durable succeeds: its
// ticket tells when they are durable.
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

// oldest returns how long the oldest pending request of the disk has taken.
func (st *diskWatchdog) oldest(now int64) (age time.Duration) {
	for _, since := range st.since {
		age = max(age, time.Duration(now-since))
	}
	for _, since := range st.drops {
		age = max(age, time.Duration(now-since))
	}
	return age
}

// tellOfStall logs once when the disk stops answering, and once when it answers again.
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

// stalledFor returns how long the oldest pending request of the disk has taken, or 0 if that is not too long.
func (s *Store) stalledFor() int64 {
	oldest := s.watchdog.oldest(s.now())
	if oldest <= s.set.StallAfter {
		return 0
	}
	return int64(oldest)
}
