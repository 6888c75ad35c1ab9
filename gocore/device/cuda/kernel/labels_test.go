package kernel

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/dedup"
	form "velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
	"velocpy/gocore/reduction/tree"

	"pgregory.net/rapid"
)

// The kernels that label changed chunks, against gocore/reduction with the methods List and Tree.

// gridBlocks are those of launches that do not read parts.
const gridBlocks = 3

// labelCase is a lineage with a record that both sides make.
type labelCase struct {
	dedupCase
	method   form.Method
	capacity int
	maxAge   uint32
	cuts     int
	alone    int    // the level from which on one block makes all waves
	record   []byte // of the device
	recorded uint64
	gone     []uint32 // checkpoints that were forgotten since the last checkpoint
}

// lineage begins the lineage on both sides.
func (c *labelCase) lineage(t fatal) *dedup.Lineage {
	lineage, err := dedup.New(dedup.Options{Method: c.method, Chunk: c.chunk, Seed: c.seed, Record: record.Memory(c.capacity), MaxAge: c.maxAge})
	if err != nil {
		t.Fatalf("%v", err)
	}
	_, c.capacity = lineage.Recorded()
	c.record = bytes.Repeat([]byte{0xff}, dedupSlotBytes*slotsFor(c.capacity))
	return lineage
}

// slotsFor is how many slots a record has: few more than entries, so that the kernels search long.
func slotsFor(capacity int) int {
	if capacity == 0 {
		return 0
	}
	return capacity + 1
}

// labelWork is a checkpoint on the device.
type labelWork struct {
	c        *labelCase
	p        dedupLabels
	r        *room
	chunks   int
	launches []Launch
}

func (w *labelWork) place(bytesEach, skew int) uint64 {
	return uint64(there + w.r.place(nil, bytesEach*w.chunks, skew))
}

func (w *labelWork) add(name string, blocks int, parameter any) {
	raw, _ := binary.Append(nil, binary.LittleEndian, parameter)
	w.launches = append(w.launches, Launch{Kernel: dedupPrefix + name, Blocks: blocks, Threads: dedupThreads, Parameter: raw})
}

// parts adds a launch that reads parts of so many elements at most.
func (w *labelWork) parts(name string, elements int) {
	blocks := (elements-1)/device.DedupPart + 1
	w.p.State = uint64(there + w.r.place(make([]byte, 16*blocks), 0, 8))
	w.add(name, blocks, w.p)
}

func (w *labelWork) grid(name string) { w.add(name, gridBlocks, w.p) }

// layOut lays out the memory of the labels of a checkpoint.
func (c *labelCase) layOut(r *room, all []*dedupLaunch, chunks, total, changed int, number uint32) *labelWork {
	w := &labelWork{c: c, r: r, chunks: chunks}
	p := &w.p
	var table []byte
	for _, l := range all {
		for i := range l.regions {
			table, _ = binary.Append(table, binary.LittleEndian, []uint64{l.p.From[i], l.p.Bytes[i], l.p.Leaves[i], l.p.Position[i]})
			p.Regions++
		}
	}
	p.Shift, p.Checkpoint, p.Blocks = uint32(bits.TrailingZeros(uint(c.chunk))), number, gridBlocks
	if c.maxAge > 0 && number > c.maxAge {
		p.Oldest = number - c.maxAge
	}
	if c.method == form.Tree {
		p.Tree = 1
	}
	p.Mask = 1<<bits.Len(uint(2*chunks-1)) - 1
	p.Words, p.NodeSeed = uint64((chunks+31)/32), digest.Seed(c.seed, 3)
	setKey(p.Key[:], p.NodeSeed)
	p.Slots, p.Capacity = uint64(len(c.record)/dedupSlotBytes), uint64(c.capacity)
	p.Table, p.Changed = uint64(there+r.place(table, 0, 16)), uint64(there+changed)
	p.Counts = uint64(there + r.place(make([]byte, binary.Size(dedupCounted{})), 0, 16))
	p.Before = uint64(there + r.place(binary.LittleEndian.AppendUint64(nil, c.recorded), 0, 8))
	p.List, p.Firsts, p.Shifts = w.place(4, 4), w.place(4, 4), w.place(4, 4)
	p.Sources, p.Flags, p.Extent, p.Joined = w.place(8, 8), w.place(1, 1), w.place(1, 1), w.place(1, 1)
	p.Nodes = w.place(digest.Bytes, 16)
	ones := bytes.Repeat([]byte{0xff}, 4*int(p.Mask+1))
	p.ChunkTable, p.NodeTable = uint64(there+r.place(ones, 0, 4)), uint64(there+r.place(ones, 0, 4))
	p.Record = uint64(there + r.place(c.record, 0, 32))
	p.Data = uint64(there + r.place(nil, total, 48))
	p.FirstEntries, p.ShiftEntries = w.place(8, 8), w.place(24, 8)
	return w
}

