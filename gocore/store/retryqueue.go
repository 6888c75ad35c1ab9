package store

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/durable"
)

// retryQueue are changes that failed: drops, and rules of retention. They are said again with the next that succeeds, from time to time, and when the store closes.
// What several say of one key, or of one history, is said once.
type retryQueue struct {
	changes map[retryKey]*durable.Change
	why     error         // the latest failure
	pause   time.Duration // from one attempt to the next
	next    int64         // when that is
	asked   int64         // when it was tried last
	last    bool          // the store closes: what fails is tried once more, and no more
}

// retryKey is what a change is about: of two about the same the later one counts.
type retryKey struct {
	place
	clear, rule bool
}

func retryKeyOf(c *durable.Change) retryKey {
	if c.Drop {
		return retryKey{place: place{c.History, c.Key}}
	}
	return retryKey{place: place{history: c.History}, clear: c.Clear, rule: c.Retention != nil}
}

// retryTag is the tag of a change that is said once more, for so many that have failed.
type retryTag struct {
	stands  int
	last    bool
	awaited bool // for its room somebody may wait
}

// changesOf is how many changes one stands for.
func changesOf(c *durable.Change) int {
	if a, ok := c.Tag.(retryTag); ok {
		return a.stands
	}
	return 1
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// retryPause is how long what is owed rests at least when those who need the disk ask for it.
const retryPause = 10 * time.Millisecond

// noSpace tells whether a disk had no room.
func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func (o *retryQueue) add(c *durable.Change, now int64) {
	if o.changes == nil {
		o.changes = map[retryKey]*durable.Change{}
	}
	at, stands := retryKeyOf(c), changesOf(c)
	if same := o.changes[at]; same != nil {
		stands += changesOf(same)
		c.Serial = max(c.Serial, same.Serial)
	}
	c.Tag = retryTag{stands: stands}
	o.changes[at], o.why = c, c.Err
	if o.next <= now {
		o.pause = min(max(2*o.pause, firstPause), mostPause)
		if noSpace(c.Err) {
			o.pause = firstPause // others may give some back at any moment, and to try costs little
		}
		o.next = now + o.pause.Nanoseconds()
	}
}

// queueRetry takes note of a change that failed. While the store closes it is tried once more.
func (s *Store) queueRetry(c *durable.Change) {
	k := s.durable
	a, _ := c.Tag.(retryTag)
	k.retries.add(c, s.now())
	if k.retries.last && !a.last {
		s.retryChanges(false)
	}
}

// retryAfterSuccess says again what is owed when something could be made durable.
func (s *Store) retryAfterSuccess(group []*durable.Change) {
	if slices.ContainsFunc(group, func(c *durable.Change) bool { return c.Err == nil }) {
		s.durable.retries.pause, s.durable.retries.next = 0, 0
		s.retryChanges(false)
	}
}

// retryWhenDue says again what nothing else has brought up since, and ends uncertainty.
func (s *Store) retryWhenDue(now int64) {
	k := s.durable
	if k == nil {
		return
	}
	if now >= k.retries.next {
		s.retryChanges(false)
	}
	s.clarify()
}

// retryForCaller says again what is owed, and ends uncertainty, for one who needs the disk, and who waits for the room that this makes.
func (s *Store) retryForCaller(now int64) {
	k := s.durable
	if k == nil || now-k.retries.asked < retryPause.Nanoseconds() {
		return
	}
	if len(k.retries.changes) > 0 {
		s.retryChanges(true)
	}
	if len(k.uncertain) > 0 {
		k.retries.asked = now
		s.clarify()
	}
}

// clarify ends uncertainty: then the rooms of what does not count come back, and whoever needs room waits for that.
func (s *Store) clarify() {
	k := s.durable
	if len(k.uncertain) == 0 || k.clarifying {
		return
	}
	k.clarifying = true
	c := &durable.Change{Clarify: true, Tag: forRoom}
	s.watchdog.drops[c] = s.now()
	s.eng.Owe(0, 1)
	k.dir.Commit(c)
}

// retryChanges commits once more what could not be: drops, and of rules the one that holds now. The lock is held.
func (s *Store) retryChanges(awaited bool) {
	k, now := s.durable, s.now()
	k.retries.asked = now
	for _, c := range k.retries.changes {
		once := &durable.Change{History: c.History, Key: c.Key, Serial: c.Serial, Drop: c.Drop, Clear: c.Clear, Tag: retryTag{changesOf(c), k.retries.last, awaited}}
		if c.Retention != nil {
			//mutation:failed-rule-returns
			once.Retention = s.histories[c.History].rule()
		}
		s.watchdog.drops[once] = now
		if awaited {
			s.eng.Owe(0, 1)
		}
		k.dir.Commit(once)
	}
	clear(k.retries.changes)
}

// closeDurable ends a directory. What it still owes then may be there again when the store is opened next, and whoever closes it must know.
func (s *Store) closeDurable() (err, undone error) {
	if s.durable.dir != nil {
		s.mu.Lock()
		//mutation:failed-drop-forgotten-at-close
		s.durable.retries.last = true
		s.retryChanges(false)
		s.mu.Unlock()
	}
	err = s.durable.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	//mutation:failed-drop-unreported
	return err, s.durable.retries.undone(s)
}

func (o *retryQueue) undone(s *Store) error {
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
