package object

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// smallHistory is seven checkpoints with all kinds of chunks: equal ones, shifted ones within a checkpoint and across, a region that shrinks to an odd size, one
// that appears and an empty one, one of copies in disorder.
func smallHistory() [][]dedup.Region {
	fill := func(n int, seed byte) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(i)*seed + byte(i/32)
		}
		return p
	}
	a, b := fill(32*20, 3), fill(32*4+5, 5)
	copy(b[32:64], a[96:128])
	second := slices.Clone(a)
	second[100]++
	copy(second[256:], a[:32])
	third := append(slices.Clone(a[:128]), make([]byte, 32*6)...)
	fourth := slices.Clone(second)
	fourth[300]++
	mixed := make([]byte, 32*96) // each other chunk changes
	for i := range mixed {
		mixed[i] = byte(i / 32)
	}
	remixed := slices.Clone(mixed)
	for i := range remixed {
		remixed[i] += byte(i/32%2) * 96
	}
	shuffled := make([]byte, 32*300) // its map is long, and its changes are few
	for i := range 300 {
		copy(shuffled[32*i:], mixed[(i*i*37+i/7*11)%96*32:][:32])
	}
	reshuffled := slices.Clone(shuffled)
	reshuffled[4000]++
	return [][]dedup.Region{
		{{Name: "a", Bytes: a}, {Name: "mixed", Bytes: mixed}, {Name: "b", Bytes: b}},
		{{Name: "a", Bytes: second}, {Name: "empty"}, {Name: "mixed", Bytes: remixed}, {Name: "b", Bytes: b[:70]}},
		{{Name: "a", Bytes: second}, {Name: "mixed", Bytes: remixed}, {Name: "b", Bytes: b[:71]}},
		{{Name: "mixed", Bytes: remixed[:3000]}, {Name: "a", Bytes: second}},
		{{Name: "b", Bytes: append(slices.Clone(b), 1, 2, 3)}, {Name: "new", Bytes: third}, {Name: "a", Bytes: second}},
		{{Name: "b", Bytes: append(slices.Clone(b), 1, 2, 3)}, {Name: "new", Bytes: third}, {Name: "a", Bytes: fourth}, {Name: "shuffled", Bytes: shuffled}},
		{{Name: "b", Bytes: b}, {Name: "new", Bytes: third}, {Name: "a", Bytes: fourth}, {Name: "shuffled", Bytes: reshuffled}},
	}
}

// smallTier has the small history.
func smallTier(t fataler, method difference.Method) *tier {
	if method == referring {
		return driftingTier(t)
	}
	s := newTier(t, Options{Method: method, Chunk: 32, Lineage: 0x0123456789abcdef, Record: 100_000})
	s.compression = codec.NoCompression
	for _, regions := range smallHistory() {
		s.add(regions)
	}
	return s
}

// longWholes has a checkpoint of parts of 4 MiB, one whose containers are encoded with those of the first, and one of short parts that has the first as a source.
func longWholes(t fataler) *tier {
	const part = 16 * model.PartGrain
	s := newTier(t, Options{Method: difference.Runs, Chunk: 256, Lineage: 0x0123456789abcdef, Record: 100_000, First: 3})
	s.compression = codec.NoCompression
	random := rand.New(rand.NewPCG(5, 6))
	now := []dedup.Region{
		{Name: "long", Bytes: bytes.Repeat([]byte{5}, part+100)}, {Name: "empty"}, {Name: "w", Bytes: weights(1001, random)}, {Name: "byte", Bytes: []byte{9}},
	}
	s.addWhole(1, now, part, 0)
	next := clone(now)
	next[0].Bytes[part-1], next[0].Bytes[part] = 6, 7
	next[2].Bytes = drift(now[2].Bytes, 1e-6, random)
	s.addWhole(2, next, part, 1)
	s.resume(1)
	now[0].Bytes[300_000]++
	s.add(now)
	return s
}

// The bytes are the format. Plain ones must never change, and a GPU must write the same; compressed bodies may change with the compressor's version, and then
// the files are written anew once the reader has read the old ones.
func TestGoldenBytes(t *testing.T) {
	forms := map[form]int{}
	for _, method := range methods {
		s := smallTier(t, method)
		defer s.close()
		s.golden(method.String(), forms)
	}
	if forms[formDifference] == 0 || forms[formMap] == 0 {
		t.Errorf("not each form occurs: %v", forms)
	}
	s := driftingTier(t)
	defer s.close()
	s.golden("references", forms)
	w := longWholes(t)
	defer w.close()
	w.golden("wholes", forms)
	for _, method := range methods[1:] {
		s := newTier(t, Options{Method: method, Chunk: 32, Lineage: 0x0123456789abcdef, Record: 100_000, handicap: 1 << 30})
		s.compression = codec.NoCompression
		defer s.close()
		for _, regions := range smallHistory() {
			s.add(regions)
		}
		forms := map[form]int{}
		s.golden(method.String()+"-differences", forms)
		if forms[formMap] > 0 {
			t.Errorf("%v: maps, although differences are preferred: %v", method, forms)
		}
	}
}

// golden compares the objects with a golden file, and counts their forms.
func (s *tier) golden(what string, forms map[form]int) {
	var text []byte
	for _, n := range slices.Sorted(maps.Keys(s.objects)) {
		d := s.differences[n]
		text = fmt.Appendf(text, "checkpoint %d: %d bytes of containers, %d of metadata, sources", n, d.Data, d.Meta)
		for _, source := range d.Sources {
			text = fmt.Appendf(text, " %d", source.Number)
		}
		text = append(text, '\n')
		for _, r := range s.plain[n] { // for readers in other languages
			text = fmt.Appendf(text, "region %s: %d bytes, XXH3-64 %016x\n", r.Name, len(r.Bytes), xxh3.Hash(r.Bytes))
		}
		text = append(text, hex.Dump(s.objects[n])...)
		s.whole(n)
		forms[form(s.objects[n][d.Data+atForm])]++
	}
	name := filepath.Join("testdata", what+".txt")
	if *rewrite {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			s.t.Fatalf("%v", err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	if string(text) != string(want) {
		s.t.Fatalf("the objects are not those of %s", name)
	}
}
