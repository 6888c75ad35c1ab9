package store

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/durable"
)

// retryQueue holds catalog changes that failed: drops and rules of retention. The store commits them again after the next change that succeeds, at
// intervals, and when it closes. Changes with the same key are merged into one.
type retryQueue struct {
	changes map[retryKey]*durable.Change
	why     error         // the latest failure
	pause   time.Duration // from one attempt to the next
	next    int64         // time of the next attempt, ns
	asked   int64         // time of the latest attempt, ns
	last    bool          // the store closes: a change that fails is tried only once more
}

// retryKey is the key under which pending changes are merged. The later one replaces the earlier.
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

// retryTag is the tag of a change that is committed again. stands counts the failed changes that it represents.
type retryTag struct {
	stands  int
	last    bool
	awaited bool // captures or flushes may wait for the space that it releases
}

// changesOf returns how many changes a change represents.
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

// retryPause is the least time between attempts that are caused by callers that need the disk.
const retryPause = 10 * time.Millisecond

// noSpace tells whether an error means that the disk or the quota is full.
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
			o.pause = firstPause // other processes may free space at any moment, and an attempt is cheap
		}
		o.next = now + o.pause.Nanoseconds()
	}
}

// queueRetry queues a change that failed. While the store closes it is tried once more at once.
func (s *Store) queueRetry(c *durable.Change) {
	k := s.durable
	a, _ := c.Tag.(retryTag)
	k.retries.add(c, s.now())
	if k.retries.last && !a.last {
		s.retryChanges(false)
	}
}

// retryAfterSuccess commits the queued changes again if one of the group became durable.
func (s *Store) retryAfterSuccess(group []*durable.Change) {
	if slices.ContainsFunc(group, func(c *durable.Change) bool { return c.Err == nil }) {
		s.durable.retries.pause, s.durable.retries.next = 0, 0
		s.retryChanges(false)
	}
}

// retryWhenDue commits the queued changes again when their pause is over, and resolves uncertain transfers.
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

// retryForCaller commits the queued changes again, and resolves uncertain transfers, for a caller that needs the disk. The caller waits for the space
// that this releases.
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

// clarify commits a change that resolves uncertain transfers. The space of those that the catalog does not reference is released then, and waiters
// for space wait for it.
func (s *Store) clarify() {
	k := s.durable
	if len(k.uncertain) == 0 || k.clarifying {
		return
	}
	k.clarifying = true
	c := &durable.Change{Clarify: true, Tag: forRoom}
	s.watchdog.drops[c] = s.now()
	s.eng.ExpectReleases(0, 1)
	k.dir.Commit(c)
}

// retryChanges commits the queued changes again. A rule of retention is replaced by the one that applies now. awaited: callers wait for the released
// space. The lock is held.
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
			s.eng.ExpectReleases(0, 1)
		}
		k.dir.Commit(once)
	}
	clear(k.retries.changes)
}

// closeDurable closes the directory. Checkpoints whose drop did not become durable may exist again when the store is next opened. undone is the error
// about them, which Close returns to its caller.
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
