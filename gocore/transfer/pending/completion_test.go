package pending

import (
	"errors"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// counted counts the calls to checksums or to an event that no device has.
type counted struct{ fetched, renewed, taken, discarded, dropped int }

func (c *counted) Fetch(device.Lane) error { c.fetched++; return nil }
func (c *counted) Renew()                  { c.renewed++ }
func (c *counted) Leaves() []uint64        { return nil }
func (c *counted) Take() []uint64          { c.taken++; return nil }
func (c *counted) Discard()                { c.discarded++ }
func (c *counted) Passed() (bool, error)   { return true, nil }
func (c *counted) Seen() (bool, error)     { return true, nil }
func (c *counted) Wait() error             { return nil }
func (c *counted) Of(device.Lane) bool     { return false }
func (c *counted) Keep() device.Event      { return c }
func (c *counted) Drop()                   { c.dropped++ }

// eventless is a lane in which no event can be recorded at first.
type eventless struct {
	device.Lane
	marks int // attempts until it can
	mark  device.Event
}

func (l *eventless) Event() (device.Event, error) {
	if l.marks--; l.marks >= 0 {
		return nil, errors.New("no mark")
	}
	return l.mark, nil
}

// Where a second attempt to record an event behind the copy of checksums fails too, the memory that the copy writes to is given up. After that, as after any other
// failure, the next goroutine completes the capture.
func TestChecksumsWhoseCopyHasNoEvent(t *testing.T) {
	for failures := range 4 {
		sums, behind := &counted{}, &counted{}
		c := &Capture{Event: &counted{}, Sums: sums}
		s := &Completion{a: &devicememory.Memory{}, c: c}
		c.completing.Lock()
		err := s.QueueChecksums(&eventless{marks: failures, mark: behind})
		if (err != nil) != (failures > 0) {
			t.Errorf("%d failures: %v", failures, err)
		}
		if s.over != (failures > 0) || c.completing.TryLock() != s.over {
			t.Errorf("%d failures: over %v, or still locked", failures, s.over)
		}
		if want := (counted{fetched: 1, renewed: max(0, min(failures-1, 1))}); *sums != want {
			t.Errorf("%d failures: the checksums were %+v", failures, *sums)
		}
		if failures == 1 && behind.dropped != 1 {
			t.Errorf("the mark was dropped %d times", behind.dropped)
		}
	}
}

// failing is an event that cannot be waited for.
type failing struct{ counted }

func (f *failing) Wait() error        { return errors.New("lost") }
func (f *failing) Keep() device.Event { return f }

// Where the wait for the copy fails, the copy may still write: its memory is given up, and not used for other checksums.
func TestChecksumsWhoseCopyMayNotHaveEnded(t *testing.T) {
	sums := &counted{}
	c := &Capture{Event: &counted{}, Sums: sums}
	s := &Completion{a: &devicememory.Memory{}, c: c, fetched: &failing{}}
	c.completing.Lock()
	if err := s.AwaitChecksums(); err == nil || sums.renewed != 1 || sums.taken != 0 || !c.completing.TryLock() {
		t.Errorf("%v: %+v", err, *sums)
	}
}