// queue adds all launches behind those that mark the changed chunks.
func (w *labelWork) queue() {
	p := &w.p
	all := int(p.Words)
	cuts := max(1, min(w.c.cuts, all))
	p.Ends = uint64(there + w.r.place(make([]byte, 24*(cuts+1)), 0, 8))
	for cut := range cuts {
		first := all * cut / cuts
		p.Cut, p.FirstWord, p.Words = uint32(cut), uint64(first), uint64(all*(cut+1)/cuts-first)
		w.parts("positions", int(p.Words))
		w.grid("find")
		w.grid("label")
		w.parts("place", min(32*int(p.Words), w.chunks))
		w.grid("gather_firsts")
	}
	if p.Tree != 0 {
		waves := [2]uint64{w.place(4, 4), w.place(4, 4)}
		w.waves("firsts", p.Firsts, waves)
		w.grid("put_nodes")
		w.waves("shifts", p.Shifts, waves)
	}
	w.parts("list_firsts", w.chunks)
	w.parts("list_shifts", w.chunks)
	if p.Oldest > 0 {
		w.sweep(nil)
	}
	if p.Slots > 0 {
		w.grid("find_new_chunks")
		if p.Tree != 0 {
			w.grid("find_new_nodes")
		}
		w.grid("add_new")
	}
}

// waves adds a launch for each level below one, and one launch for all others.
func (w *labelWork) waves(name string, first uint64, lists [2]uint64) {
	from := first
	for level := range tree.Levels(w.chunks) {
		w.p.Level, w.p.From, w.p.To, w.p.Spare = uint32(level), from, lists[level%2], lists[(level+1)%2]
		if level == w.c.alone {
			w.add("raise_few_"+name, 1, w.p)
			return
		}
		w.parts("raise_"+name, w.chunks>>level+int(w.p.Regions)) // each region may have an only child
		from = w.p.To
	}
}

// sweep copies the record without checkpoints.
func (w *labelWork) sweep(gone []uint32) {
	var forgotten []byte
	for _, c := range gone {
		forgotten = binary.LittleEndian.AppendUint32(forgotten, c)
	}
	s := dedupSweeping{Record: w.p.Record, Slots: w.p.Slots, ToSlots: w.p.Slots, Count: uint32(len(gone)), Oldest: w.p.Oldest, Blocks: gridBlocks}
	s.To = uint64(there + w.r.place(bytes.Repeat([]byte{0xff}, len(w.c.record)), 0, 32))
	s.Recorded = uint64(there + w.r.place(make([]byte, 8), 0, 8))
	s.Forgotten = uint64(there + w.r.place(forgotten, 0, 4))
	w.add("sweep", gridBlocks, s)
	w.p.Record, w.p.Before = s.To, s.Recorded
}

