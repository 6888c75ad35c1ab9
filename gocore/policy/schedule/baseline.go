package schedule

import (
	"fmt"
	"strings"
)

// Baseline is a plan that needs no search.
type Baseline struct {
	Name string
	Plan Plan
}

// Accumulations are the lengths of run that Baselines has plans for.
func Accumulations() []int { return []int{2, 4, 8, 16, 32, 64} }

// Baselines returns the plans to compare a search with, as far as the cache has room for them: nothing encoded, each encoded alone, and runs of fixed
// lengths. A checkpoint whose encoding the cache has no room for is flushed as it is, and a run that it has no room for is cut into shorter ones.
func Baselines(in *Instance) ([]Baseline, error) {
	r, err := in.rules()
	if err != nil {
		return nil, err
	}
	return r.baselines(), nil
}

func (r *rules) baselines() []Baseline {
	all := []Baseline{{"none", Plan(strings.Repeat("U", len(r.Checkpoints)))}, {"alone", r.runs(1)}}
	for _, k := range Accumulations() {
		all = append(all, Baseline{fmt.Sprintf("accumulate %d", k), r.runs(k)})
	}
	return all
}

// runs is the plan that encodes runs of k checkpoints.
func (r *rules) runs(k int) Plan {
	var plan Plan
	for i := 0; i < len(r.Checkpoints); {
		n, raw, encoded := 0, int64(0), int64(0)
		for n < k && i+n < len(r.Checkpoints) {
			c := &r.Checkpoints[i+n]
			if raw, encoded = raw+c.Size, encoded+c.Encoded; r.hold(raw, encoded) > r.Cache || n > 0 && !r.allows(raw) {
				break
			}
			n++
		}
		switch n {
		case 0:
			plan = append(plan, Whole)
		case 1:
			plan = append(plan, Alone)
		default:
			for range n - 1 {
				plan = append(plan, Accumulate)
			}
			plan = append(plan, Bulk)
		}
		i += max(n, 1)
	}
	return plan
}

// BestBaseline returns the baseline with the best outcome.
func BestBaseline(in *Instance) (best Baseline, out Outcome, err error) {
	all, err := Baselines(in)
	if err != nil {
		return best, out, err
	}
	for i, b := range all {
		o, err := in.Run(b.Plan)
		if err != nil {
			return best, out, err
		}
		if i == 0 || o.Before(out) {
			best, out = b, o
		}
	}
	return best, out, nil
}
