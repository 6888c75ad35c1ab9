package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// The kernels of de-duplication, behind the name dedupPrefix. They are in a module of their own.
const (
	dedupPrefix = "velocpy_dedup_"

	dedupScan       = dedupPrefix + "scan_"        // and the chunk length
	dedupScanBlocks = dedupPrefix + "scan_blocks_" // and the chunk length
	dedupList       = dedupPrefix + "list"
	dedupGather     = dedupPrefix + "gather"

	dedupPositions     = dedupPrefix + "positions"
	dedupFind          = dedupPrefix + "find"
	dedupLabel         = dedupPrefix + "label"
	dedupPlace         = dedupPrefix + "place"
	dedupGatherFirsts  = dedupPrefix + "gather_firsts"
	dedupRaise         = dedupPrefix + "raise_"     // and firsts or shifts
	dedupRaiseFew      = dedupPrefix + "raise_few_" // and firsts or shifts
	dedupPutNodes      = dedupPrefix + "put_nodes"
	dedupListFirsts    = dedupPrefix + "list_firsts"
	dedupListShifts    = dedupPrefix + "list_shifts"
	dedupFindNewChunks = dedupPrefix + "find_new_chunks"
	dedupFindNewNodes  = dedupPrefix + "find_new_nodes"
	dedupAddNew        = dedupPrefix + "add_new"

	dedupSweep       = dedupPrefix + "sweep"
	dedupFill        = dedupPrefix + "fill"
	dedupConsolidate = dedupPrefix + "consolidate"

	dedupFirsts, dedupShifts = "firsts", "shifts"
)

const (
	dedupThreads     = 256
	dedupGatherBytes = 16 << 10 // that one block of threads copies at a time
	dedupFillWords   = 2 << 10  // that one block of threads fills, unless there are more blocks than the device runs at a time
	dedupLevels      = 40
	dedupSlotBytes   = 32
	dedupBlocksEach  = 4 // blocks of threads of a multiprocessor, of launches whose size does not depend on that of the checkpoint
)

// DedupNames lists the kernels that Dedup of a Plan may launch; the module of de-duplication must contain them.
func DedupNames() []string {
	all := []string{
		dedupList, dedupGather, dedupPositions, dedupFind, dedupLabel, dedupPlace, dedupGatherFirsts, dedupPutNodes, dedupListFirsts, dedupListShifts,
		dedupFindNewChunks, dedupFindNewNodes, dedupAddNew, dedupSweep, dedupFill, dedupConsolidate,
	}
	for _, what := range []string{dedupFirsts, dedupShifts} {
		all = append(all, dedupRaise+what, dedupRaiseFew+what)
	}
	for chunk := difference.MinChunk; chunk <= difference.MaxChunk; chunk *= 2 {
		all = append(all, scanName(chunk, false))
		if chunk <= device.MostBlocksChunk {
			all = append(all, scanName(chunk, true))
		}
	}
	return all
}

func scanName(chunk int, blocks bool) string {
	if blocks {
		return fmt.Sprint(dedupScanBlocks, chunk)
	}
	return fmt.Sprint(dedupScan, chunk)
}

// dedupRegions is the struct Regions of cuda/dedup_parameters.h.
type dedupRegions struct {
	Count, Tiles, Shift, Blocks                                uint32
	LeafSeed, SumSeed, BlockSeed                               uint64
	Marks, List, State, Totals, Before, Lost, Changed, Data    uint64
	Key                                                        [16]uint64
	From, Bytes, Leaves, Comparable, Sums, Digests, OldDigests [device.DedupLaunchRegions]uint64
	Position, TailSeed, EndSeed                                [device.DedupLaunchRegions]uint64
	First                                                      [device.DedupLaunchRegions]uint32
}

// dedupLabels is the struct Labels of cuda/dedup_label_parameters.h.
type dedupLabels struct {
	Regions, Shift, Checkpoint, Oldest, Level, Tree, Mask, Blocks         uint32
	Cut, Reserved                                                         uint32
	FirstWord, Words, NodeSeed                                            uint64
	Key                                                                   [4]uint64
	Slots, Capacity                                                       uint64
	Table, Changed, Counts, Ends, Before, State                           uint64
	List, Firsts, Shifts, From, To, Spare, Sources, Flags, Extent, Joined uint64
	Nodes, ChunkTable, NodeTable, Record                                  uint64
	Data, FirstEntries, ShiftEntries                                      uint64
}

