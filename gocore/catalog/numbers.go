package catalog

import (
	"math/bits"
	"math/rand/v2"
)

// numbers is a table of rows by number. Numbers that go on with one stride lie together, eight to a place, so that a million of them that come in their
// order meet few new cache lines; others are scattered. Nobody can know which numbers meet, as the scattering is another one in each table.
//
// Linear probing; at most five eighths of the slots are taken. Memory: 26 to 51 bytes a row.
type numbers struct {
	slots  []slot // a power of two of them, or none
	taken  int
	seed   uint64
	first  int64
	stride uint64
}

type slot struct {
	number int64
	row    ref // 0: the slot is free
}

const fewestSlots = 8

// home is the slot in which a number is looked for first.
func (t *numbers) home(n int64) int {
	d := uint64(n) - uint64(t.first)
	place, within := ^d, uint64(0)
	if q := d / t.stride; q*t.stride == d {
		place, within = q>>3, q&7
	}
	high, low := bits.Mul64(place^t.seed, 0xd6e8feb86659fd93)
	return int((high^low)<<3|within) & (len(t.slots) - 1)
}

// at is the slot of a number, or a free one where it may go.
func (t *numbers) at(n int64) *slot {
	for i := t.home(n); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.row == 0 || s.number == n {
			return s
		}
	}
}

func (t *numbers) find(n int64) ref {
	if t.taken == 0 {
		return 0
	}
	return t.at(n).row
}

func (t *numbers) set(n int64, row ref) {
	if t.taken >= len(t.slots)/8*5 {
		t.grow()
	}
	s := t.at(n)
	if s.row == 0 {
		t.taken++
	}
	*s = slot{n, row}
}

// grow doubles the table, and finds out which stride the numbers have.
func (t *numbers) grow() {
	old := t.slots
	t.seed, t.stride, t.first = rand.Uint64(), 0, 0
	started := false
	for _, s := range old {
		if s.row == 0 {
			continue
		}
		if !started {
			t.first, started = s.number, true
		}
		t.stride = divisor(t.stride, distance(s.number, t.first))
	}
	if t.stride = max(t.stride, 1); t.stride > 1<<62 {
		t.stride = 1
	}
	t.first %= int64(t.stride)
	t.slots = make([]slot, max(2*len(old), fewestSlots))
	for _, s := range old {
		if s.row != 0 {
			*t.at(s.number) = s
		}
	}
}

func distance(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}

// divisor is the largest of both.
func divisor(a, b uint64) uint64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}

func (t *numbers) remove(n int64) {
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
func (t *numbers) each(f func(n int64, row ref) bool) {
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
