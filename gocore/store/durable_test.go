package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// stored returns a configuration of a durable store whose disk is in memory.
func stored(host, disk int64, fs vfs.FS) config.Config {
	c := cached(host, disk, fs)
	c.Durable, c.Path, c.SegmentBytes = true, "/d/store", 256<<10
	return c
}

// reopened opens a store beside others. The check for leaks runs when the first of them has closed.
func reopened(t testing.TB, c config.Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

// After a loss of power the durable checkpoints exist, and no others. Dropped checkpoints are gone.
func TestDurableIsThereAfterACrash(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprint("lazy ", lazy), func(t *testing.T) {
			fs := vfs.NewMem(64 << 20)
			c := stored(1<<20, 4<<20, fs)
			c.LazyRows = lazy
			s := open(t, c)
			a := newClient(t, s, "h")
			want := map[int64][]byte{}
			for k := range int64(20) {
				p := random(1000*int(k+1)*int(k%3+1), uint64(k))
				out := a.mustPut(k, p)
				want[k] = p
				if err := a.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			for k := int64(0); k < 20; k += 3 {
				out := a.mustPut(k, random(5000, uint64(100+k)))
				want[k] = random(5000, uint64(100+k))
				if err := a.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			a.drop(7)
			delete(want, 7)
			out := a.mustPut(50, random(100, 50)) // durable behind the drop
			want[50] = random(100, 50)
			if err := a.wait(out.Ticket, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			c2 := stored(1<<20, 4<<20, fs.Crash(rand.New(rand.NewPCG(1, 1)), 0))
			c2.LazyRows = lazy
			s2 := reopened(t, c2)
			b := newClient(t, s2, "h")
			if n, err := b.h.Len(); err != nil || n != int64(len(want)) {
				t.Fatalf("%d checkpoints, %v; there should be %d", n, err, len(want))
			}
			keys, err := b.h.Keys()
			if err != nil || len(keys) != len(want) {
				t.Fatalf("keys %v, %v", keys, err)
			}
			for k, p := range want {
				got, _, err := b.get(k, len(p), operation.RestoreArgs{})
				if err != nil || !bytes.Equal(got, p) {
					t.Fatalf("checkpoint %d: %v", k, err)
				}
			}
			if _, _, err := b.get(7, 1, operation.RestoreArgs{}); err == nil {
				t.Fatal("the dropped one is there")
			}
			if _, err := Open(c2); err == nil {
				t.Fatal("opened twice")
			} else {
				wants(t, err, status.Locked)
			}
			r := c2
			r.ReadOnly, r.Disk = true, nil
			s3 := reopened(t, r)
			d := newClient(t, s3, "h")
			for k, p := range want {
				d.mustGet(k, p, operation.RestoreArgs{})
			}
			wants(t, d.h.Drop(model.NumberKey(1)), status.ReadOnly)
		})
	}
}

// A damaged copy in memory is replaced by the one on disk, for copies out, for leases, and for leases that are shared.
func TestDamageInMemoryIsMadeUpForByTheDisk(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			c := stored(1<<20, 16<<20, vfs.NewMem(64<<20))
			c.Durable, c.Verify = durable, "always"
			s := open(t, c)
			h := newClient(t, s, "h")
			// The bytes differ, so that no checkpoint in memory makes up for the damage of another one in a lineage.
			var p [3][]byte
			for k := range int64(3) {
				p[k] = random(300_000, uint64(k))
				out := h.mustPut(k, p[k])
				if err := h.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			spoil := func(k int64) {
				t.Helper()
				if err := h.h.Corrupt(model.NumberKey(k), status.TierHost, 1234); err != nil {
					t.Fatal(err)
				}
			}
			spoil(0)
			h.mustGet(0, p[0], operation.RestoreArgs{})
			h.mustGet(0, p[0], operation.RestoreArgs{})
			spoil(1)
			l := h.mustLease(1, operation.RestoreArgs{})
			if !bytes.Equal(view(l, len(p[1])), p[1]) {
				t.Fatal("a lease shows the wrong bytes")
			}
			before := h.mustLease(2, operation.RestoreArgs{})
			spoil(2) // under a lease that was given before
			after := h.mustLease(2, operation.RestoreArgs{Last: true})
			if !bytes.Equal(view(after, len(p[2])), p[2]) {
				t.Fatal("a lease shows the wrong bytes")
			}
			for _, x := range []*operation.Lease{l, before, after} {
				release(t, x)
			}
			if err := h.h.Corrupt(model.NumberKey(0), status.TierDisk, 99); err != nil {
				t.Fatal(err)
			}
			h.mustGet(0, p[0], operation.RestoreArgs{}) // it comes from the copy in memory, which was loaded before
			spoil(0)
			_, _, err := h.get(0, len(p[0]), operation.RestoreArgs{})
			wants(t, err, status.Corrupt) // the copy on disk is damaged, too
			drained(t, s)
		})
	}
}

