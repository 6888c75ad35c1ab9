package durable

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// unkept returns the checkpoints that the retention of their history does not keep.
func (r *records) unkept() (all []doomed) {
	for _, h := range r.state.Histories() {
		if h.Retention == nil {
			continue
		}
		var rows []doomed
		r.state.List(h.ID, 0, func(b catalog.Brief) bool {
			rows = append(rows, doomed{h.ID, h.Name, b.Key, b.Serial, b.Stored})
			return true
		})
		all = append(all, notKept(rows, h.Retention, r.best(rows, &h.Retention.Best))...)
	}
	return all
}

// notKept returns the rows of a history that a retention does not keep. The order of writing determines the last ones, the caller the best ones.
func notKept(rows []doomed, r *model.Retention, best map[uint64]bool) (gone []doomed) {
	slices.SortFunc(rows, func(a, b doomed) int { return cmp.Compare(b.serial, a.serial) })
	exempt := r.Exempts()
	for i, x := range rows {
		if uint64(i) >= r.Last && !best[x.serial] && !exempt(x.key) {
			gone = append(gone, x)
		}
	}
	return gone
}

// scored is a row with a score: smaller is better.
type scored struct {
	score  float64
	serial uint64
}

// best returns the serials of the best rows of a history, as the running store chooses them: of equal scores, the earlier checkpoint is better.
func (r *records) best(rows []doomed, b *model.Best) map[uint64]bool {
	if b.Count == 0 {
		return nil
	}
	var all []scored
	for _, x := range rows {
		if l, meta, ok := r.state.Meta(x.history, x.key); ok {
			if n, ok := description.Number(l.Text, meta, b.By); ok {
				all = append(all, scored{b.Score(n), x.serial})
			}
		}
	}
	//mutation:equal-scores-reversed
	slices.SortFunc(all, func(x, y scored) int { return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.serial, y.serial)) })
	best := map[uint64]bool{}
	for _, x := range all[:min(uint64(len(all)), b.Count)] {
		best[x.serial] = true
	}
	return best
}
