package durable

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// The fixtures, which the tests of the second reader have too. fixtureEncoded has two stores: "store" has the content of fixtureFirst, three of four
// checkpoints encoded; "killed" has the encoded checkpoints of modeSamples, and is left by a writer that was killed. fixtureDifference has a "store" with the
// content of fixtureFirst too, each history de-duplicated, and with the history "counters", whose first checkpoint was dropped while others need its object.
const (
	fixtures       = "../../../../python/tests/data"
	fixtureFirst   = fixtures + "/store-version-1.tar.gz"
	fixtureEncoded = fixtures + "/store-encoded-1.tar.gz"

	fixtureDifference = fixtures + "/store-difference-1.tar.gz"
)

var rewrite = flag.Bool("rewrite", false, "write the fixtures with encoded, compressed and de-duplicated checkpoints anew: only together with a new version of the format")

// unpack unpacks a fixture.
func unpack(t *testing.T, name string) (to string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	to = t.TempDir()
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		p, err := io.ReadAll(archive)
		err = errors.Join(err, os.MkdirAll(filepath.Join(to, path.Dir(h.Name)), 0o700), os.WriteFile(filepath.Join(to, h.Name), p, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// pack writes the files in folders of a folder as a fixture.
func pack(t *testing.T, name, from string, folders ...string) {
	t.Helper()
	var text bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&text, gzip.BestCompression)
	archive := tar.NewWriter(zipped)
	for _, folder := range folders {
		files, err := os.ReadDir(filepath.Join(from, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() == ballastName {
				continue
			}
			p, err := os.ReadFile(filepath.Join(from, folder, f.Name()))
			if err == nil {
				err = archive.WriteHeader(&tar.Header{Name: folder + "/" + f.Name(), Mode: 0o644, Size: int64(len(p)), Format: tar.FormatUSTAR})
			}
			if err == nil {
				_, err = archive.Write(p)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close(), os.WriteFile(name, text.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// whole is a checkpoint with its plain bytes.
type whole struct {
	history string
	row     catalog.Row
	slot    []byte
}

// wholes returns the checkpoints of a store, by serial, and its retentions.
func wholes(t *testing.T, o Options) (all []whole, keep map[string]*model.Retention) {
	t.Helper()
	v, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	keep = map[string]*model.Retention{}
	for _, h := range v.State().Histories() {
		keep[h.Name] = h.Retention
		v.State().Each(h.ID, func(row catalog.Row) bool {
			p, err := slotOf(v.contents, &row, v.Space().Read)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, whole{h.Name, row, p})
			return true
		})
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b whole) int { return cmp.Compare(a.row.Serial, b.row.Serial) })
	return all, keep
}

// modeSamples are regions that the codec encodes in all of its modes that need no reference. python/tests/test_encoded.py makes the same bytes.
var modeSamples = []struct {
	kind  codec.Kind
	bytes int
	word  func(i uint64) uint64
}{
	{codec.Int32, 5_001, func(uint64) uint64 { return 0x01020304 }},
	{codec.Int32, 20_001, func(i uint64) uint64 { return i * i }},
	{codec.Float32, 5_001, func(i uint64) uint64 { return 0x3f800000 + mixed(i)&0x81ffffff }},
	{codec.Float64, 5_001, func(i uint64) uint64 { return 0x3ff0<<48 + mixed(i)&(1<<63+1<<54-1) }},
	{codec.Float16, 5_001, func(i uint64) uint64 { return 0x3c00 + mixed(i)&0x8fff }},
	{codec.BFloat16, 5_001, func(i uint64) uint64 { return 0x3f80 + mixed(i)&0x81ff }},
	{codec.Int8, 5_001, func(i uint64) uint64 { return i * i >> 3 }},
	{codec.Int64, 5_001, func(i uint64) uint64 { return 3*i + i/100<<40 }},
	{codec.Int16, 5_001, func(i uint64) uint64 { return mixed(i) }},
	{codec.Float32, 600_001, func(uint64) uint64 { return 0 }},
}

// mixed is a number without order.
func mixed(i uint64) uint64 {
	i *= 0x9e3779b97f4a7c15
	i = (i ^ i>>32) * 0xd6e8feb86659fd93
	return i ^ i>>32
}

// modeSample is the region of a sample: words, and a few bytes more.
func modeSample(n int) []byte {
	s := modeSamples[n]
	var p []byte
	for i := uint64(0); len(p) < s.bytes; i++ {
		p = append(p, binary.LittleEndian.AppendUint64(nil, s.word(i))[:s.kind.Word]...)
	}
	return p[:s.bytes]
}

// writeFixture writes the stores of fixtureEncoded.
func writeFixture(t *testing.T) {
	t.Helper()
	to := t.TempDir()
	all, keep := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	kinds := []codec.Kind{codec.Int8, codec.Float32, codec.Int64, codec.BFloat16, codec.Int16, codec.Float16, codec.Float64, codec.Int32}
	d := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.Join(to, "store"), Capacity: 16 << 20, SegmentBytes: 1 << 20})
	at := int64(0)
	for n, x := range all {
		k := &kinds[n%8]
		if n%4 == 3 {
			k = nil
		}
		at = putWhole(t, d, x, at, k, codec.NoCompression)
	}
	for name, r := range keep {
		if r != nil {
			d.Commit(&Change{History: name, Retention: r})
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	writeKilled(t, to, func(int) codec.Compression { return codec.NoCompression })
	pack(t, fixtureEncoded, to, "store", "killed")
}

// writeKilled writes the store "killed" in a directory: modeSamples, which a writer has left that was killed. Checkpoint n has this compressor.
func writeKilled(t *testing.T, to string, compression func(n int) codec.Compression) {
	t.Helper()
	d := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.Join(to, "living"), Capacity: 16 << 20, SegmentBytes: 1 << 20, idle: time.Hour})
	at := int64(0)
	for n, s := range modeSamples {
		l := &catalog.Layout{Layout: description.Bytes(int64(s.bytes))}
		p := modeSample(n)
		row := catalog.Row{Key: model.NumberKey(int64(n)), Serial: uint64(n + 1), Layout: l, Align: 64, Sums: sums(l, p)}
		at = putWhole(t, d, whole{"modes", row, p}, at, &s.kind, compression(n))
	}
	if err := os.CopyFS(filepath.Join(to, "killed"), os.DirFS(filepath.Join(to, "living"))); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// putWhole writes a checkpoint, encoded unless k is nil, and returns the end of its range.
func putWhole(t *testing.T, d *Dir, x whole, at int64, k *codec.Kind, c codec.Compression) (end int64) {
	t.Helper()
	row, stored := x.row, x.slot
	row.Extents = nil
	if row.Encoding = nil; k != nil {
		row.Encoding, stored = encoded(row.Layout, x.slot, model.PartGrain, *k, c)
	}
	row.Content = catalog.ContentOf(row.Encoding, nil)
	if err := d.Space().Write(at, append(stored, make([]byte, -len(stored)&4095)...)); err != nil {
		t.Fatal(err)
	}
	if err := d.await(&Change{History: x.history, Put: &row, Off: at}); err != nil {
		t.Fatal(err)
	}
	return at + row.Bytes()
}

// The first stores with encoded checkpoints open for ever, and a check reads all of them.
func TestTheFirstEncodedStores(t *testing.T) {
	if *rewrite {
		writeFixture(t)
	}
	at := unpack(t, fixtureEncoded)
	first, rules := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	o := Options{FS: vfs.OS(), Dir: filepath.Join(at, "store"), Describes: description.Check, Annotates: description.CheckAnnotation}
	found, kept := wholes(t, o)
	contents := map[catalog.Content]int{}
	if len(found) != len(first) || len(first) < 20 {
		t.Fatalf("%d checkpoints, not %d", len(found), len(first))
	}
	for i, x := range found {
		contents[x.row.Content]++
		first[i].isThat(t, x)
	}
	if contents[catalog.Raw] < 5 || contents[catalog.Encoded] < 15 || fmt.Sprint(kept["ü"]) != fmt.Sprint(rules["ü"]) {
		t.Errorf("%v, %v", contents, kept["ü"])
	}
	checkAll(t, o)
	o.Dir = filepath.Join(at, "killed")
	killed := readKilled(t, o, catalog.Encoded)
	// The last commit counts with its bytes alone.
	last := killed[len(killed)-1].row.Extents[0]
	i := madeWhole.identity(1 << 20)
	if err := changed(o.path(segment.FileName(last.File)), i.front()+last.Offset+70, 0xff); err != nil {
		t.Fatal(err)
	}
	if left, _ := wholes(t, o); len(left) != len(killed)-1 {
		t.Errorf("%d checkpoints", len(left))
	}
}

// isThat compares a checkpoint with one of the first store, which it stands for in another form.
func (y *whole) isThat(t *testing.T, x whole) {
	t.Helper()
	if x.history != y.history || x.row.Key != y.row.Key || x.row.Meta != y.row.Meta || !slices.Equal(x.row.Sums, y.row.Sums) || !slices.Equal(x.row.Leaves, y.row.Leaves) ||
		!slices.Equal(sums(x.row.Layout, x.slot), y.row.Sums) {
		t.Errorf("%s %s is another one", x.history, x.row.Key)
	}
}

// checkAll verifies that a check reads every byte of a store, and finds no fault.
func checkAll(t *testing.T, o Options) {
	t.Helper()
	if sum := checkOf(t, o, Scope{Data: true}); sum.Read != sum.Bytes || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
}

// readKilled verifies that the store "killed" has modeSamples, all with this content, and returns them.
func readKilled(t *testing.T, o Options, c catalog.Content) []whole {
	t.Helper()
	killed, _ := wholes(t, o)
	if len(killed) != len(modeSamples) {
		t.Fatalf("%d checkpoints", len(killed))
	}
	for n, x := range killed {
		if x.row.Content != c || !bytes.Equal(x.slot, modeSample(n)) {
			t.Errorf("%s is another one", x.row.Key)
		}
	}
	checkAll(t, o)
	return killed
}

const (
	counterSteps = 9
	counterWords = 8_011
)

// counters returns the checkpoints of the history "counters": a hundred of many counters grow from one to the next. python/tests/test_differences.py makes
// the same bytes.
func counters() (all [][]byte) {
	words := make([]uint32, counterWords)
	for i := range words {
		words[i] = uint32(mixed(uint64(i))) & 63
	}
	for step := range uint64(counterSteps) {
		var p []byte
		for _, w := range words {
			p = binary.LittleEndian.AppendUint32(p, w)
		}
		all = append(all, p)
		for i := range uint64(100) {
			words[mixed(1<<20*(step+1)+i)%counterWords]++
		}
	}
	return all
}

// putDifference writes a checkpoint as a difference, and returns the end of its range.
func putDifference(t *testing.T, d *Dir, x whole, at int64, lineage *drafts) (end int64) {
	t.Helper()
	row := x.row
	row.Extents = nil
	var stored []byte
	row.Difference, stored = lineage.object(row.Layout, x.slot)
	row.Content = catalog.ContentOf(nil, row.Difference)
	lineage.lies(row.Difference, at)
	if err := d.Space().Write(at, stored); err != nil {
		t.Fatal(err)
	}
	if err := d.await(&Change{History: x.history, Put: &row, Off: at}); err != nil {
		t.Fatal(err)
	}
	return at + row.Bytes()
}

// writeDifferences writes the store of fixtureDifference.
func writeDifferences(t *testing.T) {
	t.Helper()
	to := t.TempDir()
	all, keep := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	serial := uint64(0)
	for _, x := range all {
		serial = max(serial, x.row.Serial)
	}
	for n, p := range counters() {
		serial++
		l := &catalog.Layout{Layout: description.Bytes(int64(len(p)))}
		row := catalog.Row{Key: model.NumberKey(int64(n)), Serial: serial, Layout: l, Align: 64, Sums: sums(l, p)}
		all = append(all, whole{"counters", row, p})
	}
	methods := []difference.Method{difference.Tree, difference.Runs, difference.List, difference.Basic}
	lineages := map[string]*drafts{}
	d := mustOpen(t, Options{FS: vfs.OS(), Dir: filepath.Join(to, "store"), Capacity: 16 << 20, SegmentBytes: 1 << 20})
	at := int64(0)
	for _, x := range all {
		if lineages[x.history] == nil {
			n := len(lineages)
			lineages[x.history] = newDrafts(mixed(uint64(n+1)), methods[n%len(methods)], 1<<20)
			lineages[x.history].compression = codec.NoCompression
		}
		at = putDifference(t, d, x, at, lineages[x.history])
	}
	for name, r := range keep {
		if r != nil {
			d.Commit(&Change{History: name, Retention: r})
		}
	}
	if err := d.await(&Change{History: "counters", Key: model.NumberKey(0), Serial: serial, Drop: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	pack(t, fixtureDifference, to, "store")
}

// The first store with differences opens for ever, and a check reads all of them.
func TestTheFirstDifferences(t *testing.T) {
	if *rewrite {
		writeDifferences(t)
	}
	first, rules := wholes(t, Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureFirst), "store")})
	o := Options{FS: vfs.OS(), Dir: filepath.Join(unpack(t, fixtureDifference), "store"), Describes: description.Check, Annotates: description.CheckAnnotation}
	found, kept := wholes(t, o)
	if len(found) != len(first)+counterSteps-1 || len(first) < 20 {
		t.Fatalf("%d checkpoints, and %d in the first store", len(found), len(first))
	}
	sources := 0
	for i, x := range found {
		if x.row.Content != catalog.Difference || !slices.Equal(sums(x.row.Layout, x.slot), x.row.Sums) {
			t.Errorf("%s %s is no difference, or another one", x.history, x.row.Key)
			continue
		}
		sources += len(x.row.Difference.Sources)
		if i >= len(first) {
			continue
		}
		if y := first[i]; x.history != y.history || x.row.Key != y.row.Key || x.row.Meta != y.row.Meta || !slices.Equal(x.row.Sums, y.row.Sums) {
			t.Errorf("%s %s is not %s %s", x.history, x.row.Key, y.history, y.row.Key)
		}
	}
	if sources < 10 || fmt.Sprint(kept["ü"]) != fmt.Sprint(rules["ü"]) {
		t.Errorf("%d sources, %v", sources, kept["ü"])
	}
	for i, p := range counters()[1:] {
		if x := found[len(first)+i]; x.history != "counters" || x.row.Key.Number != int64(i+1) || !bytes.Equal(x.slot, p) {
			t.Errorf("%s %s is not step %d", x.history, x.row.Key, i+1)
		}
	}
	checkAll(t, o)
}
