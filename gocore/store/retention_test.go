package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
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
			if err := h.h.Retain(catalog.Retention{Last: 2, Every: 4, Keys: []model.Key{model.NumberKey(1)}}); err != nil {
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

// In a durable store a rule drops nothing for a newer checkpoint that is not durable yet.
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

// Checkpoints become durable, are replaced and dropped in any order. Those stay that the rule keeps by order of writing and by score, and none that
// it would keep of the durable ones has gone meanwhile.
func TestRetentionGoesByTheOrderOfWriting(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		rule := catalog.Retention{Last: uint64(r.IntN(5)), Every: uint64(r.IntN(4)), Named: r.IntN(2) == 0, Keys: []model.Key{model.NumberKey(int64(r.IntN(20)))}}
		if r.IntN(3) == 0 {
			rule.Keys = nil
		}
		if seed%2 == 1 {
			rule.Best = catalog.Best{Count: uint64(1 + r.IntN(4)), By: []string{"loss"}}
		}
		x, there := newRetention(&rule), map[model.Key]candidate{}
		key := func(n int) model.Key {
			if n%7 == 3 {
				return model.TextKey(fmt.Sprint(n))
			}
			return model.NumberKey(int64(n))
		}
		for _, at := range r.Perm(60) {
			k := key(r.IntN(20))
			if int64(at) < there[k].at {
				continue // versions of a key become durable in their order
			}
			if r.IntN(6) == 0 {
				delete(there, k)
				x.remove(k)
			} else {
				there[k] = candidate{written{int64(at), k}, float64(r.IntN(9)), r.IntN(5) > 0}
				x.add(there[k])
			}
			kept := keptBy(&rule, there)
			for _, w := range x.unkept {
				if kept[w.key] || there[w.key].at != w.at {
					t.Fatalf("seed %d: %v of %d goes, of %v the rule %+v keeps %v", seed, w.key, w.at, there, rule, kept)
				}
				delete(there, w.key)
			}
			x.unkept = nil
			if len(kept) != len(there) {
				t.Fatalf("seed %d: %v are there, the rule %+v keeps %v", seed, there, rule, kept)
			}
		}
	}
}

// keptBy returns the checkpoints that a rule keeps.
func keptBy(rule *catalog.Retention, there map[model.Key]candidate) map[model.Key]bool {
	all := slices.Collect(maps.Values(there))
	slices.SortFunc(all, func(a, b candidate) int { return int(b.at - a.at) })
	kept, exempt := map[model.Key]bool{}, rule.Exempts()
	for i, c := range all {
		if i < int(rule.Last) || exempt(c.key) {
			kept[c.key] = true
		}
	}
	for _, c := range all {
		better := 0
		for _, other := range all {
			if other.scored && (other.score < c.score || other.score == c.score && other.at < c.at) {
				better++
			}
		}
		if c.scored && better < int(rule.Best.Count) {
			kept[c.key] = true
		}
	}
	return kept
}

// A checkpoint that becomes durable after one that was written later is still the older one: in this store, after a crash, and for the clean-up after
// it.
func TestRetentionOfCommitsOutOfOrder(t *testing.T) {
	for _, last := range []uint64{1, 2} {
		x := newCommitting(t)
		if err := x.h.Retain(catalog.Retention{Last: last}); err != nil {
			t.Fatal(err)
		}
		x.mustPut(0, random(2000, 0))
		slow := x.begin(1, random(5000, 1), CheckpointArgs{}, x.write)
		x.mustPut(2, random(3000, 2))
		x.mustPut(3, random(3000, 3))
		x.write.Release()
		if err := drive(t, slow, status.Pending, x.fd, new(Outcome)); err != nil && status.CodeOf(err) != status.Dropped {
			t.Fatal(err)
		}
		want := []int64{2, 3}[2-last:]
		eventually(t, "the older ones have gone", func() bool { return slices.Equal(x.numbers(), want) })
		x.committed()
		eventually(t, "the drops are durable", func() bool {
			x.s.mu.Lock()
			defer x.s.mu.Unlock()
			return x.s.disk.Figures().Pending.Tombstones == 0
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
			if err := h.h.Retain(catalog.Retention{Last: 2}); err != nil {
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
