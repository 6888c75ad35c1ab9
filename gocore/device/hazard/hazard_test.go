package hazard

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"testing"

	"velocpy/gocore/device"

	"pgregory.net/rapid"
)

// fake is an event that passes at the test's command.
type fake struct {
	t       interface{ Fatalf(string, ...any) }
	id      int
	holds   int
	done    bool
	err     error
	queries *int
}

func (f *fake) Passed() (bool, error) {
	f.alive()
	*f.queries++
	return f.done, f.err
}
func (f *fake) Seen() (bool, error) { return f.Passed() }
func (f *fake) Wait() error         { f.alive(); f.t.Fatalf("the tracker waits"); return nil }
func (f *fake) Of(device.Lane) bool { return false }
func (f *fake) Keep() device.Event {
	f.alive()
	f.holds++
	return f
}
func (f *fake) Drop() {
	f.alive()
	f.holds--
}
func (f *fake) alive() {
	if f.holds <= 0 {
		f.t.Fatalf("mark %d is used after it was dropped", f.id)
	}
}

// place is the model's state of one byte.
type place struct {
	writer  *fake
	readers []*fake
}

// ids drops the events from a tracker and returns those that have not passed, sorted; none may come twice.
func ids(t *rapid.T, marks []device.Event) []int {
	var out []int
	for _, m := range marks {
		f := m.(*fake)
		if f.done {
			t.Fatalf("mark %d has passed", f.id)
		}
		out = append(out, f.id)
		m.Drop()
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(out) {
		t.Fatalf("marks twice: %v", out)
	}
	return out
}

func TestAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int64{1, 7, 64, 300}).Draw(t, "size")
		var tracker Tracker
		model := make([]place, size)
		var marks []*fake
		queries := 0
		expect := func(from, n int64, readers bool) []int {
			found := map[int]bool{}
			for _, b := range model[from : from+n] {
				if b.writer != nil && !b.writer.done {
					found[b.writer.id] = true
				}
				for _, r := range b.readers {
					if readers && !r.done {
						found[r.id] = true
					}
				}
			}
			var out []int
			for id := range found {
				out = append(out, id)
			}
			slices.Sort(out)
			return out
		}
		check := func(what string, got []device.Event, want []int) {
			if ids := ids(t, got); !slices.Equal(ids, want) {
				t.Fatalf("%s: marks %v, want %v", what, ids, want)
			}
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			from := rapid.Int64Range(0, size-1).Draw(t, "from")
			n := rapid.Int64Range(0, size-from).Draw(t, "n")
			kind := rapid.IntRange(0, 9).Draw(t, "kind")
			switch {
			case kind < 6:
				m := &fake{t: t, id: len(marks), holds: 1, queries: &queries, done: rapid.IntRange(0, 9).Draw(t, "at once") == 0}
				marks = append(marks, m)
				if kind < 3 {
					check("read", tracker.BeforeRead(nil, from, n), expect(from, n, false))
					tracker.Read(from, n, m)
					for i := range model[from : from+n] {
						b := &model[from+int64(i)]
						b.readers = append(slices.Clone(b.readers), m)
					}
				} else {
					check("write", tracker.BeforeWrite(nil, from, n), expect(from, n, true))
					tracker.Wrote(from, n, m)
					for i := range model[from : from+n] {
						model[from+int64(i)] = place{writer: m}
					}
				}
				m.Drop()
			case kind == 6:
				check("quiet", tracker.Quiet(nil, from, n), expect(from, n, true))
			case kind == 7:
				tracker.Forget(from, n)
				clear(model[from : from+n])
			case len(marks) > 0:
				marks[rapid.IntRange(0, len(marks)-1).Draw(t, "passes")].done = true
			}
		}
		for at := range size {
			check("each byte", tracker.BeforeWrite(nil, at, 1), expect(at, 1, true))
		}
		check("all", tracker.Quiet(nil, 0, math.MaxInt64), expect(0, size, true))
		tracker.Close()
		for _, m := range marks {
			if m.holds != 0 {
				t.Fatalf("mark %d is still held %d times", m.id, m.holds)
			}
		}
	})
}

func newFake(t *testing.T, queries *int, id int) *fake {
	return &fake{t: t, id: id, holds: 1, queries: queries}
}

// A bug of a prototype: only the last reader was waited for.
func TestEveryReaderIsWaitedFor(t *testing.T) {
	var tracker Tracker
	var queries int
	for i := range 3 {
		tracker.Read(0, 100, newFake(t, &queries, i))
	}
	if got := tracker.BeforeWrite(nil, 50, 1); len(got) != 3 {
		t.Fatalf("%d marks of 3 readers", len(got))
	}
	if got := tracker.BeforeRead(nil, 50, 1); len(got) != 0 {
		t.Fatal("readers wait for readers")
	}
	tracker.Close()
}

