package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/dedup"
	form "velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/tree"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// The kernels of de-duplication against gocore/reduction with the method Basic.

// dedupCase is a lineage whose checkpoints both sides make.
type dedupCase struct {
	chunk    int
	seed     uint64
	blocks   bool
	together int // regions of a launch
}

// testRegion is a region, and what the device keeps of it between checkpoints.
type testRegion struct {
	name            string
	data            []byte
	leaves, digests []byte // of the checkpoint before
	size            int    // of the checkpoint before; -1: none
}

// room lays memory out, with bytes between the parts that no kernel may write.
type room struct {
	memory []byte
	gaps   []int
}

const gapBytes, gapByte = 32, 0xa5

func (r *room) place(content []byte, n, skew int) int {
	for len(r.memory)%64 != skew {
		r.memory = append(r.memory, gapByte)
	}
	at := len(r.memory)
	r.memory = append(r.memory, content...)
	for len(r.memory) < at+n {
		r.memory = append(r.memory, gapByte)
	}
	r.gaps = append(r.gaps, len(r.memory))
	r.memory = append(r.memory, bytes.Repeat([]byte{gapByte}, gapBytes)...)
	return at
}

func (r *room) checkGaps(t fatal, before, after []byte) {
	t.Helper()
	for _, gap := range r.gaps {
		if !bytes.Equal(after[gap:gap+gapBytes], before[gap:gap+gapBytes]) {
			t.Fatalf("bytes at %d, between parts, were written", gap)
		}
	}
}

// dedupLaunch is one launch and where its results are in the memory.
type dedupLaunch struct {
	p                       dedupRegions
	regions                 []*testRegion
	marks, list, totals     int
	leaves, digests, sums   []int
	chunks, words, position int
}

// launch lays out regions. The positions of their chunks begin at a number.
func (c *dedupCase) launch(r *room, regions []*testRegion, position int) *dedupLaunch {
	l := &dedupLaunch{regions: regions, position: position}
	p := &l.p
	p.Count, p.Shift, p.Blocks = uint32(len(regions)), uint32(bits.TrailingZeros(uint(c.chunk))), 3
	p.LeafSeed, p.SumSeed, p.BlockSeed = digest.Seed(c.seed, 1), digest.Seed(c.seed, 5), digest.Seed(digest.Seed(c.seed, 4), device.DedupBlockBytes)
	setKey(p.Key[:], p.LeafSeed)
	for i, g := range regions {
		n := len(g.data)
		leaves, tiles, blocks := tree.Chunks(uint64(n), c.chunk), (n-1)/digest.SumBytes+1, (n-1)/device.DedupBlockBytes+1
		l.leaves = append(l.leaves, r.place(g.leaves[:min(len(g.leaves), leaves*digest.Bytes)], leaves*digest.Bytes, 16))
		l.sums = append(l.sums, r.place(nil, tiles*8, 8))
		l.digests = append(l.digests, r.place(g.digests[:min(len(g.digests), blocks*digest.Bytes)], blocks*digest.Bytes, 32))
		p.From[i], p.Bytes[i] = uint64(there+r.place(g.data, n, 16*(i%4))), uint64(n)
		p.Leaves[i], p.Sums[i], p.Digests[i] = uint64(there+l.leaves[i]), uint64(there+l.sums[i]), uint64(there+l.digests[i])
		if g.size >= 0 {
			p.Comparable[i] = uint64(tree.Chunks(uint64(g.size), c.chunk))
			if n != g.size {
				p.Comparable[i] = uint64(min(n, g.size) / c.chunk)
			}
			p.OldDigests[i] = uint64(len(g.digests) / digest.Bytes)
		}
		p.Position[i], p.First[i] = uint64(position+l.chunks), p.Tiles
		p.TailSeed[i], p.EndSeed[i] = digest.Seed(digest.Seed(c.seed, 2), uint64(n%c.chunk)), digest.Seed(digest.Seed(c.seed, 4), uint64(n%device.DedupBlockBytes))
		l.chunks += leaves
		p.Tiles += uint32(tiles)
	}
	l.words = int(p.Tiles) * max(1, digest.SumBytes/c.chunk/32)
	l.marks, l.list = r.place(nil, 4*l.words, 4), r.place(nil, 4*l.chunks, 4)
	l.totals = r.place(nil, 24, 8)
	p.State = uint64(there + r.place(make([]byte, 8*(l.words/device.DedupMarkWords+1)), 0, 8))
	p.Lost = uint64(there + r.place(nil, 4*len(regions), 4))
	p.Marks, p.List, p.Totals = uint64(there+l.marks), uint64(there+l.list), uint64(there+l.totals)
	return l
}