// dedupRegion is the struct Region.
type dedupRegion struct{ From, Bytes, Leaves, Position uint64 }

// dedupSweeping is the struct Sweep.
type dedupSweeping struct {
	Record, Slots, To, ToSlots, Recorded, Forgotten uint64
	Count, Oldest, Blocks, Unused                   uint32
}

// dedupFilling is the struct Filling.
type dedupFilling struct {
	At, Words, Value uint64
	Blocks, Unused   uint32
}

// dedupConsolidated is the struct Consolidated.
type dedupConsolidated struct {
	Counts, Totals             uint64
	Launches, Shift            uint32
	To, Sums, SumWords         uint64
	Changed, ChangedWords      uint64
	FirstEntries, ShiftEntries uint64
	Recorded, Results          uint64
	Adds, Blocks               uint32
}

// dedupCounted is the struct Counts.
type dedupCounted struct {
	Changed, Firsts, Bytes, FirstEntries, ShiftEntries, Recorded uint64
	FirstNodes, ShiftNodes, JoinedNodes, RecordedNodes           [dedupLevels]uint64
}

// DedupResults is the number of words that Dedup writes to its results.
const DedupResults = 5

// DedupCounts are the counts in these words.
func DedupCounts(words []uint64) device.DedupCounts {
	return device.DedupCounts{Changed: int64(words[0]), Bytes: int64(words[1]), First: int64(words[2]), Shifted: int64(words[3]), Recorded: int64(words[4])}
}

// secretWords are the first words of the secret of XXH3.
var secretWords = [16]uint64{
	0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
	0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938, 0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
}

// setKey sets the first words of the secret of a seed.
func setKey(key []uint64, seed uint64) {
	for i := range key {
		key[i] = secretWords[i] + seed
		if i%2 != 0 {
			key[i] = secretWords[i] - seed
		}
	}
}

// deduplication adds the launches of one checkpoint to a plan.
type deduplication struct {
	plan   *Plan
	c      *device.Deduplication
	room   device.DedupRoom
	chunks int64
	scans  int64  // launches that scan
	most   int64  // blocks of threads of a launch that goes on with other elements when it has done its first ones
	state  uint64 // the next one
	p      dedupLabels
	wanted func(kernel string) bool
}

// DedupUpload is how many bytes the host writes to the begin of the scratch memory before the launches.
func DedupUpload(c *device.Deduplication) int64 { return c.Room().Upload }

// PutDedupUpload writes them to a buffer of that length.
func PutDedupUpload(c *device.Deduplication, to []byte) {
	clear(to)
	room, position := c.Room(), int64(0)
	table, row := to[room.Table:], 0
	for i := range c.Regions {
		r := &c.Regions[i]
		if r.Bytes == 0 {
			continue
		}
		if c.Labels() {
			put(table[device.DedupTableBytes*row:], &dedupRegion{uint64(r.At), uint64(r.Bytes), uint64(r.Leaves), uint64(position)})
			row++
		}
		for _, v := range r.Void {
			for bit := position + v.First; bit < position+v.End; bit++ {
				to[room.Changed+bit/8] |= 1 << (bit % 8)
			}
		}
		position += chunksOf(r.Bytes, c.Chunk)
	}
	for i, n := range c.Forgotten {
		binary.LittleEndian.PutUint32(to[room.Forgotten+4*int64(i):], n)
	}
}

func chunksOf(bytes int64, chunk int) int64 { return ceil(bytes, int64(chunk)) }

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit }

// put writes a struct of a parameter.
func put(to []byte, parameter any) {
	if _, err := binary.Encode(to, binary.LittleEndian, parameter); err != nil {
		panic(fmt.Sprintf("a parameter of a kernel: %v", err)) // it is a struct of numbers, and the buffer is its length
	}
}

// Dedup adds the launches that de-duplicate a checkpoint: behind the upload, and on a device with so many multiprocessors. They write DedupResults words to results,
// which the device can reach.
func (p *Plan) Dedup(c *device.Deduplication, processors int, results device.Address) {
	p.dedup(c, processors, results, func(kernel string) bool { return !c.Apart || !gathers(kernel) })
}

// GatherFirsts adds the launches that Dedup leaves out where first occurrences are gathered apart.
func (p *Plan) GatherFirsts(c *device.Deduplication, processors int) {
	p.dedup(c, processors, 0, gathers)
}

