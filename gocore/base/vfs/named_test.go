package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// file is the result of Create or Open; the test closes it.
func file(t *testing.T) func(File, error) File {
	return func(f File, err error) File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
				t.Error(err)
			}
		})
		return f
	}
}

func TestNamedFilesStay(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		dir := filepath.Join(p.dir, "named")
		if err := p.fs.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		name, want := filepath.Join(dir, "one"), random(blockAligned(3*DefaultAlign))
		f := file(t)(p.fs.Create(name, direct))
		if _, err := p.fs.Create(name, direct); !errors.Is(err, unix.EEXIST) {
			t.Errorf("created twice: %v", err)
		}
		if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{f.Sync(), f.Close(), p.fs.SyncDir(dir)} {
			if err != nil {
				t.Error(err)
			}
		}
		got := blockAligned(len(want))
		again := file(t)(p.fs.Open(name, false, direct))
		if n, err := again.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("read back %d, %v", n, err)
		}
		if _, err := again.WriteAt(want, 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("written into what was opened for reading: %v", err)
		}
		file(t)(p.fs.Create(filepath.Join(dir, "another"), false))
		if names, err := p.fs.List(dir); err != nil || !slices.Equal(names, []string{"another", "one"}) {
			t.Errorf("%v, %v", names, err)
		}
		if info, err := p.fs.Stat(name); err != nil || info.Dir || info.Size != int64(len(want)) {
			t.Errorf("%+v, %v", info, err)
		}
		if err := p.fs.Remove(name); err != nil {
			t.Error(err)
		}
		if n, err := again.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got, want) {
			t.Errorf("read back after its name has gone: %d, %v", n, err)
		}
		for _, err := range []error{p.fs.Remove(name), second(p.fs.Open(name, true, direct)), p.fs.SyncDir(name), second(p.fs.List(name))} {
			if !errors.Is(err, unix.ENOENT) {
				t.Errorf("of what is not there: %v", err)
			}
		}
		if err := p.fs.Remove(filepath.Join(dir, "another")); err != nil {
			t.Error(err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestTruncate(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			f := file(t)(p.fs.Create(filepath.Join(p.dir, "cut"), false))
			want := random(make([]byte, 200_000))
			if _, err := f.WriteAt(want, 0); err != nil {
				t.Fatal(err)
			}
			for _, size := range []int64{150_001, 150_001, 70_000, 190_000, 0, 10} {
				if err := f.Truncate(size); err != nil {
					t.Fatal(err)
				}
				if size < int64(len(want)) {
					want = want[:size]
				}
				want = append(want, make([]byte, size-int64(len(want)))...)
				got := make([]byte, size+1)
				if n, err := f.ReadAt(got, 0); int64(n) != size || err != io.EOF || !bytes.Equal(got[:n], want) {
					t.Errorf("cut to %d: read %d, %v", size, n, err)
				}
			}
		})
	}
}

// Anything but an ordinary file is refused, and no call blocks on it.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	ordinary := filepath.Join(dir, "ordinary")
	pipe, link, broken := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "broken")
	for _, err := range []error{
		os.WriteFile(ordinary, []byte("abc"), 0o600), unix.Mkfifo(pipe, 0o600), os.Symlink(ordinary, link), os.Symlink("nowhere", broken),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{dir, pipe, link, broken, "/dev/null"} {
		for _, write := range []bool{false, true} {
			if _, err := OS().Open(name, write, false); !errors.Is(err, ErrNotFile) {
				t.Errorf("%s, write %v: %v", name, write, err)
			}
		}
		if _, err := OS().Create(name, false); !errors.Is(err, unix.EEXIST) {
			t.Errorf("created in place of %s: %v", name, err)
		}
	}
	m := NewMem(1 << 20)
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open("/d", false, false); !errors.Is(err, ErrNotFile) {
		t.Errorf("a directory: %v", err)
	}
	for _, err := range []error{m.Remove("/d"), OS().Remove(dir)} {
		if !errors.Is(err, unix.EISDIR) {
			t.Errorf("a directory removed: %v", err)
		}
	}
	f := file(t)(OS().Create(filepath.Join(dir, "mine"), false))
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "mine")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestSpaceOfNamedFiles(t *testing.T) {
	m := NewMem(4 * memChunk)
	f := file(t)(m.Create("/f", false))
	if _, err := f.WriteAt(make([]byte, 4*memChunk), 0); err != nil {
		t.Fatal(err)
	}
	g := file(t)(m.Create("/g", false))
	if _, err := g.WriteAt([]byte{1}, 0); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if err := m.Remove("/f"); err != nil {
		t.Fatal(err)
	}
	if free, _ := m.Free("/"); free != 0 {
		t.Errorf("%d bytes are free while a file is open that has no name", free)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if free, _ := m.Free("/"); free != 4*memChunk {
		t.Errorf("%d bytes are free", free)
	}
}
