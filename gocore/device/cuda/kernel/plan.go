package kernel

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// Plan is a list of launches to be queued in one stream in their order. The zero value is empty. Reset keeps its memory, so that a reused plan costs
// no allocations. One goroutine at a time uses it.
type Plan struct {
	launches []Launch
	runs     []run
	unsummed []run
	arrays   []array
	axes     []model.Axis
	buffers  [2][][]byte // parameters by size: small, large
	used     [2]int
}

// Reset clears the launches, whose parameters must not be used any more.
func (p *Plan) Reset() {
	p.launches = p.launches[:0]
	p.used = [2]int{}
}

// Launches are those of all calls since Reset. They stay valid until the next one.
func (p *Plan) Launches() []Launch { return p.launches }

// Gather fills slots from arrays. With an address for sums, an array of Leaves(pieces) words, the kernels write the hash of every leaf there, by
// piece. For contiguous arrays that is in the same pass. Pieces in pageable memory (Host) are not copied. If the caller queued their copies before,
// their hashes are computed here too.
func (p *Plan) Gather(pieces []device.Piece, sums device.Address) {
	p.runs, p.unsummed = p.runs[:0], p.unsummed[:0]
	leaf := 0
	for i := range pieces {
		piece := &pieces[i]
		slot := run{to: uint64(piece.Slot), from: uint64(piece.Slot), bytes: piece.Bytes, sum: leaf}
		leaf += checksum.Leaves(piece.Bytes)
		switch {
		case piece.Bytes <= 0:
		case piece.Host:
			p.unsummed = append(p.unsummed, slot)
		case p.addArray(piece):
			p.unsummed = append(p.unsummed, slot)
		default:
			slot.from = address(piece.Mem.Base)
			p.runs = append(p.runs, slot)
		}
	}
	p.launchArrays(gather)
	if sums == 0 {
		p.launchRuns(pack, p.runs, 0)
		return
	}
	p.launchRuns(packSums, p.runs, sums)
	p.launchRuns(hash, p.unsummed, sums)
}

// Scatter fills arrays from slots; the caller fills those in pageable memory.
func (p *Plan) Scatter(pieces []device.Piece) {
	p.runs = p.runs[:0]
	for i := range pieces {
		piece := &pieces[i]
		if piece.Bytes <= 0 || piece.Host || p.addArray(piece) {
			continue
		}
		p.runs = append(p.runs, run{to: address(piece.Mem.Base), from: uint64(piece.Slot), bytes: piece.Bytes})
	}
	p.launchArrays(scatter)
	p.launchRuns(pack, p.runs, 0)
}

// Hash writes the hash of every leaf of the slots to an array of Leaves(pieces) words.
func (p *Plan) Hash(pieces []device.Piece, sums device.Address) {
	p.runs = p.runs[:0]
	leaf := 0
	for i := range pieces {
		if pieces[i].Bytes > 0 {
			p.runs = append(p.runs, run{from: uint64(pieces[i].Slot), bytes: pieces[i].Bytes, sum: leaf})
		}
		leaf += checksum.Leaves(pieces[i].Bytes)
	}
	p.launchRuns(hash, p.runs, sums)
}

// buffer returns a cleared parameter, small or large.
func (p *Plan) buffer(small bool, bytes int) []byte {
	kind := 1
	if small {
		kind = 0
	}
	if p.used[kind] == len(p.buffers[kind]) {
		p.buffers[kind] = append(p.buffers[kind], make([]byte, []int{largestFew, largestMany}[kind]))
	}
	b := p.buffers[kind][p.used[kind]][:bytes]
	p.used[kind]++
	clear(b)
	return b
}
