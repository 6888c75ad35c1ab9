package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// real is a store with two checkpoints in a directory of the operating system.
func real(t *testing.T) Options {
	t.Helper()
	o := small(vfs.OS())
	o.Dir = filepath.Join(t.TempDir(), "store")
	o.SegmentBytes = 16 << 10
	opened, landed, is := watched(o)
	d := mustOpen(t, opened)
	is(d)
	for i := range int64(2) {
		if err := put(d, landed, i, uint64(i+1), i*16384, pattern(5000, byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return o
}

func dataFile(o Options, n int) string { return filepath.Join(o.Dir, fmt.Sprintf("data-%016x", n)) }
func logFile(o Options) string         { return filepath.Join(o.Dir, fmt.Sprintf("catalog-%016x", 1)) }

// reads opens a store for reading and reads everything; it returns the first error.
func reads(o Options) error {
	view, err := Read(o)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	if err := view.Damage(); err != nil {
		return err
	}
	for _, info := range view.State().Histories() {
		view.State().Each(info.ID, func(row catalog.Row) bool {
			var off int64
			off, _, err = view.Place(&row)
			p := make([]byte, min(row.Layout.Slot, 1<<20))
			if err == nil {
				err = view.Space().Read(off, p)
			}
			if err == nil && int64(len(p)) == row.Layout.Slot && len(row.Sums) == 1 && sums(row.Layout, p)[0] != row.Sums[0] {
				err = ErrDamaged // as the store's own reader reports it
			}
			return err == nil
		})
	}
	return err
}

// bounded runs f, which must end within a second and take little memory.
func bounded(t *testing.T, f func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(10 * time.Second): // one second suffices on an idle machine
		t.Fatal("it hangs")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
	return err
}

// A name of a store's file that is not such a file is refused with an error that says so, soon and without much memory.
func TestHostileFiles(t *testing.T) {
	replace := func(name func(Options) string, put func(path string) error) func(Options) error {
		return func(o Options) error {
			if err := os.Remove(name(o)); err != nil {
				return err
			}
			return put(name(o))
		}
	}
	files := map[string]func(Options) string{
		"identity": func(o Options) string { return o.path(identityName) }, "copy": func(o Options) string { return o.path(copyName) }, "lock": func(o Options) string { return o.path(lockName) },
		"catalog": logFile, "data": func(o Options) string { return dataFile(o, 1) },
	}
	puts := map[string]func(path string) error{
		"link": func(path string) error {
			other := filepath.Join(filepath.Dir(filepath.Dir(path)), "other")
			return errors.Join(os.WriteFile(other, make([]byte, 9000), 0o600), os.Symlink(other, path))
		},
		"dangling link": func(path string) error { return os.Symlink("/nonexistent/file", path) },
		"pipe":          func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"device": func(path string) error {
			if err := unix.Mknod(path, unix.S_IFCHR|0o600, 1<<8|5); err != nil {
				return os.Symlink("/dev/zero", path) // not allowed here
			}
			return nil
		},
		"socket": func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
	}
	for file, name := range files {
		for what, put := range puts {
			t.Run(file+"/"+what, func(t *testing.T) {
				o := real(t)
				if err := replace(name, put)(o); err != nil {
					t.Fatal(err)
				}
				if err := bounded(t, func() error { return reads(o) }); file != "lock" && !errors.Is(err, vfs.ErrNotFile) {
					t.Errorf("for reading: %v", err)
				}
				err := bounded(t, func() error {
					d, err := Open(o)
					if err == nil {
						err = errors.Join(d.Space().Write(0, make([]byte, 4096)), d.Close())
					}
					return err
				})
				if !errors.Is(err, vfs.ErrNotFile) {
					t.Errorf("for writing: %v", err)
				}
			})
		}
	}
}

// changed overwrites bytes of a file.
func changed(path string, at int64, p ...byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(p, at)
	return errors.Join(err, f.Close())
}

// without removes a file before another change.
func without(name string, then func(o Options) error) func(o Options) error {
	return func(o Options) error { return errors.Join(os.Remove(o.path(name)), then(o)) }
}

// forged adds records with right checksums to the log of a store.
func forged(records ...[]byte) func(Options) error {
	return func(o Options) error {
		id, err := readIdentity(&o)
		if err != nil {
			return err
		}
		j := journal.Options{FS: o.FS, Dir: o.Dir, Store: id.store}
		state, err := journal.Read(j, func([]byte) error { return nil })
		if err != nil {
			return err
		}
		l := journal.Open(j, state)
		for _, r := range records {
			err = errors.Join(err, l.Append(r, nil))
		}
		return errors.Join(err, l.Close())
	}
}

// forgedRow is a checkpoint that was never written.
func forgedRow(key, slot int64, serial uint64, extents ...catalog.Extent) []byte {
	l := &catalog.Layout{ID: 77, Layout: model.Layout{Slot: slot, Text: "forged"}}
	return forgedOf(&catalog.Row{Key: model.NumberKey(key), Serial: serial, Layout: l, Align: 64, Extents: extents})
}

// forgedOf is a record with a row, its history and its layout.
func forgedOf(row *catalog.Row) []byte {
	w := catalog.NewWriter(catalog.New())
	r := w.Record()
	if err := r.Put("forged", row); err != nil {
		panic(err)
	}
	// The ids of another store would collide.
	id := 1000 + uint32(row.Key.Number)
	p := r.Bytes()
	binary.LittleEndian.PutUint32(p[8:], 1000)
	layout := 8 + int(binary.LittleEndian.Uint32(p[4:]))
	binary.LittleEndian.PutUint32(p[layout+8:], id)
	put := layout + 8 + int(binary.LittleEndian.Uint32(p[layout+4:]))
	binary.LittleEndian.PutUint32(p[put+8:], 1000)
	binary.LittleEndian.PutUint32(p[put+12:], id)
	return p
}

// A store that was tampered with, or assembled from several stores, reports that: no part of it is mistaken for another.
func TestHostileStores(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(o Options) error
		want   []error // one of these
		writes bool    // a writer reads no checkpoint, and accepts the store
	}{
		"a later version": {func(o Options) error {
			p := make([]byte, 8192)
			copy(p, identityMagic)
			binary.LittleEndian.PutUint32(p[8:], 2)
			binary.LittleEndian.PutUint64(p[48:], xxh3.Hash(p[:48]))
			copy(p[4096:], p[:4096])
			return changed(o.path(identityName), 0, p...)
		}, []error{ErrVersion}, false},
		"no identity":            {without(copyName, func(o Options) error { return os.Remove(o.path(identityName)) }), []error{ErrNoStore, ErrDamaged}, false},
		"an empty identity":      {without(copyName, func(o Options) error { return os.Truncate(o.path(identityName), 0) }), []error{ErrDamaged}, false},
		"no identity but a copy": {func(o Options) error { return os.Remove(o.path(identityName)) }, nil, true},
		"a copy of 8 EiB":        {func(o Options) error { return huge(o.path(copyName)) }, nil, true},
		"an identity of 8 EiB":   {func(o Options) error { return huge(o.path(identityName)) }, nil, true},
		"an empty data file":     {func(o Options) error { return os.Truncate(dataFile(o, 1), 0) }, []error{errEnd}, true},
		"a shorter data file": {func(o Options) error {
			return os.Truncate(dataFile(o, 1), front(madeWhole, o.SegmentBytes)+4096)
		}, []error{errEnd}, true},
		"a data file cut off":     {func(o Options) error { return os.Truncate(dataFile(o, 1), 100) }, []error{errEnd}, true},
		"a missing data file":     {func(o Options) error { return os.Remove(dataFile(o, 1)) }, []error{unix.ENOENT}, true},
		"a data file of 8 EiB":    {func(o Options) error { return huge(dataFile(o, 1)) }, nil, true},
		"a catalog of 8 EiB":      {func(o Options) error { return huge(logFile(o)) }, nil, true},
		"data files swapped":      {swap, []error{segment.ErrForeign}, false},
		"another store's catalog": {othersCatalog, []error{ErrDamaged}, false},
		"another store's data":    {func(o Options) error { return os.WriteFile(dataFile(o, 1), make([]byte, 1<<20), 0o600) }, []error{ErrDamaged}, true},
		"an older catalog replayed": {func(o Options) error {
			p, err := os.ReadFile(logFile(o))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(o.Dir, "catalog-00000000000000ff"), p, 0o600)
		}, nil, true},
		"garbage in the catalog":           {forged([]byte("this is no record at all")), []error{ErrDamaged}, false},
		"a kind that comes later":          {forged([]byte{9, 0, 0, 0, 0, 0, 0, 0}), []error{ErrVersion}, false},
		"a count of four thousand million": {forged([]byte{2, 0, 0, 0, 24, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}), []error{ErrDamaged}, false},
		"a checkpoint of 2^60 bytes":       {forged(forgedRow(1, 1<<60, 9, catalog.Extent{File: 9, Bytes: 1 << 60})), []error{ErrDamaged}, false},
		"a file number of 2^63":            {forged(forgedRow(1, 1, 9, catalog.Extent{File: 1 << 63, Bytes: 4096})), []error{ErrDamaged}, false},
		"a place beyond its file":          {forged(forgedRow(1, 1, 9, catalog.Extent{File: 3, Offset: 1 << 40, Bytes: 4096})), []error{ErrDamaged}, false},
		"two at one place":                 {forged(forgedRow(1, 1, 9, catalog.Extent{File: 1, Bytes: 4096})), []error{ErrDamaged}, false},
		"containers beyond their file":     {forged(forgedContainer(1, 1<<30, 1<<20, 9, catalog.Extent{File: 9, Bytes: 1 << 20})), []error{ErrDamaged}, false},
		"a container at another's place":   {forged(forgedContainer(1, 5000, 96, 9, catalog.Extent{File: 1, Bytes: 4096})), []error{ErrDamaged}, false},
		"a source where another lies":      {forged(forgedDifference(5, catalog.Extent{File: 1, Bytes: 4096})), []error{ErrDamaged}, false},
		"a source at no place":             {forged(forgedDifference(5, catalog.Extent{File: 1 << 63, Bytes: 4096})), []error{ErrDamaged}, false},
		"a source beyond its file":         {forged(forgedDifference(5, catalog.Extent{File: 3, Offset: 1 << 40, Bytes: 4096})), []error{ErrDamaged}, false},
		"a source in its own room":         {forged(forgedDifference(5, catalog.Extent{File: 9, Bytes: 4096})), []error{ErrDamaged}, false},
		"a source of 2^60 bytes":           {forged(forgedDifference(1<<60, catalog.Extent{File: 5, Bytes: 1<<60 + 4096})), []error{ErrDamaged}, false},
		"extents apart":                    {forged(forgedRow(1, 8192, 9, catalog.Extent{File: 5, Bytes: 4096}, catalog.Extent{File: 7, Bytes: 4096})), []error{ErrDamaged}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := real(t)
			if err := c.tamper(o); errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EINVAL) {
				t.Skip("this file system has no such files")
			} else if err != nil {
				t.Fatal(err)
			}
			is := func(err error) bool {
				for _, want := range c.want {
					if errors.Is(err, want) || want == errEnd && err != nil && strings.Contains(err.Error(), want.Error()) {
						return true
					}
				}
				return len(c.want) == 0 && err == nil
			}
			if err := bounded(t, func() error { return reads(o) }); !is(err) {
				t.Errorf("for reading: %v", err)
			}
			if view, err := Read(o); err == nil {
				if m := shown(view.State()); len(m.keep) > 0 {
					t.Errorf("it has what another store has: %v", m)
				}
				_ = view.Close()
			}
			err := bounded(t, func() error {
				d, err := Open(o)
				if err == nil {
					err = d.Close()
				}
				return err
			})
			if c.writes && err != nil || !c.writes && !is(err) {
				t.Errorf("for writing: %v", err)
			}
		})
	}
}

