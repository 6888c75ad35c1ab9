package lineage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// Region is one named region of a checkpoint, in device memory. Its address is a multiple of 16.
type Region struct {
	Name  string
	At    device.Address
	Bytes int64
}

// Memory is device memory for one checkpoint.
type Memory struct {
	// Digests, a multiple of 64, gets the digests of the checkpoint, and keeps them until the lineage gets other memory for those of a later one, or is rebased. It
	// must not overlap that of the checkpoint before. 0 where Need asks for none: the digests of the checkpoint before are replaced.
	Digests device.Address
	Scratch device.Address // a multiple of 16; free when the checkpoint is finished
	Result  device.Address // a multiple of 16: first occurrences and metadata, for the caller
	// OverLink tells that the result is pinned host memory.
	OverLink bool
	// Apart leaves the first occurrences to Checkpoint.Gather, or to the caller.
	Apart bool
}

// Need is how many bytes of each a checkpoint needs. Digests is 0 if those of the checkpoint before have the same sizes.
type Need struct{ Digests, Scratch, Result int64 }

// Lineage is a sequence of checkpoints. It is for one goroutine at a time.
//
// One checkpoint at a time is under way: Dedup begins it, and Finish or Drop of its Checkpoint ends it. A checkpoint that was not finished has changed digests and
// record: the lineage refuses others until it is rebased.
type Lineage struct {
	options  Options
	function *digest.Function
	record   device.Address

	regions  map[string]version
	digests  span            // where the digests of the last checkpoint are
	located  *difference.Map // of the last checkpoint; nil: there is none that a difference may refer to
	previous uint32          // number of the last checkpoint
	any      bool            // there is one
	fresh    bool            // the record has no entries yet, and arbitrary content
	recorded int64
	held     map[uint32]bool // checkpoints that the record may have places of
	gone     map[uint32]bool // those of them that were forgotten since the last checkpoint

	running *Checkpoint
	changed bool
}

// version is a region of the last checkpoint: how long it was, and where its digests are.
type version struct {
	bytes          int64
	leaves, blocks device.Address
}

// span is a range of device memory.
type span struct {
	at    device.Address
	bytes int64
}

func (s span) overlaps(o span) bool {
	return s.at < o.at+device.Address(o.bytes) && o.at < s.at+device.Address(s.bytes)
}

// New returns the state before the first checkpoint. record, a multiple of 16, is o.RecordBytes() of device memory of any content.
func New(o Options, record device.Address) (*Lineage, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.Entries > 0 && (record == 0 || record%16 != 0) {
		return nil, fmt.Errorf("%w: the record is at %#x", ErrOptions, record)
	}
	l := &Lineage{options: o, function: digest.New(digest.XXH3, o.Seed), record: record}
	l.clear()
	return l, nil
}

func (l *Lineage) clear() {
	l.regions, l.digests, l.located, l.fresh, l.recorded, l.changed = map[string]version{}, span{}, nil, true, 0, false
	l.held, l.gone = map[uint32]bool{}, map[uint32]bool{}
}

// Options are those of New, completed.
func (l *Lineage) Options() Options { return l.options }

// Last returns the map of the last checkpoint, with the places void that were forgotten; nil: the next difference refers to no checkpoint. It must not be changed.
func (l *Lineage) Last() *difference.Map { return l.located }

// Recorded returns the number of entries of the record, of which those may be forgotten that the next checkpoint removes.
func (l *Lineage) Recorded() int64 { return l.recorded }

// Changed tells whether the lineage must be rebased before its next checkpoint.
func (l *Lineage) Changed() bool { return l.changed }

