package kernel

import (
	"fmt"
	"math/bits"

	"velocpy/gocore/reduction/digest"
)

// recordTwin is a record on the device: a table with open addressing.
type recordTwin struct{ at, slots uint64 }

// slotTwin is the struct Slot.
type slotTwin struct {
	Digest                       digest.Digest
	OffsetBytes, BytesCheckpoint uint64
}

func (s *slotTwin) empty() bool        { return s.BytesCheckpoint == ^uint64(0) }
func (s *slotTwin) checkpoint() uint32 { return uint32(s.BytesCheckpoint) }
func (s *slotTwin) offset() uint64     { return s.OffsetBytes & (1<<48 - 1) }
func (s *slotTwin) bytes() uint64      { return s.OffsetBytes>>48 | s.BytesCheckpoint>>32<<16 }

func (r recordTwin) slot(i uint64) *slotTwin { return elementAt[slotTwin](r.at, i) }

// search returns the slot of a digest, or the empty one that ends the search.
func (r recordTwin) search(d digest.Digest) (i uint64, found bool) {
	home, _ := bits.Mul64((d.Lo^bits.RotateLeft64(d.Hi, 32))*0x9e3779b97f4a7c15, r.slots)
	for i = home; !r.slot(i).empty(); i = (i + 1) % r.slots {
		if r.slot(i).Digest == d {
			return i, true
		}
	}
	return i, false
}

// has tells whether the record has a digest.
func (r recordTwin) has(d digest.Digest) bool {
	if r.slots == 0 {
		return false
	}
	_, found := r.search(d)
	return found
}

// add adds an entry that the record does not have.
func (r recordTwin) add(s slotTwin) {
	i, _ := r.search(s.Digest)
	*r.slot(i) = s
}

func (p *dedupSweeping) run(blocks int) error {
	if blocks != int(p.Blocks) || p.ToSlots < p.Slots {
		return fmt.Errorf("%d blocks for %d sweep %d slots to %d: %w", blocks, p.Blocks, p.Slots, p.ToSlots, ErrLaunch)
	}
	gone := map[uint32]bool{}
	for _, n := range arrayAt[uint32](p.Forgotten, uint64(p.Count)) {
		gone[n] = true
	}
	from, to := recordTwin{p.Record, p.Slots}, recordTwin{p.To, p.ToSlots}
	for i := range p.Slots {
		s := from.slot(i)
		if s.empty() || s.checkpoint() < p.Oldest || gone[s.checkpoint()] {
			continue
		}
		to.add(*s)
		*elementAt[uint64](p.Recorded, 0)++
	}
	return nil
}
