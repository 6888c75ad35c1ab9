package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

var store = [16]byte{1, 2, 3}

func options(fs vfs.FS) Options { return Options{FS: fs, Dir: "/s", Store: store} }

func disk(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(64 << 20)
	for _, err := range []error{m.MkdirAll("/s"), m.SyncDir("/")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// found returns the content of a log.
func found(t testing.TB, o Options) ([]string, *State) {
	t.Helper()
	var all []string
	state, err := Read(o, func(record []byte) error {
		all = append(all, string(record))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, state
}

func holds(t testing.TB, o Options, want ...string) *State {
	t.Helper()
	got, state := found(t, o)
	if !slices.Equal(got, want) {
		t.Fatalf("holds %.200q, not %.200q", got, want)
	}
	if len(state.Damage) > 0 {
		t.Fatalf("damaged: %v", state.Damage)
	}
	return state
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLog(t *testing.T) {
	m := disk(t)
	o := options(m)
	var want []string
	for round := range 5 {
		state := holds(t, o, want...)
		l := Open(o, state)
		for i := range 7 {
			record := strings.Repeat(fmt.Sprint(round, i), i*i*i+1) // none is empty, as snapshots skip those
			must(t, l.Append([]byte(record), nil))
			want = append(want, record)
		}
		holds(t, o, want...) // while the writer has it open
		if round == 3 {
			must(t, l.Compact(func(give func([]byte) error) error {
				for _, record := range want {
					if err := give([]byte(record)); err != nil {
						return err
					}
				}
				return nil
			}))
			holds(t, o, want...)
			if names, _ := m.List("/s"); len(names) != 1 {
				t.Errorf("after starting anew there are %v", names)
			}
			must(t, l.Append([]byte("behind"), nil))
			want = append(want, "behind")
		}
		must(t, l.Close())
		if err := l.Append(nil, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := l.Close(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if m.OpenFiles() != 0 {
		t.Errorf("%d files are open", m.OpenFiles())
	}
	if got, _ := found(t, Options{FS: m, Dir: "/s", Store: [16]byte{9}}); len(got) != 0 {
		t.Error("read by somebody else")
	}
	l := Open(o, &State{})
	defer l.Close()
	if err := l.Append(make([]byte, MostPayload), nil); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// Concurrent appenders share batches, and each record is in the log when its call returns.
func TestManyAppend(t *testing.T) {
	m := disk(t)
	fs := vfs.NewFaulty(m)
	o := options(fs)
	l := Open(o, &State{})
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 50 {
				if err := l.Append(fmt.Append(nil, g, " ", i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, l.Close())
	got, state := found(t, o)
	if len(got) != 800 || state.Last > 800 {
		t.Errorf("%d records in %d batches", len(got), state.Last)
	}
	last := map[int]int{}
	for _, record := range got {
		var g, i int
		if _, err := fmt.Sscan(record, &g, &i); err != nil || i != last[g] {
			t.Fatalf("%q where %d of %d is due", record, last[g], g)
		}
		last[g]++
	}
}

// Any call may fail, once or from then on, and the power may fail in any state. Acknowledged records are there, in order; of the others, only requested
// ones may be.
func TestFaultsAndCrashes(t *testing.T) {
	images := 0
	for _, failure := range []struct {
		err   error
		short bool
		times int64
	}{{unix.EIO, false, 1}, {unix.EIO, false, 0}, {unix.ENOSPC, true, 1}, {unix.ENOSPC, true, 0}} {
		for step := int64(0); ; step++ {
			m := disk(t)
			rule := &vfs.Rule{Skip: step, Times: failure.times, Err: failure.err, Short: failure.short, ShortBytes: 20}
			acknowledged, asked := scenario(t, options(vfs.NewFaulty(m, rule)))
			for seed := uint64(0); seed < 12; seed += share {
				images++
				left := m.Crash(rand.New(rand.NewPCG(seed, uint64(step))), []float64{0, 0.5, 1}[seed%3])
				check(t, fmt.Sprintf("%v, step %d, seed %d", failure, step, seed), left, acknowledged, asked)
			}
			if rule.Fired() == 0 {
				break
			}
		}
	}
	t.Logf("%d images", images)
	if images < 3000/share {
		t.Errorf("only %d images", images)
	}
}

// scenario appends, compacts, closes and reopens; it returns the acknowledged records, and all requested ones.
func scenario(t testing.TB, o Options) (acknowledged, asked []string) {
	for round := range 3 {
		state, err := Read(o, func([]byte) error { return nil })
		if err != nil {
			continue
		}
		l := Open(o, state)
		for i := range 6 {
			record := fmt.Sprintf("%d.%d %s", round, i, strings.Repeat("x", i*977))
			asked = append(asked, record)
			if l.Append([]byte(record), nil) == nil {
				acknowledged = append(acknowledged, record)
			}
			if i == 3 {
				_ = l.Compact(func(give func([]byte) error) error {
					for _, record := range acknowledged {
						if err := give([]byte(record)); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		_ = l.Close()
	}
	return acknowledged, asked
}

func check(t *testing.T, what string, m *vfs.Mem, acknowledged, asked []string) {
	t.Helper()
	got, state := found(t, options(m))
	if harm(state) {
		t.Fatalf("%s: %v", what, state.Damage)
	}
	n := len(acknowledged)
	if len(got) < n || !slices.Equal(got[:n], acknowledged) {
		t.Fatalf("%s: holds %d records, which are not the %d acknowledged", what, len(got), n)
	}
	late := asked // requested after the last acknowledged one; they may be there
	if n > 0 {
		late = asked[slices.Index(asked, acknowledged[n-1])+1:]
	}
	for _, record := range got[n:] {
		if i := slices.Index(late, record); i < 0 {
			t.Fatalf("%s: %.60q is there, which failed, or twice", what, record)
		} else {
			late = late[i+1:]
		}
	}
	// The next writer loses nothing either, and decides which unacknowledged records count.
	l := Open(options(m), state)
	must(t, l.Append([]byte("more"), nil), l.Close())
	if got2, state := found(t, options(m)); !slices.Equal(got2, append(got, "more")) || harm(state) {
		t.Fatalf("%s: then it holds %.200q, %v", what, got2, state.Damage)
	}
}

// harm tells whether any record is missing. The first frame of a file that continues found content may be torn: it is written last.
func harm(s *State) bool {
	return slices.ContainsFunc(s.Damage, func(d Damage) bool { return !d.Harmless })
}

// small is a log of two files, the first with a snapshot. It returns the records by batch; batch 0 is the snapshot.
func small(t testing.TB) (*vfs.Mem, map[uint64][]string) {
	m := disk(t)
	o := options(m)
	l := Open(o, &State{})
	byBatch := map[uint64][]string{}
	add := func(record string) {
		must(t, l.Append([]byte(record), nil))
		byBatch[l.last] = append(byBatch[l.last], record)
	}
	add("one")
	add("two")
	must(t, l.Compact(func(give func([]byte) error) error {
		return errors.Join(give([]byte("one")), give([]byte("two")))
	}))
	byBatch = map[uint64][]string{0: {"one", "two"}}
	add("three")
	add(strings.Repeat("four", 9))
	must(t, l.Close())
	_, state := found(t, o)
	l = Open(o, state)
	add("five")
	add("")
	add("seven")
	must(t, l.Close())
	return m, byBatch
}

// damaged is a disk with one changed byte.
func damaged(t testing.TB, m *vfs.Mem, name string, at int64, mask byte) *vfs.Mem {
	t.Helper()
	left := m.Crash(rand.New(rand.NewPCG(1, 2)), 1)
	f, err := left.Open("/s/"+name, true, false)
	must(t, err)
	p := []byte{0}
	_, err = f.ReadAt(p, at)
	must(t, err)
	p[0] ^= mask
	_, err = f.WriteAt(p, at)
	must(t, err, f.Close())
	return left
}

// Every flipped bit is found, and costs only the records of its frame.
func TestEveryBitFlipped(t *testing.T) {
	m, byBatch := small(t)
	names, err := m.List("/s")
	must(t, err)
	if len(names) != 2 {
		t.Fatal(names)
	}
	flips := 0
	for i, name := range names {
		info, err := m.Stat("/s/" + name)
		must(t, err)
		end := info.Size
		if i == 0 {
			end -= headBytes // it was closed there, and then continued
		}
		for bit := int64(0); bit < end*8; bit += share {
			flips++
			got, state := found(t, options(damaged(t, m, name, bit/8, 1<<(bit%8))))
			if len(state.Damage) == 0 && state.Torn == 0 {
				t.Fatalf("%s, bit %d: not found", name, bit)
			}
			if len(state.Damage) > 1 {
				t.Fatalf("%s, bit %d: %v", name, bit, state.Damage)
			}
			var want []string
			for batch := uint64(0); batch <= 7; batch++ {
				if len(state.Damage) == 0 || !gone(state.Damage[0], batch) {
					want = append(want, byBatch[batch]...)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, bit %d: %q for %v", name, bit, got, state)
			}
		}
	}
	t.Logf("%d bits", flips)
}

func gone(d Damage, batch uint64) bool { return !d.Harmless && batch >= d.From && batch <= d.To }

// Snapshots that are taken during concurrent appends have exactly the records that count.
func TestCompactBesideAppends(t *testing.T) {
	m := disk(t)
	o := options(m)
	l := Open(o, &State{})
	var counting []string // serialized by the log
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 60 {
				record := fmt.Sprint(g, " ", i)
				if err := l.Append([]byte(record), func() { counting = append(counting, record) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		must(t, l.Compact(func(give func([]byte) error) error {
			for _, record := range counting {
				if err := give([]byte(record)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	all.Wait()
	must(t, l.Close())
	holds(t, o, counting...)
	if len(counting) != 240 {
		t.Errorf("%d count", len(counting))
	}
}

// Kinds and flags of later versions are refused.
func TestLaterVersions(t *testing.T) {
	whole := appendFrame(nil, place{store: store, file: 1}, kindClosed+1, 0, nil)
	if _, ok := parseHead(whole, place{store: store, file: 1}); ok {
		t.Error("a frame of a kind that we do not know")
	}
	m := disk(t)
	o := options(m)
	f, err := m.Create(o.path(1), false)
	must(t, err)
	flags := begin{}.bytes()
	flags[8] = 2
	_, err = f.WriteAt(appendFrame(nil, place{store: store, file: 1}, kindBegin, 0, flags), 0)
	must(t, err, f.Close())
	if _, err := Read(o, nil); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
}

// The logs in testdata were written once and are never rewritten: every later version must read them. The first one has long parts, and one complete frame.
// The current writer still produces the second one byte for byte.
func TestTheFirstVersion(t *testing.T) {
	for _, dir := range []string{"testdata/version-1", "testdata/version-1-twice"} {
		state := holds(t, Options{FS: vfs.OS(), Dir: dir, Store: store}, "one", "two", "three", strings.Repeat("four", 9), "five", "", "seven")
		if !state.Closed || state.Last != 7 {
			t.Errorf("%s: %+v", dir, state)
		}
	}
	m, _ := small(t)
	names, err := m.List("/s")
	must(t, err)
	dir := "testdata/version-1-twice"
	if there, err := vfs.OS().List(dir); err != nil || !slices.Equal(there, names) {
		t.Errorf("%v, %v; now it would be %v", there, err, names)
	}
	for _, name := range names {
		if !slices.Equal(whole(t, m, "/s/"+name), whole(t, vfs.OS(), dir+"/"+name)) {
			t.Errorf("%s would be another one now", name)
		}
	}
}

func whole(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name, false, false)
	must(t, err)
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	_, err = f.ReadAt(p, 0)
	must(t, err, f.Close())
	return p
}

// A snapshot that the disk has no room for returns its room to later appends.
func TestASnapshotWithoutRoomTakesNone(t *testing.T) {
	fs := vfs.NewMem(2 << 20)
	if err := fs.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	l := Open(Options{FS: fs, Dir: "/d"}, &State{})
	if err := l.Append([]byte("first"), nil); err != nil {
		t.Fatal(err)
	}
	free := func() int64 {
		n, err := fs.Free("/d")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, bytes := free(), l.Bytes()
	err := l.Compact(func(give func([]byte) error) error {
		for range 3 {
			if err := errors.Join(give(make([]byte, 900<<10)), give(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, unix.ENOSPC) || free() != before || l.Bytes() != bytes {
		t.Errorf("%v; %d free, %d before; %d bytes, %d before", err, free(), before, l.Bytes(), bytes)
	}
	if err := l.Append([]byte("second"), nil); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
