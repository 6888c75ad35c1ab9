package dedup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
)

// history is the model: it keeps every plain checkpoint beside the serialised differences, and removes what no reference list asks for.
type history struct {
	t       fataler
	lineage *Lineage
	plain   map[uint32][]Region
	objects map[uint32][]byte
	maps    map[uint32]*difference.Map
	last    uint32
	readAny int // bytes that read gave
	beside  Before
}

type fataler interface {
	Fatalf(string, ...any)
}

func newHistory(t fataler, o Options, exact bool) *history {
	h := &history{t: t, plain: map[uint32][]Region{}, objects: map[uint32][]byte{}, maps: map[uint32]*difference.Map{}}
	if exact {
		o.Read = h.read
	}
	if o.Seed%2 == 1 {
		o.Parallel = parallel
	}
	l, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h.lineage = l
	return h
}

// read reads from objects that still exist only.
func (h *history) read(checkpoint uint32, offset uint64, p []byte) error {
	object, ok := h.objects[checkpoint]
	if !ok {
		return errors.New("the object was removed")
	}
	begin := binary.LittleEndian.Uint64(object[56:])
	if begin+offset+uint64(len(p)) > uint64(len(object)) {
		return errors.New("behind the first occurrences")
	}
	h.readAny += copy(p, object[begin+offset:])
	return nil
}

func clone(regions []Region) []Region {
	list := make([]Region, len(regions))
	for i, r := range regions {
		list[i] = Region{r.Name, bytes.Clone(r.Bytes)}
	}
	return list
}

// parallel runs work in four goroutines, each from another end.
func parallel(n int, work func(int)) {
	var group sync.WaitGroup
	for first := range 4 {
		group.Go(func() {
			for i := n - 1 - first; i >= 0; i -= 4 {
				work(i)
			}
		})
	}
	group.Wait()
}

// add de-duplicates the next checkpoint, and verifies what holds for every difference.
func (h *history) add(number uint32, regions []Region) *difference.Difference {
	before := clone(regions)
	d, m, err := h.lineage.DedupAfter(h.beside, number, regions)
	if err != nil {
		h.t.Fatalf("checkpoint %d: %v", number, err)
	}
	if !reflect.DeepEqual(before, clone(regions)) {
		h.t.Fatalf("Dedup changed its input")
	}
	text, err := d.Append(nil)
	if err != nil {
		h.t.Fatalf("checkpoint %d: %v", number, err)
	}
	if uint64(len(text)) != d.MetadataBytes()+uint64(len(d.Data)) {
		h.t.Fatalf("checkpoint %d: length %d, metadata %d, data %d", number, len(text), d.MetadataBytes(), len(d.Data))
	}
	parsed, err := difference.Parse(text)
	if err != nil {
		h.t.Fatalf("checkpoint %d: %v", number, err)
	}
	again, err := parsed.Append(nil)
	if err != nil || !bytes.Equal(again, text) {
		h.t.Fatalf("checkpoint %d: parsed and serialised it differs: %v", number, err)
	}
	resolved, err := parsed.Resolve(h.base(parsed))
	if err != nil || !reflect.DeepEqual(resolved.Regions, m.Regions) {
		h.t.Fatalf("checkpoint %d: resolved to %v, not %v: %v", number, resolved, m, err)
	}
	if read, err := difference.ParseMap(m.Append(nil)); err != nil || !reflect.DeepEqual(read, m) {
		h.t.Fatalf("checkpoint %d: the serialised map %v, want %v: %v", number, read, m, err)
	}
	for _, c := range parsed.References {
		if h.objects[c] == nil {
			h.t.Fatalf("checkpoint %d refers to %d, which is removed", number, c)
		}
	}
	h.plain[number], h.objects[number], h.maps[number], h.last = before, text, resolved, number
	return parsed
}

// base returns the base's map with what Forget made void.
func (h *history) base(d *difference.Difference) *difference.Map {
	if !d.HasBase {
		return nil
	}
	m := h.maps[d.Base]
	for _, c := range m.References() {
		if h.objects[c] == nil {
			m = m.Without(c)
		}
	}
	if m != nil && h.objects[m.Checkpoint] == nil {
		m = m.Without(m.Checkpoint)
	}
	return m
}

// restore restores a checkpoint, and returns how many regions were wrong without an error.
func (h *history) restore(number uint32) (caught, silent int) {
	d, err := difference.Parse(h.objects[number])
	if err != nil {
		h.t.Fatalf("checkpoint %d: %v", number, err)
	}
	for i, r := range h.plain[number] {
		h.readAny = 0
		dst := make([]byte, len(r.Bytes))
		err := d.Restore(h.maps[number], i, dst, h.read)
		if h.readAny > len(dst) {
			h.t.Fatalf("restore of %d bytes read %d", len(dst), h.readAny)
		}
		switch equal := bytes.Equal(dst, r.Bytes); {
		case err != nil:
			caught++
		case !equal:
			silent++
		}
	}
	return caught, silent
}

func (h *history) mustRestore(number uint32) {
	if caught, silent := h.restore(number); caught+silent > 0 {
		h.t.Fatalf("checkpoint %d: %d regions fail, %d are silently wrong", number, caught, silent)
	}
}

// drop drops a checkpoint, and removes the objects that no other one needs.
func (h *history) drop(number uint32) {
	delete(h.plain, number)
	needed := map[uint32]bool{}
	for c := range h.plain {
		needed[c] = true
		for _, r := range h.maps[c].References() {
			needed[r] = true
		}
	}
	for c := range h.objects {
		if !needed[c] {
			h.lineage.Forget(c)
			delete(h.objects, c)
		}
	}
}

func pick[T any](t *rapid.T, list []T, name string) T { return rapid.SampledFrom(list).Draw(t, name) }

