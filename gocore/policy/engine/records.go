package engine

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// records are the checkpoints of one history that can be restored, indexed by the numbers of their keys. Consecutive keys are adjacent. Growth never
// copies them.
type records struct {
	keys   *plan.Keys // shared with the restore order
	blocks []*[blockSize]*Record
	n      int
}

const (
	blockBits = 10
	blockSize = 1 << blockBits
)

// get returns the checkpoint of k, or nil. O(1).
func (rs *records) get(k model.Key) *Record {
	ref := rs.keys.Find(k)
	if ref == plan.Nobody {
		return nil
	}
	if b := int(ref >> blockBits); b < len(rs.blocks) && rs.blocks[b] != nil {
		return rs.blocks[b][ref%blockSize]
	}
	return nil
}

// put adds the checkpoint of a key that has none. O(1).
func (rs *records) put(r *Record) {
	r.ref = rs.keys.Hold(r.Key)
	b := int(r.ref >> blockBits)
	for len(rs.blocks) <= b {
		rs.blocks = append(rs.blocks, nil)
	}
	if rs.blocks[b] == nil {
		rs.blocks[b] = new([blockSize]*Record)
	}
	rs.blocks[b][r.ref%blockSize] = r
	rs.n++
}

// take removes r, which must be present. O(1).
func (rs *records) take(r *Record) {
	rs.blocks[r.ref>>blockBits][r.ref%blockSize] = nil
	rs.keys.Release(r.ref)
	r.ref = plan.Nobody
	if rs.n--; rs.n == 0 && len(rs.blocks) > 1 {
		rs.blocks = nil
	}
}

func (rs *records) each(f func(*Record)) {
	for _, b := range rs.blocks {
		if b == nil {
			continue
		}
		for _, r := range b {
			if r != nil {
				f(r)
			}
		}
	}
}
