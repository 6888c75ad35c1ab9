package store

import (
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/transfer/pending"
)

// A version is dropped before a device has copied it. After a wait for its capture the caller may overwrite its source.
func TestWaitForAnOrphanedCapture(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(64<<20, 0, 4<<20))
	c := newClient(t, s, "h")
	open := gate(b.stream)
	out, err := c.putOn(b, 1, b.alloc(1<<20), 1<<20)
	b.check(err)
	c.drop(1)
	if c.state(out).Captured {
		t.Fatal("the device has taken it: nothing is tested")
	}
	ended := make(chan error, 1)
	go func() { ended <- newClient(t, s, "h").wait(out.Ticket, status.TierNone) }()
	select {
	case err := <-ended:
		t.Fatalf("the wait ended before the device had come by: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	open()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !c.state(out).Captured {
		t.Error("not captured after a wait for that")
	}
	drained(t, s)
}

// The orphaned captures of a device with a backlog are dropped by later captures after the device has caught up.
func TestOrphanedCapturesAreDropped(t *testing.T) {
	b, gate := gated(t, double.Config{})
	s := open(t, b.config(64<<20, 0, 4<<20))
	c := newClient(t, s, "h")
	open := gate(b.stream)
	at := b.alloc(1000)
	write := func(from, to int64, drop bool) {
		for k := from; k < to; k++ {
			_, err := c.putOn(b, k, at, 1000)
			b.check(err)
			if drop {
				c.drop(k)
			}
		}
	}
	left := func() int {
		s.Lock()
		defer s.Unlock()
		return s.Orphans.Len()
	}
	write(0, 300, true)
	if n := left(); n != 300 {
		t.Fatalf("%d strays of 300", n)
	}
	open()
	b.driver.Settle()
	write(300, 300+300/pending.MostSwept+1, false)
	if n := left(); n != 0 {
		t.Errorf("%d strays are left", n)
	}
	drained(t, s)
}