// edit makes the next version of the regions.
func edit(t *rapid.T, h *history, regions []Region, chunk int) []Region {
	regions = clone(regions)
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	at := -1
	if len(regions) > 0 {
		at = rapid.IntRange(0, len(regions)-1).Draw(t, "region")
	}
	kind := pick(t, []string{"none", "sparse", "shift", "permute", "repeat", "equal", "bit", "resize", "new", "vanish", "empty", "revert", "dense"}, "edit")
	if at < 0 {
		kind = "new"
	}
	switch kind {
	case "sparse":
		for range 1 + random.IntN(6) {
			if b := regions[at].Bytes; len(b) > 0 {
				b[random.IntN(len(b))] = byte(random.IntN(256))
			}
		}
	case "shift":
		from := regions[random.IntN(len(regions))].Bytes
		if len(from) > 0 {
			start := random.IntN(len(from)) / chunk * chunk
			copy(regions[at].Bytes[len(regions[at].Bytes)/2/chunk*chunk:], bytes.Clone(from[start:]))
		}
	case "permute":
		other := random.IntN(len(regions))
		regions[at].Bytes, regions[other].Bytes = regions[other].Bytes, regions[at].Bytes
		random.Shuffle(len(regions), func(i, j int) { regions[i], regions[j] = regions[j], regions[i] })
	case "repeat": // chunks of an alphabet of 3
		b := regions[at].Bytes
		for i := 0; i < len(b); i += chunk {
			letter := byte(random.IntN(3))
			for j := i; j < min(i+chunk, len(b)); j++ {
				b[j] = letter
			}
		}
	case "equal":
		for i := range regions[at].Bytes {
			regions[at].Bytes[i] = 7
		}
	case "bit":
		if b := regions[at].Bytes; len(b) > 0 {
			b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		}
	case "resize":
		size := random.IntN(40 * chunk)
		if random.IntN(2) == 0 {
			size = size / chunk * chunk
		}
		regions[at].Bytes = append(regions[at].Bytes, make([]byte, 40*chunk)...)[:size]
	case "new":
		b := make([]byte, random.IntN(30*chunk))
		for i := range b {
			b[i] = byte(random.IntN(256))
		}
		name := fmt.Sprint("r", random.IntN(1000))
		if !slices.ContainsFunc(regions, func(r Region) bool { return r.Name == name }) {
			regions = append(regions, Region{name, b})
		}
	case "vanish":
		regions = slices.Delete(regions, at, at+1)
	case "empty":
		regions[at].Bytes = nil
	case "revert":
		old := slices.Sorted(maps.Keys(h.plain))
		if len(old) > 0 {
			regions = clone(h.plain[old[random.IntN(len(old))]])
		}
	case "dense":
		for i := range regions[at].Bytes {
			regions[at].Bytes[i] = byte(random.IntN(256))
		}
	}
	return regions
}

var methods = []difference.Method{difference.Full, difference.Basic, difference.List, difference.Tree, difference.Runs}

func drawOptions(t *rapid.T) Options {
	return Options{
		Method: pick(t, methods, "method"), Chunk: pick(t, []int{32, 64, 128, 4096}, "chunk"), Kind: pick(t, []digest.Kind{0, digest.Murmur3}, "kind"),
		Seed: rapid.Uint64().Draw(t, "store"), Record: pick(t, []int64{0, record.Memory(10), record.Memory(200), record.Memory(100000)}, "record"),
		MaxAge: pick(t, []uint32{0, 0, 3}, "age"), MaxReferences: pick(t, []int{0, 0, 3, 1}, "references"), Blocks: rapid.Bool().Draw(t, "blocks"),
		maxRun: pick(t, []uint32{0, 0, 1, 3}, "run"),
	}
}

// Whatever the edits, the drops and the options: every checkpoint that is left restores from the differences that the reference lists keep.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		h := newHistory(t, o, rapid.Bool().Draw(t, "exact"))
		var regions []Region
		number := uint32(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			regions = edit(t, h, regions, o.Chunk)
			number += uint32(rapid.IntRange(1, 2).Draw(t, "ahead"))
			d := h.add(number, regions)
			if o.MaxReferences > 0 && len(d.References) > o.MaxReferences {
				t.Fatalf("%d references, at most %d", len(d.References), o.MaxReferences)
			}
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				h.drop(pick(t, slices.Sorted(maps.Keys(h.plain)), "dropped"))
			}
			if left := slices.Sorted(maps.Keys(h.plain)); len(left) > 0 {
				h.mustRestore(pick(t, left, "restored"))
			}
		}
		for c := range h.plain {
			h.mustRestore(c)
		}
	})
}

// Digests of 16 bits and fewer collide all the time. In exact mode every restore is right; without it the checksum finds each wrong one.
func TestCollisions(t *testing.T) {
	caughtAll := 0
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.Record = record.Memory(100000)
		o.cut = pick(t, []int{1, 4, 8, 16}, "bits")
		exact := rapid.Bool().Draw(t, "exact")
		h := newHistory(t, o, exact)
		var regions []Region
		for number := uint32(1); number < 10; number++ {
			regions = edit(t, h, regions, o.Chunk)
			h.add(number, regions)
		}
		for c := range h.plain {
			caught, silent := h.restore(c)
			if silent > 0 || exact && caught > 0 {
				t.Fatalf("exact %v: checkpoint %d: %d regions fail, %d are silently wrong", exact, c, caught, silent)
			}
			caughtAll += caught
		}
	})
	if caughtAll == 0 {
		t.Error("no restore was wrong: the digests did not collide, or the test does not see it")
	}
	t.Logf("%d wrong restores were caught", caughtAll)
}
