package store

import (
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// completion waits for the event of a device capture and takes over its checksums. One goroutine at a time does so; others wait for it. Meanwhile
// neither the event nor the checksums are dropped, since a record stays while a transfer or restore reads it. A nil completion means that the capture
// is complete. A completion ends after awaitChecksums or after the first error.
type completion struct {
	s       *Cache
	a       *devicememory.Memory
	b       *checkpoint.Version
	c       *pendingCapture
	fetched device.Event
	over    bool
}

// beginCompletion waits until no other goroutine completes the capture. It returns nil if the capture is complete then. Otherwise the caller completes
// it, and holds the capture's completing lock until the completion ends.
func (s *Cache) beginCompletion(a *devicememory.Memory, b *checkpoint.Version) *completion {
	for {
		s.mu.Lock()
		c := pendingOf(b)
		s.mu.Unlock()
		if c == nil || c.event == nil {
			return nil
		}
		c.completing.Lock()
		s.mu.Lock()
		still := pendingOf(b) == c
		s.mu.Unlock()
		if still {
			return &completion{s: s, a: a, b: b, c: c}
		}
		c.completing.Unlock()
	}
}

// completeCapture waits for a capture and takes over its checksums.
func (s *Cache) completeCapture(a *devicememory.Memory, b *checkpoint.Version) error {
	t := s.beginCompletion(a, b)
	if err := t.awaitCopy(); err != nil {
		return err
	}
	if err := a.InOwnLane(t.queueChecksums); err != nil {
		return err
	}
	return t.awaitChecksums()
}

// awaitCopy waits until the device has copied the bytes.
func (t *completion) awaitCopy() error {
	if t == nil {
		return nil
	}
	if err := t.a.Wait(t.c.event.Keep()); err != nil {
		return t.end(err)
	}
	return nil
}

// queueChecksums queues the copy of the checksums to the host.
func (t *completion) queueChecksums(lane device.Lane) error {
	if t == nil || t.c.sums == nil {
		return nil
	}
	m, failed := devicememory.EventBehind(lane, t.c.sums.Fetch(lane))
	if failed == nil {
		t.fetched = m
		return nil
	}
	if m == nil || t.a.Wait(m) != nil {
		t.c.lost = true
	}
	return t.end(devicememory.Explain(failed))
}

// awaitChecksums waits for the checksums and takes them over.
func (t *completion) awaitChecksums() error {
	if t == nil || t.over {
		return nil
	}
	if t.fetched != nil {
		if err := t.a.Wait(t.fetched); err != nil {
			t.c.lost = true
			return t.end(err)
		}
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.c.sums != nil {
		t.b.Keep(t.c.sums.Take())
	}
	t.c.event.Drop()
	t.b.Pending = nil
	return t.end(nil)
}

func (t *completion) end(err error) error {
	t.over = true
	t.c.completing.Unlock()
	return err
}