// checkpoint makes the next checkpoint on both sides and compares them.
func (c *labelCase) checkpoint(t fatal, s runner, lineage *dedup.Lineage, number uint32, regions []*testRegion) *form.Difference {
	t.Helper()
	var input []dedup.Region
	for _, g := range regions {
		input = append(input, dedup.Region{Name: g.name, Bytes: g.data})
	}
	before := lineage.Last()
	want, _, err := lineage.Dedup(number, input)
	if err != nil {
		t.Fatalf("%v", err)
	}
	r := &room{}
	all, chunks, total := c.dedupCase.layOut(r, regions)
	if len(all) == 0 {
		return want
	}
	changed := r.place(voids(before, regions, c.chunk, chunks), 0, 4)
	var launches []Launch
	for i, l := range all {
		l.p.Changed = uint64(there + changed)
		if i > 0 {
			l.p.Before = all[i-1].p.Totals
		}
		launches = append(launches, l.launches(&c.dedupCase)[:2]...)
	}
	w := c.layOut(r, all, chunks, total, changed, number)
	if len(c.gone) > 0 && w.p.Slots > 0 {
		w.sweep(c.gone)
	}
	c.gone = nil
	firsts, shifts, data := w.p.FirstEntries, w.p.ShiftEntries, w.p.Data
	w.queue()
	memory := bytes.Clone(r.memory)
	after := s.run(r.memory, append(launches, w.launches...))
	r.checkGaps(t, memory, after)

	var got dedupCounted
	_, _ = binary.Decode(after[w.p.Counts-there:], binary.LittleEndian, &got)
	if got.Bytes != uint64(len(want.Data)) || !bytes.Equal(after[data-there:][:len(want.Data)], want.Data) {
		t.Fatalf("checkpoint %d: other first occurrences: %d B, want %d B", number, got.Bytes, len(want.Data))
	}
	if got.FirstEntries != uint64(len(want.First)) || got.ShiftEntries != uint64(len(want.Shifted)) {
		t.Fatalf("checkpoint %d: %d and %d entries, want %d and %d", number, got.FirstEntries, got.ShiftEntries, len(want.First), len(want.Shifted))
	}
	for i, e := range want.First {
		if entry := binary.LittleEndian.Uint64(after[firsts-there+uint64(8*i):]); entry != e.Position<<24|uint64(e.Extent) {
			t.Fatalf("checkpoint %d: entry %d is %#x, want %+v", number, i, entry, e)
		}
	}
	for i, e := range want.Shifted {
		var shift [3]uint64
		_, _ = binary.Decode(after[shifts-there+uint64(24*i):], binary.LittleEndian, &shift)
		if shift != [3]uint64{e.Position<<24 | uint64(e.Extent), uint64(e.Checkpoint), e.Offset} {
			t.Fatalf("checkpoint %d: shifted duplicate %d is %#x, want %+v", number, i, shift, e)
		}
	}
	if w.p.Slots > 0 {
		if n, _ := lineage.Recorded(); got.Recorded != uint64(n) {
			t.Fatalf("checkpoint %d: %d entries in the record, want %d", number, got.Recorded, n)
		}
		c.record, c.recorded = bytes.Clone(after[w.p.Record-there:][:len(c.record)]), got.Recorded
	}
	for _, l := range all {
		c.keep(t, l, after, lineage)
	}
	return want
}

// voids is the bitmap of the chunks whose bytes in the checkpoint before are gone.
func voids(m *form.Map, regions []*testRegion, chunk, chunks int) []byte {
	bitmap := make([]byte, (chunks+31)/32*4)
	position := 0
	for _, g := range regions {
		if located := m.Find(g.name); located != nil {
			located.Each(0, min(located.Size, uint64(len(g.data))), func(r form.Run, n uint64) bool {
				for at := int(r.At); r.Checkpoint == form.Void && at < int(r.At+n); at += chunk {
					bit := position + at/chunk
					bitmap[bit/8] |= 1 << (bit % 8)
				}
				return true
			})
		}
		position += (len(g.data) + chunk - 1) / chunk
	}
	return bitmap
}

func (c *labelCase) forget(lineage *dedup.Lineage, number uint32) {
	lineage.Forget(number)
	c.gone = append(c.gone, number)
	slices.Sort(c.gone)
	c.gone = slices.Compact(c.gone)
}

// repeat copies chunks of regions to other places, some of them in whole subtrees.
func repeat(r *rand.Rand, regions []*testRegion, chunk int) {
	for range r.IntN(4) {
		from, to := regions[r.IntN(len(regions))], regions[r.IntN(len(regions))]
		n := chunk << r.IntN(5)
		if len(from.data) < n || len(to.data) < n {
			continue
		}
		at, into := r.IntN(len(from.data)/n)*n, r.IntN(len(to.data)/n)*n
		copy(to.data[into:into+n], bytes.Clone(from.data[at:at+n]))
	}
}