// Each checkpoint that is waited for by itself has its own syncs. Several may share theirs. Reads need none.
func TestCommitsAreCounted(t *testing.T) {
	fs := vfs.NewMem(64 << 20)
	c := stored(1<<20, 4<<20, fs)
	s := open(t, c)
	commits := func() int64 {
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return st.Tiers["disk"].Commits
	}
	a := newClient(t, s, "h")
	for k := range int64(3) {
		if n := commits(); n != k {
			t.Fatalf("%d commits before checkpoint %d", n, k)
		}
		if err := a.wait(a.mustPut(k, random(1000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	a.mustGet(0, random(1000, 0), operation.RestoreArgs{})
	if n := commits(); n != 3 {
		t.Fatalf("%d commits of three checkpoints that were waited for", n)
	}
	var last operation.Outcome
	for k := range int64(10) {
		last = a.mustPut(10+k, random(1000, uint64(k)))
	}
	if err := a.wait(last.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if n := commits(); n <= 3 || n > 13 {
		t.Fatalf("%d commits of three checkpoints that were waited for and ten that were not", n)
	}
}

// The writer drops a reader's checkpoint, and overwrites its place. The reader gets an error that reports this, and no error of a damaged disk.
func TestAReaderIsOutdatedNotDamaged(t *testing.T) {
	countsDiskBytes(t)
	c := stored(64<<10, 1<<20, vfs.NewMem(64<<20))
	s := open(t, c)
	h := newClient(t, s, "h")
	for k := range int64(3) {
		if err := h.wait(h.mustPut(k, random(100_000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	r := c
	r.ReadOnly, r.Disk = true, nil
	reader := newClient(t, reopened(t, r), "h")
	h.drop(0)
	for k := int64(10); k < 17; k++ { // one of them is written to the place of the dropped one
		if err := h.wait(h.mustPut(k, random(100_000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := reader.get(0, 100_000, operation.RestoreArgs{})
	wants(t, err, status.Dropped)
	reader.mustGet(1, random(100_000, 1), operation.RestoreArgs{})
	if err := h.h.Corrupt(model.NumberKey(1), status.TierDisk, 5); err != nil {
		t.Fatal(err)
	}
	_, _, err = reader.get(1, 100_000, operation.RestoreArgs{})
	wants(t, err, status.Corrupt)
}

// A full disk has room again soon after a drop, when the drop is durable. A capture that needs the room waits for it, also behind a rule and behind
// drops that failed.
func TestRoomOfADropIsWaitedFor(t *testing.T) {
	fails := &vfs.Rule{Ops: vfs.OpSync | vfs.OpOpen, Err: unix.EIO}
	fails.Disable()
	c := stored(0, 8*4096, vfs.NewFaulty(vfs.NewMem(64<<20), fails))
	h := newClient(t, reopened(t, c), "h")
	if err := h.h.Retain(model.Retention{Every: 1}); err != nil {
		t.Fatal(err)
	}
	for k := range int64(8) {
		h.mustPut(k, random(4000, uint64(k)))
	}
	for round := range int64(3) {
		fails.Enable()
		h.drop(round)
		eventually(t, "the drop has failed", func() bool { return fails.Fired() > round })
		fails.Disable()
		h.drop(7 - round)
		h.mustPut(7-round, random(4000, uint64(100+round)))
		h.mustPut(round, random(4000, uint64(200+round)))
	}
}

// When a replacement is durable, the room of the replaced checkpoint is released. On a disk with little room beside the live bytes, a capture that
// needs room waits for that.
func TestRoomOfWhatIsReplacedIsWaitedFor(t *testing.T) {
	for name, host := range map[string]int64{"from memory": 1 << 20, "straight to disk": 0} {
		t.Run(name, func(t *testing.T) {
			const keys = 8
			s := reopened(t, stored(host, (keys+1)*4096, vfs.NewMem(64<<20)))
			h := newClient(t, s, "h")
			var clients [keys]*client
			for k := range clients {
				clients[k] = newClient(t, s, "h")
			}
			for round := range uint64(50) {
				var ops [keys]*operation.Op
				var codes [keys]status.Code
				var outs [keys]operation.Outcome
				for k, c := range clients { // all of them are in progress at once
					var err error
					if ops[k], codes[k], err = c.pending(int64(k), random(4000, 100*round+uint64(k)), operation.CheckpointArgs{}, &outs[k]); err != nil {
						t.Fatalf("round %d, key %d: %v", round, k, err)
					}
				}
				for k, c := range clients {
					if err := drive(t, ops[k], codes[k], c.fd, &outs[k]); err != nil {
						t.Fatalf("round %d, key %d: %v", round, k, err)
					}
				}
				if err := h.wait(0, status.TierDisk); err != nil { // for all
					t.Fatalf("round %d: %v", round, err)
				}
			}
			for k := range int64(keys) {
				h.mustGet(k, random(4000, 4900+uint64(k)), operation.RestoreArgs{})
			}
		})
	}
}

// A capture that waits for room of a replaced checkpoint does not give up, for its own room, the durable version that it is to replace.
func TestACaptureThatWaitsKeepsWhatItReplaces(t *testing.T) {
	const keys = 3
	gate := &vfs.Rule{Ops: vfs.OpWrite, Name: "data-0000000000000001", Block: true, Times: 1}
	gate.Disable()
	s := reopened(t, stored(0, (keys+1)*4096, vfs.NewFaulty(vfs.NewMem(64<<20), gate)))
	h, other := newClient(t, s, "h"), newClient(t, s, "h")
	for k := range int64(keys) {
		h.mustPut(k, random(4000, uint64(k)))
	}
	gate.Enable()
	var first, second operation.Outcome
	one, oneCode, err := h.pending(0, random(4000, 100), operation.CheckpointArgs{}, &first)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is being written", func() bool { return gate.Blocked() == 1 })
	two, twoCode, err := other.pending(1, random(4000, 101), operation.CheckpointArgs{}, &second)
	if err != nil || twoCode != status.Pending {
		t.Fatal(twoCode, err)
	}
	gate.Release()
	if err := errors.Join(drive(t, one, oneCode, h.fd, &first), drive(t, two, twoCode, other.fd, &second)); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stats(); err != nil || st.Tiers["disk"].Commits != keys+2 {
		t.Errorf("%d commits, one for each capture are %d: something was dropped (%v)", st.Tiers["disk"].Commits, keys+2, err)
	}
}

// A capture that is cancelled while it is being written leaves no entry behind that the watchdog would take for a stall.
func TestWhatIsGivenUpIsNoStall(t *testing.T) {
	gate := &vfs.Rule{Ops: vfs.OpWrite, Block: true, Times: 1}
	gate.Disable()
	c := stored(0, 1<<20, vfs.NewFaulty(vfs.NewMem(64<<20), gate))
	s := reopened(t, c)
	h := newClient(t, s, "h")
	gate.Enable()
	var out operation.Outcome
	op, code, err := h.pending(1, random(200_000, 1), operation.CheckpointArgs{}, &out)
	if code != status.Pending || err != nil {
		t.Fatal(code, err)
	}
	eventually(t, "it is being written", func() bool { return gate.Blocked() == 1 })
	if taken := op.Cancel(); taken != nil {
		t.Fatalf("%+v", taken)
	}
	gate.Release()
	eventually(t, "the transfer has ended", func() bool {
		s.Lock()
		defer s.Unlock()
		return s.Disk.Figures().Pending.Requests == 0
	})
}

// A rewrite without room beside the old version takes no room from checkpoints that only the catalog has.
func TestRewritesLeaveCheckpointsWithoutRecords(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	c := stored(4096, 3*4096, disk)
	h := newClient(t, reopened(t, c), "h")
	for k := range int64(3) {
		if err := h.wait(h.mustPut(k, random(4000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	c.FS, c.LazyRows = disk.Crash(rand.New(rand.NewPCG(1, 1)), 0), true
	h = newClient(t, reopened(t, c), "h")
	for round := range int64(5) {
		h.mustPut(1, random(4000, uint64(100+round)))
	}
	h.mustGet(1, random(4000, 104), operation.RestoreArgs{})
	if keys := h.numbers(); len(keys) != 3 {
		t.Fatalf("%v are there", keys)
	}
	h.mustGet(0, random(4000, 0), operation.RestoreArgs{})
	h.mustGet(2, random(4000, 2), operation.RestoreArgs{})
}

// Looking a checkpoint up makes no record of it, once a checkpoint with its layout is in use. It says the same as after a restore.
func TestLookupMakesNoRecord(t *testing.T) {
	c := stored(1<<20, 4<<20, vfs.NewMem(64<<20))
	c.LazyRows = true
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	h := newClient(t, s, "h")
	for k := range int64(4) {
		if err := h.wait(h.mustPut(k, random(1000, uint64(k))).Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	s = open(t, c)
	h = newClient(t, s, "h")
	notLoaded := func() int {
		s.Lock()
		defer s.Unlock()
		return s.Disk.NotLoaded("h")
	}
	h.mustGet(0, random(1000, 0), operation.RestoreArgs{})
	for k := int64(1); k < 4; k++ {
		before, err := h.h.Lookup(model.NumberKey(k))
		if err != nil || before.Ticket != 0 || notLoaded() != 4-int(k) {
			t.Fatalf("%d: %+v, %v; %d are not loaded", k, before, err, notLoaded())
		}
		if _, err := s.Layout(before.Layout); err != nil {
			t.Error(err)
		}
		s.Lock()
		h.h.h.Get(model.NumberKey(k))
		s.Unlock()
		after, err := h.h.Lookup(model.NumberKey(k))
		if err != nil || after.Ticket == 0 {
			t.Fatalf("%d: %+v, %v", k, after, err)
		}
		if after.Ticket = 0; before != after {
			t.Errorf("%d: %+v, then %+v", k, before, after)
		}
		h.mustGet(k, random(1000, uint64(k)), operation.RestoreArgs{})
	}
	if _, err := h.h.Lookup(model.NumberKey(9)); status.CodeOf(err) != status.NotFound || notLoaded() != 0 {
		t.Errorf("%v; %d are not loaded", err, notLoaded())
	}
}
