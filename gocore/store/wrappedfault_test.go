package store

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// journalRules are for syncs of the catalog's journals, which fail with an error, or are blocked without one. They are disabled.
func journalRules(err error) (all []*vfs.Rule) {
	for i := range 9 {
		r := &vfs.Rule{Ops: vfs.OpSync, Name: fmt.Sprintf("catalog-%016d", i+1), Err: err, Block: err == nil}
		r.Disable()
		all = append(all, r)
	}
	return all
}

// faulty opens a durable store on a disk with these rules, and writes an anchor and checkpoints that are encoded with it, up to the host.
func faulty(t *testing.T, durable bool, count int64, rules ...*vfs.Rule) (*board, *client, *states) {
	const size = 3 << 20
	b, c := relating(t, func(c *config.Config) {
		unforeseen(64<<20, 256<<20, durable)(c)
		c.FS = vfs.NewFaulty(vfs.NewMem(1<<30), rules...)
	})
	on := b.states(c, size)
	for k := range count {
		on.put(k, step(size, k))
		b.check(c.wait(0, status.TierHost))
	}
	if count > 1 && c.anchorOf(1) == nil {
		t.Fatal("there is no anchor")
	}
	return b, c, on
}

// Checkpoints come back as they were when their anchor's object is doubted: nothing new may need it, but it has the bytes all the same.
func TestADoubtedAnchor(t *testing.T) {
	const count = 4
	b, c, on := faulty(t, false, count)
	c.awaitDisk(0)
	c.s.Lock()
	c.s.LetGoAnchors(true)
	c.s.Disk.Damaged(c.h.h.Get(model.NumberKey(1)).Version.Difference.Sources[0].Offset) // as a failed sync of its file does
	c.s.Leave()
	for k := int64(1); k < count; k++ {
		c.pushOffBy(b, on.n)
		c.pushOffHost()
		on.get(k, step(on.n, k))
	}
	drained(t, c.s)
}

// A flush whose commit is uncertain, and which is repeated while that is being found out, keeps the second difference.
func TestAnUncertainCommitOfAnObject(t *testing.T) {
	failing, gates := journalRules(unix.EIO), journalRules(nil)
	b, c, on := faulty(t, true, 1, append(failing, gates...)...)
	c.awaitDisk(0)
	on.put(1, step(on.n, 1))
	b.check(c.wait(0, status.TierHost))
	for _, r := range failing {
		r.Enable()
	}
	if err := c.wait(0, status.TierDisk); err == nil {
		t.Fatal("the commit has not failed")
	}
	for i := range failing {
		failing[i].Disable()
		gates[i].Enable()
	}
	time.AfterFunc(time.Second, func() {
		for _, g := range gates {
			g.Release()
		}
	})
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 1 || n.referring != 1 {
		t.Fatalf("%+v", n)
	}
	c.s.Lock()
	c.s.LetGoAnchors(true)
	c.s.Leave()
	c.pushOffBy(b, on.n)
	c.pushOffHost()
	on.get(1, step(on.n, 1))
	drained(t, c.s)
}

// A flush does not wait for an anchor that has been written, and is doubted before its commit has ended.
func TestAnAnchorIsDoubtedWhileItIsCommitted(t *testing.T) {
	gates := journalRules(nil)
	_, c, on := faulty(t, true, 2, gates...)
	for _, r := range gates {
		r.Enable()
	}
	disk := c.s.HostTier() + 1
	c.s.Lock()
	anchor, other := c.h.h.Get(model.NumberKey(0)), c.h.h.Get(model.NumberKey(1))
	c.s.Engine.Await(c.s.Now(), []*engine.Record{anchor}, disk)
	c.s.Leave()
	eventually(t, "the anchor is being committed", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.Disk.Figures().Pending.Commits == 1
	})
	c.s.Lock()
	c.s.Disk.Damaged(c.s.Engine.Fragment(anchor, disk).Offset)
	c.s.Engine.Await(c.s.Now(), []*engine.Record{other}, disk)
	c.s.Leave()
	eventually(t, "the other one is being committed", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.Disk.Figures().Pending.Commits > 1
	})
	for _, r := range gates {
		r.Release()
	}
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 2 {
		t.Errorf("%+v", n)
	}
	on.get(1, step(on.n, 1))
	drained(t, c.s)
}

// Parts of checkpoints are read from the disk while loads bring the checkpoints to the host.
func TestPartsAreReadBesideLoads(t *testing.T) {
	const count = 4
	b, c, on := faulty(t, false, count)
	c.awaitDisk(0)
	c.s.Lock()
	c.s.LetGoAnchors(true)
	c.s.Leave()
	reader := newClient(t, c.s, "h")
	for range 3 {
		c.pushOffBy(b, on.n)
		c.pushOffHost()
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			to := make([]byte, 16)
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				if _, err := reader.restoreTo(1+i%3, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{{Item: 16}}}); err != nil {
					ended <- err
					return
				}
			}
		}()
		for k := int64(1); k < count; k++ {
			on.get(k, step(on.n, k))
		}
		close(stop)
		b.check(<-ended)
	}
	drained(t, c.s)
}

// The host keeps its copy of an anchor that is in use, whatever else passes through.
func TestTheHostKeepsAnAnchor(t *testing.T) {
	const count, more = 4, 12
	b, c, on := faulty(t, false, count)
	c.awaitDisk(0)
	other := newClient(t, c.s, "other")
	for k := range int64(20) { // each takes the place of what is evictable, without waiting for it
		other.mustPut(k, random(4<<20, uint64(k)))
		b.check(other.wait(0, status.TierDisk))
	}
	for k := int64(count); k < count+more; k++ {
		on.put(k, step(on.n, k))
		b.check(c.wait(0, status.TierHost))
	}
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 1 || n.referring != count-1+more {
		t.Errorf("%+v", n)
	}
	drained(t, c.s)
}

// When the host has given up the copy of an anchor that nothing was encoded with yet, another checkpoint becomes the anchor.
func TestTheHostGivesUpAnAnchor(t *testing.T) {
	const more = 12
	b, c, on := faulty(t, false, 1)
	c.awaitDisk(0)
	if c.anchors() != 1 {
		t.Fatal("there is no anchor")
	}
	c.pushOffHost()
	for k := range int64(more) {
		on.put(1+k, step(on.n, 1+k))
		b.check(c.wait(0, status.TierHost))
	}
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 2 || n.referring != more-1 {
		t.Errorf("%+v", n)
	}
	drained(t, c.s)
}