// gathers tells whether a kernel copies first occurrences.
func gathers(kernel string) bool { return kernel == dedupGather || kernel == dedupGatherFirsts }

// dedup adds those launches of a de-duplication that are wanted.
func (p *Plan) dedup(c *device.Deduplication, processors int, results device.Address, wanted func(kernel string) bool) {
	d := &deduplication{plan: p, c: c, room: c.Room(), chunks: c.Chunks(), most: int64(max(1, processors)) * dedupBlocksEach, wanted: wanted}
	d.state = d.at(d.room.States)
	d.fill(d.at(d.room.Zeros), d.room.ZerosEnd-d.room.Zeros, 0)
	d.fill(d.at(d.room.Ones), d.room.OnesEnd-d.room.Ones, math.MaxUint64)
	d.record()
	d.scan()
	d.labels()
	d.consolidate(results)
}

func (d *deduplication) at(offset int64) uint64 { return uint64(d.c.Scratch) + uint64(offset) }

// add adds a launch. The struct is read now.
func (d *deduplication) add(name string, blocks int64, parameter any) {
	if !d.wanted(name) {
		return
	}
	size := binary.Size(parameter)
	b := d.plan.buffer(size <= largestFew, size)
	put(b, parameter)
	d.plan.launches = append(d.plan.launches, Launch{Kernel: name, Blocks: int(blocks), Threads: dedupThreads, Parameter: b})
}

// grid is the number of blocks of threads for elements, of which a block does some at a time.
func (d *deduplication) grid(elements, each int64) int64 {
	return max(1, min(d.most, ceil(elements, each)))
}

// dedupLinkBlocks is how many blocks of threads gather to the host at most. Each has 16 KiB on the way.
const dedupLinkBlocks = 24

// gathers is the number of blocks of threads that gather so many bytes at the most.
func (d *deduplication) gathers(bytes int64) int64 {
	blocks := d.grid(bytes, dedupGatherBytes)
	if d.c.OverLink {
		blocks = min(blocks, dedupLinkBlocks)
	}
	return blocks
}

// fill sets bytes, in whole words of 64 bits.
func (d *deduplication) fill(at uint64, bytes int64, value uint64) {
	if bytes == 0 {
		return
	}
	f := &dedupFilling{At: at, Words: uint64(bytes / 8), Value: value}
	f.Blocks = uint32(d.grid(bytes/8, dedupFillWords))
	d.add(dedupFill, int64(f.Blocks), f)
}

// The number of a record's entries is in front of its slots.
func (d *deduplication) recorded() uint64 { return uint64(d.c.Record) }
func (d *deduplication) slots() uint64    { return uint64(d.c.Record) + device.RecordHead }
func (d *deduplication) slotCount() int64 { return device.RecordSlots(d.c.Entries) }

// record empties the record, or removes places. They are copied to the scratch memory and back, since a table with open addressing cannot lose entries
// in place.
func (d *deduplication) record() {
	switch {
	case d.c.Entries == 0:
		return
	case d.c.Fresh:
		d.emptyRecord()
		return
	case d.room.Slots == d.room.OnesEnd:
		return
	}
	spare := d.at(d.room.Slots)
	d.sweep(&dedupSweeping{
		Record: d.slots(), To: spare, Recorded: d.at(d.room.Swept), Forgotten: d.at(d.room.Forgotten), Count: uint32(len(d.c.Forgotten)), Oldest: d.c.Oldest,
	})
	d.emptyRecord()
	d.sweep(&dedupSweeping{Record: spare, To: d.slots(), Recorded: d.recorded(), Forgotten: d.at(d.room.Forgotten)})
}

func (d *deduplication) emptyRecord() {
	d.fill(d.recorded(), device.RecordHead, 0)
	d.fill(d.slots(), dedupSlotBytes*d.slotCount(), math.MaxUint64)
}

func (d *deduplication) sweep(s *dedupSweeping) {
	s.Slots, s.ToSlots = uint64(d.slotCount()), uint64(d.slotCount())
	s.Blocks = uint32(d.grid(d.slotCount(), dedupThreads))
	d.add(dedupSweep, int64(s.Blocks), s)
}

// take returns zeroed words for so many blocks of threads.
func (d *deduplication) take(words int64) uint64 {
	at := d.state
	d.state += 8 * uint64(words)
	return at
}