// Once events have passed, some further changes anywhere detect it: the record shrinks and drops them.
func TestPassedMarksGo(t *testing.T) {
	var tracker Tracker
	var queries int
	var marks []*fake
	note := func(from, n int64, write bool) *fake {
		m := newFake(t, &queries, len(marks))
		if marks = append(marks, m); write {
			tracker.Wrote(from, n, m)
		} else {
			tracker.Read(from, n, m)
		}
		m.Drop()
		return m
	}
	for i := range int64(1000) {
		note(i*10, 7, true)
		note(i*10+3, 5, false)
	}
	if tracker.Ranges() < 2000 {
		t.Fatalf("only %d ranges", tracker.Ranges())
	}
	for _, m := range marks {
		m.done = true
	}
	for range 2000 {
		note(1<<40, 1, true).done = true
	}
	if n := tracker.Ranges(); n > 1 {
		t.Fatalf("%d ranges are left", n)
	}
	for _, m := range marks[:len(marks)-1] {
		if m.holds != 0 {
			t.Fatalf("mark %d is still held", m.id)
		}
	}
}

// Thousands of readers of one range, none of which passes: recording one more must not query all.
func TestManyReadersCostFewQueries(t *testing.T) {
	var tracker Tracker
	var queries int
	const n = 5000
	for i := range n {
		m := newFake(t, &queries, i)
		tracker.Read(0, 1<<20, m)
		m.Drop()
	}
	if queries > 20*n {
		t.Fatalf("%d queries for %d reads", queries, n)
	}
	got := tracker.BeforeWrite(nil, 7, 1)
	if len(got) != n {
		t.Fatalf("%d marks", len(got))
	}
	m := newFake(t, &queries, n)
	tracker.Wrote(0, 1<<20, m)
	for _, r := range got {
		if r.(*fake).holds != 1 {
			t.Fatal("an overwritten reader is kept, or was dropped under the caller")
		}
		r.Drop()
	}
}

func TestDepthIsLogarithmic(t *testing.T) {
	var tracker Tracker
	var queries int
	const n = 1 << 14
	for i := range int64(n) {
		tracker.Wrote(i*64, 64, newFake(t, &queries, int(i)))
	}
	if d := depth(tracker.root); d > 4*bits.Len(n) {
		t.Fatalf("%d levels for %d ranges", d, n)
	}
	if queries > 2*asks*n {
		t.Fatalf("%d queries for %d writes", queries, n)
	}
}

func depth(s *segment) int {
	if s == nil {
		return 0
	}
	return 1 + max(depth(s.left), depth(s.right))
}

// An event whose query fails is waited for: the wait returns the error.
func TestFailingMarksAreNotPassed(t *testing.T) {
	var tracker Tracker
	var queries int
	m := newFake(t, &queries, 0)
	m.done, m.err = true, errors.New("lost")
	tracker.Wrote(0, 10, m)
	if got := tracker.BeforeRead(nil, 9, 1); len(got) != 1 {
		t.Fatalf("%d marks", len(got))
	}
}

func TestEmptyAndHugeRanges(t *testing.T) {
	var tracker Tracker
	var queries int
	m := newFake(t, &queries, 0)
	tracker.Read(5, 0, m)
	tracker.Wrote(5, -1, m)
	if m.holds != 1 || tracker.Ranges() != 0 {
		t.Fatal("nothing was noted as something")
	}
	tracker.Wrote(10, math.MaxInt64, m)
	if len(tracker.BeforeRead(nil, math.MaxInt64-1, 1)) != 1 || len(tracker.BeforeRead(nil, 9, 1)) != 0 || len(tracker.BeforeRead(nil, 0, 11)) != 1 {
		t.Fatal("borders")
	}
	tracker.Close()
	if m.holds != 3 { // ours, and two kept for us
		t.Fatal(m.holds)
	}
}

func BenchmarkTracker(b *testing.B) {
	var tracker Tracker
	var queries int
	marks := make([]*fake, 4096)
	for i := range marks {
		marks[i] = &fake{id: i, holds: 1 << 40, queries: &queries}
	}
	var into []device.Event
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		m := marks[i%len(marks)]
		m.done = false
		marks[(i+2048)%len(marks)].done = true
		at := int64(i*7919%4096) << 20
		into = tracker.BeforeWrite(into[:0], at, 1<<20)
		tracker.Wrote(at, 1<<20, m)
		tracker.Read(at, 1<<19, m)
		i++
	}
}
