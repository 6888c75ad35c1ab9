package kernel

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"

	"github.com/zeebo/xxh3"
)

// Twins of the kernels of de-duplication. They work on the same arrays, one element after the other.

// dedupTwin is the twin of a kernel of de-duplication; nil if the name is no such kernel's.
func dedupTwin(name string) func(blocks, threads int, parameter []byte) error {
	switch name {
	case dedupFill:
		return twinOf((*dedupFilling).run)
	case dedupSweep:
		return twinOf((*dedupSweeping).run)
	case dedupConsolidate:
		return twinOf((*dedupConsolidated).run)
	case dedupList:
		return twinOf((*dedupRegions).list)
	case dedupGather:
		return twinOf((*dedupRegions).gather)
	}
	if chunk, blocks, known := scanOf(name); known {
		return twinOf(func(p *dedupRegions, n int) error { return p.scan(n, chunk, blocks) })
	}
	if work := labelWorks[strings.TrimPrefix(name, dedupPrefix)]; work != nil && strings.HasPrefix(name, dedupPrefix) {
		return twinOf(func(p *dedupLabels, n int) error { return work(&labelTwin{p, n}) })
	}
	return nil
}

// scanOf is the chunk length of a kernel that scans, and whether it compares digests of blocks.
func scanOf(name string) (chunk int, blocks, known bool) {
	rest, scans := strings.CutPrefix(name, dedupScan)
	rest, blocks = strings.CutPrefix(rest, strings.TrimPrefix(dedupScanBlocks, dedupScan))
	chunk, err := strconv.Atoi(rest)
	known = scans && err == nil && difference.ValidChunk(chunk) && (!blocks || chunk <= device.MostBlocksChunk) && name == scanName(chunk, blocks)
	return chunk, blocks, known
}

// twinOf decodes the parameter of a launch for a function that does its work and is told its blocks of threads.
func twinOf[P any](work func(p *P, blocks int) error) func(blocks, threads int, b []byte) error {
	return func(blocks, threads int, b []byte) error {
		p := new(P)
		if len(b) != binary.Size(p) || threads != dedupThreads || blocks < 1 {
			return fmt.Errorf("%d bytes, %d blocks of %d threads: %w", len(b), blocks, threads, ErrLaunch)
		}
		if _, err := binary.Decode(b, binary.LittleEndian, p); err != nil {
			return fmt.Errorf("%w: %w", err, ErrLaunch)
		}
		return work(p, blocks)
	}
}

// arrayAt is a view of n elements at an address.
func arrayAt[E any](at uint64, n uint64) []E {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*E)(pointer(at)), n)
}

// elementAt is element i of an array at an address.
func elementAt[E any](at uint64, i uint64) *E {
	var e E
	return (*E)(pointer(at + i*uint64(unsafe.Sizeof(e))))
}

// publish checks that the words of a launch's state are zero, and makes them others, as its blocks do.
func publish(state uint64, blocks int) error {
	for i, word := range arrayAt[uint64](state, uint64(blocks)) {
		if word != 0 {
			return fmt.Errorf("the state of block %d is %#x: %w", i, word, ErrLaunch)
		}
		*elementAt[uint64](state, uint64(i)) = lookBackSum
	}
	return nil
}

func (p *dedupFilling) run(blocks int) error {
	if blocks != int(p.Blocks) || p.Words == 0 {
		return fmt.Errorf("%d blocks of %d fill %d words: %w", blocks, p.Blocks, p.Words, ErrLaunch)
	}
	words := arrayAt[uint64](p.At, p.Words)
	for i := range words {
		words[i] = p.Value
	}
	return nil
}

func hash128(p []byte, seed uint64) digest.Digest {
	h := xxh3.Hash128Seed(p, seed)
	return digest.Digest{Lo: h.Lo, Hi: h.Hi}
}

// chunk is the chunk length.
func (p *dedupRegions) chunk() uint64 { return 1 << p.Shift }

