package store

import (
	"slices"

	"velocpy/gocore/logring"
	"velocpy/gocore/numa"
)

// nodes are the NUMA nodes that the store's devices hang on, as far as they are known.
func (s *Store) nodes() (all []int) {
	for _, a := range s.accelerators {
		if node := a.dev.Place().Node; node >= 0 {
			all = append(all, node)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// placeHost asks the kernel for pages of the host tier on the nodes of the devices: a copy to another node is slower. What is refused costs speed alone.
func (s *Store) placeHost() {
	nodes := s.nodes()
	if len(nodes) == 0 {
		return
	}
	if err := numa.Prefer(s.host.Bytes(0, s.host.Size()), nodes...); err != nil {
		logring.Add(logring.Debug, "the host tier lies on any NUMA node: "+err.Error())
	}
}

// touchNode is the node whose processors touch pages: the one of the devices; negative if they hang on several, or on none that is known.
func (s *Store) touchNode() int {
	if nodes := s.nodes(); len(nodes) == 1 {
		return nodes[0]
	}
	return -1
}
