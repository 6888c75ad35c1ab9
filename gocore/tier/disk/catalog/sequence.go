package catalog

import "slices"

// sequence is an array of the rows whose numbers form an arithmetic progression, up or down. Most keys do, as they count the steps of a computation.
// Numbers that are left out have a place, too, but at most three in four places are empty when one is added. Places of removed numbers stay. Memory: 8 to
// 64 bytes for each row at the peak.
type sequence struct {
	rows   []ref // 0: no row
	taken  int
	first  int64
	stride uint64 // 0: until the second number
	down   bool
}

// mostEmpty is the largest number of places per number when a place is added.
const mostEmpty = 4

// place returns the index of a number; false if it is not in the progression. All 2^64 distances differ, so no two numbers have the same place.
func (q *sequence) place(n int64) (uint64, bool) {
	d := uint64(n) - uint64(q.first)
	if q.down {
		d = -d
	}
	if q.stride <= 1 { // avoids the division, which takes longer than all the rest
		return d, q.stride == 1 || d == 0
	}
	i := d / q.stride
	return i, i*q.stride == d
}

func (q *sequence) number(i int) int64 {
	d := uint64(i) * q.stride
	if q.down {
		d = -d
	}
	return int64(uint64(q.first) + d)
}

func (q *sequence) find(n int64) ref {
	if i, ok := q.place(n); ok && i < uint64(len(q.rows)) {
		return q.rows[i]
	}
	return 0
}

// set stores the row of a number; false if the number does not fit the sequence.
func (q *sequence) set(n int64, row ref) bool {
	switch {
	case len(q.rows) == 0:
		q.first = n
	case q.stride == 0 && n != q.first:
		q.down = n < q.first
		q.stride = distance(n, q.first)
	}
	i, ok := q.place(n)
	if !ok || i >= uint64(max(mostEmpty*(q.taken+1), len(q.rows))) {
		return false
	}
	if more := int(i) + 1 - len(q.rows); more > 0 {
		q.rows = slices.Grow(q.rows, more)[:i+1]
		clear(q.rows[int(i)+1-more:])
	}
	if q.rows[i] == 0 {
		q.taken++
	}
	q.rows[i] = row
	return true
}

// remove removes the row of a number; false if there is none.
func (q *sequence) remove(n int64) bool {
	i, ok := q.place(n)
	if !ok || i >= uint64(len(q.rows)) || q.rows[i] == 0 {
		return false
	}
	q.rows[i] = 0
	q.taken--
	return true
}

// each calls f for all rows, until f returns false; f may remove the row that it is given.
func (q *sequence) each(f func(n int64, row ref) bool) bool {
	for i := 0; i < len(q.rows); i++ {
		if row := q.rows[i]; row != 0 && !f(q.number(i), row) {
			return false
		}
	}
	return true
}
