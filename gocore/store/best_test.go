package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/durable"
)

func bestBy(count uint64, names ...string) model.Best { return model.Best{Count: count, By: names} }

// lost returns the arguments of a checkpoint with a loss in its meta.
func lost(loss any) operation.CheckpointArgs {
	return operation.CheckpointArgs{Meta: fmt.Appendf(nil, `{"val": {"loss": %v}}`, loss)}
}

// putLost writes a checkpoint with a loss, and waits until it is on disk.
func (c *client) putLost(k int64, loss any) {
	c.t.Helper()
	out, err := c.putArgs(k, random(3000, uint64(k)), lost(loss))
	if err == nil {
		err = c.wait(out.Ticket, status.TierDisk)
	}
	if err != nil && status.CodeOf(err) != status.Dropped { // no rule kept it
		c.t.Fatal(err)
	}
}

// sorted returns the keys that the history has.
func (c *client) sorted() []int64 {
	c.t.Helper()
	return slices.Sorted(slices.Values(c.numbers()))
}

// A rule keeps the best checkpoints beside those of its other clauses, whichever checkpoints are written, dropped and rewritten. A store that is
// opened later keeps the same.
func TestRetentionKeepsTheBest(t *testing.T) {
	for _, outlives := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", outlives), func(t *testing.T) {
			fs := vfs.NewMem(64 << 20)
			c := stored(4<<20, 16<<20, fs)
			c.Durable, c.Flush = outlives, "eager"
			h := newClient(t, open(t, c), "h")
			wants := func(h *client, want ...int64) {
				t.Helper()
				if got := h.sorted(); !slices.Equal(got, want) {
					t.Fatalf("%v are there, not %v", got, want)
				}
			}
			for k, loss := range []float64{0.9, 0.5, 0.7, 0.5, 0.6} {
				h.putLost(int64(k), loss)
			}
			if err := h.h.Retain(model.Retention{Last: 1, Best: bestBy(2, "val", "loss")}); err != nil {
				t.Fatal(err)
			}
			wants(h, 1, 3, 4)
			h.putLost(5, 0.5) // no better than the earlier ones
			wants(h, 1, 3, 5)
			h.putLost(6, "NaN")
			wants(h, 1, 3, 6)
			h.putLost(1, 0.8) // it was one of the best, and is now the latest
			wants(h, 1, 3)
			h.putLost(7, 0.4)
			wants(h, 3, 7)
			h.putLost(8, 0.6)
			wants(h, 3, 7, 8)
			h.drop(7) // 8 stays as the latest, and becomes one of the best
			h.putLost(9, 2)
			wants(h, 3, 8, 9)
			if outlives {
				after := c
				after.FS = fs.Crash(rand.New(rand.NewPCG(1, 1)), 1)
				h2 := newClient(t, reopened(t, after), "h")
				wants(h2, 3, 8, 9)
				h2.putLost(10, 0.1)
				wants(h2, 3, 10)
			}
			if err := h.h.Retain(model.Retention{Best: model.Best{Count: 1, By: []string{"val", "loss"}, Largest: true}}); err != nil {
				t.Fatal(err)
			}
			wants(h, 9)
			h.putLost(11, 1)
			wants(h, 9)
		})
	}
}

