package store

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/operation"
)

// stallingDisk is a store's disk that can stop answering. The store's limits are short only while it does: on a slow machine everything else may take
// its time.
type stallingDisk struct {
	s    *Store
	rule *vfs.Rule
}

func (d stallingDisk) stop() {
	d.despairAfter(100 * time.Millisecond)
	d.rule.Enable()
}

func (d stallingDisk) goOn() {
	d.despairAfter(hang)
	d.rule.Disable()
	d.rule.Release()
}

func (d stallingDisk) despairAfter(age time.Duration) {
	d.s.Lock()
	defer d.s.Unlock()
	d.s.Set.GiveUpAfter = age
}

// stalling returns a store whose disk can stop answering.
func stalling(t *testing.T, host int64, ops vfs.Op) (*Store, *client, stallingDisk) {
	t.Helper()
	rule := &vfs.Rule{Ops: ops, Block: true}
	rule.Disable()
	c := stored(host, 16<<20, vfs.NewFaulty(vfs.NewMem(64<<20), rule))
	c.Flush, c.StallAfter, c.GiveUpAfter = "eager", 20*time.Millisecond, hang
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	disk := stallingDisk{s, rule}
	t.Cleanup(func() {
		disk.goOn()
		shut(t, s)
		gone(t, c)
	})
	return s, newClient(t, s, "h"), disk
}

func (s *Store) stalled(t *testing.T) bool {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st.Tiers["disk"].Stalled > 0
}

