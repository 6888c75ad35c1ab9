package plan

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"velocpy/gocore/model"
)

func hints(op Op, keys ...int64) []Hint {
	var list []Hint
	for _, k := range keys {
		list = append(list, Hint{Op: op, Key: model.NumberKey(k)})
	}
	return list
}

func drop(k int64) Hint    { return Hint{Op: Drop, Key: model.NumberKey(k)} }
func pass(n int64) Hint    { return Hint{Op: Advance, Steps: n} }
func restore(k int64) Hint { return Hint{Op: Restore, Key: model.NumberKey(k)} }
func last(k int64) Hint    { return Hint{Op: Last, Key: model.NumberKey(k)} }

// A scenario appends hints, restores keys, and records each verdict and the distances of keys 1 to 5 at that time (-: not expected).
func TestQueueScenarios(t *testing.T) {
	for _, tc := range []struct {
		name     string
		patience int
		hints    []Hint
		restores []int64
		want     []string
	}{
		{"in order, the final one marked", 8, []Hint{restore(3), last(2), restore(1)}, []int64{3, 2, 1}, []string{
			"expected; 1 0 - - -",
			"expected last; 0 - - - -",
			"expected; - - - - -",
		}},
		{"not queued", 8, []Hint{restore(3), restore(2)}, []int64{5, 5}, []string{
			"; - 1 0 - -",
			"; - 1 0 - -",
		}},
		{"a key several times", 8, []Hint{restore(1), restore(2), restore(1), last(1)}, []int64{1, 2, 1, 1}, []string{
			"expected; 1 0 - - -",
			"expected; 0 - - - -",
			"expected; 0 - - - -",
			"expected last; - - - - -",
		}},
		{"overtaking leaves the others queued", 8, []Hint{restore(1), restore(2), restore(3)}, []int64{3, 1, 2}, []string{
			"expected ahead 2; 0 1 - - -",
			"expected; - 0 - - -",
			"expected; - - - - -",
		}},
		{"overtaken once too often", 2, []Hint{restore(1), restore(2), restore(3), restore(4), restore(5)}, []int64{2, 3, 4, 5}, []string{
			"expected ahead 1; 0 - 1 2 3",
			"expected ahead 1; 0 - - 1 2",
			"expected ahead 1 withdrawn [1]; - - - - 0",
			"expected; - - - - -",
		}},
		{"withdrawn here, expected again later", 1, []Hint{restore(1), restore(2), restore(3), restore(4), restore(1)}, []int64{2, 3, 4, 1}, []string{
			"expected ahead 1; 0 - 1 2 -",
			"expected ahead 1 deferred [1]; 1 - - 0 -",
			"expected; 0 - - - -",
			"expected; - - - - -",
		}},
		{"no patience", -1, []Hint{restore(1), restore(2), restore(3)}, []int64{3, 1}, []string{
			"expected ahead 2 withdrawn [1 2]; - - - - -",
			"; - - - - -",
		}},
		{"drops fall due behind the head", 8, []Hint{restore(1), drop(1), drop(9), restore(2), drop(2)}, []int64{1, 2}, []string{
			"expected drops [1 9]; - 0 - - -",
			"expected drops [2]; - - - - -",
		}},
		{"drops before the first restore fall due with any restore", 8, []Hint{drop(7), restore(1)}, []int64{5, 1}, []string{
			"drops [7]; 0 - - - -",
			"expected; - - - - -",
		}},
		{"a drop waits for what is queued before it", 8, []Hint{restore(1), restore(2), drop(2), restore(3)}, []int64{2, 1}, []string{
			"expected ahead 1; 0 - 1 - -",
			"expected drops [2]; - - 0 - -",
		}},
		{"drops survive the withdrawal of what they follow", 1, []Hint{restore(1), drop(1), restore(2), drop(2), restore(3), drop(3), restore(4)}, []int64{2, 3}, []string{
			"expected ahead 1; 0 - 1 2 -",
			"expected ahead 1 withdrawn [1] drops [1 2 3]; - - - 0 -",
		}},
		{"advance counts until what comes behind it has happened", 8, []Hint{restore(1), pass(10), restore(2), pass(5), pass(1), restore(3)}, []int64{5, 1, 2}, []string{
			"; 0 11 18 - -",
			"expected; - 10 17 - -",
			"expected; - - 6 - -",
		}},
		{"advance before the first restore", 8, []Hint{pass(4), restore(1), restore(2)}, []int64{5, 1}, []string{
			"; 4 5 - - -",
			"expected; - 0 - - -",
		}},
		{"an overtaken advance still counts", 8, []Hint{restore(1), pass(10), restore(2), restore(3), pass(2), restore(4)}, []int64{3, 1}, []string{
			"expected ahead 2; 0 11 - 14 -",
			"expected; - 10 - 13 -",
		}},
		{"steps that make no sense", 8, []Hint{restore(1), pass(-3), pass(0), pass(math.MinInt64), {Op: 99}, restore(2)}, []int64{5}, []string{
			"; 0 1 - - -",
		}},
		{"the same key twice in a row spares a distant hint", 8, []Hint{restore(1), restore(2), restore(3), restore(1)}, []int64{1, 1, 2, 3, 1}, []string{
			"expected; 2 0 1 - -",
			"; 2 0 1 - -",
			"expected; 1 - 0 - -",
			"expected; 0 - - - -",
			"expected; - - - - -",
		}},
		{"the same key twice in a row, as hinted", 8, []Hint{restore(1), restore(1), restore(2)}, []int64{1, 1}, []string{
			"expected; 0 1 - - -",
			"expected; - 0 - - -",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := New(Options{Patience: tc.patience})
			o.Append(tc.hints...)
			for i, k := range tc.restores {
				if got := describe(o.Restored(model.NumberKey(k))) + distances(o); got != tc.want[i] {
					t.Errorf("restore %d, of %d:\n got %s\nwant %s", i, k, got, tc.want[i])
				}
			}
		})
	}
}

