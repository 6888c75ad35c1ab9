package encoding

// news is how much of the checkpoints is new that lately became differences.
type news struct {
	part   float64 // of the bytes, on average
	known  bool
	ignore bool // the next one to end, the first of a trial: it is compared with none, or with one of long ago
}

// mostNew is the part of the bytes that may be new for duplicates to be worth their hashing.
const mostNew = 0.75

// removed tells which part of a checkpoint was new.
func (n *news) removed(part float64) {
	const weight = 0.3
	switch {
	case n.ignore:
		n.ignore = false
	case !n.known:
		n.part, n.known = part, true
	default:
		n.part += weight * (part - n.part)
	}
}

// few tells whether differences save enough.
func (n *news) few() bool { return n.known && n.part <= mostNew }
