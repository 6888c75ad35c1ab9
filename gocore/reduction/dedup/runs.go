package dedup

import "velocpy/gocore/reduction/difference"

// joinRuns makes one entry per run of neighbouring first occurrences, and per run of neighbouring shifted duplicates whose sources are neighbours, or all the
// same: then the entry repeats its source. The leaves of a run are one entry, or several if an entry cannot hold them.
//
// Whether a shifted duplicate continues a run depends on the leaves before it by the run's state alone, which has three values. So a GPU can find the
// beginnings of runs with a prefix scan over functions of that state.
func (w *work) joinRuns() {
	for i := range w.parts {
		p := &w.parts[i]
		w.joinFirsts(p)
		w.joinShifts(p)
	}
}

func (w *work) joinFirsts(p *part) {
	next := -1
	for _, f := range p.firsts {
		if last := len(w.firsts) - 1; f.index == next && w.firsts[last].Extent < w.lineage.options.longestRun() {
			w.firsts[last].Extent++
		} else {
			w.firsts = append(w.firsts, difference.Entry{Position: p.position + uint64(f.index), Extent: 1})
		}
		next = f.index + 1
	}
}

func (w *work) joinShifts(p *part) {
	r := run{state: closed}
	for _, s := range p.shifts {
		joined := r.add(s, uint64(p.chunk))
		last := len(w.shifted) - 1
		if joined && w.shifted[last].Extent < w.lineage.options.longestRun() {
			w.shifted[last].Extent++
			w.shifted[last].Repeat = r.state == repeating
		} else {
			w.addShift(p, 0, s, 1)
		}
	}
}

// run is what decides whether the next shifted duplicate continues the present run.
type run struct {
	state      runState
	next       int // leaf
	checkpoint uint32
	begin, end uint64 // of the sources
}

type runState uint8

const (
	closed    runState = iota // there is no run
	single                    // one leaf
	advancing                 // each source follows that of the leaf before
	repeating                 // all sources are one
)

// add adds a leaf, and tells whether it continues the run; else it begins another one.
func (r *run) add(s shift, chunk uint64) bool {
	begins := r.state == closed || s.index != r.next || s.place.Checkpoint != r.checkpoint
	r.next = s.index + 1
	switch {
	case !begins && r.state != repeating && s.place.Offset == r.end:
		r.state, r.end = advancing, r.end+s.place.Bytes
		return true
	case !begins && r.state != advancing && s.place.Offset == r.begin && s.place.Bytes == chunk:
		r.state = repeating
		return true
	}
	r.state, r.checkpoint = single, s.place.Checkpoint
	r.begin, r.end = s.place.Offset, s.place.Offset+s.place.Bytes
	return false
}
