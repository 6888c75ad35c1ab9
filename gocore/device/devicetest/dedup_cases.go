package devicetest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/reduction/difference"

	"pgregory.net/rapid"
)

// benchMachine is a bench as a Machine.
type benchMachine struct{ *bench }

func (b benchMachine) Lane() device.Lane    { return b.lane }
func (b benchMachine) Wait()                { b.Helper(); b.finish(b.lane) }
func (b benchMachine) Base() device.Address { return b.base }

func (b benchMachine) Write(at device.Address, p []byte) { b.Helper(); b.write(at, p) }
func (b benchMachine) Read(at device.Address, n int64) []byte {
	b.Helper()
	return b.read(at, n)
}

var dedupMethods = []difference.Method{difference.Basic, difference.List, difference.Tree}

// histories of small regions with all methods.
func histories(b *bench) {
	r := rand.New(rand.NewPCG(3, 8))
	for i := range 9 {
		History(b.T, benchMachine{b}, r.IntN, Shape{Method: dedupMethods[i%3], Checkpoints: 5})
	}
}

// largeHistories have many blocks of threads, and levels of trees with launches of their own.
func largeHistories(b *bench) {
	r := rand.New(rand.NewPCG(4, 8))
	for _, method := range dedupMethods {
		History(b.T, benchMachine{b}, r.IntN, Shape{Method: method, Chunk: 32, Checkpoints: 2, Regions: 2, Large: true})
	}
}

// dedupMistakes are refused, and the lineage and the device stay usable.
func dedupMistakes(b *bench) {
	o := lineage.Options{Method: difference.Tree, Chunk: 64, Seed: 3, Entries: 10}
	l, err := lineage.New(o, b.at(0))
	b.must(err)
	regions := []lineage.Region{{Name: "a", At: b.at(1 << 20), Bytes: 1000}}
	m := lineage.Memory{Digests: b.at(2 << 20), Scratch: b.at(3 << 20), Result: b.at(4 << 20)}
	for what, change := range map[string]func(*lineage.Memory, *lineage.Region){
		"no digests":          func(m *lineage.Memory, _ *lineage.Region) { m.Digests = 0 },
		"skewed digests":      func(m *lineage.Memory, _ *lineage.Region) { m.Digests += 16 },
		"no scratch memory":   func(m *lineage.Memory, _ *lineage.Region) { m.Scratch = 0 },
		"skewed result":       func(m *lineage.Memory, _ *lineage.Region) { m.Result += 8 },
		"skewed region":       func(_ *lineage.Memory, r *lineage.Region) { r.At++ },
		"region of -1 B":      func(_ *lineage.Memory, r *lineage.Region) { r.Bytes = -1 },
		"region of too much":  func(_ *lineage.Memory, r *lineage.Region) { r.Bytes = device.MostDedupBytes + 1 },
		"region without name": func(_ *lineage.Memory, r *lineage.Region) { r.Name = string(make([]byte, difference.MaxName+1)) },
	} {
		memory, region := m, regions[0]
		change(&memory, &region)
		if _, err := l.Dedup(b.lane, 1, []lineage.Region{region}, memory); !errors.Is(err, lineage.ErrRegion) || l.Changed() {
			b.Errorf("%s: %v", what, err)
		}
	}
	if _, err := l.Dedup(b.lane, 1, append(regions, regions...), m); !errors.Is(err, lineage.ErrRegion) {
		b.Errorf("two regions of one name: %v", err)
	}
	if _, err := b.lane.Dedup(&device.Deduplication{Method: difference.Full, Chunk: 64}); !errors.Is(err, device.ErrDeduplication) {
		b.Errorf("an unknown method: %v", err)
	}
	b.finishAndOrder(l, regions, m)
	History(b.T, benchMachine{b}, b.rand.IntN, Shape{Method: difference.Tree, Checkpoints: 2})
}

// finishAndOrder: a checkpoint is finished once, with its own metadata, and the next one has a higher number.
func (b *bench) finishAndOrder(l *lineage.Lineage, regions []lineage.Region, m lineage.Memory) {
	b.Helper()
	k, err := l.Dedup(b.lane, 1, regions, m)
	b.must(err)
	if err := errors.Join(l.Rebase(), l.Forget(1)); !errors.Is(err, lineage.ErrBusy) {
		b.Errorf("beside a checkpoint: %v", err)
	}
	b.finish(b.lane)
	at, n := k.Metadata()
	result := b.read(m.Result, at+n)
	if _, _, err := k.Finish(result[at:at+n-1], nil); !errors.Is(err, lineage.ErrMetadata) {
		b.Errorf("other metadata: %v", err)
	}
	d, located, err := k.Finish(result[at:], nil)
	b.must(err)
	if d.Stored() != uint64(k.Counts().Bytes) || d.Data != nil || located != l.Last() {
		b.Errorf("%d B of first occurrences of %d", d.Stored(), k.Counts().Bytes)
	}
	if _, _, err := k.Finish(result[at:], nil); !errors.Is(err, lineage.ErrMetadata) {
		b.Errorf("finished twice: %v", err)
	}
	k.Drop()
	if _, err := l.Dedup(b.lane, 2, regions, m); !errors.Is(err, lineage.ErrRegion) || l.Changed() {
		b.Errorf("digests in the memory of those before: %v", err)
	}
	if _, err := l.Need(1, regions); !errors.Is(err, lineage.ErrOrder) || l.Changed() {
		b.Errorf("the same number again: %v", err)
	}
}

// AnyHistory tests the property that the differences of any checkpoints are those of package dedup, byte for byte. It closes the device.
func AnyHistory(t *testing.T, dev device.Device) {
	t.Helper()
	m := benchMachine{newBench(t, dev)}
	if underRace {
		t.Skip("the run without the race detector does it")
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		History(t, m, draw, Shape{Method: rapid.SampledFrom(dedupMethods).Draw(t, "method"), Checkpoints: rapid.IntRange(1, 6).Draw(t, "checkpoints")})
	})
}
