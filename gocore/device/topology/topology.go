// Package topology describes what the machine's accelerators are and how they hang on it: for budgets, for the placement of
// buffers, and for people who want to know. Nothing depends on it being there: a machine without its source works the same,
// less well informed.
package topology

import "errors"

// ErrUnknown marks everything that cannot be told here: no management library, or one that does not know.
var ErrUnknown = errors.New("the topology is not known")

// GPU is one accelerator. Numbers that are not known are -1, texts empty.
type GPU struct {
	UUID       string `json:"uuid"` // as "GPU-…": the one name that all libraries share, whatever devices they hide
	Name       string `json:"name"`
	PCI        string `json:"pci"` // bus address
	Generation int    `json:"pcie_generation"`
	Width      int    `json:"pcie_width"`
	// What the link can do: less than that is in use when the GPU rests, or sits in the wrong slot.
	MostGeneration int   `json:"pcie_generation_max"`
	MostWidth      int   `json:"pcie_width_max"`
	NUMA           int   `json:"numa_node"`
	Free           int64 `json:"free_bytes"`
	Total          int64 `json:"total_bytes"`
}

// Fault is an error that a GPU reports of itself.
type Fault struct {
	UUID string
	Code uint64 // the vendor's number: XID
}

// Source knows the topology.
type Source interface {
	Driver() (version string, err error)
	GPUs() ([]GPU, error)
	// Watch calls f for every fault of any GPU until stop is closed. It blocks.
	Watch(stop <-chan struct{}, f func(Fault)) error
	Close() error
}

// Rate is what the link can carry in one direction, bytes/s, before protocol; 0 when it is not known. Generation 3 and later
// carry 128 of 130 bits.
func (g *GPU) Rate() float64 {
	transfers := map[int]float64{1: 2.0, 2: 4.0, 3: 7.877, 4: 15.754, 5: 31.508, 6: 60.5}[g.MostGeneration] // Gbit/s a lane
	return transfers * 1e9 / 8 * float64(max(g.MostWidth, 0))
}

// Usable is what the link can carry as the GPU is connected, bytes/s: at its highest generation, as it leaves that only to save power, on the lanes that are in
// use, of which a slot or a riser may have fewer; 0 when it is not known.
func (g *GPU) Usable() float64 {
	connected := *g
	if g.Width > 0 {
		connected.MostWidth = min(g.Width, g.MostWidth)
	}
	return connected.Rate()
}
