package archive

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/durable"
)

// grown is a run whose ranks have put keys 0 to 3, pushed them, replaced two of them, dropped one and put another. before and after are what the archive has
// before the second push and behind it. In the second push, one rank is missing and so is its part of the replaced keys; of those
// that are as they were the archive keeps it.
func grown(t *testing.T) (r *run, before, after archived) {
	r = newRun(t, 3)
	key := func(n int64) place { return place{"forward", model.NumberKey(n)} }
	for rank := range 3 {
		for n := range int64(4) {
			r.put(rank, key(n), state{rank, 0, 6000 + 1000*n})
		}
	}
	r.push(Options{Files: 2})
	before = r.complete(nil)
	r.has = r.has[:2]
	for rank := range 2 {
		r.put(rank, key(1), state{rank, 1, 9000})
		r.put(rank, key(2), state{rank, 1, 0})
		r.put(rank, key(9), state{rank, 1, 20_000})
		r.drop(rank, key(3))
	}
	return r, before, r.complete(before)
}

// between tells whether each key of an archive is as before or as after a push, as a whole.
func between(got, before, after archived) bool {
	for at, parts := range got {
		one := archived{at: parts}
		if !sameContents(one, archived{at: before[at]}) && !sameContents(one, archived{at: after[at]}) {
			return false
		}
	}
	for at := range before {
		if got[at] == nil {
			return false
		}
	}
	return true
}

// thin drops two of three cases, and of the commits that continuous integration tests, or under the race detector, 19 of 20: each commit plays others.
func thin(n int64) bool {
	turn, err := strconv.ParseInt(os.Getenv("VELOCPY_TURN"), 10, 64)
	if err != nil && !underRace {
		return n%3 > 0
	}
	return (n+turn)%20 > 0
}

// Wherever a push dies, and whatever the power loss leaves of what it has not synced, each key is there in its old version or in its new one, with the parts of all
// its ranks and no other. The next push completes it.
func TestAPushThatDies(t *testing.T) {
	for name, push := range ways {
		t.Run(name, func(t *testing.T) { dies(t, push) })
	}
}

// ways are pushes of all ranks of a run, by one process and by two nodes.
var ways = map[string]func(r *run, fs vfs.FS) error{
	"alone": func(r *run, fs vfs.FS) error {
		_, err := pushTo(fs, r.all(), Options{})
		return err
	},
	"together": func(r *run, fs vfs.FS) error {
		g := r.together([]int{0, 1, 1}[:len(r.has)], 5)
		g.fs = fs
		_, err := g.push(Options{})
		return err
	},
}

