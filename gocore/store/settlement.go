package store

import (
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// settlement is a capture of a device while somebody waits for it and takes over its checksums, alone: others who want to wait for that. Nobody
// lets go of its mark and its checksums meanwhile, as a record stays for as long as something reads it. nil: there is nothing to settle.
// It is over after arrived, or after the first error.
type settlement struct {
	s       *Store
	a       *devicememory.Memory
	b       *body
	c       *coming
	fetched device.Mark
	over    bool
}

// unsettled waits for who settles the capture at present, and leaves the rest to the caller, if there is any.
func (s *Store) unsettled(a *devicememory.Memory, b *body) *settlement {
	for {
		s.mu.Lock()
		c := b.coming
		s.mu.Unlock()
		if c == nil || c.mark == nil {
			return nil
		}
		c.settling.Lock()
		s.mu.Lock()
		still := b.coming == c
		s.mu.Unlock()
		if still {
			return &settlement{s: s, a: a, b: b, c: c}
		}
		c.settling.Unlock()
	}
}

// settleCapture waits for a capture and takes over its checksums.
func (s *Store) settleCapture(a *devicememory.Memory, b *body) error {
	t := s.unsettled(a, b)
	if err := t.taken(); err != nil {
		return err
	}
	if err := a.InOwnLane(t.fetch); err != nil {
		return err
	}
	return t.arrived()
}

// taken waits until the device has the bytes.
func (t *settlement) taken() error {
	if t == nil {
		return nil
	}
	if err := t.a.Wait(t.c.mark.Keep()); err != nil {
		return t.end(err)
	}
	return nil
}

// fetch queues the way of the checksums to the host.
func (t *settlement) fetch(lane device.Lane) error {
	if t == nil || t.c.sums == nil {
		return nil
	}
	m, failed := devicememory.MarkBehind(lane, t.c.sums.Fetch(lane))
	if failed == nil {
		t.fetched = m
		return nil
	}
	if m == nil || t.a.Wait(m) != nil {
		t.c.astray = true
	}
	return t.end(devicememory.Explain(failed))
}

// arrived waits for the checksums and takes them over.
func (t *settlement) arrived() error {
	if t == nil || t.over {
		return nil
	}
	if t.fetched != nil {
		if err := t.a.Wait(t.fetched); err != nil {
			t.c.astray = true
			return t.end(err)
		}
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.c.sums != nil {
		t.b.keep(t.c.sums.Take())
	}
	t.c.mark.Drop()
	t.b.coming = nil
	return t.end(nil)
}

func (t *settlement) end(err error) error {
	t.over = true
	t.c.settling.Unlock()
	return err
}
