package dedup

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldenHistory is three checkpoints with all kinds of chunks: equal ones, shifted ones within a checkpoint and across, a region that shrinks to an odd
// size, one that appears and an empty one.
func goldenHistory() [][]Region {
	fill := func(n int, seed byte) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(i)*seed + byte(i/32)
		}
		return p
	}
	a, b := fill(32*9, 3), fill(32*4+5, 5)
	copy(b[32:64], a[96:128])
	second := append([]byte(nil), a...)
	second[100]++
	copy(second[256:], a[:32])
	third := append(append([]byte(nil), a[:128]...), make([]byte, 32*6)...)
	return [][]Region{
		{{"a", a}, {"b", b}},
		{{"a", second}, {"empty", nil}, {"b", b[:70]}},
		{{"b", append(append([]byte(nil), b...), 1, 2, 3)}, {"new", third}, {"a", second}},
	}
}

// The bytes are the format: they must never change, and a GPU must write the same ones.
func TestGoldenBytes(t *testing.T) {
	for _, method := range methods {
		h := newHistory(t, Options{Method: method, Chunk: 32, Seed: 0x0123456789abcdef, Record: record.Memory(1000)}, false)
		var text []byte
		for i, regions := range goldenHistory() {
			h.add(uint32(i+1), regions)
			text = append(text, hex.Dump(h.objects[uint32(i+1)])...)
			text = append(text, hex.Dump(h.maps[uint32(i+1)].Append(nil))...)
			h.mustRestore(uint32(i + 1))
		}
		name := filepath.Join("testdata", method.String()+".txt")
		if *rewrite {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(want) {
			t.Errorf("%s: the bytes differ from %s:\n%s", method, name, text)
		}
	}
}

// Metadata of the methods on a sparse history: Tree has no more entries than List, and Runs no more than Tree.
func TestMetadata(t *testing.T) {
	count := func(method difference.Method, all [][]Region) (entries int, metadata uint64) {
		h := newHistory(t, Options{Method: method, Chunk: 64, Record: 1 << 22}, false)
		for i, regions := range all {
			d := h.add(uint32(i+1), regions)
			entries += len(d.First) + len(d.Shifted)
			metadata += d.MetadataBytes()
		}
		return entries, metadata
	}
	for name, all := range histories() {
		list, listBytes := count(difference.List, all)
		tree, treeBytes := count(difference.Tree, all)
		runs, runsBytes := count(difference.Runs, all)
		t.Logf("%-10s entries: list %6d tree %6d runs %6d; metadata: list %8d tree %8d runs %8d", name, list, tree, runs, listBytes, treeBytes, runsBytes)
		if runs > tree || tree > list {
			t.Errorf("%s: %d runs, %d subtrees, %d chunks", name, runs, tree, list)
		}
	}
}

// histories are ones as the paper's applications make them: sparse counters, blocks that move, a field that is mostly zero, and dense noise.
func histories() map[string][][]Region {
	const size = 1 << 20
	all := map[string][][]Region{}
	sparse := noise(size)
	zero := make([]byte, size)
	moving := noise(size)
	repeat := make([]byte, size)
	for i := range repeat {
		repeat[i] = byte(i / 256 % 4)
	}
	for step := range 6 {
		for i := range 400 {
			sparse[(i*2654435761+step*97)%size]++
		}
		for i := range 3000 {
			zero[size/2-step*2000+i] = byte(i*7 + step)
		}
		moving = append(moving[64*100:len(moving):len(moving)], moving[:64*100]...)
		for i := range 256 * 40 {
			repeat[(step*12345/64*64+i)%size] = byte(step + i/64%3)
		}
		for name, b := range map[string][]byte{"sparse": sparse, "zero": zero, "moving": moving, "repeat": repeat} {
			all[name] = append(all[name], clone([]Region{{"a", b}}))
		}
		dense := make([]byte, size)
		for i := range dense {
			dense[i] = byte((i*i>>3)*(step+3) + i>>7)
		}
		all["dense"] = append(all["dense"], []Region{{"a", dense}})
	}
	return all
}