func (l *dedupLaunch) launches(c *dedupCase) []Launch {
	parameter, _ := binary.Append(nil, binary.LittleEndian, l.p)
	return []Launch{
		{Kernel: scanName(c.chunk, c.blocks), Blocks: int(l.p.Tiles), Threads: dedupThreads, Parameter: parameter},
		{Kernel: dedupList, Blocks: (l.words-1)/device.DedupMarkWords + 1, Threads: dedupThreads, Parameter: parameter},
		{Kernel: dedupGather, Blocks: int(l.p.Blocks), Threads: dedupThreads, Parameter: parameter},
	}
}

// layOut lays out the launches for all regions, and tells how many chunks and bytes these have.
func (c *dedupCase) layOut(r *room, regions []*testRegion) (all []*dedupLaunch, position, total int) {
	var some []*testRegion
	for i, g := range regions {
		total += len(g.data)
		if len(g.data) > 0 {
			some = append(some, g)
		}
		if len(some) > 0 && (len(some) == c.together || i == len(regions)-1) {
			l := c.launch(r, some, position)
			position += l.chunks
			all, some = append(all, l), nil
		}
	}
	return all, position, total
}

// runner runs launches on a memory at the address there, and returns its content afterwards.
type runner interface {
	run(memory []byte, launches []Launch) []byte
}

// twinRunner runs the twins of the kernels.
type twinRunner struct{ t testing.TB }

