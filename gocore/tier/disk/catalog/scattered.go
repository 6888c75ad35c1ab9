package catalog

import (
	"math/bits"
	"math/rand/v2"
)

// scattered is a table of rows by numbers that have no order. Eight neighbours lie together; which others meet nobody can know, as each table has a seed of its
// own.
//
// Linear probing; at most five eighths of the slots are taken. Memory: 26 to 51 bytes a row.
type scattered struct {
	slots []slot // a power of two of them, or none
	taken int
	seed  uint64
}

type slot struct {
	number int64
	row    ref // 0: the slot is free
}

const fewestSlots = 8

// home is the slot in which a number is looked for first.
func (t *scattered) home(n int64) int {
	high, low := bits.Mul64(uint64(n)>>3^t.seed, 0xd6e8feb86659fd93)
	return int((high^low)<<3|uint64(n)&7) & (len(t.slots) - 1)
}

// at is the slot of a number, or a free one where it may go.
func (t *scattered) at(n int64) *slot {
	for i := t.home(n); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.row == 0 || s.number == n {
			return s
		}
	}
}

func (t *scattered) find(n int64) ref {
	if t.taken == 0 {
		return 0
	}
	return t.at(n).row
}

// full tells whether the next number makes the table grow.
func (t *scattered) full() bool { return t.taken >= len(t.slots)/8*5 }

func (t *scattered) set(n int64, row ref) {
	if t.full() {
		t.grow()
	}
	s := t.at(n)
	if s.row == 0 {
		t.taken++
	}
	*s = slot{n, row}
}

// grow doubles the table.
func (t *scattered) grow() {
	old := t.slots
	t.seed, t.slots = rand.Uint64(), make([]slot, max(2*len(old), fewestSlots))
	for _, s := range old {
		if s.row != 0 {
			*t.at(s.number) = s
		}
	}
}

func (t *scattered) remove(n int64) {
	if t.taken == 0 {
		return
	}
	mask := len(t.slots) - 1
	free := t.home(n)
	for ; t.slots[free].number != n || t.slots[free].row == 0; free = (free + 1) & mask {
		if t.slots[free].row == 0 {
			return
		}
	}
	t.taken--
	// Those behind that would not be found any more come nearer.
	for i := (free + 1) & mask; t.slots[i].row != 0; i = (i + 1) & mask {
		if home := t.home(t.slots[i].number); (i-home)&mask >= (i-free)&mask {
			t.slots[free], free = t.slots[i], i
		}
	}
	t.slots[free] = slot{}
}

// each calls f for all rows, until it says no. f may remove the row that it is given; it may see rows again then.
func (t *scattered) each(f func(n int64, row ref) bool) {
	for i := 0; i < len(t.slots); {
		s := t.slots[i]
		if s.row == 0 {
			i++
			continue
		}
		if !f(s.number, s.row) {
			return
		}
		if t.slots[i] == s {
			i++
		}
	}
}
