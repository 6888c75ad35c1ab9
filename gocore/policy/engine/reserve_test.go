package engine

import (
	"errors"
	"syscall"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
)

// rows is a catalog that has no checkpoint of its own; keeps and removed may be nil.
type rows struct {
	keeps   func(*Record) bool
	removed func(r, by *Record)
}

func (c *rows) Lookup(*History, model.Key) (size int64, ok bool) { return 0, false }
func (c *rows) Find(*History, model.Key) *Record                 { return nil }
func (c *rows) Keeps(r *Record, _ int, _ int64) bool             { return c.keeps != nil && c.keeps(r) }
func (c *rows) Freed(int) (off, bytes int64, ok bool)            { return 0, 0, false }
func (c *rows) Removed(r, by *Record) {
	if c.removed != nil {
		c.removed(r, by)
	}
}

// kept is an engine of a host and a disk whose catalog has every flushed version, until the test drops it.
type kept struct {
	*Engine
	t       *testing.T
	h       *History
	rows    map[model.Key]Stored
	removed []*Record // captured records that no later version replaced: their keys are to be dropped
}

func newKept(t *testing.T, host, disk int64) *kept {
	t.Helper()
	s := &kept{t: t, rows: map[model.Key]Stored{}}
	s.Engine = New(Config{
		Tiers: []TierConfig{
			{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: disk, Remote: true, Durable: true, WriteRate: 1e9, ReadRate: 1e9},
		},
		Catalog: &rows{
			keeps: func(r *Record) bool { return s.rows[r.Key].Written == r.Written() },
			removed: func(r, by *Record) {
				if by == nil && (r.Failed() == nil || r.Captured()) {
					s.removed = append(s.removed, r)
					s.ExpectReleases(0, 1)
				}
			},
		},
	})
	s.h = s.History("h")
	return s
}

