package schedule

import "fmt"

// Decision is what happens to one checkpoint.
type Decision byte

// The decisions, with the letters of Maurya et al., HiPC'23, section III-B.
const (
	Whole      Decision = 'U' // flush it as it is
	Alone      Decision = 'C' // encode it alone and flush
	Accumulate Decision = 'A' // keep it in the cache, to be encoded with its successors
	Bulk       Decision = 'X' // encode it together with the accumulated ones before it, and flush them in one transfer
)

// Plan has one decision for each checkpoint. An accumulation is a run of consecutive checkpoints: one or several A, then X.
type Plan []Decision

func (p Plan) String() string { return string(p) }

// ParseRepeat reads letters that repeat: those of a plan, and not too many.
func ParseRepeat(letters string) (Plan, error) {
	if len(letters) > mostRepeated {
		return nil, fmt.Errorf("%w: %d letters repeat, and %d are allowed", ErrPlan, len(letters), mostRepeated)
	}
	return ParsePlan(letters)
}

// ParsePlan reads the letters of a plan. It refuses other letters, and an A without its X or the reverse.
func ParsePlan(letters string) (Plan, error) {
	p := Plan(letters)
	return p, p.check(len(p))
}

// check refuses a plan that is no plan for n checkpoints.
func (p Plan) check(n int) error {
	if len(p) != n {
		return fmt.Errorf("%w: %d decisions for %d checkpoints", ErrPlan, len(p), n)
	}
	open := false
	for i, d := range p {
		switch {
		case d != Whole && d != Alone && d != Accumulate && d != Bulk:
			return fmt.Errorf("%w: decision %d is %q", ErrPlan, i, byte(d))
		case open && d != Accumulate && d != Bulk:
			return fmt.Errorf("%w: decision %d is %c while checkpoints are accumulated: only A and X may follow an A", ErrPlan, i, d)
		case !open && d == Bulk:
			return fmt.Errorf("%w: decision %d is X, and no A precedes it", ErrPlan, i)
		}
		open = d == Accumulate
	}
	if open {
		return fmt.Errorf("%w: it ends with an A: no X follows", ErrPlan)
	}
	return nil
}
