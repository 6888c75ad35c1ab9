package difference

import (
	"cmp"
	"slices"
)

// Share says how many bytes of a range lie in the first occurrences of a checkpoint.
type Share struct {
	Checkpoint uint32
	Bytes      uint64
}

// Shares returns the checkpoints that have the bytes between two offsets of a region, ascending. Bytes of a source that repeats count each time.
func (l *Located) Shares(from, to uint64) []Share {
	var shares []Share
	l.Each(from, to, func(r Run, n uint64) bool {
		at, found := slices.BinarySearchFunc(shares, r.Checkpoint, func(s Share, c uint32) int { return cmp.Compare(s.Checkpoint, c) })
		if !found {
			shares = slices.Insert(shares, at, Share{Checkpoint: r.Checkpoint})
		}
		shares[at].Bytes += n
		return true
	})
	return shares
}

// Bin returns the offsets between which bin i of a region of so many bytes lies. Bins differ in length by one byte at most.
func Bin(size uint64, i, bins int) (from, to uint64) {
	at := func(i uint64) uint64 { return size/uint64(bins)*i + size%uint64(bins)*i/uint64(bins) } // size * i might overflow
	return at(uint64(i)), at(uint64(i) + 1)
}

// Most cuts a region into bins, and returns for each bin the checkpoint that has most of its bytes; of several, the latest one. A region of fewer bytes has a bin
// for each byte.
func (l *Located) Most(bins int) []uint32 {
	if l.Size < uint64(bins) {
		bins = int(l.Size)
	}
	most := make([]uint32, bins)
	for i := range most {
		from, to := Bin(l.Size, i, bins)
		best := Share{}
		for _, s := range l.Shares(from, to) {
			if s.Bytes >= best.Bytes {
				best = s
			}
		}
		most[i] = best.Checkpoint
	}
	return most
}
