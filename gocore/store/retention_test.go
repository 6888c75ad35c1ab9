package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/catalog"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
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

// Every rule keeps what it speaks for; written again, a checkpoint is a late one; whoever opens the store next has the rule too.
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
			if err := h.h.Retain(catalog.Retention{Last: 2, Every: 4, Keys: []plan.Key{plan.Number(1)}}); err != nil {
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
			if err := h.h.Retain(catalog.Retention{}); err != nil {
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

// In a durable store nothing goes for a newer one that is not durable yet.
func TestRetentionWaitsForDurability(t *testing.T) {
	c := stored(4<<20, 16<<20, vfs.NewMem(64<<20))
	s := open(t, c)
	h := newClient(t, s, "h")
	if err := h.h.Retain(catalog.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	first := h.mustPut(0, random(3000, 0))
	if err := h.wait(first.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	for k := int64(1); k < 4; k++ { // lazily flushed: they stay in memory
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
