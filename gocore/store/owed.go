package store

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/durable"
)

// owed are changes that failed: drops, and rules of retention. They are said again with the next that succeeds, from time to time, and when the store closes.
// What several say of one key, or of one history, is said once.
type owed struct {
	changes map[matter]*durable.Change
	why     error         // the latest failure
	pause   time.Duration // from one attempt to the next
	next    int64         // when that is
	asked   int64         // when it was tried last
	last    bool          // the store closes: what fails is tried once more, and no more
}

// matter is what a change is about: of two about the same the later one counts.
type matter struct {
	place
	clear, rule bool
}

func matterOf(c *durable.Change) matter {
	if c.Drop {
		return matter{place: place{c.History, c.Key}}
	}
	return matter{place: place{history: c.History}, clear: c.Clear, rule: c.Retention != nil}
}

// again is the tag of a change that is said once more, for so many that have failed.
type again struct {
	stands  int
	last    bool
	awaited bool // for its room somebody may wait
}

// standsFor is how many changes one stands for.
func standsFor(c *durable.Change) int {
	if a, ok := c.Tag.(again); ok {
		return a.stands
	}
	return 1
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// askedAgain is how long what is owed rests at least when those who need the disk ask for it.
const askedAgain = 10 * time.Millisecond

// noSpace tells whether a disk had no room.
func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func (o *owed) add(c *durable.Change, now int64) {
	if o.changes == nil {
		o.changes = map[matter]*durable.Change{}
	}
	at, stands := matterOf(c), standsFor(c)
	if same := o.changes[at]; same != nil {
		stands += standsFor(same)
		c.Serial = max(c.Serial, same.Serial)
	}
	c.Tag = again{stands: stands}
	o.changes[at], o.why = c, c.Err
	if o.next <= now {
		o.pause = min(max(2*o.pause, firstPause), mostPause)
		if noSpace(c.Err) {
			o.pause = firstPause // others may give some back at any moment, and to try costs little
		}
		o.next = now + o.pause.Nanoseconds()
	}
}

// failed takes note of a change that failed. While the store closes it is tried once more.
func (s *Store) failed(c *durable.Change) {
	k := s.kept
	a, _ := c.Tag.(again)
	k.owed.add(c, s.now())
	if k.owed.last && !a.last {
		s.sayAgain(false)
	}
}

// sayAgainAfter says again what is owed when something could be made durable.
func (s *Store) sayAgainAfter(group []*durable.Change) {
	if slices.ContainsFunc(group, func(c *durable.Change) bool { return c.Err == nil }) {
		s.kept.owed.pause, s.kept.owed.next = 0, 0
		s.sayAgain(false)
	}
}

// sayAgainInTime says again what nothing else has brought up since, and ends uncertainty.
func (s *Store) sayAgainInTime(now int64) {
	k := s.kept
	if k == nil {
		return
	}
	if now >= k.owed.next {
		s.sayAgain(false)
	}
	s.clarify()
}

// sayAgainFor says again what is owed, and ends uncertainty, for one who needs the disk, and who waits for the room that this makes.
func (s *Store) sayAgainFor(now int64) {
	k := s.kept
	if k == nil || now-k.owed.asked < askedAgain.Nanoseconds() {
		return
	}
	if len(k.owed.changes) > 0 {
		s.sayAgain(true)
	}
	if len(k.uncertain) > 0 {
		k.owed.asked = now
		s.clarify()
	}
}

// clarify ends uncertainty: then the rooms of what does not count come back, and whoever needs room waits for that.
func (s *Store) clarify() {
	k := s.kept
	if len(k.uncertain) == 0 || k.clarifying {
		return
	}
	k.clarifying = true
	c := &durable.Change{Clarify: true, Tag: owes}
	s.stall.drops[c] = s.now()
	s.eng.Owe(0, 1)
	k.dir.Commit(c)
}

// sayAgain commits once more what could not be: drops, and of rules the one that holds now. The lock is held.
func (s *Store) sayAgain(awaited bool) {
	k, now := s.kept, s.now()
	k.owed.asked = now
	for _, c := range k.owed.changes {
		once := &durable.Change{History: c.History, Key: c.Key, Serial: c.Serial, Drop: c.Drop, Clear: c.Clear, Tag: again{standsFor(c), k.owed.last, awaited}}
		if c.Retention != nil {
			once.Retention = s.histories[c.History].rule()
		}
		s.stall.drops[once] = now
		if awaited {
			s.eng.Owe(0, 1)
		}
		k.dir.Commit(once)
	}
	clear(k.owed.changes)
}

// closeKept ends a directory. What it still owes then may be there again when the store is opened next, and whoever closes it must know.
func (s *Store) closeKept() (err, undone error) {
	if s.kept.dir != nil {
		s.mu.Lock()
		s.kept.owed.last = true
		s.sayAgain(false)
		s.mu.Unlock()
	}
	err = s.kept.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return err, s.kept.owed.undone(s)
}

func (o *owed) undone(s *Store) error {
	if len(o.changes) == 0 {
		return nil
	}
	rules := 0
	for _, c := range o.changes {
		if c.Retention != nil {
			rules++
		}
	}
	return status.Wrap(status.IO, s.diskError(o.why), "not made durable: drops %d, rules of retention %d. What was dropped may be there again when the store is opened next",
		len(o.changes)-rules, rules).AtTier(status.TierDisk)
}
