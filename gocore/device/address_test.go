package device_test

import (
	"testing"

	"velocpy/gocore/device"
)

// deep makes the stack of the goroutine grow, and thereby move.
func deep(n int) byte {
	var frame [1 << 10]byte
	frame[n%len(frame)] = byte(n)
	if n == 0 {
		return frame[0]
	}
	return frame[n%len(frame)] + deep(n-1)
}

// TestAddressOfStays: all lengths that a slice of unknown length may have on the stack, and some longer ones.
func TestAddressOfStays(t *testing.T) {
	for n := 1; n <= 100; n++ {
		same := make(chan bool)
		go func() {
			p := make([]byte, n)
			at := device.AddressOf(p)
			deep(1000)
			same <- device.AddressOf(p) == at
		}()
		if !<-same {
			t.Errorf("%d bytes have moved", n)
		}
	}
}
