package store

import (
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// completion is a capture of a device while somebody waits for it and takes over its checksums, alone: others who want to wait for that. Nobody
// lets go of its mark and its checksums meanwhile, as a record stays for as long as something reads it. nil: there is nothing to settle.
// It is over after arrived, or after the first error.
type completion struct {
	s       *Store
	a       *devicememory.Memory
	b       *body
	c       *pendingCapture
	fetched device.Mark
	over    bool
}

// beginCompletion waits for who settles the capture at present, and leaves the rest to the caller, if there is any.
func (s *Store) beginCompletion(a *devicememory.Memory, b *body) *completion {
	for {
		s.mu.Lock()
		c := b.pending
		s.mu.Unlock()
		if c == nil || c.mark == nil {
			return nil
		}
		c.completing.Lock()
		s.mu.Lock()
		still := b.pending == c
		s.mu.Unlock()
		if still {
			return &completion{s: s, a: a, b: b, c: c}
		}
		c.completing.Unlock()
	}
}

// completeCapture waits for a capture and takes over its checksums.
func (s *Store) completeCapture(a *devicememory.Memory, b *body) error {
	t := s.beginCompletion(a, b)
	if err := t.awaitCopy(); err != nil {
		return err
	}
	if err := a.InOwnLane(t.queueChecksums); err != nil {
		return err
	}
	return t.awaitChecksums()
}

// awaitCopy waits until the device has the bytes.
func (t *completion) awaitCopy() error {
	if t == nil {
		return nil
	}
	if err := t.a.Wait(t.c.mark.Keep()); err != nil {
		return t.end(err)
	}
	return nil
}

// queueChecksums queues the way of the checksums to the host.
func (t *completion) queueChecksums(lane device.Lane) error {
	if t == nil || t.c.sums == nil {
		return nil
	}
	m, failed := devicememory.MarkBehind(lane, t.c.sums.Fetch(lane))
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
		t.b.keep(t.c.sums.Take())
	}
	t.c.mark.Drop()
	t.b.pending = nil
	return t.end(nil)
}

func (t *completion) end(err error) error {
	t.over = true
	t.c.completing.Unlock()
	return err
}