// check compares a launch with its parameter.
func (p *dedupRegions) check() error {
	if p.Count == 0 || p.Count > device.DedupLaunchRegions || p.Shift > 12 {
		return fmt.Errorf("%d regions, chunks of 2^%d B: %w", p.Count, p.Shift, ErrLaunch)
	}
	tiles := uint64(0)
	for i := range p.Count {
		if p.Bytes[i] == 0 || uint64(p.First[i]) != tiles || p.Comparable[i] > up(p.Bytes[i], p.chunk()) || p.From[i]%16 != 0 || p.Leaves[i]%16 != 0 {
			return fmt.Errorf("region %d of %d B begins with tile %d after %d, and %d chunks are comparable: %w", i, p.Bytes[i], p.First[i], tiles, p.Comparable[i], ErrLaunch)
		}
		tiles += up(p.Bytes[i], digest.SumBytes)
	}
	if tiles != uint64(p.Tiles) {
		return fmt.Errorf("%d tiles for %d: %w", p.Tiles, tiles, ErrLaunch)
	}
	return nil
}

func up(n, unit uint64) uint64 { return (n + unit - 1) / unit }

// tileWords is the number of words of marks of a tile.
func (p *dedupRegions) tileWords() uint64 { return uint64(device.DedupTileWords(int(p.chunk()))) }

func (p *dedupRegions) scan(blocks, chunk int, digests bool) error {
	if err := p.check(); err != nil {
		return err
	}
	if blocks != int(p.Tiles) || uint64(chunk) != p.chunk() {
		return fmt.Errorf("%d blocks for %d tiles, chunks of %d B: %w", blocks, p.Tiles, p.chunk(), ErrLaunch)
	}
	clear(arrayAt[uint32](p.Marks, uint64(p.Tiles)*p.tileWords()))
	for i := range p.Count {
		data := text(p.From[i], int64(p.Bytes[i]))
		for number := uint64(0); number*digest.SumBytes < p.Bytes[i]; number++ {
			t := tileTwin{p: p, region: int(i), number: number, bytes: data[number*digest.SumBytes : min((number+1)*digest.SumBytes, p.Bytes[i])]}
			*elementAt[uint64](p.Sums[i], number) = xxh3.HashSeed(t.bytes, p.SumSeed)
			t.scan(digests)
		}
	}
	return nil
}

// tileTwin is a part of a region that one block of threads reads.
type tileTwin struct {
	p      *dedupRegions
	region int
	number uint64
	bytes  []byte
}

func (t *tileTwin) scan(digests bool) {
	p, chunk := t.p, t.p.chunk()
	first := t.number * (digest.SumBytes / chunk)
	for at := uint64(0); at < uint64(len(t.bytes)); at += device.DedupBlockBytes {
		block := t.bytes[at:min(at+device.DedupBlockBytes, uint64(len(t.bytes)))]
		if digests && !t.opens(at, block) {
			continue
		}
		for from := uint64(0); from < uint64(len(block)); from += chunk {
			number := (at + from) / chunk
			seed, end := p.LeafSeed, from+chunk
			if end > uint64(len(block)) {
				seed, end = p.TailSeed[t.region], uint64(len(block))
			}
			if replaced(p.Leaves[t.region], first+number, p.Comparable[t.region], hash128(block[from:end], seed)) {
				bit := (t.number+uint64(p.First[t.region]))*32*p.tileWords() + number
				*elementAt[uint32](p.Marks, bit/32) |= 1 << (bit % 32)
			}
		}
	}
}

// opens replaces the digest of a block, and tells whether its chunks have to be hashed.
func (t *tileTwin) opens(at uint64, block []byte) bool {
	p, seed := t.p, t.p.BlockSeed
	if len(block) < device.DedupBlockBytes {
		seed = p.EndSeed[t.region]
	}
	number := t.number*(digest.SumBytes/device.DedupBlockBytes) + at/device.DedupBlockBytes
	differs := replaced(p.Digests[t.region], number, p.OldDigests[t.region], hash128(block, seed))
	last := (t.number*digest.SumBytes + at + uint64(len(block)) - 1) >> p.Shift
	return differs || last >= p.Comparable[t.region]
}

// replaced stores a digest where it differs from the one that is there, of so many, and tells whether it does.
func replaced(digests, i, there uint64, d digest.Digest) bool {
	old := elementAt[digest.Digest](digests, i)
	if i < there && *old == d {
		return false
	}
	*old = d
	return true
}