// While the disk is stalled, callers that wait for it get an error, and other callers go on. Afterwards everything works as before.
func TestAStalledDisk(t *testing.T) {
	for name, ops := range map[string]vfs.Op{"writes": vfs.OpWrite, "syncs": vfs.OpSync} {
		t.Run(name, func(t *testing.T) {
			s, h, disk := stalling(t, 4<<20, ops)
			before := h.mustPut(0, random(100_000, 0))
			if err := h.wait(before.Ticket, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			disk.stop()
			out := h.mustPut(1, random(100_000, 1))
			if e := wants(t, h.wait(out.Ticket, status.TierDisk), status.IO); e.Errno != int(unix.ETIMEDOUT) || e.Tier != status.TierDisk {
				t.Errorf("%+v", e)
			}
			if !s.stalled(t) {
				t.Error("the store does not say that its disk stands still")
			}
			h.mustGet(0, random(100_000, 0), operation.RestoreArgs{})
			h.mustGet(1, random(100_000, 1), operation.RestoreArgs{})
			h.mustPut(2, random(100_000, 2))
			disk.goOn()
			for _, k := range []int64{0, 1, 2} {
				h.mustGet(k, random(100_000, uint64(k)), operation.RestoreArgs{})
			}
			eventually(t, "the disk answers again", func() bool { return !s.stalled(t) })
			if err := h.wait(0, status.TierDisk); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A caller that waits for room that only the disk can make gets the error, too.
func TestAStalledDiskMakesNoRoom(t *testing.T) {
	_, h, disk := stalling(t, 256<<10, vfs.OpWrite)
	disk.stop()
	var err error
	k := int64(0)
	for ; k < 10 && err == nil; k++ {
		_, err = h.put(k, random(60_000, uint64(k)))
	}
	if e := wants(t, err, status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	disk.goOn()
	eventually(t, "there is room again", func() bool {
		_, err := h.put(20, random(60_000, 20))
		return err == nil
	})
	for i := range k - 1 {
		h.mustGet(i, random(60_000, uint64(i)), operation.RestoreArgs{})
	}
}

// A caller that waits for bytes that only the disk has gets the error, and can try again later.
func TestAStalledDiskGivesNothing(t *testing.T) {
	_, h, disk := stalling(t, 256<<10, vfs.OpRead)
	for k := range int64(10) {
		h.mustPut(k, random(60_000, uint64(k)))
	}
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	disk.stop()
	_, _, err := h.get(0, 60_000, operation.RestoreArgs{})
	if e := wants(t, err, status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	disk.goOn()
	eventually(t, "the bytes come", func() bool {
		got, _, err := h.get(0, 60_000, operation.RestoreArgs{})
		return err == nil && string(got) == string(random(60_000, 0))
	})
}

// A full disk fails the calls that need it, keeps its checkpoints, and works again when there is space.
func TestAFullDisk(t *testing.T) {
	for _, why := range []error{unix.ENOSPC, unix.EDQUOT} {
		full := &vfs.Rule{Ops: vfs.OpAllocate | vfs.OpWrite, Err: why}
		full.Disable()
		c := stored(4<<20, 16<<20, vfs.NewFaulty(vfs.NewMem(64<<20), full))
		c.SegmentBytes = 64 << 10
		s := reopened(t, c)
		h := newClient(t, s, "h")
		out := h.mustPut(0, random(50_000, 0))
		if err := h.wait(out.Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
		full.Enable()
		out = h.mustPut(1, random(90_000, 1))
		err := h.wait(out.Ticket, status.TierDisk)
		if e := wants(t, err, status.IO); !errors.Is(err, why) && e.Errno != int(why.(unix.Errno)) {
			t.Fatal(err)
		}
		h.mustGet(0, random(50_000, 0), operation.RestoreArgs{})
		h.mustGet(1, random(90_000, 1), operation.RestoreArgs{})
		h.drop(0)
		full.Disable()
		if err := h.wait(out.Ticket, status.TierDisk); err != nil {
			t.Fatalf("there is space again: %v", err)
		}
	}
}

// A caller that writes directly to the disk gets the error that the disk does not take the bytes. They are never written afterwards.
func TestAStalledDiskTakesNothing(t *testing.T) {
	_, h, disk := stalling(t, 0, vfs.OpWrite)
	h.mustPut(1, random(50_000, 1))
	disk.stop()
	_, err := h.put(1, random(60_000, 2))
	if e := wants(t, err, status.IO); e.Errno != int(unix.ETIMEDOUT) || e.Tier != status.TierDisk {
		t.Fatal(e)
	}
	disk.goOn()
	h.mustPut(2, random(50_000, 3))
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	h.mustGet(1, random(50_000, 1), operation.RestoreArgs{})
}

// Bytes that the disk has taken, but does not make durable, count as captured.
func TestAStalledDiskMakesNothingDurable(t *testing.T) {
	_, h, disk := stalling(t, 0, vfs.OpSync)
	h.mustPut(1, random(50_000, 1))
	disk.stop()
	out, err := h.put(1, random(60_000, 2))
	if err != nil {
		t.Fatal(err)
	}
	if e := wants(t, h.wait(out.Ticket, status.TierDisk), status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	disk.goOn()
	if err := h.wait(out.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	h.mustGet(1, random(60_000, 2), operation.RestoreArgs{})
}

// A caller that waits for the room of a drop gets the error when the drop does not become durable.
func TestAStalledDiskGivesNoRoomBack(t *testing.T) {
	countsDiskBytes(t)
	s, h, disk := stalling(t, 0, vfs.OpSync)
	for k := range int64(4) {
		h.mustPut(k, random(4<<20, uint64(k)))
	}
	disk.stop()
	h.drop(0)
	_, err := h.put(5, random(4<<20, 5))
	if e := wants(t, err, status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	if !s.stalled(t) {
		t.Error("the store does not say that its disk stands still")
	}
	disk.goOn()
	h.mustPut(5, random(4<<20, 5))
	h.mustGet(5, random(4<<20, 5), operation.RestoreArgs{})
}

// Callers whose transfers have not begun get the error, too.
func TestAStalledDiskTakesNothingFromThoseBehind(t *testing.T) {
	s, h, disk := stalling(t, 0, vfs.OpWrite)
	disk.stop()
	var callers [12]*client
	var ops [len(callers)]*operation.Op
	for k := range callers {
		callers[k] = newClient(t, s, "h")
		op, code, err := callers[k].pending(int64(k), random(1<<20, uint64(k)), operation.CheckpointArgs{}, new(operation.Outcome))
		if err != nil || code != status.Pending {
			t.Fatal(code, err)
		}
		ops[k] = op
	}
	for k, op := range ops {
		if e := wants(t, drive(t, op, status.Pending, callers[k].fd, new(operation.Outcome)), status.IO); e.Errno != int(unix.ETIMEDOUT) {
			t.Errorf("%d: %v", k, e)
		}
	}
	disk.goOn()
	for k := range int64(10) {
		h.mustPut(k, random(1<<20, uint64(k)))
	}
	for k := range int64(10) {
		h.mustGet(k, random(1<<20, uint64(k)), operation.RestoreArgs{})
	}
}

// The disk cannot make room in the host tier either, if its own room depends on drops that do not become durable. Tickets report the error.
func TestAStalledDiskMakesNoRoomByDrops(t *testing.T) {
	_, h, disk := stalling(t, 1<<20, vfs.OpSync)
	tickets := map[int64]uint64{}
	var err error
	k := int64(0)
	for ; k < 64 && err == nil; k++ {
		var out operation.Outcome
		if out, err = h.put(k, random(1<<19, uint64(k))); err == nil {
			tickets[k] = out.Ticket
		}
	}
	if k < 30 {
		t.Fatalf("only %d: %v", k, err)
	}
	disk.stop()
	h.drop(0)
	_, err = h.put(100, random(1<<19, 100))
	if e := wants(t, err, status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	last := tickets[k-2]
	if e := wants(t, h.wait(last, status.TierDisk), status.IO); e.Errno != int(unix.ETIMEDOUT) {
		t.Fatal(e)
	}
	disk.goOn()
	h.drop(1)
	h.drop(2)
	h.mustPut(100, random(1<<19, 100))
	h.mustGet(100, random(1<<19, 100), operation.RestoreArgs{})
}

// A disk that is slow but progresses is waited for, however long a large transfer takes. The transfer takes several times as long as the store waits
// for an answer, and one answer takes a small part of that limit. A machine that stands still for a second therefore does not make the disk look
// stalled.
func TestASlowDiskIsWaitedFor(t *testing.T) {
	countsDiskBytes(t)
	for name, host := range map[string]int64{"straight": 0, "by way of the host": 32 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := &vfs.Rule{Ops: vfs.OpWrite | vfs.OpRead, Delay: 60 * time.Millisecond}
			c := stored(host, 32<<20, vfs.NewFaulty(vfs.NewMem(64<<20), slow))
			c.Flush, c.StallAfter, c.GiveUpAfter, c.Workers = "eager", 50*time.Millisecond, 1500*time.Millisecond, 1
			h := newClient(t, reopened(t, c), "h")
			p := random(14<<20, 1) // several times GiveUpAfter, and well within the limit of a step
			begun := time.Now()
			out := h.mustPut(1, p)
			if err := h.wait(out.Ticket, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < 2*c.GiveUpAfter {
				t.Errorf("the disk was not slow: %v", took)
			}
			h.mustGet(1, p, operation.RestoreArgs{})
		})
	}
}

// Reads that progress do not hide stalled writes.
func TestReadsHideNoStalledWrites(t *testing.T) {
	s, h, disk := stalling(t, 0, vfs.OpWrite)
	h.mustPut(0, random(50_000, 0))
	disk.stop()
	var callers [6]*client
	var ops [len(callers)]*operation.Op
	for k := range callers {
		callers[k] = newClient(t, s, "h")
		op, _, err := callers[k].pending(int64(1+k), random(60_000, uint64(k)), operation.CheckpointArgs{}, new(operation.Outcome))
		if err != nil {
			t.Fatal(err)
		}
		ops[k] = op
	}
	stop, reads := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for reader := newClient(t, s, "h"); ; n++ {
			select {
			case <-stop:
				reads <- n
				return
			default:
				if got, _, err := reader.get(0, 50_000, operation.RestoreArgs{}); err != nil || string(got) != string(random(50_000, 0)) {
					t.Errorf("read %d: %v", n, err)
				}
			}
		}
	}()
	for k, op := range ops {
		if e := wants(t, drive(t, op, status.Pending, callers[k].fd, new(operation.Outcome)), status.IO); e.Errno != int(unix.ETIMEDOUT) {
			t.Errorf("%d: %v", k, e)
		}
	}
	close(stop)
	if n := <-reads; n == 0 {
		t.Error("nothing was read")
	}
}

// Restores whose transfers have not begun get the error as well.
func TestAStalledDiskGivesNothingToThoseBehind(t *testing.T) {
	s, h, disk := stalling(t, 0, vfs.OpRead)
	for k := range int64(8) {
		h.mustPut(k, random(60_000, uint64(k)))
	}
	disk.stop()
	done := make(chan error)
	for k := range int64(8) {
		go func() {
			_, _, err := newClient(t, s, "h").get(k, 60_000, operation.RestoreArgs{})
			done <- err
		}()
	}
	for range 8 {
		if e := wants(t, <-done, status.IO); e.Errno != int(unix.ETIMEDOUT) {
			t.Error(e)
		}
	}
	disk.goOn()
	for k := range int64(8) {
		eventually(t, "the bytes come", func() bool {
			got, _, err := h.get(k, 60_000, operation.RestoreArgs{})
			return err == nil && string(got) == string(random(60_000, uint64(k)))
		})
	}
}
