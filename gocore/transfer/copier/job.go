// Package copier is the data path of capture and restore: it copies between arrays in raw memory and the dense slots of a cache, and computes the
// checksums in the same pass.
//
// The calling thread starts at once; helpers of a Pool join in if the job is large enough for a gain. Nothing is retained after a job: memory named
// in its pieces is touched only inside Run.
package copier

import (
	"math"
	"sync"
	"time"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"

	"go.uber.org/atomic"
)

// Direction is the kind of a job.
type Direction int

const (
	Gather  Direction = iota // capture: from Mem to Slot
	Scatter                  // restore: from Slot to Mem
	Verify                   // the checksum of Slot; Mem is not used
)

// Piece is one region, or a part of one: Bytes dense bytes at Slot, and the same bytes at Mem. Ranges that a job writes must not overlap with any other
// range of it. Mem must have passed Check, and so must Part.
type Piece struct {
	Slot  unsafe.Pointer
	Bytes int64
	Mem   model.Strided
	From  int64       // Scatter without Part: the first of the bytes in the dense order of Mem; the piece has those from there on
	Part  *model.Part // Scatter without checksums: the bytes lie as this part does in the region at Slot; nil: densely
}

// Options of a job.
type Options struct {
	// Checksum requests checksum.Sum of every region's slot bytes. Verify always computes it.
	Checksum bool
	// Pool provides helpers for large jobs; nil: only the calling thread works.
	Pool *Pool
	// Of is how many bytes are copied by this job and others like it, one after the other; 0: by this one alone.
	Of int64
}

// unitBytes is the unit of work of one thread: a leaf of the checksum.
const unitBytes = checksum.LeafBytes

// streamFrom is the size of a job from which on stores bypass the cache. Slots are cold when they are written and not needed soon. So streaming
// halves the time and leaves the cache to the caller. Restored bytes are needed next: they should be in the cache, unless it could not hold them.
var streamFrom = [...]int64{Gather: 256 << 10, Scatter: 8 << 20, Verify: math.MaxInt64}

// From these sizes on a job calls helpers. Waking one costs up to 25 µs, and the job has to wait for its last unit. One core can write past the cache
// nearly as fast as two: 27 GB/s on the EPYC measured, where all cores of a chiplet share one link to memory. So a contiguous job, including rows,
// has to be long before helpers gain. Element by element, a job gains early.
const (
	helpContiguous = 8 << 20
	helpStrided    = 1 << 20
)

// rowItem is the least size of an element that is copied like a row.
const rowItem = 32

// watchBytes is how many bytes are copied between two checks of the clock.
const watchBytes = 512 << 10

// spinTime is how long a caller spins for helpers to finish their unit.
const spinTime = 20 * time.Microsecond

// Job is a set of copies that can be done in several slices of time. One goroutine at a time uses it.
type Job struct {
	dir    Direction
	check  bool
	stream bool
	fine   bool // at least one piece is copied element by element
	pool   *Pool
	parts  []part
	axes   []model.Axis
	leaves []uint64 // by unit
	sums   []uint64 // by piece
	units  int64
	bytes  int64
	done   bool

	next   atomic.Int64 // the next unit
	gate   atomic.Int64 // helpers inside, plus closed while there is no work for them
	idle   chan struct{}
	broken atomic.Bool
}

// part is a piece prepared for the copy.
type part struct {
	slot  unsafe.Pointer
	bytes int64
	base  unsafe.Pointer
	axes  []model.Axis // none: contiguous
	item  int64
	skip  int64        // bytes of the array before those of the piece; 0 if contiguous: base is behind them
	from  []model.Axis // of a part of a region: its axes in the slot; none: contiguous
	grain int64        // … and its element
	first int64        // number of its first unit
}

// closed is added to gate; it exceeds any number of helpers.
const closed = 1 << 40

var jobs = sync.Pool{New: func() any { return &Job{idle: make(chan struct{}, 1)} }}

