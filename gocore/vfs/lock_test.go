package vfs

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A lock is taken once, by whatever name, until it is given back; a crash ends it.
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
			for range 2 { // asking does not take it away either
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
