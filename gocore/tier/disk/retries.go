package disk

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/durable"
)

// retryQueue holds catalog changes that failed: drops and rules of retention. The queue commits them again after the next change that succeeds, at
// intervals, and when it closes. Changes with the same key are merged into one.
type retryQueue struct {
	versions *versions
	first    time.Duration // the shortest pause
	changes  map[retryKey]*durable.Change
	why      error         // the latest failure
	pause    time.Duration // from one attempt to the next
	next     int64         // time of the next attempt, ns
	asked    int64         // time of the latest attempt, ns
	last     bool          // the store closes: a change that fails is tried only once more
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
		o.pause = max(min(2*o.pause, mostPause), o.first)
		if noSpace(c.Err) {
			o.pause = o.first // other processes may free space at any moment, and an attempt is cheap
		}
		o.next = now + o.pause.Nanoseconds()
	}
}

// queue queues a change that failed. While the store closes it is tried once more at once.
func (o *retryQueue) queue(c *durable.Change) {
	a, _ := c.Tag.(retryTag)
	o.add(c, o.versions.tier.o.Now())
	if o.last && !a.last {
		o.commit(false)
	}
}

// afterSuccess commits the queued changes again if one of the group became durable.
func (o *retryQueue) afterSuccess(group []*durable.Change) {
	if slices.ContainsFunc(group, func(c *durable.Change) bool { return c.Err == nil }) {
		o.pause, o.next = 0, 0
		o.commit(false)
	}
}

// whenDue commits the queued changes again when their pause is over, and resolves uncertain transfers.
func (o *retryQueue) whenDue(now int64) {
	if now >= o.next {
		o.commit(false)
	}
	o.clarify()
}

// RetryForCaller commits the changes again that failed, and resolves uncertain transfers, for a caller that needs the disk. The caller waits for the
// space that this releases.
func (d *Tier) RetryForCaller() {
	if d.versions == nil {
		return
	}
	o, now := &d.versions.retries, d.o.Now()
	if now-o.asked < retryPause.Nanoseconds() {
		return
	}
	if len(o.changes) > 0 {
		o.commit(true)
	}
	if len(d.versions.uncertain) > 0 {
		o.asked = now
		o.clarify()
	}
}

// clarify commits a change that resolves uncertain transfers. The space of those that the catalog does not reference is released then, and waiters
// for space wait for it.
func (o *retryQueue) clarify() {
	v := o.versions
	if len(v.uncertain) == 0 || v.clarifying {
		return
	}
	v.clarifying = true
	v.commitForRoom(&durable.Change{Clarify: true})
}

// commit commits the queued changes again. A rule of retention is replaced by the one that applies now. awaited: callers wait for the released space.
// The lock is held.
func (o *retryQueue) commit(awaited bool) {
	d := o.versions.tier
	now := d.o.Now()
	o.asked = now
	for _, c := range o.changes {
		once := &durable.Change{History: c.History, Key: c.Key, Serial: c.Serial, Drop: c.Drop, Clear: c.Clear, Tag: retryTag{changesOf(c), o.last, awaited}}
		if c.Retention != nil {
			//mutation:failed-rule-returns
			once.Retention = d.cache.Rule(c.History)
		}
		d.watch.drops[once] = now
		if awaited {
			d.engine().ExpectReleases(0, 1)
		}
		o.versions.dir.Commit(once)
	}
	clear(o.changes)
}

// close closes the directory. Checkpoints whose drop did not become durable may exist again when the store is next opened. undone is the error about
// them, which Close returns to its caller.
func (v *versions) close() (err, undone error) {
	if v.dir != nil {
		v.tier.cache.Lock()
		//mutation:failed-drop-forgotten-at-close
		v.retries.last = true
		v.retries.commit(false)
		v.tier.cache.Unlock()
	}
	err = v.Close()
	v.tier.cache.Lock()
	defer v.tier.cache.Unlock()
	//mutation:failed-drop-unreported
	return err, v.retries.undone()
}

// undone is the error about the changes that did not become durable.
func (o *retryQueue) undone() error {
	if len(o.changes) == 0 {
		return nil
	}
	rules := 0
	for _, c := range o.changes {
		if c.Retention != nil {
			rules++
		}
	}
	return status.Wrap(status.IO, o.versions.tier.Error(o.why), "not made durable: drops %d, rules of retention %d. What was dropped may be there again when the store is opened next",
		len(o.changes)-rules, rules).AtTier(status.TierDisk)
}
