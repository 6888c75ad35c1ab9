package store

import (
	"slices"
	"time"

	"velocpy/gocore/durable"
	"velocpy/gocore/status"
)

// owed are changes that failed: drops, and rules of retention. They are said again with the next that succeeds, from time to time, and when the store closes.
type owed struct {
	changes []*durable.Change
	why     error         // the latest failure
	pause   time.Duration // from one attempt to the next
	next    int64         // when that is
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
)

func (o *owed) add(c *durable.Change, now int64) {
	o.changes, o.why = append(o.changes, c), c.Err
	if o.next <= now {
		o.pause = min(max(2*o.pause, firstPause), mostPause)
		o.next = now + o.pause.Nanoseconds()
	}
}

// sayAgainAfter says again what is owed when something could be made durable.
func (s *Store) sayAgainAfter(group []*durable.Change) {
	if slices.ContainsFunc(group, func(c *durable.Change) bool { return c.Err == nil }) {
		s.kept.owed.pause = 0
		s.sayAgain()
	}
}

// sayAgainInTime says again what nothing else has brought up since.
func (s *Store) sayAgainInTime(now int64) {
	if k := s.kept; k != nil && now >= k.owed.next {
		s.sayAgain()
	}
}

// sayAgain commits once more what could not be: drops, and of rules the one that holds now. The lock is held.
func (s *Store) sayAgain() {
	k := s.kept
	all := k.owed.changes
	k.owed.changes = nil
	for _, c := range all {
		again := &durable.Change{History: c.History, Key: c.Key, Serial: c.Serial, Drop: c.Drop, Clear: c.Clear}
		if c.Retention != nil {
			again.Retention = s.histories[c.History].rule()
		}
		k.dir.Commit(again)
	}
}

// closeKept ends a directory. What it still owes then may be there again when the store is opened next, and whoever closes it must know.
func (s *Store) closeKept() (err, undone error) {
	if s.kept.dir != nil {
		s.mu.Lock()
		s.sayAgain()
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
	why := s.diskError(o.why)
	return status.Wrap(codeOf(why), why, "not made durable: drops %d, rules of retention %d. What was dropped may be there again when the store is opened next",
		len(o.changes)-rules, rules).AtTier(status.TierDisk)
}
