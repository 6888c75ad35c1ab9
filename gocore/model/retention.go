package model

// Retention selects the checkpoints of a history that stay; the zero value is no rule.
type Retention struct {
	Named       bool   // those with a text key
	Last, Every uint64 // 0: no such rule
	Keys        []Key
	Best        Best
}

// Best selects checkpoints that stay by a number in their meta. Checkpoints without it are never among the best; of equal ones, the earlier is better.
type Best struct {
	Count   uint64   // 0: no such rule
	By      []string // path to the number: each name is that of a member, in the object of the name before
	Largest bool     // true: the largest numbers are the best; false: the smallest
}

// Score maps a number in a checkpoint's meta to a score: smaller is better.
func (b *Best) Score(n float64) float64 {
	if b.Largest {
		return -n
	}
	return n
}

// Exempts returns a predicate that tells whether a rule other than Last and Best keeps a key.
func (r *Retention) Exempts() func(k Key) bool {
	named := map[Key]bool{}
	for _, k := range r.Keys {
		named[k] = true
	}
	return func(k Key) bool {
		return named[k] || k.IsText && r.Named || !k.IsText && r.Every > 0 && multiple(k.Number, r.Every)
	}
}

// multiple tells whether n is a multiple of every.
func multiple(n int64, every uint64) bool {
	if n < 0 {
		return -uint64(n)%every == 0
	}
	return uint64(n)%every == 0
}

// None tells whether there is no rule.
func (r *Retention) None() bool {
	return !r.Named && r.Last == 0 && r.Every == 0 && len(r.Keys) == 0 && r.Best.Count == 0
}