func describe(v Verdict) (s string) {
	add := func(format string, args ...any) {
		if s != "" {
			s += " "
		}
		s += fmt.Sprintf(format, args...)
	}
	if v.Expected {
		add("expected")
	}
	if v.Last {
		add("last")
	}
	if v.Ahead > 0 {
		add("ahead %d", v.Ahead)
	}
	if len(v.Withdrawn) > 0 {
		add("withdrawn %v", v.Withdrawn)
	}
	if len(v.Deferred) > 0 {
		add("deferred %v", v.Deferred)
	}
	if len(v.Drops) > 0 {
		add("drops %v", v.Drops)
	}
	return s + ";"
}

func distances(o *Order) (s string) {
	for k := int64(1); k <= 5; k++ {
		if d, ok := o.Distance(model.NumberKey(k)); ok {
			s += fmt.Sprint(" ", d)
		} else {
			s += " -"
		}
	}
	return s
}

func TestHintsAppendedWhileRunning(t *testing.T) {
	o := New(Options{})
	o.Append(hints(Restore, 1, 2)...)
	o.Restored(model.NumberKey(1))
	o.Append(hints(Restore, 3)...)
	if d, ok := o.Distance(model.NumberKey(3)); !ok || d != 1 || o.Len() != 2 {
		t.Fatal(d, ok, o.Len())
	}
	o.Restored(model.NumberKey(2))
	o.Restored(model.NumberKey(3))
	o.Append(pass(3), restore(4))
	if d, ok := o.Distance(model.NumberKey(4)); !ok || d != 3 {
		t.Fatal(d, ok)
	}
	if seq, _ := o.Seq(model.NumberKey(4)); seq != 3 || o.Head() != 3 {
		t.Fatal("numbers start over:", seq, o.Head())
	}
}

