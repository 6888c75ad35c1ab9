package vfs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// If a scratch file needs a name, a killed process may leave an empty file. A later open in the directory removes that file, and no other.
func TestStraysAreRemoved(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	name := func(machine uint32, process int) string { return fmt.Sprintf(scratchForm, machine, process, 1) }
	here, elsewhere := machine(), machine()+1
	files := []struct {
		name string
		age  time.Duration
		left bool
	}{
		{name(here, dead.ProcessState.Pid()), 0, false},
		{name(here, os.Getppid()), strayAge / 2, true},
		{name(here, os.Getppid()), 2 * strayAge, false},
		{name(elsewhere, dead.ProcessState.Pid()), strayAge / 2, true},
		{name(elsewhere, dead.ProcessState.Pid()), 2 * strayAge, false},
		{".velocpy-scratch-mine", 2 * strayAge, true},
		{"velocpy", 2 * strayAge, true},
	}
	for _, f := range files {
		dir := t.TempDir()
		path, old := filepath.Join(dir, f.name), time.Now().Add(-f.age)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, name(here, 0)), 0o700); err != nil {
			t.Fatal(err)
		}
		fd, err := openUnlinked(entryOf(dir), unix.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		if left := slices.Contains(listing(t, dir), f.name); left != f.left || len(listing(t, dir)) > 2 {
			t.Errorf("%s, %s old: left %v, in all %v", f.name, f.age, left, listing(t, dir))
		}
	}
}

// All generated names are recognized.
func TestScratchNames(t *testing.T) {
	dir := t.TempDir()
	name, err := scratchName()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removeStrays(entryOf(dir))
	if len(listing(t, dir)) != 1 {
		t.Error("a living process's file is gone")
	}
	old := time.Now().Add(-2 * strayAge)
	if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
		t.Fatal(err)
	}
	removeStrays(entryOf(dir))
	if left := listing(t, dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
