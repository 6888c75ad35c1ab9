package disk

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/tier/disk/durable"
)

// The longer writes fail, the rarer are the attempts.
func TestPausesBetweenAttemptsGrow(t *testing.T) {
	o := retryQueue{first: firstPause}
	now := int64(0)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		o.add(&durable.Change{Err: unix.EIO}, now)
		o.add(&durable.Change{Err: unix.EIO}, now) // of the same group
		if o.next != now+(want*time.Second).Nanoseconds() {
			t.Fatalf("after %v: %v", want*time.Second, time.Duration(o.next-now))
		}
		now = o.next
	}
}