// scan adds the launches that find changed chunks. Those of Basic gather them too, unless some have to be added whose bytes are gone.
func (d *deduplication) scan() {
	s := scanning{d: d}
	for i := range d.c.Regions {
		if d.c.Regions[i].Bytes == 0 {
			continue
		}
		if s.p.Count == device.DedupLaunchRegions {
			s.launch()
		}
		s.region(&d.c.Regions[i])
	}
	if s.p.Count > 0 {
		s.launch()
	}
}

// scanning is the launches that scan.
type scanning struct {
	d             *deduplication
	p             dedupRegions
	chunks, tiles int64 // of all regions so far
	begin         int64 // chunks before the launch
}

func (s *scanning) region(r *device.DedupRegion) {
	p, c, i := &s.p, s.d.c, s.p.Count
	p.From[i], p.Bytes[i], p.Leaves[i], p.Comparable[i] = uint64(r.At), uint64(r.Bytes), uint64(r.Leaves), uint64(r.Comparable)
	p.Digests[i], p.OldDigests[i] = uint64(r.Blocks), uint64(r.OldBlocks)
	p.Sums[i] = s.d.at(s.d.room.Sums + 8*(s.tiles+int64(p.Tiles)))
	p.Position[i], p.First[i] = uint64(s.chunks), p.Tiles
	p.TailSeed[i] = digest.Seed(digest.Seed(c.Seed, 2), uint64(r.Bytes%int64(c.Chunk)))
	p.EndSeed[i] = digest.Seed(digest.Seed(c.Seed, 4), uint64(r.Bytes%device.DedupBlockBytes))
	p.Count++
	p.Tiles += uint32(ceil(r.Bytes, digest.SumBytes))
	s.chunks += chunksOf(r.Bytes, c.Chunk)
}

// launch adds the launches of the regions so far, and begins with the next ones.
func (s *scanning) launch() {
	d, p := s.d, &s.p
	seed, words := d.c.Seed, int64(p.Tiles)*device.DedupTileWords(d.c.Chunk)
	p.Shift, p.LeafSeed, p.SumSeed = shiftOf(d.c.Chunk), digest.Seed(seed, 1), digest.Seed(seed, 5)
	p.BlockSeed = digest.Seed(digest.Seed(seed, 4), device.DedupBlockBytes)
	setKey(p.Key[:], p.LeafSeed)
	lists := ceil(words, device.DedupMarkWords)
	p.Marks, p.List = d.at(d.room.Marks+4*s.tiles*device.DedupTileWords(d.c.Chunk)), d.at(d.room.MarkList+4*s.begin)
	p.State, p.Totals = d.take(lists), d.at(d.room.Totals+device.DedupTotalBytes*d.scans)
	if d.scans > 0 {
		p.Before = p.Totals - device.DedupTotalBytes
	}
	p.Lost = d.at(d.room.Lost + 4*device.DedupLaunchRegions*d.scans)
	p.Changed, p.Data = d.at(d.room.Changed), uint64(d.c.Result)
	p.Blocks = uint32(d.gathers((s.chunks - s.begin) * int64(d.c.Chunk)))
	d.add(scanName(d.c.Chunk, d.c.Blocks), int64(p.Tiles), p)
	d.add(dedupList, lists, p)
	if !d.c.Labels() {
		d.add(dedupGather, int64(p.Blocks), p)
	}
	*s = scanning{d: d, chunks: s.chunks, begin: s.chunks, tiles: s.tiles + int64(p.Tiles)}
	d.scans++
}

func shiftOf(chunk int) uint32 { return uint32(bits.TrailingZeros(uint(chunk))) }

// labels adds the launches that label the changed chunks and gather first occurrences.
func (d *deduplication) labels() {
	if d.chunks == 0 || !d.c.Labels() {
		return
	}
	d.setLabels()
	d.parts(dedupPositions, int64(d.p.Words), 2)
	if d.c.Method == difference.Basic {
		d.fill(d.p.Flags, 8*ceil(d.chunks, 8), 0x0101010101010101) // each changed chunk is a first occurrence
	} else {
		d.step(dedupFind)
		d.step(dedupLabel)
	}
	d.parts(dedupPlace, d.chunks, 2)
	d.p.Blocks = uint32(d.gathers(d.chunks * int64(d.c.Chunk)))
	d.add(dedupGatherFirsts, int64(d.p.Blocks), &d.p)
	if d.c.Method == difference.Basic {
		return
	}
	if d.c.Method == difference.Tree {
		d.raise(dedupFirsts, d.p.Firsts)
		d.step(dedupPutNodes)
		d.raise(dedupShifts, d.p.Shifts)
	}
	d.parts(dedupListFirsts, d.chunks, 1)
	d.parts(dedupListShifts, d.chunks, 1)
	if d.c.Entries == 0 {
		return
	}
	d.step(dedupFindNewChunks)
	if d.c.Method == difference.Tree {
		d.step(dedupFindNewNodes)
	}
	d.step(dedupAddNew)
}

