package encoding

import "slices"

// median is that of the latest values. Single transfers take many times as long as others, since something else had the disk or the processors.
type median struct {
	latest [15]float64
	count  int // all values
	value  float64
}

func (m *median) add(x float64) {
	m.latest[m.count%len(m.latest)] = x
	m.count++
	n := min(m.count, len(m.latest))
	sorted := m.latest
	slices.Sort(sorted[:n])
	m.value = (sorted[(n-1)/2] + sorted[n/2]) / 2
}