// NewJob prepares a job; the pieces are not kept. It costs some 20 ns per piece. Free returns the job for reuse, which saves the next one its
// allocations.
func NewJob(dir Direction, pieces []Piece, opt Options) *Job {
	j := jobs.Get().(*Job)
	j.dir, j.check, j.pool = dir, opt.Checksum || dir == Verify, opt.Pool
	j.units, j.bytes, j.fine, j.done = 0, 0, false, false
	for i := range pieces {
		j.add(&pieces[i])
	}
	j.stream = max(j.bytes, opt.Of) >= streamFrom[dir]
	if j.check {
		j.leaves = room(j.leaves, int(j.units))
		j.sums = room(j.sums, len(pieces))
	}
	j.broken.Store(false)
	j.next.Store(0)
	j.gate.Store(closed)
	return j
}

// room returns a slice of n elements, in the old one's memory if that is large enough.
func room[T any](old []T, n int) []T {
	if cap(old) >= n {
		return old[:n]
	}
	return make([]T, n)
}

func (j *Job) add(p *Piece) {
	n := part{slot: p.Slot, bytes: max(p.Bytes, 0), base: p.Mem.Base, first: j.units}
	if len(p.Mem.Shape) > 0 && n.bytes > 0 && j.dir != Verify {
		start := len(j.axes)
		j.axes, n.item = p.Mem.Collapse(j.axes)
		n.axes = j.axes[start:len(j.axes):len(j.axes)]
		j.fine = j.fine || len(n.axes) > 0 && n.item < rowItem
	}
	if p.Part != nil && n.bytes > 0 {
		j.addFrom(&n, p.Part)
	} else if p.From > 0 && n.bytes > 0 {
		if n.skip = p.From; len(n.axes) == 0 {
			n.base, n.skip = unsafe.Add(n.base, p.From), 0
		}
	}
	j.units += int64(checksum.Leaves(n.bytes))
	j.bytes += n.bytes
	j.parts = append(j.parts, n)
}

// addFrom prepares a part of a region.
func (j *Job) addFrom(n *part, p *model.Part) {
	start := len(j.axes)
	in := model.Strided{Shape: p.Shape, Strides: p.Strides, Item: p.Item}
	j.axes, n.grain = in.Collapse(j.axes)
	n.from = j.axes[start:len(j.axes):len(j.axes)]
	n.slot = unsafe.Add(n.slot, p.Offset)
	j.fine = j.fine || len(n.from) > 0 && n.grain < rowItem
}

// Free returns the job for reuse. It may be called at any time outside Run, whether the job is done or not. The job and its Sums must not be used
// afterwards.
func (j *Job) Free() {
	clear(j.parts)
	j.parts, j.axes, j.pool = j.parts[:0], j.axes[:0], nil
	if j.broken.Load() {
		return
	}
	jobs.Put(j)
}

// Bytes returns the number of bytes that the job copies or checks.
func (j *Job) Bytes() int64 { return j.bytes }

// Run works until the job is done or the time budget is used up; no budget (<= 0) means no limit. Every call makes progress. After it returns no
// thread touches memory of the job, so the job may be abandoned then. A panic of a helper surfaces in Run.
func (j *Job) Run(budget time.Duration) (done bool) {
	if j.done {
		return true
	}
	j.share(budget)
	if j.done = j.next.Load() >= j.units; j.done && j.check {
		j.finish()
	}
	return j.done
}

// helped tells whether helpers gain.
func (j *Job) helped() bool {
	if j.pool == nil {
		return false
	}
	if j.fine {
		return j.bytes >= j.pool.strided
	}
	return j.bytes >= j.pool.contiguous
}

// share does the job, together with helpers if that gains.
func (j *Job) share(budget time.Duration) {
	var until time.Time
	if budget > 0 {
		until = time.Now().Add(budget)
	}
	if j.helped() {
		j.gate.Store(0)
		defer j.shut()
		j.pool.call(j, int(min(j.units-j.next.Load()-1, int64(j.pool.n))))
	}
	j.work(until, false)
}

