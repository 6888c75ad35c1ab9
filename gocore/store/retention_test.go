package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/durable"
)

func (c *client) numbers() (all []int64) {
	c.t.Helper()
	keys, err := c.h.Keys()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, k := range keys {
		all = append(all, k.Number)
	}
	return all
}

// Every clause of a rule keeps its checkpoints. A rewritten checkpoint counts as a late one. A store that is opened later has the rule, too.
func TestRetention(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			fs := vfs.NewMem(64 << 20)
			c := stored(4<<20, 16<<20, fs)
			c.Durable, c.Flush = durable, "eager"
			s := open(t, c)
			h := newClient(t, s, "h")
			settle := func() {
				t.Helper()
				if err := h.wait(0, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			wants := func(h *client, want ...int64) {
				t.Helper()
				if got := h.numbers(); !slices.Equal(got, want) {
					t.Fatalf("%v are there, not %v", got, want)
				}
			}
			for k := range int64(8) {
				h.mustPut(k, random(3000, uint64(k)))
				settle()
			}
			if err := h.h.Retain(model.Retention{Last: 2, Every: 4, Keys: []model.Key{model.NumberKey(1)}}); err != nil {
				t.Fatal(err)
			}
			wants(h, 0, 1, 4, 6, 7)
			h.mustPut(6, random(3000, 66))
			settle()
			wants(h, 0, 1, 4, 7, 6)
			h.mustPut(9, random(3000, 9))
			settle()
			wants(h, 0, 1, 4, 6, 9)
			if durable {
				after := c
				after.FS = fs.Crash(rand.New(rand.NewPCG(1, 1)), 1)
				h2 := newClient(t, reopened(t, after), "h")
				wants(h2, 0, 1, 4, 6, 9)
				h2.mustPut(10, random(3000, 10))
				if err := h2.wait(0, status.TierDisk); err != nil {
					t.Fatal(err)
				}
				wants(h2, 0, 1, 4, 9, 10)
			}
			if err := h.h.Retain(model.Retention{}); err != nil {
				t.Fatal(err)
			}
			for k := int64(20); k < 25; k++ {
				h.mustPut(k, random(3000, uint64(k)))
			}
			settle()
			wants(h, 0, 1, 4, 6, 9, 20, 21, 22, 23, 24)
		})
	}
}

// In a durable store a rule drops nothing for a newer checkpoint that is not durable yet.
func TestRetentionWaitsForDurability(t *testing.T) {
	c := stored(4<<20, 16<<20, vfs.NewMem(64<<20))
	s := open(t, c)
	h := newClient(t, s, "h")
	if err := h.h.Retain(model.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	first := h.mustPut(0, random(3000, 0))
	if err := h.wait(first.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	for k := int64(1); k < 4; k++ { // flushed lazily: they stay in memory
		h.mustPut(k, random(3000, uint64(k)))
	}
	if got := h.numbers(); !slices.Equal(got, []int64{0, 1, 2, 3}) {
		t.Fatalf("%v are there", got)
	}
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if got := h.numbers(); len(got) != 1 {
		t.Fatalf("%v are there", got)
	}
}

// A checkpoint that becomes durable after one that was written later is still the older one: in this store, after a crash, and for the clean-up after
// it.
func TestRetentionOfCommitsOutOfOrder(t *testing.T) {
	for _, last := range []uint64{1, 2} {
		x := newCommitting(t)
		if err := x.h.Retain(model.Retention{Last: last}); err != nil {
			t.Fatal(err)
		}
		x.mustPut(0, random(2000, 0))
		slow := x.begin(1, random(5000, 1), operation.CheckpointArgs{}, x.write)
		x.mustPut(2, random(3000, 2))
		x.mustPut(3, random(3000, 3))
		x.write.Release()
		if err := drive(t, slow, status.Pending, x.fd, new(operation.Outcome)); err != nil && status.CodeOf(err) != status.Dropped {
			t.Fatal(err)
		}
		want := []int64{2, 3}[2-last:]
		eventually(t, "the older ones have gone", func() bool { return slices.Equal(x.numbers(), want) })
		x.committed()
		eventually(t, "the drops are durable", func() bool {
			x.s.Lock()
			defer x.s.Unlock()
			return x.s.Disk.Figures().Pending.Tombstones == 0
		})
		if got := x.afterCrash().numbers(); !slices.Equal(got, want) {
			t.Fatalf("after a crash %v are there, not %v", got, want)
		}
		got, err := durable.Collect(durable.Options{FS: x.disk, Dir: x.config.Path}, true)
		if err != nil || got.Dropped != 0 {
			t.Fatalf("%d more would go, %v", got.Dropped, err)
		}
	}
}

// A dropped checkpoint does not count among the last: the rule keeps the requested number of the existing ones.
func TestRetentionDoesNotCountWhatWasDropped(t *testing.T) {
	for _, outlives := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", outlives), func(t *testing.T) {
			c := stored(4<<20, 16<<20, vfs.NewMem(64<<20))
			c.Durable, c.Flush = outlives, "eager"
			h := newClient(t, open(t, c), "h")
			if err := h.h.Retain(model.Retention{Last: 2}); err != nil {
				t.Fatal(err)
			}
			put := func(k int64) {
				t.Helper()
				if err := h.wait(h.mustPut(k, random(3000, uint64(k))).Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			put(1)
			put(2)
			h.drop(2)
			put(3)
			if got := h.numbers(); !slices.Equal(got, []int64{1, 3}) {
				t.Fatalf("%v are there", got)
			}
		})
	}
}
