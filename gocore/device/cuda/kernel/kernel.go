// Package kernel is what Go and the kernels of the folder cuda share: their names, the structs they are told their work by, how
// much of it goes into one launch, and a twin of every kernel that does the same on host memory.
//
// A Plan turns pieces into launches. It knows nothing of drivers, streams or memory: addresses are numbers to it.
package kernel

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// The kernels. Each has a second form of the same name and suffix for few pieces, as the driver copies a whole parameter at
// every launch; Names lists both.
const (
	pack     = "velocpy_pack"
	packSums = "velocpy_pack_sums"
	hash     = "velocpy_hash"
	gather   = "velocpy_gather"
	scatter  = "velocpy_scatter"
	few      = "_few"
)

// Names of all kernels that a Plan may launch, which the module has to have.
func Names() []string {
	var all []string
	for _, name := range []string{pack, packSums, hash, gather, scatter} {
		all = append(all, name, name+few)
	}
	return all
}

// Threads of a block; no kernel needs shared memory beyond its own.
const (
	packThreads    = 256
	sumThreads     = 288
	stridedThreads = 256
)

// packUnit is what one block copies: small enough that the last blocks of a launch end together, large enough that
// finding its piece does not show.
const packUnit = 64 << 10

// maxUnits keeps the number of blocks within what a launch can have.
const maxUnits = 1 << 30

// Launch is one launch of a kernel: a row of so many blocks, with a parameter that is read during the call.
type Launch struct {
	Kernel                  string
	Blocks, Threads, Shared int
	Parameter               []byte
}

// Leaves is how many words the sums of the pieces take on their way: one for each leaf.
func Leaves(pieces []device.Piece) int {
	n := 0
	for i := range pieces {
		n += checksum.Leaves(pieces[i].Bytes)
	}
	return n
}

// Combine makes the checksums of the pieces of the words that the kernels wrote for them.
func Combine(pieces []device.Piece, leaves []uint64) []uint64 {
	sums := make([]uint64, len(pieces))
	for i := range pieces {
		n := checksum.Leaves(pieces[i].Bytes)
		sums[i] = checksum.Combine(leaves[:n])
		leaves = leaves[n:]
	}
	return sums
}
