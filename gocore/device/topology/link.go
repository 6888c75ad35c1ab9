package topology

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// bus is where the kernel describes the devices of the PCI bus.
const bus = "/sys/bus/pci/devices"

// LinkAt reads what the link of a PCI device can carry in one direction, bytes/s before protocol, from what the kernel says of it; 0 when it does not. The
// address is as NVML's or CUDA's: "00000000:1b:00.0". LinkOf knows better, and takes longer.
func LinkAt(read func(path string) ([]byte, error), address string) float64 {
	if domain, rest, ok := strings.Cut(address, ":"); ok && len(domain) > 4 {
		address = domain[len(domain)-4:] + ":" + rest // the kernel writes four digits
	}
	word := func(name string) string { // the first one of a file
		text, err := read(filepath.Join(bus, strings.ToLower(address), name))
		if err != nil {
			return ""
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		return first
	}
	g := GPU{MostGeneration: generation(word("max_link_speed"))}
	g.MostWidth, _ = strconv.Atoi(word("max_link_width"))
	g.Width, _ = strconv.Atoi(word("current_link_width"))
	return g.Usable()
}

// LinkOf is the same of a GPU, as the management library says: the GPU of that UUID, or the one at that address, of which it is a slice. In a virtual machine
// the kernel often knows no more than the emulated bus. The library takes some ten milliseconds to load, which is too long while a store opens: it is asked
// beside that.
func LinkOf(source Source, uuid, address string) float64 {
	gpus, err := source.GPUs()
	if err != nil {
		return 0
	}
	at := slices.IndexFunc(gpus, func(g GPU) bool { return g.UUID == uuid })
	if at < 0 {
		at = slices.IndexFunc(gpus, func(g GPU) bool { return g.PCI != "" && strings.EqualFold(g.PCI, address) })
	}
	if at < 0 {
		return 0
	}
	return gpus[at].Usable()
}

// generation is that of PCIe by what it transfers a second on a lane; 0 for others.
func generation(transfers string) int {
	return map[string]int{"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}[transfers]
}