func (r twinRunner) run(memory []byte, launches []Launch) []byte {
	r.t.Helper()
	at := pointer(there)
	mapped, err := unix.MmapPtr(-1, 0, at, uintptr(len(memory)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	if err != nil || mapped != at {
		r.t.Fatalf("no memory at %#x: %v", uint64(there), err)
	}
	defer func() { _ = unix.MunmapPtr(mapped, uintptr(len(memory))) }()
	bytesThere := text(there, int64(len(memory)))
	copy(bytesThere, memory)
	for _, l := range launches {
		if err := Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter); err != nil {
			r.t.Fatalf("%s: %v", l.Kernel, err)
		}
	}
	return bytes.Clone(bytesThere)
}

type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkpoint makes the next checkpoint on both sides and compares them.
func (c *dedupCase) checkpoint(t fatal, s runner, lineage *dedup.Lineage, number uint32, regions []*testRegion) {
	t.Helper()
	var input []dedup.Region
	for _, g := range regions {
		input = append(input, dedup.Region{Name: g.name, Bytes: g.data})
	}
	want, _, err := lineage.Dedup(number, input)
	if err != nil {
		t.Fatalf("%v", err)
	}
	r := &room{}
	all, position, total := c.layOut(r, regions)
	if len(all) == 0 {
		return
	}
	changed := r.place(make([]byte, (position+31)/32*4), 0, 4)
	data := r.place(nil, total, 48)
	var launches []Launch
	for i, l := range all {
		l.p.Changed, l.p.Data = uint64(there+changed), uint64(there+data)
		if i > 0 {
			l.p.Before = all[i-1].p.Totals
		}
		launches = append(launches, l.launches(c)...)
	}
	before := bytes.Clone(r.memory)
	after := s.run(r.memory, launches)
	r.checkGaps(t, before, after)
	if got := after[changed : changed+(position+31)/32*4]; !bytes.Equal(got[:len(want.Changed)], want.Changed) {
		t.Fatalf("changed chunks: %x, want %x", got, want.Changed)
	}
	if got := after[data : data+len(want.Data)]; !bytes.Equal(got, want.Data) {
		i := 0
		for got[i] == want.Data[i] {
			i++
		}
		t.Fatalf("data: byte %d of %d differs", i, len(got))
	}
	for _, b := range after[data+len(want.Data) : data+total] {
		if b != gapByte {
			t.Fatalf("bytes behind the data were written")
		}
	}
	stored := 0
	for _, l := range all {
		stored += l.check(t, c, after, want.Changed, stored)
		c.keep(t, l, after, lineage)
	}
	if stored != len(want.Data) {
		t.Fatalf("%d B in the totals, want %d B", stored, len(want.Data))
	}
	for i, g := range regions {
		sums := []uint64{}
		for _, l := range all {
			for j, h := range l.regions {
				for tile := 0; h == g && tile*digest.SumBytes < len(g.data); tile++ {
					sums = append(sums, binary.LittleEndian.Uint64(after[l.sums[j]+8*tile:]))
				}
			}
		}
		if got := digest.New(digest.XXH3, c.seed).Combine(sums); got != want.Regions[i].Checksum {
			t.Fatalf("region %s of %d B: checksum %#x, want %#x", g.name, len(g.data), got, want.Regions[i].Checksum)
		}
	}
}

// check compares the marks, the list and the totals with the bitmap. It returns the bytes that the launch gathered.
func (l *dedupLaunch) check(t fatal, c *dedupCase, after, changed []byte, stored int) int {
	t.Helper()
	var list []uint32
	own, lost := 0, 0
	marks := make([]byte, 4*l.words)
	position := l.position
	for i, g := range l.regions {
		for at := 0; at < len(g.data); at += c.chunk {
			if changed[position/8]>>(position%8)&1 != 0 {
				tile := int(l.p.First[i]) + at/digest.SumBytes
				mark := tile*32*(l.words/int(l.p.Tiles)) + at%digest.SumBytes/c.chunk
				list = append(list, uint32(mark))
				marks[mark/8] |= 1 << (mark % 8)
				own += min(c.chunk, len(g.data)-at)
				lost += c.chunk - min(c.chunk, len(g.data)-at)
			}
			position++
		}
	}
	if got := after[l.marks : l.marks+len(marks)]; !bytes.Equal(got, marks) {
		t.Fatalf("marks: %x, want %x", got, marks)
	}
	totals := [3]uint64{}
	for i := range totals {
		totals[i] = binary.LittleEndian.Uint64(after[l.totals+8*i:])
	}
	if want := [3]uint64{uint64(len(list)), uint64(lost), uint64(stored)}; totals != want {
		t.Fatalf("totals: %d, want %d", totals, want)
	}
	for i, want := range list {
		if got := binary.LittleEndian.Uint32(after[l.list+4*i:]); got != want {
			t.Fatalf("entry %d: %d, want %d", i, got, want)
		}
	}
	for i := len(list); i < l.chunks; i++ {
		if binary.LittleEndian.Uint32(after[l.list+4*i:]) != 0xa5a5a5a5 {
			t.Fatalf("the list was written behind its end")
		}
	}
	return own
}

// keep compares the digests and takes them over for the next checkpoint.
func (c *dedupCase) keep(t fatal, l *dedupLaunch, after []byte, lineage *dedup.Lineage) {
	t.Helper()
	f := digest.New(digest.XXH3, c.seed)
	at := func(from, i int) digest.Digest {
		p := after[from+digest.Bytes*i:]
		return digest.Digest{Lo: binary.LittleEndian.Uint64(p), Hi: binary.LittleEndian.Uint64(p[8:])}
	}
	for i, g := range l.regions {
		leaves := lineage.Tree(g.name).Level(0)
		for j, want := range leaves {
			if got := at(l.leaves[i], j); got != want {
				t.Fatalf("region of %d B, chunk %d: %x, want %x", len(g.data), j, got, want)
			}
		}
		g.leaves = bytes.Clone(after[l.leaves[i] : l.leaves[i]+len(leaves)*digest.Bytes])
		if g.size = len(g.data); !c.blocks {
			continue
		}
		blocks := (len(g.data)-1)/device.DedupBlockBytes + 1
		for j := range blocks {
			if got, want := at(l.digests[i], j), f.Block(g.data[j*device.DedupBlockBytes:min(len(g.data), (j+1)*device.DedupBlockBytes)]); got != want {
				t.Fatalf("region of %d B, block %d: %x, want %x", len(g.data), j, got, want)
			}
		}
		g.digests = bytes.Clone(after[l.digests[i] : l.digests[i]+blocks*digest.Bytes])
	}
}

func (c *dedupCase) lineage(t fatal) *dedup.Lineage {
	lineage, err := dedup.New(dedup.Options{Method: form.Basic, Chunk: c.chunk, Seed: c.seed, Blocks: c.blocks})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return lineage
}

func randomBytes(r *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return p
}

// change makes the next version of a region.
func (g *testRegion) change(r *rand.Rand, size int, kind int) {
	n := min(size, len(g.data))
	g.data = append(bytes.Clone(g.data[:n]), randomBytes(r, size-n)...)
	switch kind {
	case 0: // nothing
	case 1: // some bytes
		for range min(size, 3) {
			g.data[r.IntN(size)] ^= 1
		}
	case 2: // the last byte
		if size > 0 {
			g.data[size-1] ^= 0x80
		}
	case 3: // everything
		g.data = randomBytes(r, size)
	case 4: // a range
		from := r.IntN(size + 1)
		copy(g.data[from:], randomBytes(r, r.IntN(size-from+1)))
	}
}

// drawRegions makes the regions of a first checkpoint.
func drawRegions(t *rapid.T, r *rand.Rand, sizes *rapid.Generator[int]) []*testRegion {
	regions := make([]*testRegion, rapid.IntRange(1, 6).Draw(t, "regions"))
	for i := range regions {
		regions[i] = &testRegion{name: fmt.Sprint(i), data: randomBytes(r, sizes.Draw(t, "size")), size: -1}
	}
	return regions
}

// changeRegions makes the next versions of all regions, some of which get another size.
func changeRegions(t *rapid.T, r *rand.Rand, sizes *rapid.Generator[int], regions []*testRegion) {
	for _, g := range regions {
		if len(g.data) == 0 {
			g.leaves, g.digests, g.size = nil, nil, 0
		}
		size := len(g.data)
		if rapid.IntRange(0, 2).Draw(t, "resize") == 0 {
			size = sizes.Draw(t, "size")
		}
		g.change(r, size, rapid.IntRange(0, 4).Draw(t, "change"))
	}
}

func TestDedupSource(t *testing.T) {
	s := startSource(t)
	t.Run("random", func(t *testing.T) { testDedupRandom(t, s) })
	t.Run("lengths", func(t *testing.T) { testDedupLengths(t, s) })
	t.Run("long", func(t *testing.T) { testDedupLong(t, s) })
}

func TestDedupTwins(t *testing.T) {
	if underRace {
		t.Skip("the run without the race detector does it")
	}
	t.Run("random", func(t *testing.T) { testDedupRandom(t, twinRunner{t}) })
	t.Run("lengths", func(t *testing.T) { testDedupLengths(t, twinRunner{t}) })
	t.Run("long", func(t *testing.T) { testDedupLong(t, twinRunner{t}) })
}

func testDedupRandom(t *testing.T, s runner) {
	rapid.Check(t, func(t *rapid.T) {
		c := &dedupCase{chunk: 32 << rapid.IntRange(0, 7).Draw(t, "chunk"), seed: rapid.Uint64().Draw(t, "seed"), together: rapid.IntRange(1, 5).Draw(t, "together")}
		c.blocks = c.chunk <= 512 && rapid.Bool().Draw(t, "blocks")
		lineage := c.lineage(t)
		r := rand.New(rand.NewPCG(c.seed, 1))
		sizes := rapid.OneOf(rapid.IntRange(0, 600), rapid.IntRange(0, 2*digest.SumBytes+5000),
			rapid.Map(rapid.IntRange(0, 40), func(i int) int { return i * 1024 }), rapid.Map(rapid.IntRange(1, 16), func(i int) int { return i * c.chunk }))
		regions := drawRegions(t, r, sizes)
		for number := range uint32(3) {
			c.checkpoint(t, s, lineage, number, regions)
			changeRegions(t, r, sizes, regions)
		}
	})
}

// Every chunk length with and without blocks: all lengths of a short region, and of the last chunk.
func testDedupLengths(t *testing.T, s runner) {
	r := rand.New(rand.NewPCG(1, 2))
	for chunk := 32; chunk <= 4096; chunk *= 2 {
		for _, blocks := range []bool{false, true} {
			if blocks && chunk > 512 {
				continue
			}
			c := &dedupCase{chunk: chunk, seed: r.Uint64(), blocks: blocks, together: device.DedupLaunchRegions}
			lineage := c.lineage(t)
			var regions []*testRegion
			for i := range 2 * device.DedupLaunchRegions {
				n := 1 + i*2 + int(c.seed%2) // up to 257
				if i%8 == 0 {
					n = 1 + r.IntN(chunk+device.DedupBlockBytes)
				}
				regions = append(regions, &testRegion{name: fmt.Sprint(i), data: randomBytes(r, n), size: -1})
			}
			c.checkpoint(t, s, lineage, 0, regions)
			for _, g := range regions {
				g.change(r, len(g.data), r.IntN(3))
			}
			c.checkpoint(t, s, lineage, 1, regions)
		}
	}
}

// More marks than one block of threads lists, and more chunks than one step of the gathering copies.
func testDedupLong(t *testing.T, s runner) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []*dedupCase{{chunk: 32, seed: 5, together: 2}, {chunk: 64, seed: 6, together: 2, blocks: true}, {chunk: 1024, seed: 7, together: 2}} {
		lineage := c.lineage(t)
		a := &testRegion{name: "a", data: randomBytes(r, 1<<20+13), size: -1}
		b := &testRegion{name: "b", data: randomBytes(r, 3<<20/2), size: -1}
		c.checkpoint(t, s, lineage, 0, []*testRegion{a, b})
		for range 1000 {
			a.data[r.IntN(len(a.data))] ^= 1
			b.data[r.IntN(len(b.data))] ^= 1
		}
		c.checkpoint(t, s, lineage, 1, []*testRegion{a, b})
		c.checkpoint(t, s, lineage, 2, []*testRegion{a, b})
	}
}
