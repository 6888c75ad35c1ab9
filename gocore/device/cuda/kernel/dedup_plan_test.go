package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/devicetest"
	"velocpy/gocore/reduction/difference"

	"pgregory.net/rapid"
)

// emulatedMachine is a devicetest.Machine on which the launches of a Plan run by the kernels' own source.
type emulatedMachine struct {
	t      testing.TB
	s      *source
	memory []byte
	used   int // of it
}

// emulatedResults are in front of the memory of a history.
const emulatedResults = 4096

// emulatedLane queues nothing: all work has run when a call returns.
type emulatedLane struct {
	device.Lane // nil: a history calls no other method
	m           *emulatedMachine
}

// emulatedFound has the counts of a Dedup.
type emulatedFound struct{ n [DedupResults]uint64 }

func (f emulatedFound) Discard()                 {}
func (f emulatedFound) Take() device.DedupCounts { return DedupCounts(f.n[:]) }

func (m *emulatedMachine) Lane() device.Lane    { return emulatedLane{m: m} }
func (m *emulatedMachine) Wait()                {}
func (m *emulatedMachine) Base() device.Address { return there + emulatedResults }

func newEmulated(t *testing.T) *emulatedMachine {
	return &emulatedMachine{t: t, s: startSource(t), memory: make([]byte, emulatedResults+devicetest.HistoryBytes)}
}

func (m *emulatedMachine) at(a device.Address) []byte { return m.memory[a-there:] }

func (m *emulatedMachine) Read(at device.Address, n int64) []byte { return bytes.Clone(m.at(at)[:n]) }

func (m *emulatedMachine) Write(at device.Address, p []byte) {
	copy(m.at(at), p)
	m.used = int(at-there) + len(p)
}

// Gather copies digests to other memory.
func (l emulatedLane) Gather(pieces []device.Piece, _ bool) (device.Sums, error) {
	for _, p := range pieces {
		copy(l.m.at(p.Slot)[:p.Bytes], l.m.at(device.Address(uintptr(p.Mem.Base))))
	}
	return nil, nil
}

// Dedup runs the launches of a Plan.
func (l emulatedLane) Dedup(c *device.Deduplication) (device.Found, error) {
	if err := device.CheckDedup(c); err != nil {
		return nil, err
	}
	const results = there
	PutDedupUpload(c, l.m.at(c.Scratch)[:DedupUpload(c)])
	var plan Plan
	plan.Dedup(c, 1, results)
	l.run(c, &plan)
	var f emulatedFound
	_, err := binary.Decode(l.m.at(results), binary.LittleEndian, &f.n)
	return f, err
}

// GatherFirsts runs the launches that a Dedup has left out.
func (l emulatedLane) GatherFirsts(c *device.Deduplication) error {
	var plan Plan
	plan.GatherFirsts(c, 1)
	l.run(c, &plan)
	return nil
}

func (l emulatedLane) run(c *device.Deduplication, plan *Plan) {
	within(l.m.t, c, plan.Launches(), there)
	copy(l.m.memory, l.m.s.run(l.m.memory[:l.m.used], plan.Launches()))
}

// within tells whether all memory that launches are known to touch belongs to the work.
func within(t testing.TB, c *device.Deduplication, launches []Launch, results device.Address) {
	t.Helper()
	own := []Range{{c.Scratch, device.DedupScratch(c)}, {c.Result, device.DedupResult(c)}, {c.Record, device.RecordBytes(c.Entries)}, {results, 8 * DedupResults}}
	for _, r := range c.Regions {
		own = append(own, Range{r.At, r.Bytes}, Range{r.Leaves, device.LeafBytes(r.Bytes, c.Chunk)}, Range{r.Blocks, device.BlockBytes(r.Bytes)})
	}
	for _, l := range launches {
		reads, writes := Touches(l.Kernel, l.Parameter)
		if len(writes) == 0 {
			t.Fatalf("%s writes nothing", l.Kernel)
		}
		for _, r := range append(reads, writes...) {
			found := false
			for _, o := range own {
				found = found || o.At <= r.At && r.At+device.Address(r.Bytes) <= o.At+device.Address(o.Bytes)
			}
			if !found {
				t.Fatalf("%s touches %d B at %#x, which are not its own", l.Kernel, r.Bytes, r.At)
			}
		}
	}
}

// The launches of a Plan with the kernels' own source make the differences of package dedup.
func TestDedupPlanSource(t *testing.T) {
	m := newEmulated(t)
	r := rand.New(rand.NewPCG(6, 8))
	for i := range 3 {
		method := []difference.Method{difference.Basic, difference.List, difference.Tree}[i%3]
		devicetest.History(t, m, r.IntN, devicetest.Shape{Method: method, Checkpoints: 3})
	}
	devicetest.History(t, m, r.IntN, devicetest.Shape{Method: difference.Tree, Chunk: 32, Checkpoints: 2, Regions: 1, Large: true})
}

