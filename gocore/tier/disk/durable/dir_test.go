package durable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
)

const dir = "/a/store"

func small(fs vfs.FS) Options {
	return Options{FS: fs, Dir: dir, Capacity: 1 << 20, SegmentBytes: 64 << 10, Direct: true}
}

func mustOpen(t *testing.T, o Options) *Dir {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pattern(n int64, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = seed + byte(i*7)
	}
	return p
}

// put writes a checkpoint of one region and waits until its outcome is known.
func put(d *Dir, landed chan *Change, key int64, serial uint64, off int64, p []byte) error {
	return putAs(d, landed, key, serial, off, p, false, codec.NoCompression)
}

// putAs is put for a raw or an encoded checkpoint.
func putAs(d *Dir, landed chan *Change, key int64, serial uint64, off int64, p []byte, encode bool, c codec.Compression) error {
	l := &catalog.Layout{Layout: model.Layout{Slot: int64(len(p)), Spans: []model.Span{{Bytes: int64(len(p))}}, Text: fmt.Sprint(len(p))}}
	row := &catalog.Row{Key: model.NumberKey(key), Serial: serial, Layout: l, Align: 64, Sums: []uint64{checksum.Sum(p)}}
	if encode {
		row.Encoding, p = encoded(l, p, model.PartGrain, codec.Int8, c)
		row.Content = catalog.ContentOf(row.Encoding, nil)
	}
	if err := d.Space().Write(off, p); err != nil {
		return err
	}
	d.Commit(&Change{History: "h", Put: row, Off: off})
	return (<-landed).Err
}

func watched(o Options) (Options, chan *Change, func(*Dir)) {
	landed := make(chan *Change, 100)
	var d *Dir
	o.Land = func(group []*Change, _ []int64) {
		for _, c := range group {
			d.Apply(c)
			landed <- c
		}
	}
	return o, landed, func(opened *Dir) { d = opened }
}

func TestWhatIsCommittedIsFound(t *testing.T) {
	fs := vfs.NewMem(8 << 20)
	o, landed, is := watched(small(fs))
	d := mustOpen(t, o)
	is(d)
	p, q := pattern(100_000, 1), pattern(5000, 2)
	if err := put(d, landed, 1, 1, 0, p); err != nil {
		t.Fatal(err)
	}
	if err := put(d, landed, 2, 2, 102_400, q); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrLocked) {
		t.Fatalf("opened twice: %v", err)
	}
	after := fs.Crash(rand.New(rand.NewPCG(1, 2)), 0)
	o2 := small(after)
	d2 := mustOpen(t, o2)
	id, _ := d2.State().History("h")
	for key, want := range map[int64][]byte{1: p, 2: q} {
		row, ok := d2.State().Find(id, model.NumberKey(key))
		if !ok {
			t.Fatalf("checkpoint %d is lost", key)
		}
		off, _, err := d2.Place(&row)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if err := d2.Space().Read(off, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("checkpoint %d: %v", key, err)
		}
	}
	for _, x := range []*Dir{d, d2} {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := fs.OpenFiles() + after.OpenFiles(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

// To a reader, a store that is still being made is neither a store nor a damaged one.
func TestAStoreThatIsBeingMadeIsNone(t *testing.T) {
	block := (&identity{segment: 64 << 10}).bytes()
	for _, written := range []int{0, 1, 100, identityBytes - 1} {
		fs := vfs.NewMem(8 << 20)
		if err := fs.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		file, err := fs.Create(dir+"/"+identityName, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(block[:min(written, identityBytes-1)], 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(small(fs)); !errors.Is(err, ErrNoStore) || errors.Is(err, ErrDamaged) {
			t.Errorf("with %d bytes of the identity: %v", written, err)
		}
		catalog, err := fs.Create(dir+"/catalog-0000000000000001", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(small(fs)); !errors.Is(err, ErrDamaged) {
			t.Errorf("with %d bytes of the identity, and a catalog: %v", written, err)
		}
		if err := errors.Join(file.Close(), catalog.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