// shut lets no helper in any more and waits for those inside, which are in the middle of one unit.
func (j *Job) shut() {
	if j.gate.Add(closed) > closed {
		// They need some more microseconds; blocking and waking would take longer. Yielding would not help: a caller from C is bound to its thread.
		for end := time.Now().Add(spinTime); j.gate.Load() > closed && time.Now().Before(end); {
		}
		<-j.idle // the last helper out sends, whether the caller still waits or not
	}
	if j.broken.Load() {
		panic("a helper of package copier panicked")
	}
}

// enter tells whether a helper may work on the job now; if so it has to call leave.
func (j *Job) enter() bool {
	for {
		g := j.gate.Load()
		if g >= closed {
			return false
		}
		if j.gate.CompareAndSwap(g, g+1) {
			return true
		}
	}
}

func (j *Job) leave() {
	if j.gate.Sub(1) == closed {
		j.idle <- struct{}{}
	}
}

// work takes units until none is left or the time is up (zero: no limit). A helper also stops when the gate closes.
func (j *Job) work(until time.Time, helper bool) {
	p := 0
	var copied int64
	for {
		unit := j.next.Add(1) - 1
		if unit >= j.units {
			return
		}
		for p+1 < len(j.parts) && j.parts[p+1].first <= unit {
			p++
		}
		copied += j.unit(&j.parts[p], unit)
		if copied < watchBytes {
			continue
		}
		copied = 0
		if helper && j.gate.Load() >= closed || !until.IsZero() && !time.Now().Before(until) {
			return
		}
	}
}

// unit does one unit and returns its bytes.
func (j *Job) unit(p *part, unit int64) int64 {
	from := (unit - p.first) * unitBytes
	to := min(from+unitBytes, p.bytes)
	if len(p.from) > 0 {
		p.extract(from, to)
		return to - from
	}
	slot := unsafe.Slice((*byte)(unsafe.Add(p.slot, from)), to-from)
	switch {
	case j.dir == Verify:
		j.leaves[unit] = checksum.Leaf(slot)
	case len(p.axes) == 0:
		mem := unsafe.Slice((*byte)(unsafe.Add(p.base, from)), to-from)
		if j.dir == Gather {
			j.copy(slot, mem, unit)
		} else {
			j.copy(mem, slot, unit)
		}
	case j.stream && j.dir == Gather && p.item >= rowItem:
		j.collect(p, from, slot, unit)
	default:
		walk(p.base, p.axes, p.item, p.skip+from, p.skip+to, unsafe.Pointer(unsafe.SliceData(slot)), j.dir == Scatter)
		if j.check {
			j.leaves[unit] = checksum.Leaf(slot)
		}
	}
	return to - from
}

// copy copies a contiguous unit, and computes its hash in the same pass.
func (j *Job) copy(dst, src []byte, unit int64) {
	switch {
	case j.check:
		j.leaves[unit] = checksum.CopyLeaf(dst, src, j.stream)
	case j.stream:
		copyStream(dst, src)
	default:
		copy(dst, src)
	}
}

// finish combines the leaves' hashes.
func (j *Job) finish() {
	for i := range j.parts {
		j.sums[i] = checksum.Combine(j.leavesOf(i))
	}
}

// Leaves returns the hashes of the leaves of a piece, under the conditions of Sums.
func (j *Job) Leaves(piece int) []uint64 {
	if !j.done || !j.check {
		return nil
	}
	return j.leavesOf(piece)
}

func (j *Job) leavesOf(piece int) []uint64 {
	end := j.units
	if piece+1 < len(j.parts) {
		end = j.parts[piece+1].first
	}
	return j.leaves[j.parts[piece].first:end]
}

// Sums returns the regions' checksums, in the order of the pieces; nil before the job is done, and without checksums. The slice belongs to the job.
func (j *Job) Sums() []uint64 {
	if !j.done || !j.check {
		return nil
	}
	return j.sums
}
