package engine

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

// A copy that was prefetched becomes evictable when it has been restored. Maurya et al., HPDC'23, section 4.2, predict when that is
// (predict_evictable, case 2). Here prefetches use the prediction. Captures do not, since the thread that would restore may be the one that captures.

// restoredIn predicts after how many ns a checkpoint will be restored, at the pace of its history. A restore that is late is expected to take as long
// again as it is late. It is not known before two restores of the history, or when no restore of r is expected.
func (ps *prefetches) restoredIn(now int64, r *Record) (ns int64, known bool) {
	p := &r.Hist.pace
	if p.interval == 0 || r.seq == fragment.Unexpected {
		return 0, false
	}
	intervals := float64(r.place-ps.orders.places[r.Hist.lane]) + 1
	left := int64(min(intervals*p.interval, farOff)) - (now - p.at)
	return max(left, -left), true
}

// farOff is a time (ns) that no prediction exceeds.
const farOff = 1e18

// roomByRestore predicts after how many ns the next restore of a history makes a copy evictable that is large enough for o by itself. It is not known
// if there is no such copy. Like every decision it costs O(histories).
func (ps *prefetches) roomByRestore(now int64, t int, o *Object) (ns int64, known bool) {
	if ps.cfg.Policy != evict.Score {
		return 0, false
	}
	for _, h := range ps.histories {
		h.order.Upcoming(h.order.Head(), func(seq int64, k model.Key, last bool) bool {
			next := h.records.get(k)
			if next != nil && next.seq == seq && ps.freedByRestore(t, next, last) >= ps.tiers[t].extent(o) {
				if in, ok := ps.restoredIn(now, next); ok && (!known || in < ns) {
					ns, known = in, true
				}
			}
			return false
		})
	}
	return ns, known
}

// freedByRestore is how many bytes of tier t the restore of r makes evictable: those of its largest copy of which this is so. A copy that no lower tier
// has must be flushed first, unless the restore consumes it.
func (ps *prefetches) freedByRestore(t int, r *Record, last bool) (bytes int64) {
	for _, o := range r.Objects() {
		id := o.copies[t]
		if id == fragment.None || o.isShared() {
			continue // another checkpoint may need it longer
		}
		if f := ps.tiers[t].table.At(id); f.Class == fragment.Promised && (last || ps.copies.lower(o, t) >= 0) {
			bytes = max(bytes, f.Size)
		}
	}
	return bytes
}
