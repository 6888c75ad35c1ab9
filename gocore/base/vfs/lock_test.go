package vfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// A lock is taken once, by any of its names, until it is released; a crash ends it.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fs          FS
		file, other string
	}{
		"os":    {OS(), filepath.Join(dir, "lock"), filepath.Join(dir, "again", "lock")},
		"mem":   {NewMem(1 << 20), "/lock", "/lock"},
		"fault": {NewFaulty(NewMem(1 << 20)), "/lock", "/lock"},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := c.fs.Lock(c.file)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a failed attempt does not release it either
				if _, err := c.fs.Lock(c.other); !errors.Is(err, ErrTaken) {
					t.Fatalf("a second lock: %v", err)
				}
			}
			if m, ok := c.fs.(*Mem); ok {
				if err := m.SyncDir("/"); err != nil {
					t.Fatal(err)
				}
				after := m.Crash(rand.New(rand.NewPCG(1, 1)), 0)
				l, err := after.Lock(c.file)
				if err != nil {
					t.Fatalf("a lock outlived its process: %v", err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second, err := c.fs.Lock(c.other)
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A process that reads its own lock file, as in a copy of the directory, keeps the lock.
func TestALockOutlivesReadersOfItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	for range 3 {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if out := lockElsewhere(t, name); out != "taken" {
			t.Fatalf("another process: %s", out)
		}
		if _, err := OS().Lock(name); !errors.Is(err, ErrTaken) {
			t.Fatalf("another caller: %v", err)
		}
		if err := lock.Held(); err != nil {
			t.Fatal(err)
		}
	}
}

// lockElsewhere tries the lock in another process, with the record lock that older versions take.
func lockElsewhere(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildThatLocks$")
	cmd.Env = append(os.Environ(), "VFS_TEST_LOCK="+name)
	err := cmd.Run()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
		return "taken"
	}
	if err != nil {
		return err.Error()
	}
	return "free"
}

func TestChildThatLocks(t *testing.T) {
	name := os.Getenv("VFS_TEST_LOCK")
	if name == "" {
		t.Skip("runs only as a child")
	}
	if _, err := TryTurn(name); errors.Is(err, ErrTaken) {
		os.Exit(3)
	} else if err != nil {
		t.Fatal(err)
	}
}

// A lock whose file was removed or replaced is lost, and Held reports it; the lock on the directory still excludes a second caller.
func TestALostLockIsNoticed(t *testing.T) {
	for name, w := range worlds(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(w.root, "store")
			if err := w.fs.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "lock")
			lock, err := w.fs.Lock(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.fs.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := lock.Held(); !errors.Is(err, ErrLockLost) {
				t.Errorf("removed: %v", err)
			}
			if _, err := w.fs.Lock(file); name == "os" && !errors.Is(err, ErrTaken) {
				t.Errorf("a second lock beside the first: %v", err)
			}
			if names, err := w.fs.List(dir); name == "os" && (err != nil || len(names) > 0) {
				t.Errorf("a caller that was refused has made %q: %v", names, err)
			}
			if err := errors.Join(lock.Renew(), lock.Held()); err != nil {
				t.Errorf("made anew: %v", err)
			}
			if _, err := w.fs.Lock(file); !errors.Is(err, ErrTaken) {
				t.Errorf("a second lock beside one that was made anew: %v", err)
			}
			_ = w.fs.Remove(file)
			put(t, w.fs, file, "")
			if err := lock.Held(); !errors.Is(err, ErrLockLost) {
				t.Errorf("replaced: %v", err)
			}
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			second, err := w.fs.Lock(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(second.Held(), second.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// While the owner makes its lock file anew, again and again, no other caller gets the lock.
func TestALockIsKeptWhileItIsMadeAnew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	lock, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	others := make(chan error, 2)
	for range cap(others) {
		go func() {
			for !stop.Load() {
				if second, err := OS().Lock(name); !errors.Is(err, ErrTaken) {
					others <- fmt.Errorf("another caller gets %v: %w", second, err)
					return
				}
			}
			others <- nil
		}()
	}
	for range 300 {
		if err := errors.Join(OS().Remove(name), lock.Renew(), lock.Held()); err != nil {
			t.Error(err)
			break
		}
	}
	stop.Store(true)
	for range cap(others) {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// A lock that could not be taken leaves no descriptor open.
func TestALockThatIsTakenLeavesNoDescriptor(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "lock")
	lock, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	before := descriptors(t)
	for range 10 {
		if _, err := OS().Lock(name); !errors.Is(err, ErrTaken) {
			t.Fatal(err)
		}
		if _, err := OS().Lock(dir); !errors.Is(err, ErrNotFile) {
			t.Fatal(err)
		}
		if _, err := OS().Lock(filepath.Join(dir, "missing", "lock")); !errors.Is(err, unix.ENOENT) {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors were open before, %d are now", before, after)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
