package vfs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemRunsOutOfSpace(t *testing.T) {
	m := NewMem(10 * memChunk)
	f, err := m.OpenScratch("/", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Allocate(0, 8*memChunk); err != nil {
		t.Fatal(err)
	}
	if free, _ := m.Free("/"); free != 2*memChunk {
		t.Errorf("%d free", free)
	}
	if err := f.Allocate(8*memChunk, 3*memChunk); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if free, _ := m.Free("/"); free != 2*memChunk {
		t.Errorf("%d free after an allocation that failed", free)
	}
	g, err := m.OpenScratch("/", false)
	if err == nil {
		err = g.Allocate(2*memChunk, 2*memChunk)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := g.WriteAt(make([]byte, memChunk), 0); !errors.Is(err, unix.ENOSPC) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if err := f.PunchHole(memChunk, memChunk); err != nil {
		t.Fatal(err)
	}
	if n, err := g.WriteAt(make([]byte, memChunk), 0); err != nil || n != memChunk {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.WriteAt(make([]byte, memChunk), 0); err != nil || n != memChunk {
		t.Errorf("allocated space is not there: %d, %v", n, err)
	}
	for _, file := range []File{f, g} {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if free, _ := m.Free("/"); free != 10*memChunk || m.OpenFiles() != 0 {
		t.Errorf("%d free, %d open after closing all", free, m.OpenFiles())
	}
}

func TestMemDirectWantsAlignment(t *testing.T) {
	f, err := NewMem(1<<20).OpenScratch("/", true)
	if err != nil {
		t.Fatal(err)
	}
	good := blockAligned(2 * DefaultAlign)
	for what, call := range map[string]func() error{
		"offset":  func() error { _, err := f.WriteAt(good, 512); return err },
		"length":  func() error { _, err := f.ReadAt(good[:100], 0); return err },
		"address": func() error { _, err := f.WriteAt(good[8:DefaultAlign+8], 0); return err },
	} {
		if err := call(); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.WriteAt(good, DefaultAlign); err != nil {
		t.Error(err)
	}
}
