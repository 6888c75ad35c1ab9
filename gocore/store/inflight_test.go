package store

import (
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/durable"
)

// committing is a durable store without a host tier whose writes and syncs stop at gates.
type committing struct {
	*client
	disk        *vfs.Mem
	config      config.Config
	write, sync *vfs.Rule
}

func newCommitting(t *testing.T) *committing {
	x := &committing{disk: vfs.NewMem(64 << 20), write: gate(vfs.OpWrite), sync: gate(vfs.OpSync)}
	x.config = stored(0, 4<<20, vfs.NewFaulty(x.disk, x.write, x.sync))
	x.client = newClient(t, reopened(t, x.config), "h")
	return x
}

// gate stops the next operation of a kind after it was enabled.
func gate(ops vfs.Op) *vfs.Rule {
	r := &vfs.Rule{Ops: ops, Block: true, Times: 1}
	r.Disable()
	return r
}

// begin begins a checkpoint and waits until the gate has stopped it.
func (x *committing) begin(k int64, p []byte, a operation.CheckpointArgs, at *vfs.Rule) *operation.Op {
	x.t.Helper()
	at.Enable()
	op, _, err := x.pending(k, p, a, new(operation.Outcome))
	if err != nil {
		x.t.Fatal(err)
	}
	eventually(x.t, "it has come to the gate", func() bool { return at.Blocked() == 1 })
	return op
}

// afterCrash returns a client of the store that is found after a loss of power at this point.
func (x *committing) afterCrash() *client {
	x.t.Helper()
	c := x.config
	c.FS = x.disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
	return newClient(x.t, reopened(x.t, c), "h")
}

// committed waits until no commit is in flight, and returns the number of commits.
func (x *committing) committed() (n int64) {
	eventually(x.t, "all has landed", func() bool {
		x.s.Lock()
		defer x.s.Unlock()
		f := x.s.Disk.Figures()
		n = f.Commits
		return f.Pending.Commits+f.Pending.Queued == 0
	})
	return n
}

// A version whose capture began before another's is not committed behind it: a process that opened the store in between would find the replaced
// version.
func TestWhatIsReplacedIsNotCommittedBehindIt(t *testing.T) {
	x := newCommitting(t)
	first, second := random(5000, 1), random(5000, 2)
	x.mustPut(2, first) // this write creates the data file; other writes to the file wait for it
	before := x.committed()
	x.begin(1, first, operation.CheckpointArgs{SourceStays: true}, x.write)
	op := x.begin(1, second, operation.CheckpointArgs{}, x.sync)
	x.write.Release()
	eventually(t, "the first one is held back", func() bool {
		x.s.Lock()
		defer x.s.Unlock()
		return x.s.Disk.Figures().Pending.Queued == 1
	})
	x.sync.Release()
	if err := drive(t, op, status.Pending, x.fd, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	if n := x.committed() - before; n != 1 {
		t.Fatalf("%d commits", n)
	}
	x.mustGet(1, second, operation.RestoreArgs{})
	x.afterCrash().mustGet(1, second, operation.RestoreArgs{})
}

// A drop, or a clear, spares the version that is being committed meanwhile, because that version comes after it.
func TestDropSparesWhatIsBeingCommitted(t *testing.T) {
	for name, drop := range map[string]func(x *committing) error{
		"drop":  func(x *committing) error { return x.h.Drop(model.NumberKey(1)) },
		"clear": func(x *committing) error { return x.h.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			x := newCommitting(t)
			x.mustPut(1, random(3000, 1))
			x.mustPut(2, random(3000, 2))
			op := x.begin(1, random(5000, 3), operation.CheckpointArgs{}, x.sync)
			if err := drop(x); err != nil {
				t.Fatal(err)
			}
			if _, _, err := x.get(1, 3000, operation.RestoreArgs{}); err == nil {
				t.Fatal("what was dropped is there")
			}
			x.sync.Release()
			if err := drive(t, op, status.Pending, x.fd, new(operation.Outcome)); err != nil {
				t.Fatal(err)
			}
			x.mustPut(3, random(100, 4)) // durable behind the drop
			x.committed()
			for _, c := range []*client{x.client, x.afterCrash()} {
				c.mustGet(1, random(5000, 3), operation.RestoreArgs{})
				if _, _, err := c.get(2, 3000, operation.RestoreArgs{}); (err == nil) != (name == "drop") {
					t.Fatalf("after %s: %v", name, err)
				}
			}
		})
	}
}

