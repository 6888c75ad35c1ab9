package topology

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestLinkAt(t *testing.T) {
	bus := fstest.MapFS{
		"0000:1b:00.0/max_link_speed": {Data: []byte("32.0 GT/s PCIe\n")},
		"0000:1b:00.0/max_link_width": {Data: []byte("16\n")},
		"0001:02:00.0/max_link_speed": {Data: []byte("8 GT/s\n")}, // as older kernels write it
		"0001:02:00.0/max_link_width": {Data: []byte("8\n")},
		"0000:03:00.0/max_link_speed": {Data: []byte("Unknown\n")},
		"0000:03:00.0/max_link_width": {Data: []byte("16\n")},
		"0000:04:00.0/max_link_speed": {Data: []byte("16.0 GT/s PCIe\n")},
		"0000:04:00.0/max_link_width": {Data: []byte("-1\n")},
	}
	for address, want := range map[string]float64{
		"00000000:1B:00.0": 63e9, "0000:1b:00.0": 63e9, "00000001:02:00.0": 7.88e9,
		"00000000:03:00.0": 0, "00000000:04:00.0": 0, "00000000:05:00.0": 0, "": 0, "../..": 0, "1b:00.0": 0,
	} {
		if got := LinkAt(bus, address); math.Abs(got-want) > want/100 {
			t.Errorf("the link of %q carries %g bytes/s; expected %g", address, got, want)
		}
	}
}