func (d *deduplication) setLabels() {
	p, c, room := &d.p, d.c, &d.room
	for i := range c.Regions {
		if c.Regions[i].Bytes > 0 {
			p.Regions++
		}
	}
	p.Shift, p.Checkpoint, p.Oldest = shiftOf(c.Chunk), c.Number, c.Oldest
	if c.Method == difference.Tree {
		p.Tree = 1
	}
	p.Mask, p.Words, p.NodeSeed = uint32(room.Tables-1), uint64(ceil(d.chunks, 32)), digest.Seed(c.Seed, 3)
	setKey(p.Key[:], p.NodeSeed)
	if c.Entries > 0 {
		p.Slots, p.Capacity, p.Record, p.Before = uint64(d.slotCount()), uint64(c.Entries), d.slots(), d.recorded()
	}
	p.Table, p.Changed, p.Counts, p.Ends = d.at(room.Table), d.at(room.Changed), d.at(room.Counts), d.at(room.Ends)
	p.List, p.Firsts, p.Shifts, p.Sources = d.at(room.List), d.at(room.Firsts), d.at(room.Shifts), d.at(room.Sources)
	p.Flags, p.Extent, p.Joined, p.Nodes = d.at(room.Flags), d.at(room.Extent), d.at(room.Joined), d.at(room.Nodes)
	p.ChunkTable, p.NodeTable, p.Data = d.at(room.ChunkTable), d.at(room.NodeTable), uint64(c.Result)
	p.FirstEntries, p.ShiftEntries = d.at(room.FirstEntries), d.at(room.ShiftEntries)
}

// step adds a launch for all changed chunks.
func (d *deduplication) step(name string) {
	d.p.Blocks = uint32(d.grid(d.chunks, dedupThreads))
	d.add(name, int64(d.p.Blocks), &d.p)
}

// parts adds a launch that reads parts of so many elements at most, each with some words of state.
func (d *deduplication) parts(name string, elements, words int64) {
	blocks := ceil(elements, device.DedupPart)
	d.p.State = d.take(words * blocks)
	d.add(name, blocks, &d.p)
}

// raise adds a launch for each level that may have many nodes, and one for all others.
func (d *deduplication) raise(what string, first uint64) {
	lists := [2]uint64{d.at(d.room.Waves), d.at(d.room.Waves + 4*d.chunks)}
	from, waves := first, d.c.Waves()
	for level := range len(waves) + 1 {
		d.p.Level, d.p.From, d.p.To, d.p.Spare = uint32(level), from, lists[level%2], lists[(level+1)%2]
		if level == len(waves) {
			d.add(dedupRaiseFew+what, 1, &d.p)
			return
		}
		d.parts(dedupRaise+what, waves[level], 1)
		from = d.p.To
	}
}

// consolidate adds the launch that moves the metadata behind the first occurrences, and tells the host the counts.
func (d *deduplication) consolidate(results device.Address) {
	p := &dedupConsolidated{
		Totals: d.at(d.room.Totals), Shift: shiftOf(d.c.Chunk), To: uint64(d.c.Result), Sums: d.at(d.room.Sums), SumWords: uint64(d.c.SumBlocks()),
		FirstEntries: d.p.FirstEntries, ShiftEntries: d.p.ShiftEntries, Results: uint64(results),
	}
	if d.c.Method == difference.Basic {
		p.Changed, p.ChangedWords = d.at(d.room.Changed), uint64(ceil(d.chunks, 64))
	}
	if d.chunks > 0 && d.c.Labels() {
		p.Counts = d.p.Counts
	} else {
		p.Launches = uint32(d.scans)
	}
	if d.c.Entries > 0 {
		p.Recorded = d.recorded()
		if d.chunks > 0 {
			p.Adds = 1
		}
	}
	words := d.c.SumBlocks() + int64(p.ChangedWords)
	if d.c.Method != difference.Basic {
		words += d.chunks
	}
	p.Blocks = uint32(d.grid(words, dedupFillWords))
	d.add(dedupConsolidate, int64(p.Blocks), p)
}
