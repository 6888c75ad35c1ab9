package store

import (
	"testing"

	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
)

// A disk that is smaller than the budget: what it has is used, what is dropped makes room again, for as long as one likes.
func TestADiskSmallerThanItsBudget(t *testing.T) {
	fs := vfs.NewMem(24 << 20)
	c := stored(1<<20, 1<<30, fs)
	c.SegmentBytes = 0 // files much larger than the disk
	s := open(t, c)
	h := newClient(t, s, "h")
	p := random(200_000, 1)
	kept := func(k int64) error { return h.wait(h.mustPut(k, p).Ticket, status.TierDisk) }
	n := int64(0)
	for ; kept(n) == nil; n++ {
		if n > 200 {
			t.Fatal("no end")
		}
	}
	if n < 19<<20/200_704 {
		t.Fatalf("%d checkpoints had room", n)
	}
	h.drop(n)
	live := make([]int64, n)
	for k := range live {
		live[k] = int64(k)
	}
	for k := n + 1; k < 4*n; k++ { // each takes the room of one that has been dropped
		h.drop(live[0])
		eventually(t, "the drop is durable", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.kept.owed.changes) == 0 && len(s.stall.drops) == 0
		})
		if err := kept(k); err != nil {
			t.Fatalf("checkpoint %d: %v", k, err)
		}
		live = append(live[1:], k)
	}
	for _, k := range live {
		h.mustGet(k, p, RestoreArgs{})
	}
}
