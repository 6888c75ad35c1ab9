package codec

import "fmt"

// Plan is what a sample of chunks would take by mode, for a planner that learns the modes of a region.
type Plan struct {
	Chunks    int   // sampled
	Plain     int64 // bytes of those
	Best      int64 // bytes of their payloads, each in its best mode
	Container int64 // bytes that those, and their part of the tables, take in a container
	Wins      [ModeCount]int
	// Alone is the bytes of payloads if only this mode and Raw were allowed.
	Alone [ModeCount]int64

	sets [1 << ModeCount]int64 // bytes of payloads if only the modes of a set and Raw were allowed
}

// Sample computes the sizes of every step-th chunk of a region from the first on, in the modes of the encoder. Nothing is written. step is at least 1.
// reference is nil, or has the region's length.
func (e *Encoder) Sample(plain, reference []byte, step int) (Plan, error) {
	step = max(step, 1)
	n := (Chunks(len(plain)) + step - 1) / step
	return e.sample(plain, reference, n, func(i int) int { return i * step })
}

const (
	// surveyStep is the number of chunks of which Survey measures one. Measuring a chunk in all modes takes at most twice as long as encoding it.
	surveyStep = 256
	// surveyLeast is the number of chunks that Survey measures at least.
	surveyLeast = 8
)

// Survey computes the sizes of some chunks all over a region: one of 256, but at least 8. For a region of 32 MiB or more that takes less than a hundredth
// of the time of an encoding in few modes. The chunks depend on the region's length alone. reference is nil, or has the region's length.
func (e *Encoder) Survey(plain, reference []byte) (Plan, error) {
	chunks := Chunks(len(plain))
	n := min(max(chunks/surveyStep, surveyLeast), chunks)
	return e.sample(plain, reference, n, func(i int) int {
		from, to := i*chunks/n, (i+1)*chunks/n
		return from + int(scatter(uint64(i))%uint64(to-from))
	})
}

// scatter mixes a number, so that the places of samples have no period. It is the output function of SplitMix64.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sample measures n chunks.
func (e *Encoder) sample(plain, reference []byte, n int, at func(i int) int) (p Plan, err error) {
	if reference != nil && len(reference) != len(plain) {
		return p, fmt.Errorf("%w: it has %d B, and the region %d B", ErrReference, len(reference), len(plain))
	}
	for i := range n {
		chunk := at(i)
		p.add(e.Sizes(part(plain, chunk), part(reference, chunk)))
	}
	return p, nil
}

// add adds a chunk.
func (p *Plan) add(sizes [ModeCount]int) {
	best := Raw
	for m, n := range sizes {
		if n < 0 || n > sizes[Raw] {
			sizes[m] = sizes[Raw]
		}
		p.Alone[m] += int64(sizes[m])
		if sizes[m] < sizes[best] {
			best = Mode(m)
		}
	}
	p.Chunks++
	p.Plain += int64(sizes[Raw])
	p.Best += int64(sizes[best])
	p.Container += int64(roundUp(sizes[best], payloadAlign) + entryBytes)
	p.Wins[best]++
	p.addSets(sizes)
}

// addSets adds a chunk's size in the best mode of each set.
func (p *Plan) addSets(sizes [ModeCount]int) {
	var least [1 << ModeCount]int // by set
	least[0] = sizes[Raw]
	for m, n := range sizes {
		for rest := range 1 << m {
			least[1<<m|rest] = min(least[rest], n)
		}
	}
	for set, n := range least {
		p.sets[set] += int64(n)
	}
}

// Ratio is the expected ratio of plain bytes to those of a container: 1 without any sample.
func (p *Plan) Ratio() float64 {
	if p.Container == 0 {
		return 1
	}
	return float64(p.Plain) / float64(p.Container)
}

// efforts are the times that the modes take to measure, relative to each other.
var efforts = [ModeCount]int{Diff: 20, Exp: 20, Xrz: 20, Step: 25}

// Modes returns the modes that are measured fastest of those whose payloads would be longer than the best ones by at most a share of these: 0.01 is one
// hundredth. The encoder then measures no others.
func (p *Plan) Modes(share float64) Modes {
	most, best, least := float64(p.Best)*(1+share), AllModes, 0
	for _, n := range efforts {
		least += n
	}
	for set := range AllModes + 1 {
		if !set.Has(Const) || float64(p.sets[set]) > most {
			continue // Const costs nothing
		}
		effort := 0
		for m := range modes {
			if set.Has(m) {
				effort += efforts[m]
			}
		}
		if effort < least || effort == least && p.sets[set] < p.sets[best] {
			best, least = set|1<<Raw, effort
		}
	}
	return best
}
