// Package kernel is the part shared by Go and the kernels of the folder cuda: their names, the structs of their parameters, and how much work goes
// into one launch. It has a twin of every kernel that does the same on host memory.
//
// A Plan turns pieces into launches. It does not depend on drivers, streams or memory: addresses are numbers to it.
package kernel

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// The kernels. Each has a second form with the suffix few for few pieces, since the driver copies a whole parameter at every launch. Names lists
// both.
const (
	pack     = "velocpy_pack"
	packSums = "velocpy_pack_sums"
	hash     = "velocpy_hash"
	gather   = "velocpy_gather"
	scatter  = "velocpy_scatter"
	few      = "_few"
)

// Names lists all kernels that a Plan may launch; the module must contain them.
func Names() []string {
	var all []string
	for _, name := range []string{pack, packSums, hash, gather, scatter} {
		all = append(all, name, name+few)
	}
	return all
}

// Threads of a block; no kernel needs dynamic shared memory.
const (
	packThreads    = 256
	sumThreads     = 288
	stridedThreads = 256
)

// packUnit is the number of bytes that one block copies. It is small enough that the last blocks of a launch end at about the same time. It is large
// enough that the search for its piece does not matter.
const packUnit = 64 << 10

// maxUnits keeps the number of blocks within the limit of a launch.
const maxUnits = 1 << 30

// Launch is one launch of a kernel: a one-dimensional grid of that many blocks, with a parameter that is read during the call.
type Launch struct {
	Kernel                  string
	Blocks, Threads, Shared int
	Parameter               []byte
}

// Leaves is how many words the sums of the pieces need before they are combined: one for each leaf.
func Leaves(pieces []device.Piece) int {
	n := 0
	for i := range pieces {
		n += checksum.Leaves(pieces[i].Bytes)
	}
	return n
}

// Combine computes the checksums of the pieces from the words that the kernels wrote for them.
func Combine(pieces []device.Piece, leaves []uint64) []uint64 {
	sums := make([]uint64, len(pieces))
	for i := range pieces {
		n := checksum.Leaves(pieces[i].Bytes)
		sums[i] = checksum.Combine(leaves[:n])
		leaves = leaves[n:]
	}
	return sums
}
