package encoding

// duplicates decides for Auto whether checkpoints are de-duplicated. Two in a row are tried at first: the second shows how much of it is new. While too much is
// new, or the flushes take longer than those of plain bytes, the history is left alone, each time for longer.
type duplicates struct {
	state   trial
	tried   int     // checkpoints of the present trial
	share   average // of the bytes that were new, lately; 0: nothing is known
	each    average // ns for each plain byte of flushes that removed duplicates
	resting int     // checkpoints until the next trial
	rest    int     // length of the latest rest
}

type trial uint8

const (
	trying trial = iota
	using
	resting
)

const (
	trialLength = 2
	mostNew     = 0.75 // of the bytes, for duplicates to be worth their hashing
	firstRest   = 16
	mostRest    = 512
)

// next tells whether the next checkpoint is de-duplicated.
func (d *duplicates) next() bool {
	if d.state != resting {
		return true
	}
	if d.resting--; d.resting > 0 {
		return false
	}
	d.state, d.tried, d.share = trying, 0, 0
	return true
}

// removed tells what de-duplicating a checkpoint came to: the part of its bytes that was new. plain is the cost of flushes of plain bytes, or 0. The first
// checkpoint of a trial is compared with none, or with one of long ago.
func (d *duplicates) removed(part float64, plain average) {
	const weight = 0.3
	d.tried++
	switch {
	case d.state == trying && d.tried < trialLength:
		return
	case d.share == 0:
		d.share = average(part)
	default:
		d.share += weight * (average(part) - d.share)
	}
	if d.share <= mostNew && (plain == 0 || d.each <= little*plain) {
		d.state, d.rest = using, 0
		return
	}
	d.rest = min(max(2*d.rest, firstRest), mostRest)
	d.state, d.resting = resting, d.rest
}

// took counts the time of a flush that removed duplicates.
func (d *duplicates) took(plain, ns int64) {
	d.each.add(plain, ns)
}
