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
		bus + "/0001:02:00.0/max_link_speed": "8 GT/s\n", // in the form of older kernels
		bus + "/0001:02:00.0/max_link_width": "8\n",
		bus + "/0000:03:00.0/max_link_speed": "Unknown\n",
		bus + "/0000:03:00.0/max_link_width": "16\n",
		bus + "/0000:04:00.0/max_link_speed": "16.0 GT/s PCIe\n",
		bus + "/0000:04:00.0/max_link_width": "-1\n",

		bus + "/0000:06:00.0/max_link_speed":     "32.0 GT/s PCIe\n",
		bus + "/0000:06:00.0/max_link_width":     "16\n",
		bus + "/0000:06:00.0/current_link_width": "8\n",
	}
	read := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
	for address, want := range map[string]float64{
		"00000000:1B:00.0": 63e9, "0000:1b:00.0": 63e9, "00000001:02:00.0": 7.88e9, "00000000:06:00.0": 31.5e9,
		"00000000:03:00.0": 0, "00000000:04:00.0": 0, "00000000:05:00.0": 0, "": 0, "../..": 0, "1b:00.0": 0,
	} {
		if got := LinkAt(read, address); math.Abs(got-want) > want/100 {
			t.Errorf("the link of %q carries %g bytes/s; expected %g", address, got, want)
		}
	}
}

// known is a management library with some GPUs.
type known struct {
	Source
	gpus []GPU
	err  error
}

func (k known) GPUs() ([]GPU, error) { return k.gpus, k.err }

func TestLinkOf(t *testing.T) {
	source := known{gpus: []GPU{
		{UUID: "GPU-1", PCI: "00000000:1b:00.0", Generation: 1, Width: 16, MostGeneration: 5, MostWidth: 16}, // idle
		{UUID: "GPU-2", PCI: "00000000:1c:00.0", Generation: 5, Width: 8, MostGeneration: 5, MostWidth: 16},  // in a narrow slot
		{UUID: "GPU-3", PCI: "00000000:1d:00.0", Generation: -1, Width: -1, MostGeneration: 4, MostWidth: 16},
		{UUID: "GPU-4", Generation: -1, Width: -1, MostGeneration: -1, MostWidth: -1},
	}}
	for _, c := range []struct {
		uuid, address string
		want          float64
	}{
		{"GPU-1", "", 63e9}, {"GPU-2", "", 31.5e9}, {"GPU-3", "", 31.5e9}, {"GPU-4", "", 0},
		{"MIG-7", "00000000:1C:00.0", 31.5e9}, {"GPU-1", "00000000:1c:00.0", 63e9}, {"GPU-9", "", 0}, {"GPU-9", "00000000:ff:00.0", 0},
	} {
		if got := LinkOf(source, c.uuid, c.address); math.Abs(got-c.want) > c.want/100 {
			t.Errorf("the link of %q at %q carries %g bytes/s; expected %g", c.uuid, c.address, got, c.want)
		}
	}
	if got := LinkOf(known{err: ErrUnknown}, "GPU-1", ""); got != 0 {
		t.Errorf("a library that does not answer: %g", got)
	}
}
