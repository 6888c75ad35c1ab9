package sim

// LowerBound is a time (ns) that callers are blocked for at least, copying included, whatever the policy.
func (m *Machine) LowerBound(s *Shot) int64 {
	var sum int64
	for _, n := range s.Sizes {
		sum += m.CopyTime(n)
	}
	for _, k := range s.Order {
		sum += m.CopyTime(s.Sizes[k])
	}
	return sum
}
