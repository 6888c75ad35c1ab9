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

// EachBin cuts a region into bins, and visits the shares of each in order. A region of fewer bytes has a bin for each byte.
func (l *Located) EachBin(bins int, visit func(shares []Share)) {
	if l.Size < uint64(bins) {
		bins = int(l.Size)
	}
	for i := range bins {
		visit(l.Shares(Bin(l.Size, i, bins)))
	}
}

// Most returns the share with most bytes; of several, that of the latest checkpoint. There is at least one.
func Most(shares []Share) Share {
	best := shares[0]
	for _, s := range shares[1:] {
		if s.Bytes >= best.Bytes {
			best = s
		}
	}
	return best
}

// Owned returns how many bytes of all regions lie in the first occurrences of each checkpoint. Bytes of a source that repeats count once. No map has none.
func (m *Map) Owned() map[uint32]uint64 {
	owned := map[uint32]uint64{}
	if m != nil {
		shares, _ := m.shares()
		for _, s := range shares {
			owned[s.Checkpoint] = s.Bytes
		}
	}
	return owned
}

// count keeps what shares returns, before others see the map.
func (m *Map) count() { m.owned, m.void = m.tally() }

// shares returns what each checkpoint has of the map's bytes, ascending, and whether some of them are gone.
func (m *Map) shares() (owned []Share, void bool) {
	if m.owned != nil {
		return m.owned, m.void
	}
	return m.tally()
}

// mostTallied bounds the numbers of checkpoints, back from the map's own, whose bytes are added up in an array.
const mostTallied = 1 << 16

// tally computes what shares returns. Maps have many runs, of few checkpoints, most of which are not long ago.
func (m *Map) tally() (owned []Share, void bool) {
	var recent []uint64 // by how long ago the checkpoint was; bytes and one more
	others := map[uint32]uint64{}
	for i := range m.Regions {
		l := &m.Regions[i]
		for j := range l.Runs {
			r, end := &l.Runs[j], l.Size
			if j+1 < len(l.Runs) {
				end = l.Runs[j+1].At
			}
			n, ago := end-r.At, m.Checkpoint-r.Checkpoint
			if r.Period > 0 {
				n = min(n, uint64(r.Period))
			}
			switch {
			case r.Checkpoint == Void:
				void = true
			case ago >= mostTallied:
				others[r.Checkpoint] += n
			default:
				if int(ago) >= len(recent) {
					recent = slices.Grow(recent, int(ago)+1-len(recent))[:ago+1]
				}
				recent[ago] = max(recent[ago], 1) + n
			}
		}
	}
	for ago, n := range recent {
		if n > 0 {
			owned = append(owned, Share{m.Checkpoint - uint32(ago), n - 1})
		}
	}
	for number, n := range others {
		owned = append(owned, Share{number, n})
	}
	slices.SortFunc(owned, func(a, b Share) int { return cmp.Compare(a.Checkpoint, b.Checkpoint) })
	return owned, void
}

// Scarce returns so many of the checkpoints that the map names: those that have the fewest of its bytes, and of equal ones the earliest.
func (m *Map) Scarce(count int) []uint32 {
	if m == nil {
		return nil
	}
	owned, all := m.Owned(), m.Named()
	slices.SortStableFunc(all, func(a, b uint32) int { return cmp.Compare(owned[a], owned[b]) })
	return all[:min(max(count, 0), len(all))]
}
