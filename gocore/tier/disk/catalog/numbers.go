package catalog

// numbers is an index of rows by number: most numbers form a sequence, the others are scattered. Memory: 8 to 64 bytes for each row at the peak.
type numbers struct {
	sequence  sequence
	scattered scattered
}

// taken is the number of rows.
func (t *numbers) taken() int { return t.sequence.taken + t.scattered.taken }

// find returns the row of a number, or 0.
func (t *numbers) find(n int64) ref {
	if row := t.sequence.find(n); row != 0 {
		return row
	}
	return t.scattered.find(n)
}

func (t *numbers) set(n int64, row ref) {
	known := t.scattered.find(n) != 0
	if !known && t.sequence.set(n, row) {
		return
	}
	if !known && t.scattered.full() && 8*t.scattered.taken >= t.sequence.taken {
		t.gather()
		if t.sequence.set(n, row) {
			return
		}
	}
	t.scattered.set(n, row)
}

func (t *numbers) remove(n int64) {
	if !t.sequence.remove(n) {
		t.scattered.remove(n)
	}
}

// each calls f for all rows, until f returns false. f may remove the row that it is given; each may then visit rows twice.
func (t *numbers) each(f func(n int64, row ref) bool) {
	if t.sequence.each(f) {
		t.scattered.each(f)
	}
}

// gather turns all numbers into one sequence if they are dense enough, whatever their order of insertion. It takes linear time, so it runs only when the
// scattered ones have doubled.
func (t *numbers) gather() {
	var low, high int64
	var stride uint64
	started := false
	t.each(func(n int64, _ ref) bool {
		if !started {
			low, high, started = n, n, true
		}
		stride = divisor(stride, distance(n, low))
		low, high = min(low, n), max(high, n)
		return true
	})
	if stride == 0 || distance(high, low)/stride >= uint64(mostEmpty*t.taken()) {
		return
	}
	one := sequence{first: low, stride: stride, rows: make([]ref, distance(high, low)/stride+1)}
	t.each(func(n int64, row ref) bool { return one.set(n, row) })
	*t = numbers{sequence: one}
}

func distance(a, b int64) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}

// divisor is the greatest common divisor.
func divisor(a, b uint64) uint64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}
