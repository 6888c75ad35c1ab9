package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var keeps = []float64{0, 0.5, 1}

// failing is a testing.T or a rapid.T.
type failing interface {
	Helper()
	Fatal(args ...any)
}

// contents reads a whole file; nil if it does not exist.
func contents(t failing, m *Mem, name string) []byte {
	t.Helper()
	f, err := m.Open(name, false, false)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, size)
	if _, err := f.ReadAt(all, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return all
}

func must(t failing, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	for _, keep := range keeps {
		m := NewMem(1 << 20)
		must(t, m.MkdirAll("/d"))
		f := file(t)(m.Create("/d/f", false))
		want := random(make([]byte, 100_001))
		_, err := f.WriteAt(want, 0)
		must(t, err, f.Sync(), m.SyncDir("/d"), m.SyncDir("/"))
		left := m.Crash(rand.New(rand.NewPCG(1, 2)), keep)
		if got := contents(t, left, "/d/f"); !bytes.Equal(got, want) {
			t.Errorf("keep %v: %d bytes", keep, len(got))
		}
		if free, _ := left.Free("/"); free != 1<<20-2*memChunk {
			t.Errorf("%d bytes are free", free)
		}
		again := left.Crash(rand.New(rand.NewPCG(3, 4)), 0)
		if got := contents(t, again, "/d/f"); !bytes.Equal(got, want) {
			t.Error("a second crash takes what the first one left")
		}
	}
}

// Each step of making a file durable is needed.
func TestCrashLosesWhatWasNotSynced(t *testing.T) {
	text := []byte("acknowledged")
	steps := []func(m *Mem, f File) error{
		func(_ *Mem, f File) error { return f.Sync() },
		func(m *Mem, _ File) error { return m.SyncDir("/d") },
		func(m *Mem, _ File) error { return m.SyncDir("/") },
	}
	for left := -1; left < len(steps); left++ {
		m := NewMem(1 << 20)
		must(t, m.MkdirAll("/d"))
		f := file(t)(m.Create("/d/f", false))
		_, err := f.WriteAt(text, 0)
		must(t, err)
		for i, step := range steps {
			if i != left {
				must(t, step(m, f))
			}
		}
		after := m.Crash(rand.New(rand.NewPCG(1, 2)), 0)
		if got := contents(t, after, "/d/f"); bytes.Equal(got, text) != (left < 0) {
			t.Errorf("without step %d there is %q", left, got)
		}
		if got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 1), "/d/f"); !bytes.Equal(got, text) {
			t.Errorf("a crash that loses nothing loses something: %q", got)
		}
	}
}

// A removed name may come back until the directory is synced.
func TestCrashBringsBackNames(t *testing.T) {
	m := NewMem(1 << 20)
	f := file(t)(m.Create("/f", false))
	_, err := f.WriteAt([]byte("old"), 0)
	must(t, err, f.Sync(), m.SyncDir("/"), f.Close(), m.Remove("/f"))
	if got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 0), "/f"); string(got) != "old" {
		t.Errorf("%q", got)
	}
	must(t, m.SyncDir("/"))
	if got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 0), "/f"); got != nil {
		t.Errorf("%q is back", got)
	}
}

// After a failed Sync, the next one succeeds and makes nothing durable.
func TestSyncThatFailed(t *testing.T) {
	m := NewMem(1 << 20)
	rule := &Rule{Ops: OpSync, Err: unix.EIO, Times: 1}
	f := file(t)(NewFaulty(m, rule).Create("/f", false))
	must(t, m.SyncDir("/"))
	_, err := f.WriteAt(bytes.Repeat([]byte{1}, 2*memBlock), 0)
	must(t, err)
	if err := f.Sync(); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	must(t, f.Sync())
	if got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 0), "/f"); len(got) != 0 {
		t.Errorf("%d bytes survive", len(got))
	}
	if got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 1), "/f"); bytes.Count(got, []byte{1}) != 2*memBlock {
		t.Errorf("what the system has written all the same is not there: %d bytes", len(got))
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{2}, memBlock), memBlock)
	must(t, err, f.Truncate(2*memBlock+1), f.Sync())
	got := contents(t, m.Crash(rand.New(rand.NewPCG(1, 2)), 0), "/f")
	want := slices.Concat(make([]byte, memBlock), bytes.Repeat([]byte{2}, memBlock), []byte{0})
	if !bytes.Equal(got, want) {
		t.Errorf("of %d bytes, the ones written again are not those that survive", len(got))
	}
}