// Known returns the checkpoints, in ascending order, whose first occurrences the next difference may refer to.
func (l *Lineage) Known() []uint32 {
	var known []uint32
	if l.located != nil {
		known = l.located.Named()
	}
	for n := range l.held {
		if !l.gone[n] {
			known = append(known, n)
		}
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// Rebase makes the next checkpoint one that refers to no other, as the first one. The lineage has no digests in device memory any more, and keeps the memory of its record.
func (l *Lineage) Rebase() error {
	if l.running != nil {
		return ErrBusy
	}
	l.clear()
	return nil
}

// Forget makes the lineage use no first occurrences of checkpoints any more: a store calls it before it removes the objects that hold them. Bytes of the last
// checkpoint that lie there will be stored anew.
func (l *Lineage) Forget(checkpoints ...uint32) error {
	if l.running != nil {
		return ErrBusy
	}
	for _, n := range checkpoints {
		if l.held[n] {
			l.gone[n] = true
		}
	}
	l.located = l.located.Without(checkpoints...)
	return nil
}

// Need says how much memory the checkpoint with that number and these regions needs now. Of regions only the names and sizes count.
func (l *Lineage) Need(number uint32, regions []Region) (Need, error) {
	c, err := l.describe(number, regions)
	if err != nil {
		return Need{}, err
	}
	n := Need{Scratch: device.DedupScratch(c), Result: device.DedupResult(c)}
	if !l.fits(regions) {
		n.Digests = l.digestBytes(regions)
	}
	return n, nil
}

func (l *Lineage) digestBytes(regions []Region) int64 {
	sizes := make([]int64, len(regions))
	for i := range regions {
		sizes[i] = regions[i].Bytes
	}
	return l.options.DigestBytes(sizes)
}

// fits tells whether the digests of the last checkpoint are those of regions of the same sizes.
func (l *Lineage) fits(regions []Region) bool {
	return !slices.ContainsFunc(regions, func(r Region) bool { return r.Bytes > 0 && l.regions[r.Name].bytes != r.Bytes })
}

func (l *Lineage) check(number uint32, regions []Region) error {
	switch {
	case l.running != nil:
		return ErrBusy
	case l.changed:
		return ErrChanged
	case l.any && number <= l.previous || number > difference.MaxCheckpoint:
		return fmt.Errorf("%w: %d after %d", ErrOrder, number, l.previous)
	}
	names := make(map[string]bool, len(regions))
	for i := range regions {
		r := &regions[i]
		if names[r.Name] || len(r.Name) > difference.MaxName {
			return fmt.Errorf("%w: the name of region %d is too long, or taken", ErrRegion, i)
		}
		names[r.Name] = true
	}
	return nil
}

func (l *Lineage) chunks(bytes int64) int64 {
	return device.LeafBytes(bytes, l.options.Chunk) / digest.Bytes
}

// describe makes the work of a checkpoint, without the memory of its digests.
func (l *Lineage) describe(number uint32, regions []Region) (*device.Deduplication, error) {
	if err := l.check(number, regions); err != nil {
		return nil, err
	}
	o := &l.options
	c := &device.Deduplication{
		Method: o.Method, Chunk: o.Chunk, Seed: o.Seed, Blocks: o.Blocks, Number: number, Record: l.record, Entries: o.Entries, Fresh: l.fresh,
		Regions: make([]device.DedupRegion, len(regions)),
	}
	if o.MaxAge > 0 && number > o.MaxAge {
		c.Oldest = number - o.MaxAge
	}
	for n := range l.held {
		c.Sweeps = c.Sweeps || n < c.Oldest
	}
	c.Forgotten = slices.Sorted(maps.Keys(l.gone))
	for i := range regions {
		c.Regions[i].Bytes = regions[i].Bytes
	}
	if err := c.CheckSizes(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegion, err)
	}
	for i := range regions {
		c.Regions[i] = l.compare(&regions[i])
	}
	return c, nil
}

// compare says what of a region can be compared with the last checkpoint.
func (l *Lineage) compare(now *Region) device.DedupRegion {
	r := device.DedupRegion{At: now.At, Bytes: now.Bytes}
	old, known := l.regions[now.Name]
	if !known {
		return r
	}
	r.Comparable = l.chunks(now.Bytes)
	if old.bytes != now.Bytes { // chunks that are not full have another length now, or are missing
		r.Comparable = min(old.bytes, now.Bytes) / int64(l.options.Chunk)
	}
	if l.options.Blocks {
		r.OldBlocks = min(device.BlockBytes(old.bytes), device.BlockBytes(now.Bytes)) / digest.Bytes
	}
	if l.located.HasVoid() {
		r.Void = void(l.located.Find(now.Name), now.Bytes, int64(l.options.Chunk))
	}
	return r
}

// void returns the chunks of a region whose bytes in the last checkpoint are gone.
func void(located *difference.Located, bytes, chunk int64) (ranges []device.ChunkRange) {
	if located == nil {
		return nil
	}
	located.Each(0, min(located.Size, uint64(bytes)), func(r difference.Run, n uint64) bool {
		if r.Checkpoint == difference.Void {
			ranges = append(ranges, device.ChunkRange{First: int64(r.At) / chunk, End: (int64(r.At+n) + chunk - 1) / chunk})
		}
		return true
	})
	return ranges
}

// Dedup queues the de-duplication of a checkpoint in a lane. The regions and all memory are in use until an event behind the call has passed; then the
// Checkpoint is finished or dropped. The digests of the checkpoint before are in use until then, too.
//
// After an error that is device.ErrDedup, device.ErrRecording or of this package the lineage is as before. After any other error it has Changed. After all but those of this
// package the caller waits for the lane before it frees memory: work may be queued that uses it.
func (l *Lineage) Dedup(lane device.Lane, number uint32, regions []Region, m Memory) (*Checkpoint, error) {
	c, err := l.describe(number, regions)
	if err != nil {
		return nil, err
	}
	k := &Checkpoint{lineage: l, c: c, names: make([]string, len(regions)), versions: make(map[string]version, len(regions))}
	k.c.Scratch, k.c.Result, k.c.OverLink, k.c.Apart = m.Scratch, m.Result, m.OverLink, m.Apart
	moved, err := k.place(regions, m.Digests)
	if err != nil {
		return nil, err
	}
	if err := device.CheckDedup(k.c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegion, err)
	}
	if len(moved) > 0 {
		if _, err := lane.Gather(moved, false); err != nil {
			l.changed = !errors.Is(err, device.ErrRecording)
			return nil, err
		}
	}
	if k.found, err = lane.Dedup(k.c); err != nil {
		l.changed = !errors.Is(err, device.ErrDedup) && !errors.Is(err, device.ErrRecording)
		return nil, err
	}
	l.running = k
	return k, nil
}

