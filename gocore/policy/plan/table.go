package plan

import "velocpy/gocore/model"

// keyed is the owner of the keys in a table: it maps a reference to its key.
type keyed interface {
	keyAt(ref uint32) model.Key
}

// table finds a 32-bit reference by key. The keys themselves stay with their owner, so that an entry costs 8 bytes at a load of at most 3/4: 11 to 21
// bytes per key. It uses open addressing with linear probing. Removal moves entries back instead of leaving marks, so that a table through which
// millions of keys pass does not degrade.
type table struct {
	slots []entry
	n     int
}

type entry struct {
	tag uint32 // 0: empty
	ref uint32
}

const smallTable = 16

func (t *table) mask() uint32 { return uint32(len(t.slots) - 1) }

func home(tag uint32) uint32 { return tag >> 1 }

// find returns the reference of k and its slot. O(1).
func (t *table) find(k model.Key, owner keyed) (ref uint32, slot uint32, ok bool) {
	if t.n == 0 {
		return 0, 0, false
	}
	tag, mask := tagOf(k), t.mask()
	for i := home(tag) & mask; ; i = (i + 1) & mask {
		e := t.slots[i]
		if e.tag == 0 {
			return 0, 0, false
		}
		if e.tag == tag && owner.keyAt(e.ref) == k {
			return e.ref, i, true
		}
	}
}

// add inserts a key that the table does not hold. Amortised O(1).
func (t *table) add(k model.Key, ref uint32) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.grow()
	}
	t.place(entry{tagOf(k), ref})
	t.n++
}

func (t *table) place(e entry) {
	mask := t.mask()
	i := home(e.tag) & mask
	for t.slots[i].tag != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = e
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]entry, max(smallTable, 2*len(old)))
	for _, e := range old {
		if e.tag != 0 {
			t.place(e)
		}
	}
}

// set changes the reference of the key at slot.
func (t *table) set(slot, ref uint32) { t.slots[slot].ref = ref }

// remove removes the entry at slot and closes the gap behind it. A big table that has become empty frees its memory.
func (t *table) remove(slot uint32) {
	t.n--
	if t.n == 0 && len(t.slots) > 4096 {
		t.slots = nil
		return
	}
	mask := t.mask()
	gap := slot
	for i := (slot + 1) & mask; t.slots[i].tag != 0; i = (i + 1) & mask {
		// An entry may move into the gap unless its home lies between the gap and itself.
		if (i-home(t.slots[i].tag))&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = entry{}
}

func (t *table) clear() {
	if len(t.slots) > 4096 {
		t.slots = nil
	} else {
		clear(t.slots)
	}
	t.n = 0
}