func TestLabelSource(t *testing.T) {
	s := startSource(t)
	t.Run("random", func(t *testing.T) { testLabelsRandom(t, s) })
	t.Run("long", func(t *testing.T) { testLabelsLong(t, s) })
}

func TestLabelTwins(t *testing.T) {
	if underRace {
		t.Skip("the run without the race detector does it")
	}
	t.Run("random", func(t *testing.T) { testLabelsRandom(t, twinRunner{t}) })
	t.Run("long", func(t *testing.T) { testLabelsLong(t, twinRunner{t}) })
}

func testLabelsRandom(t *testing.T, s runner) {
	rapid.Check(t, func(t *rapid.T) {
		c := &labelCase{method: rapid.SampledFrom([]form.Method{form.List, form.Tree}).Draw(t, "method")}
		c.chunk, c.seed, c.together = 32<<rapid.IntRange(0, 3).Draw(t, "chunk"), rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 5).Draw(t, "together")
		c.capacity = rapid.OneOf(rapid.IntRange(0, 100), rapid.Just(10_000)).Draw(t, "record")
		c.alone, c.cuts = rapid.IntRange(0, 12).Draw(t, "alone"), rapid.IntRange(1, 5).Draw(t, "cuts")
		c.maxAge = uint32(rapid.IntRange(0, 3).Draw(t, "age"))
		lineage := c.lineage(t)
		r := rand.New(rand.NewPCG(c.seed, 1))
		sizes := rapid.OneOf(rapid.IntRange(0, 600), rapid.IntRange(0, 6000), rapid.Map(rapid.IntRange(1, 64), func(i int) int { return i * c.chunk }))
		regions := drawRegions(t, r, sizes)
		for number := uint32(1); number < 7; number++ {
			repeat(r, regions, c.chunk)
			c.checkpoint(t, s, lineage, number, regions)
			if rapid.IntRange(0, 3).Draw(t, "forget") == 0 {
				c.forget(lineage, uint32(rapid.IntRange(1, int(number)).Draw(t, "gone")))
			}
			changeRegions(t, r, sizes, regions)
		}
	})
}

// Several parts of each list, and subtrees of many levels: all bytes are new, then they lie elsewhere, then a few have changed.
func testLabelsLong(t *testing.T, s runner) {
	r := rand.New(rand.NewPCG(5, 6))
	for i, method := range []form.Method{form.List, form.Tree, form.Tree, form.Tree} {
		c := &labelCase{dedupCase: dedupCase{chunk: 32, seed: 7, together: 2}, method: method, capacity: 100_000, alone: []int{0, 0, 2, 100}[i], cuts: i}
		lineage := c.lineage(t)
		a := &testRegion{name: "a", data: randomBytes(r, 32*5000+7), size: -1}
		b := &testRegion{name: "b", data: randomBytes(r, 32*2000), size: -1}
		c.checkpoint(t, s, lineage, 1, []*testRegion{a, b})
		a.data, b.data = append(bytes.Clone(b.data), a.data[len(b.data):]...), bytes.Clone(a.data[:len(b.data)])
		if d := c.checkpoint(t, s, lineage, 2, []*testRegion{a, b}); len(d.Data) != 0 {
			t.Errorf("%s: %d B are stored of what has moved", method, len(d.Data))
		}
		for at := 0; at < len(a.data); at += 3200 {
			a.data[at]++
		}
		a.data = append(a.data, a.data...)
		c.checkpoint(t, s, lineage, 3, []*testRegion{a, b})
	}
}