var errEnd = errors.New("unexpected EOF")

func huge(path string) error { return os.Truncate(path, 1<<63-1) }

func swap(o Options) error {
	other := o.path("aside")
	return errors.Join(os.Rename(dataFile(o, 1), other), os.Rename(dataFile(o, 2), dataFile(o, 1)), os.Rename(other, dataFile(o, 2)))
}

// othersCatalog replaces the catalog by that of another store, whose frames do not count here.
func othersCatalog(o Options) error {
	other := o
	other.Dir = o.Dir + " of others"
	d, err := Open(other)
	if err != nil {
		return err
	}
	d.Commit(&Change{History: "h", Retention: &model.Retention{Last: 1}})
	if err := d.Close(); err != nil {
		return err
	}
	p, err := os.ReadFile(logFile(other))
	if err != nil {
		return err
	}
	return os.WriteFile(logFile(o), p, 0o600)
}

// forgedDifference is a record with a difference that was never written, in file 9, whose source has so many bytes.
func forgedDifference(bytes int64, at catalog.Extent) []byte {
	l := &catalog.Layout{ID: 77, Layout: model.Layout{Slot: 1, Spans: []model.Span{{Bytes: 1}}, Text: "forged"}}
	of := model.Source{Number: 1, Data: bytes / 16 * 16, Meta: max(bytes%16, 1)}
	return forgedOf(&catalog.Row{
		Key: model.NumberKey(1), Serial: 9, Layout: l, Align: 64, Extents: []catalog.Extent{{File: 9, Bytes: 4096}}, Content: catalog.Difference,
		Difference: &model.Difference{Lineage: 7, Number: 2, Meta: 1, Sources: []model.Source{of}}, Sources: [][]catalog.Extent{{at}},
	})
}