func TestClear(t *testing.T) {
	o := New(Options{})
	o.Append(restore(1), drop(1), pass(7), restore(2), last(3))
	o.Restored(model.NumberKey(3))
	o.Clear()
	if _, ok := o.Seq(model.NumberKey(2)); ok || o.Len() != 0 {
		t.Fatal("something is still queued")
	}
	if v := o.Restored(model.NumberKey(1)); v.Expected || v.Drops != nil || v.Withdrawn != nil {
		t.Fatalf("%+v", v)
	}
	o.Append(restore(2))
	if d, ok := o.Distance(model.NumberKey(2)); !ok || d != 0 {
		t.Fatal(d, ok)
	}
	if seq, _ := o.Seq(model.NumberKey(2)); seq < 3 {
		t.Fatalf("number %d was used before", seq)
	}
}

func TestUpcomingStopsAndGoesOn(t *testing.T) {
	o := New(Options{})
	o.Append(restore(1), drop(1), last(2), pass(1), restore(1), restore(3))
	o.Restored(model.NumberKey(2))
	var got []string
	next := int64(math.MinInt64)
	for {
		n := len(got)
		o.Upcoming(next, func(seq int64, k model.Key, last bool) bool {
			got = append(got, fmt.Sprint(seq, ":", k, last))
			next = seq + 1
			return false
		})
		if len(got) == n {
			break
		}
	}
	if want := "[0:1 false 2:1 false 3:3 false]"; fmt.Sprint(got) != want {
		t.Fatalf("%v, want %s", got, want)
	}
}

func TestHugeAdvancesDoNotOverflow(t *testing.T) {
	o := New(Options{})
	o.Append(restore(1), pass(math.MaxInt64), restore(2), pass(math.MaxInt64), restore(3))
	d2, _ := o.Distance(model.NumberKey(2))
	d3, _ := o.Distance(model.NumberKey(3))
	if d2 != mostSteps+1 || d3 != 2*mostSteps+2 {
		t.Fatal(d2, d3)
	}
	for range 100 {
		o.hints.steps = farthest - 1
		o.Append(pass(math.MaxInt64), restore(4))
		if d4, _ := o.Distance(model.NumberKey(4)); d4 < d3 {
			t.Fatal(d4)
		}
	}
}

func TestKeysDoNotMix(t *testing.T) {
	o := New(Options{})
	o.Append(Hint{Key: model.TextKey("7")}, Hint{Key: model.NumberKey(7)}, Hint{Key: model.TextKey("")}, Hint{Key: model.NumberKey(0)})
	for i, k := range []model.Key{model.TextKey("7"), model.NumberKey(7), model.TextKey(""), model.NumberKey(0)} {
		if d, ok := o.Distance(k); !ok || d != int64(i) {
			t.Fatal(k, d, ok)
		}
	}
	if s := fmt.Sprint(model.TextKey("a\x00b"), model.NumberKey(-7)); s != `"a\x00b" -7` {
		t.Fatal(s)
	}
}

// A million hints, restored in order, free their memory, down to a quarter of a byte each. So do a million hints that are cleared. One key hinted a
// million times costs no more.
func TestAMillionHints(t *testing.T) {
	const n = 1_000_000
	for _, tc := range []struct {
		name  string
		key   func(i int64) model.Key
		limit float64
	}{
		{"different keys", func(i int64) model.Key { return model.NumberKey(i) }, 48},
		{"one key", func(int64) model.Key { return model.NumberKey(5) }, 24},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := New(Options{})
			start := heap()
			for i := range int64(n) {
				o.Append(Hint{Key: tc.key(i)})
			}
			per := float64(heap()-start) / n
			t.Logf("%.1f bytes per hint", per)
			if per > tc.limit {
				t.Errorf("%.1f bytes per hint", per)
			}
			for i := range int64(n) {
				if v := o.Restored(tc.key(i)); !v.Expected || v.Ahead != 0 {
					t.Fatalf("%d: %+v", i, v)
				}
			}
			if rest := heap() - start; rest > n/4 {
				t.Errorf("%d bytes kept by an empty queue", rest)
			}
			for i := range int64(n) {
				o.Append(Hint{Key: tc.key(i)})
			}
			o.Clear()
			if rest := heap() - start; rest > n/4 {
				t.Errorf("%d bytes kept by a cleared queue", rest)
			}
			runtime.KeepAlive(o)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
