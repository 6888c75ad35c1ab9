// Package topology describes the GPUs of the machine and how they are attached to it: for budgets, for the placement of buffers, and for users. It is
// optional: a machine without a source works the same, with less information.
package topology

import "errors"

// ErrUnknown marks information that is not available here: no management library, or one that does not provide it.
var ErrUnknown = errors.New("the topology is not known")

// GPU is one GPU. Unknown numbers are -1, unknown texts empty.
type GPU struct {
	UUID       string `json:"uuid"` // as "GPU-…": the one name that all libraries share, whichever devices they hide
	Name       string `json:"name"`
	PCI        string `json:"pci"` // bus address
	Generation int    `json:"pcie_generation"`
	Width      int    `json:"pcie_width"`
	// The maximum of the link. Less is in use when the GPU is idle, or is in the wrong slot.
	MostGeneration int   `json:"pcie_generation_max"`
	MostWidth      int   `json:"pcie_width_max"`
	NUMA           int   `json:"numa_node"`
	Free           int64 `json:"free_bytes"`
	Total          int64 `json:"total_bytes"`
}

// Fault is an error that a GPU reports.
type Fault struct {
	UUID string
	Code uint64 // the vendor's number: XID
}

// Source provides the topology.
type Source interface {
	Driver() (version string, err error)
	GPUs() ([]GPU, error)
	// Watch calls f for every fault of any GPU until stop is closed. It blocks.
	Watch(stop <-chan struct{}, f func(Fault)) error
	Close() error
}

// Rate is the maximum of the link in one direction, bytes/s, before protocol; 0 if unknown. Generations from 3 on carry 128 of 130 bits.
func (g *GPU) Rate() float64 {
	transfers := map[int]float64{1: 2.0, 2: 4.0, 3: 7.877, 4: 15.754, 5: 31.508, 6: 60.5}[g.MostGeneration] // Gbit/s a lane
	return transfers * 1e9 / 8 * float64(max(g.MostWidth, 0))
}

// Usable is the rate of the link as the GPU is connected, bytes/s; 0 if unknown. It uses the highest generation, since the GPU leaves that only to
// save power. It uses the present lanes, of which a slot or a riser may have fewer.
func (g *GPU) Usable() float64 {
	connected := *g
	if g.Width > 0 {
		connected.MostWidth = min(g.Width, g.MostWidth)
	}
	return connected.Rate()
}
