package hostdevice

import (
	"testing"
	"time"

	"velocpy/gocore/device/devicetest"
)

// The differences of any checkpoints are those of package dedup, byte for byte.
func TestDedupOfAnyHistory(t *testing.T) {
	devicetest.AnyHistory(t, New(Options{Delay: time.Microsecond}))
}
