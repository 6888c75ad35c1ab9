package durable

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
)

// fixtureCompressed has two stores, which the tests of the second reader have too. "store" has the content of fixtureFirst, three of four checkpoints in containers with
// sections, and the history of counters three times: each is a lineage whose containers have sections. "killed" has modeSamples, and is left by a writer that was killed.
const fixtureCompressed = fixtures + "/store-compressed-1.tar.gz"

// ofSections are the compressors of checkpoints in fixtureCompressed, by turns, with their names.
var ofSections = []struct {
	name string
	c    codec.Compression
}{{"zstd", codec.Zstd}, {"s2", codec.S2}, {"huff0", codec.Huff0}}

// writeCompressed writes the stores of fixtureCompressed.
func writeCompressed(t *testing.T) {
	t.Helper()
	to := t.TempDir()
	all, keep := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	kinds := []codec.Kind{codec.Int8, codec.Float32, codec.Int64, codec.BFloat16, codec.Int16, codec.Float16, codec.Float64, codec.Int32}
	d := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.Join(to, "store"), Capacity: 16 << 20, SegmentBytes: 1 << 20})
	at, serial := int64(0), uint64(0)
	for n, x := range all {
		c := codec.NoCompression
		if n%4 != 3 {
			c = ofSections[n%3].c
		}
		at = putWhole(t, d, x, at, &kinds[n%8], c)
		serial = max(serial, x.row.Serial)
	}
	for i, s := range ofSections {
		lineage := newDrafts(mixed(uint64(i+1)), []difference.Method{difference.Tree, difference.Runs, difference.List}[i], 1<<20)
		lineage.compression = s.c
		for n, p := range counters() {
			serial++
			l := &catalog.Layout{Layout: description.Bytes(int64(len(p)))}
			row := catalog.Row{Key: model.NumberKey(int64(n)), Serial: serial, Layout: l, Align: 64, Sums: sums(l, p)}
			at = putDifference(t, d, whole{"counters, " + s.name, row, p}, at, lineage)
		}
	}
	for name, r := range keep {
		if r != nil {
			d.Commit(&Change{History: name, Retention: r})
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	writeKilled(t, to, func(n int) codec.Compression { return ofSections[n%3].c })
	pack(t, fixtureCompressed, to, "store", "killed")
}

// The first stores with compressed checkpoints open for ever, and a check reads all of them.
func TestTheFirstCompressedStores(t *testing.T) {
	if *rewrite {
		writeCompressed(t)
	}
	at := unpack(t, fixtureCompressed)
	first, rules := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	o := Options{FS: vfs.OS(), Dir: filepath.Join(at, "store"), Describes: description.Check, Annotates: description.CheckAnnotation}
	found, kept := wholes(t, o)
	contents := map[catalog.Content]int{}
	if len(found) != len(first)+len(ofSections)*counterSteps || len(first) < 20 {
		t.Fatalf("%d checkpoints, and %d in the first store", len(found), len(first))
	}
	for i, x := range found {
		contents[x.row.Content]++
		if i >= len(first) {
			n := i - len(first)
			name := "counters, " + ofSections[n/counterSteps].name
			if x.history != name || x.row.Key.Number != int64(n%counterSteps) || !bytes.Equal(x.slot, counters()[n%counterSteps]) {
				t.Errorf("%s %s is another one", x.history, x.row.Key)
			}
			continue
		}
		first[i].isThat(t, x)
	}
	if contents[catalog.Encoded] < 5 || contents[catalog.EncodedSections] < 15 || contents[catalog.DifferenceSections] != len(ofSections)*counterSteps ||
		fmt.Sprint(kept["ü"]) != fmt.Sprint(rules["ü"]) {
		t.Errorf("%v, %v", contents, kept["ü"])
	}
	checkAll(t, o)
	o.Dir = filepath.Join(at, "killed")
	readKilled(t, o, catalog.EncodedSections)
}
