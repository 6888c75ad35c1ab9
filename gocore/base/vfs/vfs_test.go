package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// blockAligned returns n bytes at an address that suits every kind of direct I/O.
func blockAligned(n int) []byte {
	size := DefaultAlign
	for size < n {
		size *= 2
	}
	return alignedBlock(size)[:n]
}

func random(p []byte) []byte {
	for i := range p {
		p[i] = byte(rand.Uint32())
	}
	return p
}

type place struct {
	fs  FS
	dir string
}

// places lists every implementation: all of them run the same tests.
func places(t *testing.T) map[string]place {
	mem, wrapped := NewMem(64<<20), NewMem(64<<20)
	for _, m := range []*Mem{mem, wrapped} {
		if err := m.MkdirAll("/a"); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]place{
		"os":     {OS(), t.TempDir()},
		"mem":    {mem, "/a"},
		"faulty": {NewFaulty(wrapped), "/a"},
	}
	if shm, err := os.MkdirTemp("/dev/shm", "vfs"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(shm) })
		all["tmpfs"] = place{OS(), shm}
	}
	return all
}

func everywhere(t *testing.T, test func(t *testing.T, p place, direct bool)) {
	for name, p := range places(t) {
		for _, direct := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: "-direct"}[direct], func(t *testing.T) { test(t, p, direct) })
		}
	}
}

func scratch(t *testing.T, p place, direct bool) File {
	t.Helper()
	return file(t)(p.fs.OpenScratch(p.dir, direct))
}

func TestWriteThenReadBack(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		f := scratch(t, p, direct)
		const n = 1 << 20
		if err := f.Allocate(0, n); err != nil {
			t.Fatal(err)
		}
		if size, err := f.Size(); size != n || err != nil {
			t.Fatalf("size %d, %v", size, err)
		}
		model := make([]byte, n)
		rapid.Check(t, func(t *rapid.T) {
			unit := 1
			if f.Direct() {
				unit = DefaultAlign
			}
			off := rapid.IntRange(0, n/unit-1).Draw(t, "off") * unit
			length := rapid.IntRange(0, min(n-off, 200<<10)/unit).Draw(t, "length") * unit
			buf := blockAligned(length)
			if rapid.Bool().Draw(t, "write") {
				copy(model[off:], random(buf))
				if got, err := f.WriteAt(buf, int64(off)); got != length || err != nil {
					t.Fatalf("write: %d, %v", got, err)
				}
				return
			}
			if got, err := f.ReadAt(buf, int64(off)); got != length || err != nil {
				t.Fatalf("read: %d, %v", got, err)
			}
			if !bytes.Equal(buf, model[off:off+length]) {
				t.Fatal("other bytes than written")
			}
		})
		if err := f.Sync(); err != nil {
			t.Error(err)
		}
	})
}

func TestReadPastTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		f := scratch(t, p, direct)
		want := random(blockAligned(DefaultAlign))
		if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		buf := blockAligned(4 * DefaultAlign)
		n, err := f.ReadAt(buf, 0)
		if n != DefaultAlign || err != io.EOF || !bytes.Equal(buf[:n], want) {
			t.Errorf("across the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(buf, 8*DefaultAlign); n != 0 || err != io.EOF {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(buf[:0], 0); n != 0 || err != nil {
			t.Errorf("nothing: %d, %v", n, err)
		}
		if _, err := f.ReadAt(buf, -DefaultAlign); !errors.Is(err, unix.EINVAL) {
			t.Errorf("before the beginning: %v", err)
		}
		if _, err := f.WriteAt(buf, -DefaultAlign); !errors.Is(err, unix.EINVAL) {
			t.Errorf("before the beginning: %v", err)
		}
	})
}

func TestHolesReadAsZeroes(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		f := scratch(t, p, direct)
		const n = 512 << 10
		want := random(blockAligned(n))
		if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.PunchHole(100<<10, 300<<10); err != nil {
			t.Fatal(err)
		}
		clear(want[100<<10 : 400<<10])
		got := blockAligned(n)
		if m, err := f.ReadAt(got, 0); m != n || err != nil {
			t.Fatalf("%d, %v", m, err)
		}
		if !bytes.Equal(got, want) {
			t.Error("wrong bytes around the hole")
		}
		if size, err := f.Size(); size != n || err != nil {
			t.Errorf("size %d, %v", size, err)
		}
	})
}

func TestClosedFile(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		f := scratch(t, p, direct)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		buf := blockAligned(DefaultAlign)
		_, readErr := f.ReadAt(buf, 0)
		_, writeErr := f.WriteAt(buf, 0)
		_, sizeErr := f.Size()
		for what, err := range map[string]error{
			"read": readErr, "write": writeErr, "size": sizeErr, "close": f.Close(), "sync": f.Sync(),
			"allocate": f.Allocate(0, 1), "hole": f.PunchHole(0, 1),
		} {
			if !errors.Is(err, fs.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestCloseWaitsForCallsInFlight(t *testing.T) {
	everywhere(t, func(t *testing.T, p place, direct bool) {
		f := scratch(t, p, direct)
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				buf := random(blockAligned(64 << 10))
				for {
					if _, err := f.WriteAt(buf, 0); err != nil {
						if !errors.Is(err, fs.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			}()
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

func TestDirectories(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			deep := filepath.Join(p.dir, "x", "y")
			if _, err := p.fs.Stat(deep); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			if _, err := p.fs.OpenScratch(deep, false); !errors.Is(err, unix.ENOENT) {
				t.Errorf("a file in a directory that is not there: %v", err)
			}
			for range 2 {
				if err := p.fs.MkdirAll(deep); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{deep, filepath.Dir(deep)} {
				if info, err := p.fs.Stat(dir); err != nil || !info.Dir {
					t.Errorf("%s: %+v, %v", dir, info, err)
				}
			}
			if free, err := p.fs.Free(deep); err != nil || free <= 0 {
				t.Errorf("free: %d, %v", free, err)
			}
			if _, err := p.fs.Free(deep + "z"); !errors.Is(err, unix.ENOENT) {
				t.Errorf("free of nothing: %v", err)
			}
		})
	}
}

func TestFileInPlaceOfDirectory(t *testing.T) {
	real := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(real, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	mem := NewMem(1 << 20)
	mem.PutFile("/f")
	for name, p := range map[string]place{"os": {OS(), real}, "mem": {mem, "/f"}} {
		if info, err := p.fs.Stat(p.dir); err != nil || info.Dir {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		for _, dir := range []string{p.dir, p.dir + "/sub"} {
			if err := p.fs.MkdirAll(dir); !errors.Is(err, unix.ENOTDIR) {
				t.Errorf("%s: mkdir %s: %v", name, dir, err)
			}
		}
		if _, err := p.fs.OpenScratch(p.dir, false); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
