package store

import (
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
)

// nodes are the NUMA nodes that the store's devices hang on, as far as they are known.
func (s *Store) nodes() (all []int) {
	for _, a := range s.accelerators {
		all = append(all, a.near()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// placeNear asks the kernel for pages of a mapping on the nodes of the devices that copy there: a copy to another node is slower. What is refused costs
// speed alone.
func placeNear(what string, m *memory.Mapping, nodes ...int) {
	if len(nodes) == 0 {
		return
	}
	if err := numa.Prefer(m.Bytes(0, m.Size()), nodes...); err != nil {
		logring.Add(logring.Debug, what+" lies on any NUMA node: "+err.Error())
	}
}

// near is the device's own node, if that is known.
func (a *accelerator) near() []int {
	if node := a.dev.Place().Node; node >= 0 {
		return []int{node}
	}
	return nil
}

// touchNode is the node whose processors touch pages: the one of the devices; negative if they hang on several, or on none that is known.
func (s *Store) touchNode() int {
	if nodes := s.nodes(); len(nodes) == 1 {
		return nodes[0]
	}
	return -1
}

// nearThreads runs work on the processors of the devices' node, where they hang on one, and else on any.
func (s *Store) nearThreads() func(work func()) {
	node := s.touchNode()
	if node < 0 {
		return func(work func()) { work() }
	}
	return func(work func()) { numa.Run(node, work) }
}
