package topology

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// bus is the directory in which the kernel describes the devices of the PCI bus.
const bus = "/sys/bus/pci/devices"

// LinkAt is the rate of a PCI device's link in one direction, bytes/s before protocol, according to the kernel; 0 if that is unknown. The address is
// in the form of NVML or CUDA: "00000000:1b:00.0". LinkOf knows more, and takes longer.
func LinkAt(read func(path string) ([]byte, error), address string) float64 {
	if domain, rest, ok := strings.Cut(address, ":"); ok && len(domain) > 4 {
		address = domain[len(domain)-4:] + ":" + rest // the kernel writes four digits
	}
	word := func(name string) string { // the first word of a file
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

// LinkOf is the same for a GPU according to the management library. It takes the GPU of that UUID, or the one at that address, of which it is a
// slice. In a virtual machine the kernel often knows only the emulated bus. The library takes some ten milliseconds to load. That is too long for the
// opening of a store, so it is asked in parallel.
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

// generation is the PCIe generation with that number of GT/s per lane; 0 for others.
func generation(transfers string) int {
	return map[string]int{"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}[transfers]
}