// place gives the regions the memory of their digests: that of the checkpoint before, or other memory, to which the digests are moved that are compared.
func (k *Checkpoint) place(regions []Region, digests device.Address) (moved []device.Piece, err error) {
	l := k.lineage
	if digests == 0 && !l.fits(regions) || digests%digestAlign != 0 {
		return nil, fmt.Errorf("%w: their digests are at %#x", ErrRegion, digests)
	}
	k.digests = l.digests
	if digests != 0 {
		k.digests = span{digests, l.digestBytes(regions)}
		if k.digests.overlaps(l.digests) {
			return nil, fmt.Errorf("%w: their digests, at %#x, overlap those of the checkpoint before", ErrRegion, digests)
		}
	}
	for i := range regions {
		name, r := regions[i].Name, &k.c.Regions[i]
		old := l.regions[name]
		now := version{bytes: r.Bytes, leaves: old.leaves, blocks: old.blocks}
		if digests != 0 {
			now.leaves = digests
			now.blocks = digests + device.Address(aligned(device.LeafBytes(r.Bytes, k.c.Chunk)))
			digests = now.blocks + device.Address(l.options.blockBytes(r.Bytes))
			moved = move(moved, old.leaves, now.leaves, digest.Bytes*r.Comparable)
			moved = move(moved, old.blocks, now.blocks, digest.Bytes*r.OldBlocks)
		}
		r.Leaves, r.Blocks = now.leaves, now.blocks
		k.names[i], k.versions[name] = name, now
	}
	return moved, nil
}

// move adds a copy of bytes, unless they stay.
func move(pieces []device.Piece, from, to device.Address, bytes int64) []device.Piece {
	if bytes == 0 || from == to {
		return pieces
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&from)) // of device memory, which the Go runtime does not know
	return append(pieces, device.Piece{Slot: to, Bytes: bytes, Mem: model.Strided{Base: base}})
}
