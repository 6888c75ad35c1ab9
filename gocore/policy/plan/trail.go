package plan

import "velocpy/gocore/model"

// trail remembers the last restores of a history in order, and the position of each key's last restore. It holds these keys.
type trail struct {
	keys *Keys
	ring []Ref // position p is at p & trailMask once it is full
	end  int64 // position after the latest
}

const (
	trailSize = 1 << 16 // restores remembered: at most 256 KiB, allocated as the trail grows
	trailMask = trailSize - 1
)

// last returns the position of k's latest restore.
func (t *trail) last(k model.Key) (int64, bool) {
	r := t.keys.Find(k)
	if r == Nobody {
		return 0, false
	}
	x := t.keys.row(r)
	return t.end + int64(int32(x.seen-uint32(t.end))), x.remembered
}

// at returns the key restored at position pos, if it is remembered.
func (t *trail) at(pos int64) (model.Key, bool) {
	if pos < 0 || pos >= t.end || pos < t.end-trailSize {
		return model.Key{}, false
	}
	return t.keys.Key(t.ring[pos&trailMask]), true
}

// add appends a restore of k. Amortised O(1).
func (t *trail) add(k model.Key) {
	r := t.keys.Hold(k)
	if x := t.keys.row(r); x.remembered {
		t.keys.Release(r)
	}
	if len(t.ring) < trailSize {
		t.ring = append(t.ring, r)
	} else {
		t.forget(t.end-trailSize, r)
		t.ring[t.end&trailMask] = r
	}
	x := t.keys.row(r)
	x.seen, x.remembered = uint32(t.end), true
	t.end++
}

// forget removes the oldest restore. Its key is released, unless it was restored again since, or is just now.
func (t *trail) forget(pos int64, again Ref) {
	r := t.ring[pos&trailMask]
	if x := t.keys.row(r); r != again && x.seen == uint32(pos) {
		x.remembered = false
		t.keys.Release(r)
	}
}
