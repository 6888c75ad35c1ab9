package topology

import (
	"io/fs"
	"math"
	"testing"
)

func TestLinkAt(t *testing.T) {
	files := map[string]string{
		bus + "/0000:1b:00.0/max_link_speed": "32.0 GT/s PCIe\n",
		bus + "/0000:1b:00.0/max_link_width": "16\n",
		bus + "/0001:02:00.0/max_link_speed": "8 GT/s\n", // as older kernels write it
		bus + "/0001:02:00.0/max_link_width": "8\n",
		bus + "/0000:03:00.0/max_link_speed": "Unknown\n",
		bus + "/0000:03:00.0/max_link_width": "16\n",
		bus + "/0000:04:00.0/max_link_speed": "16.0 GT/s PCIe\n",
		bus + "/0000:04:00.0/max_link_width": "-1\n",
	}
	read := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	for address, want := range map[string]float64{
		"00000000:1B:00.0": 63e9, "0000:1b:00.0": 63e9, "00000001:02:00.0": 7.88e9,
		"00000000:03:00.0": 0, "00000000:04:00.0": 0, "00000000:05:00.0": 0, "": 0, "../..": 0, "1b:00.0": 0,
	} {
		if got := LinkAt(read, address); math.Abs(got-want) > want/100 {
			t.Errorf("the link of %q carries %g bytes/s; expected %g", address, got, want)
		}
	}
}
