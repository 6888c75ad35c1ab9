package dedup

import "velocpy/gocore/reduction/difference"

// joinRuns makes one entry per run of neighbouring first occurrences. Neighbouring shifted duplicates make one entry if their sources are neighbours, or all
// the same: then the entry repeats it. A run ends where the next leaf does not continue it, so the leaf before decides.
func (w *work) joinRuns() {
	for i := range w.parts {
		p := &w.parts[i]
		next := -1
		for _, f := range p.firsts {
			if last := len(w.firsts) - 1; f.index == next && w.firsts[last].Extent < difference.MaxRun {
				w.firsts[last].Extent++
			} else {
				w.firsts = append(w.firsts, difference.Entry{Position: p.position + uint64(f.index), Extent: 1})
			}
			next = f.index + 1
		}
		begin := len(w.shifted)
		for _, s := range p.shifts {
			if len(w.shifted) == begin || !p.continues(&w.shifted[len(w.shifted)-1], s) {
				w.addShift(p, 0, s, 1)
			}
		}
	}
}

// continues adds a leaf to a run, if it is the run's next one.
func (p *part) continues(run *difference.Shift, s shift) bool {
	chunk := uint64(p.chunk)
	if p.position+uint64(s.index) != run.Position+uint64(run.Extent) || run.Checkpoint != s.place.Checkpoint || run.Extent == difference.MaxRun {
		return false
	}
	switch {
	case !run.Repeat && s.place.Offset == run.Offset+uint64(run.Extent)*chunk:
	case (run.Repeat || run.Extent == 1) && s.place.Offset == run.Offset && s.place.Bytes == chunk:
		run.Repeat = true
	default:
		return false
	}
	run.Extent++
	return true
}