// Only numbers: the arrays of any checkpoint lie apart from each other in the scratch memory, and so do the states of its launches.
func TestDedupScratchHoldsAllLaunches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawDeduplication(t)
		if err := device.CheckDedup(c); err != nil {
			t.Fatal(err)
		}
		room := c.Room()
		var p Plan
		p.Dedup(c, rapid.IntRange(0, 200).Draw(t, "processors"), 1<<50)
		states := map[uint64]bool{}
		for _, l := range p.Launches() {
			for i := range stateWords(l) {
				at := stateOf(l) + 8*i
				if offset := int64(at - uint64(c.Scratch)); states[at] || offset < room.States || offset+8 > room.Swept {
					t.Fatalf("%s has a state at %d, in states from %d to %d", l.Kernel, offset, room.States, room.Swept)
				}
				states[at] = true
			}
			if l.Blocks < 1 || l.Blocks > 1<<31-1 {
				t.Fatalf("%s in %d blocks", l.Kernel, l.Blocks)
			}
		}
	})
}

// drawDeduplication draws sizes of a checkpoint, of which no memory is touched.
func drawDeduplication(t *rapid.T) *device.Deduplication {
	c := &device.Deduplication{
		Method: rapid.SampledFrom([]difference.Method{difference.Basic, difference.List, difference.Tree}).Draw(t, "method"),
		Chunk:  32 << rapid.IntRange(0, 7).Draw(t, "chunk"), Number: 9, Scratch: 1 << 20, Result: 1 << 44, Record: 1 << 45,
		Sweeps: rapid.Bool().Draw(t, "sweeps"), Fresh: rapid.Bool().Draw(t, "fresh"),
	}
	if c.Method != difference.Basic {
		c.Entries = rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "entries")
	}
	for range rapid.SampledFrom([]int{0, 1, 3, 64, 65, 200}).Draw(t, "regions") {
		n := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Range(0, 3<<20)).Draw(t, "bytes")
		c.Regions = append(c.Regions, device.DedupRegion{At: 1 << 46, Bytes: n, Leaves: 1 << 47})
	}
	return c
}

// stateOf is the address of the state of a launch, of stateWords words.
func stateOf(l Launch) uint64 {
	var labels dedupLabels
	if decoded(l.Parameter, &labels) {
		return labels.State
	}
	var regions dedupRegions
	decoded(l.Parameter, &regions)
	return regions.State
}

func stateWords(l Launch) uint64 {
	switch l.Kernel {
	case dedupPlace:
		return 2 * uint64(l.Blocks)
	case dedupList, dedupPositions, dedupListFirsts, dedupListShifts, dedupRaise + dedupFirsts, dedupRaise + dedupShifts:
		return uint64(l.Blocks)
	}
	return 0
}

// A launch that does not match its parameter is refused.
func TestDedupTwinsRefuse(t *testing.T) {
	c := &device.Deduplication{
		Method: difference.Tree, Chunk: 64, Number: 9, Scratch: 1 << 20, Result: 1 << 44, Record: 1 << 45, Entries: 5,
		Regions: []device.DedupRegion{{At: 1 << 46, Bytes: 1 << 20, Leaves: 1 << 47}},
	}
	var p Plan
	p.Dedup(c, 4, 1<<50)
	for _, l := range p.Launches() {
		run := Twin(l.Kernel)
		for what, err := range map[string]error{
			"threads":   run(l.Blocks, l.Threads-1, l.Parameter),
			"parameter": run(l.Blocks, l.Threads, l.Parameter[1:]),
			"no blocks": run(0, l.Threads, l.Parameter),
		} {
			if !errors.Is(err, ErrLaunch) {
				t.Errorf("%s: with wrong %s: %v", l.Kernel, what, err)
			}
		}
		if stateWords(l) == 0 && l.Kernel != dedupRaiseFew+dedupFirsts && l.Kernel != dedupRaiseFew+dedupShifts {
			if err := run(l.Blocks+1, l.Threads, l.Parameter); !errors.Is(err, ErrLaunch) {
				t.Errorf("%s: one block more: %v", l.Kernel, err)
			}
		}
	}
}

// The C++ headers assert the sizes of their structs at compile time.
func TestDedupConstantsAreTheHeaders(t *testing.T) {
	var text []byte
	for _, name := range []string{"dedup_parameters.h", "dedup_label_parameters.h", "dedup_room_parameters.h"} {
		part, err := os.ReadFile("../../../../cuda/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	for name, want := range map[string]int{
		"kBlockBytes": device.DedupBlockBytes, "kThreads": dedupThreads, "kMarkWords": device.DedupMarkWords, "kGatherBytes": dedupGatherBytes,
		"kRegions": device.DedupLaunchRegions, "kLevels": dedupLevels,
	} {
		m := regexp.MustCompile(`constexpr uint32_t ` + name + ` = (\d+)(?: << (\d+))?;`).FindSubmatch(text)
		if m == nil {
			t.Errorf("%s is not in the headers", name)
			continue
		}
		got, _ := strconv.Atoi(string(m[1]))
		shift, _ := strconv.Atoi(string(m[2]))
		if got<<shift != want {
			t.Errorf("%s: %d here, %d in the headers", name, want, got<<shift)
		}
	}
	for what, sizes := range map[string][2]int{
		"Regions": {binary.Size(dedupRegions{}), 16 + 3*8 + 8*8 + 16*8 + 64*(10*8+4)}, "Labels": {binary.Size(dedupLabels{}), 10*4 + 9*8 + 23*8},
		"Sweep": {binary.Size(dedupSweeping{}), 64}, "Filling": {binary.Size(dedupFilling{}), 32}, "Consolidated": {binary.Size(dedupConsolidated{}), 104},
		"Counts": {binary.Size(dedupCounted{}), device.DedupCountsBytes},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes here, %d in the headers", what, sizes[0], sizes[1])
		}
	}
}