func (s *kept) begin(k, size int64, o CaptureOptions) *Capture {
	s.t.Helper()
	c, err := s.BeginCapture(0, s.h, model.NumberKey(k), size, 1, nil, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// flush carries out the next downward transfer, and commits it.
func (s *kept) flush() *Record {
	s.t.Helper()
	x := s.Next(0, anyDown)
	if x == nil || x.To != 1 {
		s.t.Fatalf("no flush: %+v", x)
	}
	s.rows[x.Rec.Key] = Stored{Tier: 1, Size: x.Rec.Size, Align: 1, Offset: x.ToOff, Written: x.Rec.Written()}
	s.Done(0, x, nil)
	return x.Rec
}

// stored captures a checkpoint and flushes it.
func (s *kept) stored(k, size int64) *Record {
	s.t.Helper()
	if c := s.begin(k, size, CaptureOptions{Down: 1}); c.Phase == Ready {
		s.EndCapture(0, c, true)
	}
	return s.flush()
}

// drops makes the oldest drop durable.
func (s *kept) drops() {
	s.t.Helper()
	r := s.removed[0]
	row := s.rows[r.Key]
	s.removed = s.removed[1:]
	delete(s.rows, r.Key)
	if !s.Release(0, 1, row.Offset, row.Size) {
		s.t.Fatalf("the room of %v is not reserved", r.Key)
	}
	s.ExpectReleases(0, -1)
}

// A transfer to the disk goes on when its capture was cancelled. The earlier version of the key stays, and is not dropped.
func TestCaptureGivenUpDropsNothing(t *testing.T) {
	s := newKept(t, 10, 100)
	old := s.stored(1, 8)
	c := s.begin(1, 50, CaptureOptions{})
	x := s.Next(0, anyDown)
	if x == nil || x.Kind != Spill || c.Phase != Waiting {
		t.Fatalf("%+v of %+v", x, c)
	}
	if s.CancelCapture(0, c) {
		t.Fatal("a transfer was stopped")
	}
	s.Done(0, x, nil)
	if len(s.removed) != 0 || s.h.Get(model.NumberKey(1)) != old || s.Use(1).Used != 8 {
		t.Fatalf("%d keys are to be dropped; %d bytes used", len(s.removed), s.Use(1).Used)
	}
}

// A version in the catalog stays until its replacement is in the catalog too, whether there is room for that or not.
func TestVersionInTheCatalogIsNotGivenUp(t *testing.T) {
	s := newKept(t, 10, 30)
	old := s.stored(1, 8)
	s.stored(2, 20)
	c := s.begin(2, 20, CaptureOptions{})
	if c.Phase != Ended || !errors.Is(c.Err, ErrFull) {
		t.Fatalf("%+v", c)
	}
	if len(s.removed) != 0 || s.h.Get(model.NumberKey(2)) == nil || s.owed != 0 {
		t.Fatalf("%d keys are to be dropped", len(s.removed))
	}
	if old.Gone() {
		t.Fatal("another one went")
	}
}

// A version whose flush runs gives its room in the host to the next one. The catalog's version of the key stays until the new one is there.
func TestVersionGivenUpForTheNext(t *testing.T) {
	s := newKept(t, 10, 10)
	s.stored(1, 8)
	for range 2 {
		c := s.begin(1, 10, CaptureOptions{})
		if x := s.Next(0, anyDown); x != nil || c.Phase != Ready {
			t.Fatalf("%+v, %+v", x, c)
		}
		s.EndCapture(0, c, true)
	}
	if len(s.removed) != 0 || s.Use(1).Held != 8 {
		t.Fatalf("%d keys are to be dropped, %d bytes reserved", len(s.removed), s.Use(1).Held)
	}
}

// Claims that wait for room also wait for drops that are not durable yet.
func TestRoomIsOwed(t *testing.T) {
	s := newKept(t, 10, 30)
	s.stored(1, 20)
	if !s.Drop(0, s.h, model.NumberKey(1)) {
		t.Fatal("nothing to drop")
	}
	c := s.begin(2, 25, CaptureOptions{})
	if c.Phase != Waiting || c.Err != nil || s.Use(1).Held != 20 {
		t.Fatalf("%+v, %d bytes reserved", c, s.Use(1).Held)
	}
	s.drops()
	if s.flush() != c.Rec || c.Phase != Ended || c.Err != nil {
		t.Fatalf("%+v", c)
	}
}

// So do flushes, and waits for them: they are refused when no release is owed any more.
func TestFlushesWaitForWhatIsOwed(t *testing.T) {
	s := newKept(t, 40, 30)
	s.stored(1, 10)
	s.stored(2, 20)
	s.Drop(0, s.h, model.NumberKey(1))
	wait := func(k, size int64) *Wait {
		t.Helper()
		c := s.begin(k, size, CaptureOptions{})
		s.EndCapture(0, c, true)
		w := s.Await(0, []*Record{c.Rec}, 1)
		if x := s.Next(0, anyDown); x != nil || w.Phase != Waiting || s.Pending(anyDown) {
			t.Fatalf("%+v, phase %d, %v", x, w.Phase, w.Err)
		}
		return w
	}
	w := wait(3, 10)
	s.drops()
	if s.flush(); w.Phase != Ended || w.Err != nil {
		t.Fatalf("phase %d, %v", w.Phase, w.Err)
	}
	s.Drop(0, s.h, model.NumberKey(3))
	w = wait(4, 15)
	s.drops()
	if x := s.Next(0, anyDown); x != nil || w.Phase != Ended || !errors.Is(w.Err, ErrFull) {
		t.Fatalf("%+v, phase %d, %v", x, w.Phase, w.Err)
	}

	c := s.begin(5, 16, CaptureOptions{})
	w = s.Await(0, []*Record{c.Rec}, 1)
	s.ExpectReleases(0, 1) // after a flush was refused
	s.EndCapture(0, c, true)
	if x := s.Next(0, anyDown); x != nil || w.Phase != Waiting {
		t.Fatalf("%+v, phase %d, %v", x, w.Phase, w.Err)
	}
	s.ExpectReleases(0, -1) // without a release
	if x := s.Next(0, anyDown); x != nil || w.Phase != Ended || !errors.Is(w.Err, ErrFull) {
		t.Fatalf("%+v, phase %d, %v", x, w.Phase, w.Err)
	}
}

// An engine that continues after another one knows the order of writing. So it guesses the rest from a few restores in the reverse order.
func TestGuessesGoOnWithTheOrderOfWriting(t *testing.T) {
	e := New(Config{Guess: true, Prefetch: true, Tiers: []TierConfig{
		{Name: "host", Capacity: 400, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000, Remote: true, Durable: true},
	}})
	e.Reserve(1, func(yield func(from, end int64) bool) { yield(0, 800) })
	h := e.History("h")
	keys := []int64{5, 0, 7, 2, 6, 1, 4, 3}
	for i, k := range keys {
		e.Continue(int64(i + 1))
		e.Adopt(h, model.NumberKey(k), Stored{Tier: 1, Size: 100, Align: 1, Offset: int64(i) * 100, Written: int64(i + 1)})
		h.Wrote(model.NumberKey(k))
	}
	for _, k := range []int64{3, 4} {
		r, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if x := e.Next(0, anyUp); x == nil || x.Rec != r.Rec {
			t.Fatalf("%+v", x)
		} else {
			e.Done(0, x, nil)
		}
		e.HandOver(0, r)
		e.EndRestore(0, r)
	}
	if x := e.Next(0, anyUp); x == nil || x.Rec.Key != model.NumberKey(1) || x.Kind != Load {
		t.Fatalf("next comes %+v", x)
	}
}

// Retired room is not given to any record, even after its owners have given it back: a row of the catalog, or a failed flush.
func TestRetiredIsRetired(t *testing.T) {
	s := newKept(t, 10, 60)
	s.stored(1, 8) // at 0
	s.stored(2, 8)
	c := s.begin(3, 8, CaptureOptions{Down: 1})
	s.EndCapture(0, c, true)
	x := s.Next(0, anyDown) // at 16
	if got := s.Retire(1, 12, 20); got != 0 {
		t.Fatalf("%d bytes were free", got)
	}
	s.Done(0, x, syscall.EIO)
	s.Drop(0, s.h, model.NumberKey(2))
	s.drops()
	tab := s.tiers[1].table
	var free, held int64
	for id := tab.First(); id != fragment.None; id = tab.Next(id) {
		f := tab.At(id)
		retired := f.Offset >= 12 && f.Offset+f.Size <= 20
		switch {
		case retired && (f.Class != fragment.Held || f.Owner != nil):
			t.Errorf("retired, and %+v", *f)
		case f.Class == fragment.Gap:
			free += f.Size
		case f.Owner == nil:
			held += f.Size
		}
	}
	if u := s.Use(1); free != 4+40 || held != 8 || u.Held != 0 || u.Capacity != 52 {
		t.Errorf("%d bytes are free, %d reserved, it says %+v", free, held, u)
	}
	if got := s.Reinstate(0, 1, 16, 100); got != 4 || s.Use(1).Capacity != 56 || s.InUse(1) != 56 {
		t.Errorf("%d bytes are free again, of %+v", got, s.Use(1))
	}
	s.Grow(0, 1, 200)
	s.Retire(1, 100, 300)
	if s.Grow(0, 1, 400); s.InUse(1) != 400-200-4 {
		t.Errorf("%d bytes are in use", s.InUse(1))
	}
}
