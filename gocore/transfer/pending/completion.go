package pending

import (
	"sync"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// Completion waits for the event of a device capture and takes over its checksums. One goroutine at a time does so; others wait for it. Meanwhile
// neither the event nor the checksums are dropped, since a record stays while a transfer or restore reads it. A nil Completion means that the capture
// is complete. A Completion ends after AwaitChecksums or after the first error.
type Completion struct {
	lock    sync.Locker
	a       *devicememory.Memory
	b       *checkpoint.Version
	c       *Capture
	fetched device.Event
	over    bool
}

// Begin waits until no other goroutine completes the capture. It returns nil if the capture is complete then. Otherwise the caller completes
// it, and holds the capture's completing mutex until the completion ends.
func Begin(lock sync.Locker, a *devicememory.Memory, b *checkpoint.Version) *Completion {
	for {
		lock.Lock()
		c := Of(b)
		lock.Unlock()
		if c == nil || c.Event == nil {
			return nil
		}
		c.completing.Lock()
		lock.Lock()
		still := Of(b) == c
		lock.Unlock()
		if still {
			return &Completion{lock: lock, a: a, b: b, c: c}
		}
		c.completing.Unlock()
	}
}

// Complete waits for a capture and takes over its checksums.
func Complete(lock sync.Locker, a *devicememory.Memory, b *checkpoint.Version) error {
	t := Begin(lock, a, b)
	if err := t.AwaitCopy(); err != nil {
		return err
	}
	if err := a.InOwnLane(t.QueueChecksums); err != nil {
		return err
	}
	return t.AwaitChecksums()
}

// AwaitCopied waits until the device has captured a checkpoint, if it has not yet. Other goroutines may complete the capture meanwhile.
func AwaitCopied(lock sync.Locker, a *devicememory.Memory, b *checkpoint.Version) error {
	lock.Lock()
	c := Of(b)
	if c == nil || c.Event == nil {
		lock.Unlock()
		return nil
	}
	copied := c.Event.Keep()
	lock.Unlock()
	return a.Wait(copied)
}

// AwaitCopy waits until the device has copied the bytes.
func (t *Completion) AwaitCopy() error {
	if t == nil {
		return nil
	}
	if err := t.a.Wait(t.c.Event.Keep()); err != nil {
		return t.end(err)
	}
	return nil
}

// QueueChecksums queues the copy of the checksums to the host.
func (t *Completion) QueueChecksums(lane device.Lane) error {
	if t == nil || t.c.Sums == nil {
		return nil
	}
	m, failed := devicememory.EventBehind(lane, t.c.Sums.Fetch(lane))
	if failed == nil {
		t.fetched = m
		return nil
	}
	if m == nil || t.a.Wait(m) != nil {
		t.c.Sums.Renew()
	}
	return t.end(devicememory.Explain(failed))
}

// AwaitChecksums waits for the checksums and takes them over.
func (t *Completion) AwaitChecksums() error {
	if t == nil || t.over {
		return nil
	}
	if t.fetched != nil {
		if err := t.a.Wait(t.fetched); err != nil {
			t.c.Sums.Renew()
			return t.end(err)
		}
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.c.Sums != nil {
		t.b.KeepLeaves(t.c.Sums.Leaves())
		t.b.Keep(t.c.Sums.Take())
	}
	t.c.Event.Drop()
	t.b.Pending = nil
	return t.end(nil)
}

func (t *Completion) end(err error) error {
	t.over = true
	t.c.completing.Unlock()
	return err
}