func dies(t *testing.T, push func(r *run, fs vfs.FS) error) {
	r, before, after := grown(t)
	seen := map[bool]int{}
	all := callsOf(t, r, push)
	for call := range all + 1 {
		if call < all && thin(call) && call%64 > 0 {
			continue
		}
		disk := r.shared.Crash(rand.New(rand.NewPCG(0, 0)), 1)
		rule := &vfs.Rule{Ops: vfs.OpAny, Skip: call, Err: unix.EIO}
		err := push(r, vfs.NewFaulty(disk, rule))
		for _, keep := range []float64{0, 0.5, 1} {
			left := disk.Crash(rand.New(rand.NewPCG(uint64(call), uint64(keep*10))), keep)
			got, bad := contents(left)
			if bad != nil || !between(got, before, after) {
				t.Fatalf("died at call %d, keeping %.1f: %v\n%v\nwhere it was\n%v\nand comes to\n%v", call, keep, bad, got, before, after)
			}
			seen[sameContents(got, before)]++
			if err == nil && !sameContents(got, after) {
				t.Fatalf("a push that has succeeded left %v", got)
			}
			if err := push(r, left); err != nil {
				t.Fatalf("died at call %d, keeping %.1f, and then: %v", call, keep, err)
			}
			if got, bad := contents(left); bad != nil || !sameContents(got, after) {
				t.Fatalf("died at call %d, keeping %.1f; the next push left %v: %v", call, keep, got, bad)
			}
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("%v", seen)
	}
}

// A call that fails once fails the push or not; nothing that was there is harmed, and no key is there in part.
func TestACallThatFails(t *testing.T) {
	for name, push := range ways {
		t.Run(name, func(t *testing.T) { failsOnce(t, push) })
	}
}

func failsOnce(t *testing.T, push func(r *run, fs vfs.FS) error) {
	r, before, after := grown(t)
	for call := range callsOf(t, r, push) {
		if thin(call) && call%64 > 0 {
			continue
		}
		disk := r.shared.Crash(rand.New(rand.NewPCG(0, 0)), 1)
		rule := &vfs.Rule{Ops: vfs.OpAny, Skip: call, Times: 1, Err: []error{unix.EIO, unix.ENOSPC}[call/2%2]}
		err := push(r, vfs.NewFaulty(disk, rule))
		got, bad := contents(disk)
		if bad != nil || !between(got, before, after) || err == nil && !sameContents(got, after) {
			t.Fatalf("call %d failed, the push with %v: %v\n%v", call, err, bad, got)
		}
	}
}

// callsOf is how many calls of its file system a push makes, some more or less by the turns that its goroutines take.
func callsOf(t *testing.T, r *run, push func(r *run, fs vfs.FS) error) int64 {
	t.Helper()
	counted := vfs.NewFaulty(r.shared.Crash(rand.New(rand.NewPCG(0, 0)), 1))
	if err := push(r, counted); err != nil {
		t.Fatal(err)
	}
	return counted.Calls(vfs.OpAny)
}

// Ranks that replace and drop keys between any two calls that read their stores: every key of the archive is a version that the rank had, and a key whose
// parts changed is left out.
func TestAPushBesideWriters(t *testing.T) {
	changed, brought := 0, 0
	for seed := range uint64(40) {
		r := newRun(t, 2)
		key := func(n int) place { return place{"forward", model.NumberKey(int64(n))} }
		for rank := range 2 {
			for n := range 6 {
				r.put(rank, key(n), state{rank, 0, 5000})
			}
		}
		had := r.complete(nil)
		p, err := NewPush(r.all(), durable.Options{FS: r.shared, Dir: archiveDir}, Options{Writers: 1})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		batch, err := p.next(1)
		if err == nil {
			err = p.place(batch, nil)
		}
		meddle := func() {
			for range random.IntN(4) {
				rank, n := random.IntN(2), random.IntN(6)
				if _, has := r.has[rank][key(n)]; has && random.IntN(2) == 0 {
					r.drop(rank, key(n))
					r.settle() // its room can be used from now on
				}
				r.put(rank, key(n), state{rank, 1 + random.IntN(100), 5000})
				r.settle()
			}
		}
		meddle()
		if err == nil {
			err = p.copyAll(batch)
		}
		meddle()
		if err == nil {
			batch, err = p.confirmed(batch)
		}
		meddle()
		if err == nil {
			err = p.commit(batch)
		}
		done := p.Done()
		if err = errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := contents(r.shared)
		if err != nil {
			t.Fatal(err)
		}
		if !between(got, archived{}, had) || len(got)+done.Changed != len(had) || len(done.Damaged) > 0 {
			t.Fatalf("seed %d: %+v left %v", seed, done, got)
		}
		changed, brought = changed+done.Changed, brought+done.Keys
	}
	if changed == 0 || brought == 0 {
		t.Errorf("%d keys were brought, and %d had changed", brought, changed)
	}
}

// A part that its medium has lost is named, and its key left out; the other keys are brought.
func TestAPartThatCannotBeRead(t *testing.T) {
	for _, bytes := range []int64{5000, aggregation.LongestStream + 4096} {
		r := newRun(t, 2)
		good, bad := place{"forward", model.NumberKey(1)}, place{"forward", model.NumberKey(2)}
		for rank := range 2 {
			r.put(rank, good, state{rank, 0, 5000})
			r.put(rank, bad, state{rank, 0, bytes})
		}
		from := r.all()
		from[1].Store.FS = vfs.NewFaulty(r.nodes, &vfs.Rule{Ops: vfs.OpRead, Name: "data-0000000000000001", From: lost(t, r, 1, bad), Err: unix.EIO})
		done, err := pushTo(r.shared, from, Options{})
		if err != nil {
			t.Fatalf("%d bytes: %v", bytes, err)
		}
		if len(done.Damaged) != 1 || done.Damaged[0] != (Damage{1, "forward", bad.key}) || done.Keys != 1 {
			t.Errorf("%d bytes: %+v", bytes, done)
		}
	}
}

// lost is where a rank's checkpoint begins in its data file. Nothing that the test reads lies behind it.
func lost(t *testing.T, r *run, rank int, at place) int64 {
	t.Helper()
	view, err := durable.Read(r.store(rank))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := view.State().History(at.history)
	row, _ := view.State().Find(id, at.key)
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	return view.InFile(row.Extents[0])
}

// A part whose bytes are not those of its checksums is named, and its key left out.
func TestADamagedPart(t *testing.T) {
	r := newRun(t, 2)
	good, bad := place{"forward", model.NumberKey(1)}, place{"forward", model.TextKey("x")}
	for rank := range 2 {
		r.put(rank, good, state{rank, 0, 5000})
		r.put(rank, bad, state{rank, 0, 5000})
	}
	r.settle()
	d, err := durable.Open(r.store(1))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := d.State().History(bad.history)
	row, _ := d.State().Find(id, bad.key)
	off, _, _ := d.Place(&row)
	if err := errors.Join(d.Space().Write(off, make([]byte, 4096)), d.Close()); err != nil {
		t.Fatal(err)
	}
	done := r.push(Options{})
	if len(done.Damaged) != 1 || done.Damaged[0] != (Damage{1, "forward", bad.key}) || done.Keys != 1 {
		t.Errorf("%+v", done)
	}
	if !slices.Equal(done.Omitted, []Omission{{Name{"forward", bad.key}, Damaged}}) {
		t.Errorf("left out: %v", done.Omitted)
	}
	want := r.complete(nil)
	delete(want, bad)
	r.require(want)
}
