package pending

import (
	"errors"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// counted counts the calls to checksums or to an event that no device has.
type counted struct{ fetched, taken, discarded, dropped int }

func (c *counted) Fetch(device.Lane) error { c.fetched++; return nil }
func (c *counted) Leaves() []uint64        { return nil }
func (c *counted) Take() []uint64          { c.taken++; return nil }
func (c *counted) Discard()                { c.discarded++ }
func (c *counted) Passed() (bool, error)   { return true, nil }
func (c *counted) Seen() (bool, error)     { return true, nil }
func (c *counted) Wait() error             { return nil }
func (c *counted) Of(device.Lane) bool     { return false }
func (c *counted) Keep() device.Event      { return c }
func (c *counted) Drop()                   { c.dropped++ }

// Checksums whose copy to the host has no event behind it are not discarded for reuse, because the copy may still run.
func TestLostChecksumsAreNotDiscarded(t *testing.T) {
	for _, astray := range []bool{false, true} {
		c := &counted{}
		(&Capture{Event: c, Sums: c, lost: astray}).drop()
		want := counted{discarded: 1, dropped: 1}
		if astray {
			want.discarded = 0
		}
		if *c != want {
			t.Errorf("astray %v: %+v", astray, *c)
		}
	}
}

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

// Checksums are marked lost when a second attempt to record an event behind their copy fails. After that, as after any other failure, the next
// goroutine completes the capture.
func TestChecksumsAreLostWithoutAnEvent(t *testing.T) {
	for failures := range 4 {
		sums, behind := &counted{}, &counted{}
		c := &Capture{Event: &counted{}, Sums: sums}
		s := &Completion{a: &devicememory.Memory{}, c: c}
		c.completing.Lock()
		err := s.QueueChecksums(&eventless{marks: failures, mark: behind})
		if (err != nil) != (failures > 0) || c.lost != (failures > 1) {
			t.Errorf("%d failures: %v, astray %v", failures, err, c.lost)
		}
		if s.over != (failures > 0) || c.completing.TryLock() != s.over {
			t.Errorf("%d failures: over %v, or still locked", failures, s.over)
		}
		if want := (counted{fetched: 1}); *sums != want {
			t.Errorf("%d failures: the checksums were %+v", failures, *sums)
		}
		if failures == 1 && behind.dropped != 1 {
			t.Errorf("the mark was dropped %d times", behind.dropped)
		}
	}
}
