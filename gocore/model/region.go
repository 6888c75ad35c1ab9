package model

import "slices"

// Region is one region of a checkpoint as it lies in the caller's memory.
type Region struct {
	Mem    Strided
	Offset int64 // in the checkpoint's slot
	Bytes  int64
	Place  int32 // 0: host memory; n: the memory of device n-1
}

// CloneRegions copies what the caller's arguments say of regions, for use after the call.
func CloneRegions(regions []Region) []Region {
	all := slices.Clone(regions)
	for i := range all {
		m := &all[i].Mem
		m.Shape, m.Strides = slices.Clone(m.Shape), slices.Clone(m.Strides)
	}
	return all
}