// While a version is in flight, a clear also removes checkpoints that only the catalog has.
func TestClearDropsCheckpointsWithoutRecords(t *testing.T) {
	x := newCommitting(t)
	x.mustPut(1, random(3000, 1))
	x.mustPut(2, random(3000, 2))
	c := x.config
	sync := gate(vfs.OpSync)
	disk := x.disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
	c.FS, c.LazyRows = vfs.NewFaulty(disk, sync), true
	y := &committing{client: newClient(t, reopened(t, c), "h"), disk: disk, config: c, sync: sync}
	op := y.begin(3, random(5000, 3), operation.CheckpointArgs{}, y.sync)
	if err := y.h.Clear(); err != nil {
		t.Fatal(err)
	}
	y.sync.Release()
	if err := drive(t, op, status.Pending, y.fd, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	y.mustPut(4, random(100, 4))
	if keys := y.afterCrash().numbers(); len(keys) != 2 || keys[0] != 3 || keys[1] != 4 {
		t.Fatalf("%v are there", keys)
	}
}

// A capture that is cancelled while it is being committed has succeeded. A later write replaces it.
func TestWhatIsBeingCommittedCannotBeGivenUp(t *testing.T) {
	x := newCommitting(t)
	x.mustPut(1, random(3000, 1))
	taken := x.begin(1, random(5000, 2), operation.CheckpointArgs{}, x.sync).Cancel()
	if taken == nil || taken.Ticket == 0 || taken.Slot != 5000 {
		t.Fatalf("%+v", taken)
	}
	if st, err := x.s.Ticket(taken.Ticket); err != nil || st.Gone || st.Durable != 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	third := random(4000, 3)
	if _, _, err := x.pending(1, third, operation.CheckpointArgs{SourceStays: true}, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	x.sync.Release()
	if err := x.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	x.mustGet(1, third, operation.RestoreArgs{})
	x.committed()
	x.afterCrash().mustGet(1, third, operation.RestoreArgs{})
}

// A version that is cancelled while it is being committed replaces versions that were in flight before it, in memory as in the catalog. If it is
// dropped then, it is gone in both.
func TestWhatIsGivenUpReplacesWhatWasUnderwayBefore(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		x := newCommitting(t)
		first, second := random(5000, 1), random(6000, 2)
		op := x.begin(1, first, operation.CheckpointArgs{}, x.sync)
		later, _, err := x.pending(1, second, operation.CheckpointArgs{}, new(operation.Outcome))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "both are on their way", func() bool {
			x.s.Lock()
			defer x.s.Unlock()
			return x.s.Disk.Figures().Pending.Commits == 2
		})
		if later.Cancel() == nil {
			t.Fatal("it was undone")
		}
		if dropped {
			x.drop(1)
		}
		x.sync.Release()
		if err := drive(t, op, status.Pending, x.fd, new(operation.Outcome)); err != nil {
			t.Fatal(err)
		}
		x.mustPut(2, random(100, 3))
		x.committed()
		for _, c := range []*client{x.client, x.afterCrash()} {
			if !dropped {
				c.mustGet(1, second, operation.RestoreArgs{})
			} else if keys := c.numbers(); len(keys) != 1 {
				t.Fatalf("%v are there", keys)
			}
		}
	}
}

