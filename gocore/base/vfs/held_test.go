package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// world is a file system whose directories a test can rename.
type world struct {
	fs     FS
	root   string
	rename func(from, to string) error
	remove func(dir string) error // with its content
}

func worlds(t *testing.T) map[string]world {
	mem := NewMem(8 << 20)
	faulty := NewMem(8 << 20)
	dir := t.TempDir()
	return map[string]world{
		"os":     {OS(), dir, os.Rename, os.RemoveAll},
		"mem":    {mem, "/", mem.Rename, nil},
		"faulty": {NewFaulty(faulty), "/", faulty.Rename, nil},
	}
}

func put(t *testing.T, fs FS, name, text string) {
	t.Helper()
	file, err := fs.Create(name, false)
	if err == nil {
		_, err = file.WriteAt([]byte(text), 0)
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, fs FS, name string) string {
	t.Helper()
	file, err := fs.Open(name, false, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	size, err := file.Size()
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, size)
	if _, err := file.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// Every call on a held directory applies to the directory that was opened, also after it was renamed and another one has its name.
func TestAHeldDirectoryIsFollowed(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			at := func(parts ...string) string { return filepath.Join(append([]string{w.root}, parts...)...) }
			dir := at("store")
			if err := errors.Join(w.fs.MkdirAll(dir), w.fs.MkdirAll(at("other"))); err != nil {
				t.Fatal(err)
			}
			held, err := w.fs.HoldDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			put(t, held, filepath.Join(dir, "a"), "first")
			put(t, w.fs, at("other", "a"), "another's")
			if held.Whereabouts() != InPlace {
				t.Error("a directory that nobody touched has moved")
			}
			lock, err := held.Lock(filepath.Join(dir, "lock"))
			if err != nil {
				t.Fatal(err)
			}

			if err := errors.Join(w.rename(dir, at("moved")), w.rename(at("other"), dir)); err != nil {
				t.Fatal(err)
			}
			if held.Whereabouts() != Moved {
				t.Errorf("renamed, it is %v", held.Whereabouts())
			}
			if err := lock.Held(); err != nil {
				t.Errorf("the lock went with the name: %v", err)
			}
			put(t, held, filepath.Join(dir, "b"), "second")
			if got := text(t, held, filepath.Join(dir, "a")); got != "first" {
				t.Errorf("a is %q", got)
			}
			if got := text(t, w.fs, at("moved", "b")); got != "second" {
				t.Errorf("b is %q", got)
			}
			if info, err := held.Stat(filepath.Join(dir, "b")); err != nil || info.Size != 6 {
				t.Errorf("%+v, %v", info, err)
			}
			if info, err := held.Stat(dir); err != nil || !info.Dir {
				t.Errorf("%+v, %v", info, err)
			}
			if _, err := held.Free(dir); err != nil {
				t.Error(err)
			}
			scratch, err := held.OpenScratch(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(scratch.Close(), held.SyncDir(dir), held.MkdirAll(dir), held.Remove(filepath.Join(dir, "a"))); err != nil {
				t.Error(err)
			}
			if names, err := held.List(dir); err != nil || len(names) != 2 || names[0] != "b" || names[1] != "lock" {
				t.Errorf("%v, %v", names, err)
			}
			if names, err := w.fs.List(dir); err != nil || len(names) != 1 {
				t.Errorf("the other directory has %v, %v", names, err)
			}
			if _, err := w.fs.Lock(at("moved", "lock")); !errors.Is(err, ErrTaken) {
				t.Errorf("the lock by the directory's new name: %v", err)
			}
			again, err := held.HoldDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, again, filepath.Join(dir, "b")); got != "second" {
				t.Errorf("held again, b is %q", got)
			}
			if err := errors.Join(lock.Close(), again.Close(), held.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAHeldDirectoryHasNamesOfItsOwnAlone(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(w.root, "store")
			if err := w.fs.MkdirAll(filepath.Join(dir, "below")); err != nil {
				t.Fatal(err)
			}
			held, err := w.fs.HoldDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range []string{dir + "/..", dir + "/below/x", dir + "x", "x", "", filepath.Dir(dir)} {
				if _, err := held.Stat(wrong); !errors.Is(err, unix.EXDEV) {
					t.Errorf("%q: %v", wrong, err)
				}
				if _, err := held.Create(wrong, false); !errors.Is(err, unix.EXDEV) {
					t.Errorf("create %q: %v", wrong, err)
				}
			}
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAClosedDirectoryRefusesCalls(t *testing.T) {
	dir := t.TempDir()
	held, err := OS().HoldDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := held.List(dir); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a list: %v", err)
	}
	if err := held.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a second close: %v", err)
	}
}

func TestARemovedDirectoryIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := OS().HoldDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got := held.Whereabouts(); got != Removed {
		t.Errorf("it is %v", got)
	}
	if _, err := held.Create(filepath.Join(dir, "a"), false); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a file in it: %v", err)
	}
}

// A relative name keeps its meaning from when the directory was opened.
func TestAHeldDirectoryOutlivesTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("store", 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := OS().HoldDir("store")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	there, err := filepath.Abs("store")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put(t, held, "store/a", "kept")
	if held.Whereabouts() != InPlace {
		t.Error("the directory has moved with the process")
	}
	if p, err := os.ReadFile(filepath.Join(there, "a")); err != nil || string(p) != "kept" {
		t.Errorf("%q, %v", p, err)
	}
}
