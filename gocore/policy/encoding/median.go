package encoding

import "slices"

// median is that of the latest values. Single transfers take many times as long as others, since something else had the disk or the processors.
type median struct {
	latest [31]float64
	count  int // all values
	value  float64
}

func (m *median) add(x float64) {
	m.latest[m.count%len(m.latest)] = x
	m.count++
	m.find()
}

func (m *median) find() {
	n := min(m.count, len(m.latest))
	if n == 0 {
		return
	}
	sorted := m.latest
	slices.Sort(sorted[:n])
	m.value = (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// raise makes no value less than a bound.
func (m *median) raise(least float64) {
	for i := range m.latest {
		m.latest[i] = max(m.latest[i], least)
	}
	m.find()
}

// alike is by which factor medians may differ of values that come from the same source.
const alike = 2

// isLike tells whether m and x may be medians of the same source.
func (m *median) isLike(x *median) bool {
	return m.count > 0 && m.value <= alike*x.value && x.value <= alike*m.value
}

// addBefore adds values that were observed before those of m, of which there are fewer than m remembers.
func (m *median) addBefore(older *median) {
	newer := *m
	*m = *older
	for _, x := range newer.latest[:newer.count] {
		m.add(x)
	}
}