// A clear that did not become durable, and is committed again, spares checkpoints that were captured since.
func TestAClearThatFailedSparesWhatCameSince(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	fails := &vfs.Rule{Ops: vfs.OpSync | vfs.OpOpen, Err: unix.EIO}
	fails.Disable()
	x := &committing{disk: disk, write: gate(vfs.OpWrite), sync: gate(vfs.OpSync)}
	x.config = stored(0, 4<<20, vfs.NewFaulty(disk, fails, x.write, x.sync))
	x.client = newClient(t, reopened(t, x.config), "h")
	x.mustPut(1, random(100, 1))
	op := x.begin(1, random(5000, 2), operation.CheckpointArgs{}, x.write)
	x.sync.Enable()
	for range 2 {
		if err := x.h.Clear(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first one is being made durable", func() bool { return x.sync.Blocked() == 1 })
	}
	fails.Enable()
	x.sync.Release()
	eventually(t, "the second one has failed", func() bool {
		x.s.Lock()
		defer x.s.Unlock()
		return x.s.Disk.Figures().Pending.Retries == 1
	})
	fails.Disable()
	x.write.Release()
	if err := drive(t, op, status.Pending, x.fd, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	x.mustPut(2, random(100, 3)) // behind the retried clear
	x.committed()
	x.afterCrash().mustGet(1, random(5000, 2), operation.RestoreArgs{})
	x.s.Lock()
	defer x.s.Unlock()
	if n := x.s.Disk.Figures().Pending.Tombstones; n != 0 {
		t.Errorf("%d tombstones are left", n)
	}
}

// A checkpoint whose replacement could not be captured is cleared with the rest, also when another version has to stay.
func TestClearTakesWhatWasToBeReplaced(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	fails := &vfs.Rule{Ops: vfs.OpWrite, Err: unix.EIO, Times: 1}
	fails.Disable()
	x := &committing{disk: disk, sync: gate(vfs.OpSync)}
	x.config = stored(0, 4<<20, vfs.NewFaulty(disk, fails, x.sync))
	x.client = newClient(t, reopened(t, x.config), "h")
	x.mustPut(1, random(100, 1))
	fails.Enable()
	var out operation.Outcome
	if _, _, err := x.pending(1, random(5000, 2), operation.CheckpointArgs{SourceStays: true}, &out); err != nil {
		t.Fatal(err)
	}
	wants(t, x.wait(out.Ticket, status.TierDisk), status.IO)
	op := x.begin(2, random(5000, 3), operation.CheckpointArgs{}, x.sync)
	if err := x.h.Clear(); err != nil {
		t.Fatal(err)
	}
	x.sync.Release()
	if err := drive(t, op, status.Pending, x.fd, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	x.mustPut(3, random(100, 4))
	x.committed()
	if keys := x.afterCrash().numbers(); len(keys) != 2 || keys[0] != 2 || keys[1] != 3 {
		t.Fatalf("%v are there", keys)
	}
}

// The process died before it dropped the checkpoints that a durable rule does not keep. They are dropped when the store is opened.
func TestARuleIsAppliedWhenTheStoreIsOpened(t *testing.T) {
	x := newCommitting(t)
	for k := range int64(5) {
		x.mustPut(k, random(100, uint64(k)))
	}
	c := x.config
	c.FS = x.disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
	dir, err := durable.Open(durable.Options{FS: c.FS, Dir: c.Path, SegmentBytes: c.SegmentBytes, Capacity: 4 << 20, Guard: new(sync.Mutex)})
	if err != nil {
		t.Fatal(err)
	}
	dir.Commit(&durable.Change{History: "h", Retention: &model.Retention{Last: 2}})
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if keys := newClient(t, reopened(t, c), "h").numbers(); len(keys) != 2 || keys[0] != 3 || keys[1] != 4 {
		t.Fatalf("%v are there", keys)
	}
}

// The latest rule applies, also when an earlier rule became durable only after it.
func TestRuleThatFailedDoesNotComeBack(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	fails := &vfs.Rule{Ops: vfs.OpSync | vfs.OpOpen, Err: unix.EIO}
	fails.Disable()
	c := stored(0, 4<<20, vfs.NewFaulty(disk, fails))
	x := &committing{client: newClient(t, reopened(t, c), "h"), disk: disk, config: c}
	fails.Enable()
	if err := x.h.Retain(model.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has failed", func() bool {
		x.s.Lock()
		defer x.s.Unlock()
		return x.s.Disk.Figures().Pending.Retries == 1
	})
	fails.Disable()
	if err := x.h.Retain(model.Retention{Last: 3}); err != nil {
		t.Fatal(err)
	}
	for k := range int64(9) {
		x.mustPut(k, random(100, uint64(k)))
	}
	if keys := x.afterCrash().numbers(); len(keys) != 3 {
		t.Fatalf("%v are there", keys)
	}
}