// In a durable store a rule drops nothing for a better checkpoint that is not durable yet.
func TestTheBestWaitForDurability(t *testing.T) {
	x := newCommitting(t)
	if err := x.h.Retain(model.Retention{Best: bestBy(1, "val", "loss")}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.putArgs(1, random(3000, 1), lost(0.5)); err != nil {
		t.Fatal(err)
	}
	better := x.begin(2, random(3000, 2), lost(0.1), x.write)
	if got := x.numbers(); !slices.Contains(got, 1) {
		t.Fatalf("%v are there", got)
	}
	if got := x.afterCrash().numbers(); !slices.Equal(got, []int64{1}) {
		t.Fatalf("after a crash %v are there", got)
	}
	x.write.Release()
	if err := drive(t, better, status.Pending, x.fd, new(operation.Outcome)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worse one has gone", func() bool { return slices.Equal(x.numbers(), []int64{2}) })
	x.committed()
	if got := x.afterCrash().numbers(); !slices.Contains(got, 2) {
		t.Fatalf("after a crash %v are there", got)
	}
}

// A rule that is set while a better checkpoint lies in memory does not count that one before it is durable.
func TestRetentionCountsWhatIsDurable(t *testing.T) {
	fs := vfs.NewMem(64 << 20)
	c := stored(4<<20, 16<<20, fs)
	h := newClient(t, reopened(t, c), "h")
	h.mustPut(1, random(3000, 1))
	h.putLost(2, 0.5)
	if _, err := h.putArgs(3, random(3000, 3), lost(0.1)); err != nil { // flushed lazily: it stays in memory
		t.Fatal(err)
	}
	if err := h.h.Retain(model.Retention{Best: bestBy(1, "val", "loss")}); err != nil {
		t.Fatal(err)
	}
	if got := h.numbers(); !slices.Contains(got, 2) || !slices.Contains(got, 3) {
		t.Fatalf("%v are there", got)
	}
	c.FS = fs.Crash(rand.New(rand.NewPCG(1, 1)), 0)
	if found, _ := foundIn(t, c); !slices.Contains(found, 2) {
		t.Fatalf("after a crash %v are there", found)
	}
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	if got := h.numbers(); !slices.Equal(got, []int64{3}) {
		t.Fatalf("%v are there", got)
	}
}

// Checkpoints that have no record after the open are ranked by their meta in the catalog.
func TestTheBestOfCheckpointsWithoutRecords(t *testing.T) {
	c := stored(4<<20, 16<<20, vfs.NewMem(64<<20))
	c.LazyRows, c.Flush = true, "eager"
	s := reopened(t, c)
	h := newClient(t, s, "h")
	for k := range int64(20) {
		h.putLost(k, (k*7)%20)
	}
	if err := h.wait(0, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	h = newClient(t, reopened(t, c), "h")
	if err := h.h.Retain(model.Retention{Last: 1, Best: bestBy(3, "val", "loss")}); err != nil {
		t.Fatal(err)
	}
	if got, want := h.sorted(), []int64{0, 3, 6, 19}; !slices.Equal(got, want) { // losses 0, 1, 2, 13
		t.Fatalf("%v are there, not %v", got, want)
	}
}

// The rule keeps a number of best and of last checkpoints among those known to be durable. Whenever the power fails, the store has as many that are as
// good, and as many that are as late. The next store, and the clean-up after it, agree with the rule.
func TestNoCrashCostsTheBest(t *testing.T) {
	rounds := int64(60)
	if testing.Short() {
		rounds = 20
	}
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 5))
		fs := vfs.NewMem(64 << 20)
		c := stored([]int64{0, 1 << 20}[seed%2], 16<<20, fs)
		c.LazyRows = seed%3 == 0
		rule := model.Retention{Last: uint64(r.IntN(3)), Best: bestBy(uint64(1+r.IntN(3)), "val", "loss")}
		h := newClient(t, reopened(t, c), "h")
		if err := h.h.Retain(rule); err != nil {
			t.Fatal(err)
		}
		if err := h.wait(h.mustPut(-1, random(100, 1)).Ticket, status.TierDisk); err != nil && status.CodeOf(err) != status.Dropped { // then the rule is durable, too
			t.Fatal(err)
		}
		losses, durables := map[int64]int{}, []int64{}
		for k := range rounds {
			losses[k] = r.IntN(40)
			out, err := h.putArgs(k, random(r.IntN(9000), uint64(k)), lost(losses[k]))
			if err == nil && r.IntN(3) > 0 {
				err = h.wait(out.Ticket, status.TierDisk)
				durables = append(durables, k)
			}
			if err != nil && status.CodeOf(err) != status.Dropped {
				t.Fatal(err)
			}
			if r.IntN(3) > 0 {
				continue
			}
			left := c
			left.FS = fs.Crash(r, r.Float64())
			found, dropped := foundIn(t, left)
			if dropped != 0 || uint64(len(found)) > rule.Last+rule.Best.Count {
				t.Fatalf("seed %d: of %v %d more would go", seed, found, dropped)
			}
			loss := func(k int64) int64 { return int64(losses[k]) }
			late := func(k int64) int64 { return -k }
			if !asGood(found, durables, rule.Best.Count, loss) || !asGood(found, durables, rule.Last, late) {
				t.Fatalf("seed %d: %v are there, of %v, which are durable, with losses %v; the rule is %+v", seed, found, durables, losses, rule)
			}
		}
	}
}

// foundIn returns the keys that a store finds after a crash, and the number of those that the clean-up after it drops.
func foundIn(t *testing.T, c config.Config) (found []int64, dropped int) {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	found = newClient(t, s, "h").sorted()
	shut(t, s)
	got, err := durable.Collect(durable.Options{FS: c.FS, Dir: c.Path}, true)
	if err != nil {
		t.Fatal(err)
	}
	return found, got.Dropped
}

// asGood tells whether, for the first count ranks, the i-th smallest value of found is no larger than that of were.
func asGood(found, were []int64, count uint64, by func(k int64) int64) bool {
	sorted := func(keys []int64) (all []int64) {
		for _, k := range keys {
			if k >= 0 {
				all = append(all, by(k))
			}
		}
		slices.Sort(all)
		return all
	}
	got, want := sorted(found), sorted(were)
	for i := range min(int(count), len(want)) {
		if i >= len(got) || got[i] > want[i] {
			return false
		}
	}
	return true
}
