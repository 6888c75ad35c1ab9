package codec

import "fmt"

// Plan is what a sample of chunks would take by mode, for a planner that learns the modes of a region.
type Plan struct {
	Chunks int   // sampled
	Plain  int64 // bytes of those
	Best   int64 // bytes of their payloads, each in its best mode
	Wins   [ModeCount]int
	// Alone is the bytes of payloads if only this mode and Raw were allowed.
	Alone [ModeCount]int64
}

// Sample computes the sizes of every step-th chunk of a region from the first on, in the modes of the encoder. Nothing is written. step is at least 1.
// reference is nil, or has the region's length.
func (e *Encoder) Sample(plain, reference []byte, step int) (p Plan, err error) {
	if reference != nil && len(reference) != len(plain) {
		return p, fmt.Errorf("%w: it has %d B, and the region %d B", ErrReference, len(reference), len(plain))
	}
	for i := 0; i < Chunks(len(plain)); i += max(step, 1) {
		p.add(e.Sizes(part(plain, i), part(reference, i)))
	}
	return p, nil
}

// add adds a chunk.
func (p *Plan) add(sizes [ModeCount]int) {
	best := Raw
	for m, n := range sizes {
		if n < 0 {
			n = sizes[Raw]
		}
		p.Alone[m] += int64(min(n, sizes[Raw]))
		if n < sizes[best] {
			best = Mode(m)
		}
	}
	p.Chunks++
	p.Plain += int64(sizes[Raw])
	p.Best += int64(sizes[best])
	p.Wins[best]++
}
