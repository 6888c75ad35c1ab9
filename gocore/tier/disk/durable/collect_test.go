package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

func TestCollectGivesRoomBack(t *testing.T) {
	s := newSite(t)
	for i := range int64(12) {
		s.put("a", model.NumberKey(i), 500_000) // 503808 bytes each: two files hold four
	}
	for _, i := range []int64{0, 1, 2, 3, 5, 11} {
		s.do(&Change{History: "a", Key: model.NumberKey(i), Serial: uint64(i) + 1, Drop: true})
	}
	for range 300 { // the catalog exceeds its live content
		s.do(&Change{History: "a", Key: model.NumberKey(0), Serial: 1, Drop: true})
	}
	s.close()
	before := s.free()
	foreseen, err := Collect(s.o, true)
	if err != nil {
		t.Fatal(err)
	}
	if s.free() != before || len(s.names("data-")) != 6 {
		t.Error("a dry run has changed something")
	}
	got, err := Collect(s.o, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Files != s.free()-before || got.Files < 6*503808-4*64<<10 {
		t.Errorf("%+v, but %d bytes more are free", got, s.free()-before)
	}
	want := []Unused{{segment.FileName(1), 1<<20 + 128<<10}} // head and index take one chunk each of the in-memory disk
	if !slices.Equal(got.Removed, want) || !slices.Equal(foreseen.Removed, want) {
		t.Errorf("removed %v, foreseen %v", got.Removed, foreseen.Removed)
	}
	if d := foreseen.Files - got.Files; d < 0 || d > 6*2*64<<10 { // the in-memory disk frees chunks of 64 KiB, and two chunks of each file are partly used
		t.Errorf("foreseen %d bytes, got %d", foreseen.Files, got.Files)
	}
	if got.Catalog <= 0 || foreseen.Catalog <= 0 {
		t.Errorf("%+v, foreseen %+v", got, foreseen)
	}
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 6 || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
	again, err := Collect(s.o, false)
	if err != nil || again.Files != 0 || again.Dropped != 0 || len(again.Removed) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	s.open() // the store is still writable
	s.serial, s.next = 100, 0
	s.put("a", model.NumberKey(50), 900_000)
	s.close()
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 7 || len(sum.Faults) > 0 {
		t.Errorf("%+v", sum)
	}
}

func (s *site) free() int64 {
	s.t.Helper()
	n, err := s.fs.Free(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *site) keys(history string) (all []model.Key) {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	id, _ := v.State().History(history)
	v.State().List(id, 0, func(b catalog.Brief) bool {
		all = append(all, b.Key)
		return true
	})
	if err := v.Close(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

func TestCollectAppliesRetention(t *testing.T) {
	n, x := model.NumberKey, model.TextKey
	metas := []string{`{"l": 1}`, "", `{"l": 3}`, `{"l": 4}`, `{"l": NaN}`, `{"l": 3}`, `{"l": 3}`} // in the order of writing
	best := func(count uint64) model.Best { return model.Best{Count: count, By: []string{"l"}} }
	for _, c := range []struct {
		retention model.Retention
		want      []model.Key
	}{
		{model.Retention{Last: 2}, []model.Key{x("b"), n(1)}},
		{model.Retention{Last: 1, Every: 2}, []model.Key{n(-2), n(0), n(2), n(1)}},
		{model.Retention{Named: true}, []model.Key{x("a"), x("b")}},
		{model.Retention{Keys: []model.Key{n(3), x("a"), n(99)}}, []model.Key{x("a"), n(3)}},
		{model.Retention{Every: 3}, []model.Key{n(0), n(3)}},
		{model.Retention{Best: best(2)}, []model.Key{n(-2), x("a")}},
		{model.Retention{Last: 1, Best: best(3)}, []model.Key{n(-2), x("a"), x("b"), n(1)}},
		{model.Retention{Best: model.Best{Count: 1, By: []string{"l"}, Largest: true}}, []model.Key{n(2)}},
		{model.Retention{Best: model.Best{Count: 1, By: []string{"loss"}}}, []model.Key{}},
		{model.Retention{Last: 100}, []model.Key{n(-2), n(0), x("a"), n(2), n(3), x("b"), n(1)}},
	} {
		s := newSite(t)
		s.put("h", n(1), 10)
		for i, k := range []model.Key{n(-2), n(0), x("a"), n(2), n(3), x("b"), n(1)} { // 1 is written a second time
			s.meta = metas[i]
			s.put("h", k, 10)
		}
		s.meta = ""
		s.put("other", n(1), 10)
		s.do(&Change{History: "h", Retention: &c.retention})
		s.close()
		foreseen, err := Collect(s.o, true)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Collect(s.o, false)
		if err != nil {
			t.Fatal(err)
		}
		if kept := s.keys("h"); !slices.Equal(kept, c.want) || len(s.keys("other")) != 1 {
			t.Errorf("%+v keeps %v", c.retention, kept)
		}
		if got.Dropped != 7-len(c.want) || foreseen.Dropped != got.Dropped || got.DroppedBytes != int64(got.Dropped)*4096 || foreseen.DroppedBytes != got.DroppedBytes {
			t.Errorf("%+v: %+v, foreseen %+v", c.retention, got, foreseen)
		}
		s.open()
		if info := s.d.State().Histories(); len(info) != 2 || info[0].Retention == nil == (info[1].Retention == nil) {
			t.Errorf("the retention does not stay: %+v", info)
		}
		s.close()
	}
}

// Whenever the power fails while a store is collected or repaired, all current checkpoints are there afterwards.
func TestCollectLosesNothing(t *testing.T) {
	for stop := int64(0); ; stop++ {
		s := newSite(t)
		for i := range int64(8) {
			s.put("a", model.NumberKey(i), 300_000)
		}
		for i := range int64(3) {
			s.do(&Change{History: "a", Key: model.NumberKey(2 * i), Serial: uint64(2*i) + 1, Drop: true})
		}
		s.do(&Change{History: "a", Retention: &model.Retention{Last: 3}})
		s.close()
		rule := &vfs.Rule{Ops: vfs.OpAny &^ (vfs.OpClose | vfs.OpStat | vfs.OpList | vfs.OpOpen | vfs.OpRead | vfs.OpSize), Skip: stop, Err: errors.New("gone")}
		o := s.o
		o.FS = vfs.NewFaulty(s.fs, rule)
		_, err := Collect(o, false)
		for seed := range uint64(4) {
			after := s.o
			after.FS = s.fs.Crash(rand.New(rand.NewPCG(uint64(stop), seed)), 0.5)
			sum := checkOf(t, after, Scope{Data: true})
			if len(sum.Faults) > 0 || sum.Checkpoints < 3 || sum.Checkpoints > 5 {
				t.Fatalf("stopped at %d: %+v", stop, sum)
			}
			d := mustOpen(t, after)
			id, _ := d.State().History("a")
			for _, key := range []int64{5, 6, 7} {
				if _, ok := d.State().Find(id, model.NumberKey(key)); !ok {
					t.Fatalf("stopped at %d: checkpoint %d is lost", stop, key)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if rule.Fired() == 0 {
			if err != nil {
				t.Fatal(err)
			}
			if stop < 10 {
				t.Fatalf("only %d calls could fail", stop)
			}
			return
		}
	}
}

func TestNoStoreIsMadeByLookingAtIt(t *testing.T) {
	fs := vfs.NewMem(1 << 20)
	o := small(fs)
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"read":     func() error { _, err := Read(o); return err },
		"collect":  func() error { _, err := Collect(o, false); return err },
		"dry":      func() error { _, err := Collect(o, true); return err },
		"repair":   func() error { _, err := Repair(o, Mending{}); return err },
		"repair 2": func() error { _, err := Repair(o, Mending{Drop: []Victim{{"a", model.NumberKey(1), 1}}}); return err },
	} {
		if err := try(); !errors.Is(err, ErrNoStore) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := fs.List(dir); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Error(fmt.Sprint(n, " files are open"))
	}
}