// eachMark visits the marked chunks: their mark, region, and number in it.
func (p *dedupRegions) eachMark(visit func(mark uint64, region int, chunk uint64)) {
	tileMarks := 32 * p.tileWords()
	for i := range p.Count {
		for tile := range up(p.Bytes[i], digest.SumBytes) {
			for n := range min(tileMarks, digest.SumBytes/p.chunk()) {
				mark := (uint64(p.First[i])+tile)*tileMarks + n
				if *elementAt[uint32](p.Marks, mark/32)>>(mark%32)&1 != 0 {
					visit(mark, int(i), tile*(digest.SumBytes/p.chunk())+n)
				}
			}
		}
	}
}

// chunkBytes is the length of a chunk.
func (p *dedupRegions) chunkBytes(region int, chunk uint64) uint64 {
	return min(p.chunk(), p.Bytes[region]-chunk*p.chunk())
}

func (p *dedupRegions) list(blocks int) error {
	if err := p.check(); err != nil {
		return err
	}
	if wanted := up(uint64(p.Tiles)*p.tileWords(), device.DedupMarkWords); uint64(blocks) != wanted {
		return fmt.Errorf("%d blocks list the marks for %d: %w", blocks, wanted, ErrLaunch)
	}
	if err := publish(p.State, blocks); err != nil {
		return err
	}
	count, short := uint64(0), [device.DedupLaunchRegions]uint32{}
	p.eachMark(func(mark uint64, region int, chunk uint64) {
		*elementAt[uint32](p.List, count) = uint32(mark)
		count++
		short[region] += uint32(p.chunk() - p.chunkBytes(region, chunk))
		if position := p.Position[region] + chunk; p.Changed != 0 {
			*elementAt[uint32](p.Changed, position/32) |= 1 << (position % 32)
		}
	})
	lost := uint32(0)
	for i := range p.Count {
		*elementAt[uint32](p.Lost, uint64(i)) = lost
		lost += short[i]
	}
	totals := arrayAt[uint64](p.Totals, 3)
	totals[0], totals[1], totals[2] = count, uint64(lost), 0
	if p.Before != 0 {
		before := arrayAt[uint64](p.Before, 3)
		totals[2] = before[2] + before[0]<<p.Shift - before[1]
	}
	return nil
}

func (p *dedupRegions) gather(blocks int) error {
	if err := p.check(); err != nil {
		return err
	}
	if blocks != int(p.Blocks) {
		return fmt.Errorf("%d blocks for %d: %w", blocks, p.Blocks, ErrLaunch)
	}
	to := p.Data + *elementAt[uint64](p.Totals, 2)
	p.eachMark(func(_ uint64, region int, chunk uint64) {
		n := p.chunkBytes(region, chunk)
		copy(text(to, int64(n)), text(p.From[region]+chunk*p.chunk(), int64(n)))
		to += n
	})
	return nil
}

func (p *dedupConsolidated) found() (changed, bytes, first, shifted, recorded uint64) {
	if p.Counts != 0 {
		c := elementAt[dedupCounted](p.Counts, 0)
		return c.Changed, c.Bytes, c.FirstEntries, c.ShiftEntries, c.Recorded
	}
	totals := arrayAt[uint64](p.Totals, 3*uint64(p.Launches))
	for i := 0; i < len(totals); i += 3 {
		changed += totals[i]
		bytes = totals[i+2] + totals[i]<<p.Shift - totals[i+1]
	}
	return changed, bytes, 0, 0, 0
}

func (p *dedupConsolidated) run(blocks int) error {
	if blocks != int(p.Blocks) {
		return fmt.Errorf("%d blocks for %d: %w", blocks, p.Blocks, ErrLaunch)
	}
	changed, bytes, first, shifted, recorded := p.found()
	to := p.To + 8*up(bytes, 8)
	for _, part := range []struct{ from, words uint64 }{
		{p.Sums, p.SumWords}, {p.Changed, p.ChangedWords}, {p.FirstEntries, first}, {p.ShiftEntries, device.ShiftBytes / 8 * shifted},
	} {
		copy(arrayAt[uint64](to, part.words), arrayAt[uint64](part.from, part.words))
		to += 8 * part.words
	}
	if p.Recorded != 0 {
		if p.Adds != 0 {
			*elementAt[uint64](p.Recorded, 0) = recorded
		}
		recorded = *elementAt[uint64](p.Recorded, 0)
	}
	*elementAt[[DedupResults]uint64](p.Results, 0) = [...]uint64{changed, bytes, first, shifted, recorded}
	return nil
}