// Sectors of a block may be old or new; every kind of damage occurs.
func TestCrashTears(t *testing.T) {
	m := NewMem(1 << 20)
	f := file(t)(m.Create("/f", false))
	_, err := f.WriteAt(bytes.Repeat([]byte{1}, memBlock), 0)
	must(t, err, f.Sync(), m.SyncDir("/"))
	_, err = f.WriteAt(bytes.Repeat([]byte{2}, 2*memBlock), 0)
	must(t, err)
	seen := map[string]bool{}
	for seed := range uint64(500) {
		got := contents(t, m.Crash(rand.New(rand.NewPCG(seed, 2)), 0.5), "/f")
		switch first := got[:memBlock]; {
		case bytes.Count(first, []byte{1}) == memBlock:
			seen["old"] = true
		case bytes.Count(first, []byte{2}) == memBlock:
			seen["new"] = true
		default:
			seen["torn"] = true
		}
		switch {
		case len(got) == memBlock:
			seen["short"] = true
		case len(got) < 2*memBlock:
			seen["between"] = true
		case bytes.Count(got[memBlock:], []byte{0}) == memBlock:
			seen["long and empty"] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("met %v", seen)
	}
}

// After any operations, each sector of a file is as it was at the last Sync or later, and so are the names.
func TestModelOfCrashes(t *testing.T) {
	names := []string{"/a", "/b", "/c"}
	rapid.Check(t, func(t *rapid.T) {
		m := NewMem(64 << 20)
		open := map[string]File{}
		var mayHave []map[string]bool // sets of names since the last SyncDir
		note := func() {
			set := map[string]bool{}
			for name := range open {
				set[name] = true
			}
			mayHave = append(mayHave, set)
		}
		versions := map[string][][]byte{} // of each file, since its last Sync
		keepVersion := func(name string) { versions[name] = append(versions[name], contents(t, m, name)) }
		note()
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				if open[name] != nil || versions[name] != nil {
					t.Skip("it has been there")
				}
				f, err := m.Create(name, false)
				must(t, err)
				open[name] = f
				keepVersion(name)
				note()
			},
			"write": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				if open[name] == nil {
					t.Skip("no file")
				}
				p := bytes.Repeat([]byte{byte(len(versions[name]) + 1)}, rapid.IntRange(1, 3*memBlock).Draw(t, "length"))
				_, err := open[name].WriteAt(p, rapid.Int64Range(0, 4*memBlock).Draw(t, "off"))
				must(t, err)
				keepVersion(name)
			},
			"truncate": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				if open[name] == nil {
					t.Skip("no file")
				}
				must(t, open[name].Truncate(rapid.Int64Range(0, 4*memBlock).Draw(t, "size")))
				keepVersion(name)
			},
			"sync": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				if open[name] == nil {
					t.Skip("no file")
				}
				must(t, open[name].Sync())
				versions[name] = versions[name][len(versions[name])-1:]
			},
			"sync names": func(t *rapid.T) {
				must(t, m.SyncDir("/"))
				mayHave = mayHave[len(mayHave)-1:]
			},
			"": func(t *rapid.T) {
				keep := rapid.SampledFrom(keeps).Draw(t, "keep")
				left := m.Crash(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), keep)
				for _, name := range names {
					got := contents(t, left, name)
					always, never := true, true
					for _, set := range mayHave {
						always, never = always && set[name], never && !set[name]
					}
					if got == nil && always || got != nil && never {
						t.Fatalf("%s: there %v, always %v, never %v", name, got != nil, always, never)
					}
					if got != nil {
						checkSectors(t, name, got, versions[name])
					}
				}
			},
		})
	})
}

// checkSectors looks each sector up in the allowed versions of a file; beyond the end of a version, sectors are zero.
func checkSectors(t *rapid.T, name string, got []byte, versions [][]byte) {
	least, most := len(versions[0]), 0
	for _, v := range versions {
		least, most = min(least, len(v)), max(most, len(v))
	}
	if len(got) < least || len(got) > most {
		t.Fatalf("%s has %d bytes; it had %d to %d", name, len(got), least, most)
	}
	for at := 0; at < len(got); at += sector {
		part := got[at:min(at+sector, len(got))]
		found := slices.ContainsFunc(versions, func(v []byte) bool {
			old := make([]byte, len(part))
			if at < len(v) {
				copy(old, v[at:])
			}
			return bytes.Equal(part, old)
		})
		if !found {
			t.Fatalf("%s: what lies at %d never lay there", name, at)
		}
	}
}
