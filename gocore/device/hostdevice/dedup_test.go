package hostdevice

import (
	"testing"
	"time"

	"velocpy/gocore/device/devicetest"

	"pgregory.net/rapid"
)

// The differences of any checkpoints are those of package dedup, byte for byte.
func TestDedupOfAnyHistory(t *testing.T) {
	m := devicetest.NewMachine(t, New(Options{Delay: time.Microsecond}))
	rapid.Check(t, func(t *rapid.T) { devicetest.DrawnHistory(t, m) })
}
