package store

import (
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/durable"
)

// The disk is smaller than the budget. All its space is used, and each drop makes space for a new checkpoint, any number of times, also for the
// catalog. The store can be opened and cleaned up.
func TestADiskSmallerThanItsBudget(t *testing.T) {
	fs := vfs.NewMem(24 << 20)
	c := stored(1<<20, 1<<30, fs)
	c.SegmentBytes, c.CatalogSlack = 0, 128<<10 // files much larger than the disk; a catalog that is often rewritten
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	h := newClient(t, s, "h")
	p := random(20_000, 1)
	kept := func(k int64) error { return h.wait(h.mustPut(k, p).Ticket, status.TierDisk) }
	n := int64(0)
	for ; kept(n) == nil; n++ {
		if n > 2000 {
			t.Fatal("no end")
		}
	}
	if n < 20<<20/20_480 {
		t.Fatalf("%d checkpoints had room", n)
	}
	h.drop(n)
	rounds := int64(5000)
	if testing.Short() {
		rounds = n
	}
	live := make([]int64, n)
	for k := range live {
		live[k] = int64(k)
	}
	oldest := func() string {
		names, _ := fs.List(c.Path)
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, "catalog-") })
		return names[i]
	}
	begun := oldest()
	for k := n + 1; k < n+rounds; k++ { // each takes the space of a dropped one
		h.drop(live[0])
		eventually(t, "the drop is durable", func() bool {
			s.Lock()
			defer s.Unlock()
			p := s.Disk.Figures().Pending
			return p.Retries == 0 && p.Releases == 0
		})
		if err := kept(k); err != nil {
			t.Fatalf("checkpoint %d: %v", k, err)
		}
		live = append(live[1:], k)
	}
	if !testing.Short() && oldest() == begun {
		t.Errorf("the catalog was not written anew: %v", begun)
	}
	shut(t, s)
	again := func() {
		s = reopened(t, c)
		h = newClient(t, s, "h")
		for _, k := range live {
			h.mustGet(k, p, operation.RestoreArgs{})
		}
	}
	again()
	if err := h.wait(h.mustPut(n+rounds, p).Ticket, status.TierDisk); err == nil {
		t.Error("there was more room than before")
	}
	h.drop(n + rounds)
	shut(t, s)
	if got, err := durable.Collect(durable.Options{FS: fs, Dir: c.Path}, false); err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	again()
}
