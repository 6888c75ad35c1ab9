package plan

// trail remembers the last restores of a history in order, and where in it each key was restored last.
type trail struct {
	keys  []Key // a ring once it is full; position p lies at p & trailMask
	end   int64 // position after the latest
	index table // key -> position (low 32 bits) of its latest restore
}

const (
	trailSize = 1 << 16 // restores remembered: 2 MiB at most, taken as the trail grows
	trailMask = trailSize - 1
)

func (t *trail) keyAt(ref uint32) Key { return t.keys[ref&trailMask] }

// last returns the position of k's latest restore.
func (t *trail) last(k Key) (int64, bool) {
	ref, _, ok := t.index.find(k, t)
	if !ok {
		return 0, false
	}
	return t.end + int64(int32(ref-uint32(t.end))), true
}

// at returns the key restored at position pos, if it is remembered.
func (t *trail) at(pos int64) (Key, bool) {
	if pos < 0 || pos >= t.end || pos < t.end-trailSize {
		return Key{}, false
	}
	return t.keys[pos&trailMask], true
}

// add appends a restore of k. Amortised O(1).
func (t *trail) add(k Key) {
	if len(t.keys) < trailSize {
		t.keys = append(t.keys, k)
	} else {
		old := t.end - trailSize
		if ref, slot, ok := t.index.find(t.keys[old&trailMask], t); ok && ref == uint32(old) {
			t.index.remove(slot)
		}
		t.keys[t.end&trailMask] = k
	}
	// The index compares keys where its references point: while k's old entry was overwritten just now it is gone already.
	if _, slot, ok := t.index.find(k, t); ok {
		t.index.set(slot, uint32(t.end))
	} else {
		t.index.add(k, uint32(t.end))
	}
	t.end++
}
