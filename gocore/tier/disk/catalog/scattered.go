package catalog

import (
	"math/bits"
	"math/rand/v2"
)

// scattered is a hash table of rows by unordered numbers. Eight neighbours are stored together. Each table has its own random seed, so other collisions
// cannot be predicted.
//
// It uses linear probing, with at most five eighths of the slots taken. Memory: 26 to 51 bytes a row.
type scattered struct {
	slots []slot // a power of two, or empty
	taken int
	seed  uint64
}

type slot struct {
	number int64
	row    ref // 0: the slot is free
}

const fewestSlots = 8

// home is the first slot to search for a number.
func (t *scattered) home(n int64) int {
	high, low := bits.Mul64(uint64(n)>>3^t.seed, 0xd6e8feb86659fd93)
	return int((high^low)<<3|uint64(n)&7) & (len(t.slots) - 1)
}

// at returns the slot of a number, or the free one where it would go.
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

// full tells whether the next insertion must grow the table.
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
	// Later entries that a search could no longer reach move closer.
	for i := (free + 1) & mask; t.slots[i].row != 0; i = (i + 1) & mask {
		if home := t.home(t.slots[i].number); (i-home)&mask >= (i-free)&mask {
			t.slots[free], free = t.slots[i], i
		}
	}
	t.slots[free] = slot{}
}

// each calls f for all rows, until f returns false. f may remove the row that it is given; each may then visit rows twice.
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
