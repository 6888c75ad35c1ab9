package plan

import (
	"slices"
	"sort"

	"velocpy/gocore/model"
)

// Due holds the hinted restores that a loop over the plan has yet to do, in the plan's order. Restores that the application asks for by key leave the
// list as they happen, with the patience of an Order. It is not safe for concurrent use.
type Due struct {
	queue    queue
	returned []dueRestore // taken but not done: they precede the queue's head; ascending
	floor    int64        // restores with lower numbers were withdrawn
}

type dueRestore struct {
	seq  int64
	key  model.Key
	last bool
}

// NewDue returns an empty list.
func NewDue() *Due { return &Due{queue: queue{patience: Options{}.withDefaults().Patience}} }

// Append adds the restores among the hints behind those that are due already. Amortised O(1) per hint.
func (d *Due) Append(hints ...Hint) {
	for _, h := range hints {
		if h.Op == Restore || h.Op == Last {
			d.queue.push(h.Key, h.Op == Last)
		}
	}
}

// Take removes the first restore and returns its number, for Return. ok=false: none is due.
func (d *Due) Take() (k model.Key, last bool, seq int64, ok bool) {
	if len(d.returned) > 0 {
		first := d.returned[0]
		d.returned = slices.Delete(d.returned, 0, 1)
		return first.key, first.last, first.seq, true
	}
	if d.queue.size() == 0 {
		return model.Key{}, false, 0, false
	}
	seq = d.queue.head
	k, last = d.queue.key(seq), d.queue.isLast(seq)
	d.queue.take(seq)
	return k, last, seq, true
}

// Return makes a restore due again that was taken and did not happen, before all that follow it in the plan. It does nothing if the plan was
// withdrawn meanwhile, or if no restore of this number can have been taken.
func (d *Due) Return(seq int64, k model.Key, last bool) {
	if seq < d.floor || seq >= d.queue.head {
		return
	}
	i := sort.Search(len(d.returned), func(i int) bool { return d.returned[i].seq >= seq })
	if i < len(d.returned) && d.returned[i].seq == seq {
		return
	}
	d.returned = slices.Insert(d.returned, i, dueRestore{seq, k, last})
}

// Met records that the application restored k by itself: the key's first due restore has happened.
func (d *Due) Met(k model.Key) {
	if i := slices.IndexFunc(d.returned, func(r dueRestore) bool { return r.key == k }); i >= 0 {
		d.returned = slices.Delete(d.returned, i, i+1)
		return
	}
	if seq, ok := d.queue.find(k); ok {
		d.queue.take(seq)
	}
}

// Clear withdraws all due restores.
func (d *Due) Clear() {
	d.returned = nil
	d.queue.reset(d.queue.tail)
	d.floor = d.queue.head
}

// Len is the number of restores that are due.
func (d *Due) Len() int { return len(d.returned) + d.queue.size() }
