package store

import (
	"syscall"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

func TestSmallFlushesGoTogether(t *testing.T) {
	fs, gate := blocked(vfs.OpWrite, 64<<20)
	c := cached(8<<20, 16<<20, fs)
	c.Flush, c.Workers = "eager", 1
	s := open(t, c)
	defer gate.Release()
	h := newClient(t, s, "h")
	gate.Enable()
	const n = 500
	for k := range int64(n) {
		h.mustPut(k, random(int(k*37%9000), uint64(k)))
		if k == 0 {
			eventually(t, "the first is being written", func() bool { return gate.Blocked() == 1 })
		}
	}
	gate.Release()
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if calls := fs.Calls(vfs.OpWrite); calls > n/10 {
		t.Errorf("%d writes for %d small checkpoints", calls, n)
	}
	for k := int64(1000); h.inHost(0) || h.inHost(n-1); k++ {
		h.putDown(k, random(64<<10, uint64(k)))
	}
	for k := range int64(n) {
		h.mustGet(k, random(int(k*37%9000), uint64(k)), operation.RestoreArgs{})
	}
	drained(t, s)
}

func TestOneBadPlaceOnDiskSpoilsNoNeighbour(t *testing.T) {
	bad := &vfs.Rule{Ops: vfs.OpWrite, Err: syscall.EIO, From: 40 << 10, To: 41 << 10}
	gate := &vfs.Rule{Ops: vfs.OpWrite, Block: true, Times: 1}
	fs := vfs.NewFaulty(vfs.NewMem(64<<20), gate, bad)
	c := cached(8<<20, 16<<20, fs)
	c.Flush, c.Workers = "eager", 1
	s := open(t, c)
	defer gate.Release()
	h := newClient(t, s, "h")
	var tickets []uint64
	for k := range int64(40) {
		tickets = append(tickets, h.mustPut(k, random(4000, uint64(k))).Ticket)
		if k == 0 {
			eventually(t, "the first is being written", func() bool { return gate.Blocked() == 1 })
		}
	}
	gate.Release()
	failed := 0
	for _, ticket := range tickets {
		if err := h.wait(ticket, status.TierDisk); err != nil {
			if e := wants(t, err, status.IO); e.Errno != int(syscall.EIO) {
				t.Fatal(e)
			}
			failed++
		}
	}
	if failed > 1 || bad.Fired() < 2 { // the retried flush may have been written to another place
		t.Errorf("%d checkpoints failed for one bad block, met %d times", failed, bad.Fired())
	}
	for k := range int64(40) {
		h.mustGet(k, random(4000, uint64(k)), operation.RestoreArgs{})
	}
	drained(t, s)
}

func TestSmallLoadsComeTogetherAndAnErrorStaysAlone(t *testing.T) {
	fs := vfs.NewFaulty(vfs.NewMem(64 << 20))
	c := cached(1<<20, 16<<20, fs)
	c.Workers = 1
	s := open(t, c)
	h := newClient(t, s, "h")
	const n, bad = 600, 333
	for k := range int64(n) {
		h.mustPut(k, random(9000, uint64(k)))
	}
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if h.inHost(bad) {
		t.Fatal("it should have been evicted")
	}
	if err := h.h.Corrupt(model.Key{Number: bad}, status.TierDisk, 8765); err != nil {
		t.Fatal(err)
	}
	before := fs.Calls(vfs.OpRead)
	for k := int64(n - 1); k >= 0; k-- {
		if k == bad {
			_, _, err := h.get(k, 9000, operation.RestoreArgs{})
			if e := wants(t, err, status.Corrupt); e.Tier != status.TierDisk || e.Region != 0 {
				t.Fatalf("%+v", e)
			}
			continue
		}
		h.mustGet(k, random(9000, uint64(k)), operation.RestoreArgs{})
	}
	t.Logf("%d reads for %d small checkpoints", fs.Calls(vfs.OpRead)-before, n)
	if fs.Calls(vfs.OpRead)-before > n*3/4 {
		t.Error("small neighbours are read one by one")
	}
	drained(t, s)
}
