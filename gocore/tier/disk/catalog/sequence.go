package catalog

import "slices"

// sequence has the rows of numbers that go on with one stride, up or down, one behind the other: most of them by far, as keys count the steps of a computation.
// Numbers that are left out have a place, too, but at most three in four places are empty when one is made; those of numbers that were removed stay.
// Memory: 8 to 64 bytes for each row that was there at one time.
type sequence struct {
	rows   []ref // 0: there is none
	taken  int
	first  int64
	stride uint64 // 0: a second number has to come
	down   bool
}

// mostEmpty is how many places there may be for each number when one more is made.
const mostEmpty = 4

// place is where a number belongs; false when it is not of the sequence. Each number has one of 2^64 distances, so no two have one place.
func (q *sequence) place(n int64) (uint64, bool) {
	d := uint64(n) - uint64(q.first)
	if q.down {
		d = -d
	}
	if q.stride <= 1 { // no division: it takes longer than all the rest
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

// set gives a number its row; false when it has to go elsewhere.
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

// remove takes the row of a number away; false when it has none here.
func (q *sequence) remove(n int64) bool {
	i, ok := q.place(n)
	if !ok || i >= uint64(len(q.rows)) || q.rows[i] == 0 {
		return false
	}
	q.rows[i] = 0
	q.taken--
	return true
}

// each calls f for all rows, until it says no; f may remove the row that it is given.
func (q *sequence) each(f func(n int64, row ref) bool) bool {
	for i := 0; i < len(q.rows); i++ {
		if row := q.rows[i]; row != 0 && !f(q.number(i), row) {
			return false
		}
	}
	return true
}
