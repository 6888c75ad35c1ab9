package disk

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

// slowest is the rate, bytes/s, at which a long transfer still counts as slow rather than stalled, as long as other transfers progress.
const slowest = 1 << 20

// watchdog is the watchdog's state. The store's lock guards it.
type watchdog struct {
	tier  *Tier
	since map[*engine.Transfer]int64 // transfers that access the disk and have not ended, with their begin, ns
	drops map[*durable.Change]int64  // … and changes that are to release disk space
	// seen counts the disk's answers by direction. lastAnswer is the time of the latest one, ns.
	seen, lastAnswer [2]int64
	told             bool // the stall has been logged
	stop             chan struct{}
}

func newWatchdog(d *Tier) watchdog {
	return watchdog{tier: d, since: map[*engine.Transfer]int64{}, drops: map[*durable.Change]int64{}, stop: make(chan struct{})}
}

// start starts the goroutine that checks the disk's transfers periodically.
func (w *watchdog) start() {
	safego.Go("watchdog", func() {
		ticker := time.NewTicker(max(w.tier.o.StallAfter/2, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-ticker.C:
				w.lookForStalls()
			}
		}
	})
}

func (w *watchdog) lookForStalls() {
	w.tier.cache.Lock()
	defer w.tier.cache.Leave()
	if w.tier.cache.Closing() {
		return
	}
	now := w.tier.o.Now()
	w.noteAnswers(now)
	if v := w.tier.versions; v != nil {
		v.retries.whenDue(now)
	}
	var failed [2]error // by direction
	for x, since := range w.since {
		d, age := directionOf(x), now-since
		silent := w.unanswered(min(age, now-w.lastAnswer[d]))
		if silent != nil {
			failed[d] = silent
		}
		if w.unanswered(age-x.Rec.Size*int64(time.Second)/slowest) != nil || silent != nil {
			w.giveUpOn(now, x, w.unanswered(age))
		}
	}
	for _, since := range w.drops { // while one of these is in flight, no other change lands
		if why := w.unanswered(now - since); why != nil {
			failed[engine.Down] = why
		}
	}
	for d, why := range failed {
		if why != nil {
			w.giveUpOnDisk(now, engine.Direction(d), why)
		}
	}
	w.tellOfStall(w.oldest(now))
}

// noteAnswers records whether the disk has answered since the last check.
func (w *watchdog) noteAnswers(now int64) {
	var seen [2]int64
	seen[engine.Up], seen[engine.Down] = w.tier.Space.Answers()
	for d := range seen {
		if seen[d] != w.seen[d] {
			w.lastAnswer[d] = now
		}
	}
	w.seen = seen
}

// directionOf returns the direction in which a transfer moves bytes.
func directionOf(x *engine.Transfer) engine.Direction {
	if x.Kind == engine.Flush || x.Kind == engine.Spill {
		return engine.Down
	}
	return engine.Up
}

// giveUpOn returns the error to the callers that wait for a transfer.
func (w *watchdog) giveUpOn(now int64, x *engine.Transfer, why error) {
	w.tier.engine().GiveUpOn(now, x, why)
	if x.Kind == engine.Spill {
		w.tier.cache.Refuse(x.Capture, why)
	}
}

// giveUpOnDisk returns the error to all callers that wait for a disk on which reads, or writes, make no progress. They include callers whose
// transfers have not begun.
func (w *watchdog) giveUpOnDisk(now int64, d engine.Direction, why error) {
	w.tier.engine().GiveUpOnTier(now, w.tier.index, d, why)
	if d == engine.Down {
		w.tier.cache.RefuseAll(why)
	}
}

// unanswered is the error of callers that have waited for the disk for so long; nil while that is not too long.
func (w *watchdog) unanswered(age int64) error {
	if age <= w.tier.o.GiveUpAfter().Nanoseconds() {
		return nil
	}
	why := status.New(status.IO, "the disk in %q has not answered for %.3g s", w.tier.o.Path, time.Duration(age).Seconds())
	why.Errno = int(unix.ETIMEDOUT)
	return why.AtTier(status.TierDisk)
}

// oldest returns how long the oldest pending request of the disk has taken.
func (w *watchdog) oldest(now int64) (age time.Duration) {
	for _, since := range w.since {
		age = max(age, time.Duration(now-since))
	}
	for _, since := range w.drops {
		age = max(age, time.Duration(now-since))
	}
	return age
}

// tellOfStall logs once when the disk stops answering, and once when it answers again.
func (w *watchdog) tellOfStall(oldest time.Duration) {
	stalled := oldest > w.tier.o.StallAfter
	switch {
	case stalled && !w.told:
		logring.Add(logring.Warning, fmt.Sprintf("the disk in %q has not answered for %.3g s: checkpoints stay in the tiers above as far as these have room", w.tier.o.Path, oldest.Seconds()))
	case !stalled && w.told:
		logring.Add(logring.Info, fmt.Sprintf("the disk in %q answers again", w.tier.o.Path))
	}
	w.told = stalled
}

// stalledFor returns how long the oldest pending request of the disk has taken, or 0 if that is not too long.
func (w *watchdog) stalledFor() int64 {
	oldest := w.oldest(w.tier.o.Now())
	if oldest <= w.tier.o.StallAfter {
		return 0
	}
	return int64(oldest)
}