// colliding labels a checkpoint of one region. The digests of its chunks are given, since none collide by themselves.
func colliding(t *testing.T, s runner, method form.Method, chunks [][]byte, digests []byte) (w *labelWork, after []byte, got dedupCounted) {
	t.Helper()
	c := &labelCase{dedupCase: dedupCase{chunk: 32, seed: 9}, method: method, capacity: 8, alone: 1}
	c.lineage(t)
	var leaves []byte
	for _, d := range digests {
		leaves = append(leaves, bytes.Repeat([]byte{d}, digest.Bytes)...)
	}
	data := slices.Concat(chunks...)
	r := &room{}
	l := &dedupLaunch{regions: []*testRegion{{data: data}}}
	l.p.From[0], l.p.Bytes[0] = uint64(there+r.place(data, 0, 16)), uint64(len(data))
	l.p.Leaves[0] = uint64(there + r.place(leaves, 0, 16))
	changed := r.place([]byte{1<<len(chunks) - 1, 0, 0, 0}, 0, 4)
	w = c.layOut(r, []*dedupLaunch{l}, len(chunks), len(data), changed, 4)
	w.queue()
	before := bytes.Clone(r.memory)
	after = s.run(r.memory, w.launches)
	r.checkGaps(t, before, after)
	_, _ = binary.Decode(after[w.p.Counts-there:], binary.LittleEndian, &got)
	return w, after, got
}

// wantShifts compares the entries of shifted duplicates.
func (w *labelWork) wantShifts(t *testing.T, after []byte, want [][3]uint64) {
	t.Helper()
	for i, want := range want {
		var shift [3]uint64
		_, _ = binary.Decode(after[w.p.ShiftEntries-there+uint64(24*i):], binary.LittleEndian, &shift)
		if shift != want {
			t.Errorf("shifted duplicate %d: %d, want %d", i, shift, want)
		}
	}
}

// eachRunner runs a test on the kernels' source and on their twins.
func eachRunner(t *testing.T, test func(*testing.T, runner)) {
	t.Run("twins", func(t *testing.T) { test(t, twinRunner{t}) })
	t.Run("source", func(t *testing.T) { test(t, startSource(t)) })
}

// Chunks of other bytes with one digest: the lowest stays in the record, and each of the others is a first occurrence.
func TestLabelsOfCollidingDigests(t *testing.T) { eachRunner(t, testCollidingDigests) }

func testCollidingDigests(t *testing.T, s runner) {
	a, b := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	w, after, got := colliding(t, s, form.List, [][]byte{a, b, a, b, a}, []byte{3, 3, 3, 3, 3})
	if got.Firsts != 3 || got.FirstEntries != 3 || got.ShiftEntries != 2 || got.Recorded != 1 {
		t.Errorf("%d first occurrences, %d and %d entries, %d recorded", got.Firsts, got.FirstEntries, got.ShiftEntries, got.Recorded)
	}
	if data := after[w.p.Data-there:][:got.Bytes]; !bytes.Equal(data, slices.Concat(a, b, b)) {
		t.Errorf("other first occurrences: %d", data)
	}
	w.wantShifts(t, after, [][3]uint64{{2 << 24, 4, 0}, {4 << 24, 4, 0}})
}

// Two shifted duplicates whose parent has the digest of another node, and other bytes, stay apart. Where the bytes are the same they go on as one.
func TestLabelsOfCollidingSubtrees(t *testing.T) { eachRunner(t, testCollidingSubtrees) }

func testCollidingSubtrees(t *testing.T, s runner) {
	a, b, c, d := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32), bytes.Repeat([]byte{4}, 32)
	w, after, got := colliding(t, s, form.Tree, [][]byte{a, b, d, c, a, c, a, b}, []byte{1, 2, 1, 3, 1, 3, 1, 2})
	if got.Firsts != 4 || got.FirstEntries != 1 || got.ShiftEntries != 3 || got.Recorded != 6 {
		t.Errorf("%d first occurrences, %d and %d entries, %d recorded", got.Firsts, got.FirstEntries, got.ShiftEntries, got.Recorded)
	}
	if entry := binary.LittleEndian.Uint64(after[w.p.FirstEntries-there:]); entry != 2 {
		t.Errorf("the entry of the first occurrences is %#x", entry)
	}
	w.wantShifts(t, after, [][3]uint64{{4 << 24, 4, 0}, {5 << 24, 4, 96}, {6<<24 | 1, 4, 0}})
}
