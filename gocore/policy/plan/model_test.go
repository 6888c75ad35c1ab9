package plan

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// reference is a queue of hints written without regard to speed: a slice, searched from the front.
type reference struct {
	items    []modelItem
	next     int64 // number of the next restore
	patience int
	previous *model.Key
}

type modelItem struct {
	Hint
	seq       int64
	overtaken int
	// done says that it happened before its turn. It stays in place, as the intervals before it have passed once the head is behind it.
	done bool
}

func (m *reference) append(hints ...Hint) {
	for _, h := range hints {
		it := modelItem{Hint: h}
		if h.Op == Restore || h.Op == Last {
			it.seq = m.next
			m.next++
		}
		m.items = append(m.items, it)
	}
}

func (it modelItem) restores() bool { return !it.done && (it.Op == Restore || it.Op == Last) }

// first returns the index of the first restore of k in items, or of any restore if k is nil.
func (m *reference) first(k *model.Key) int {
	for i, it := range m.items {
		if it.restores() && (k == nil || it.Key == *k) {
			return i
		}
	}
	return -1
}

func (m *reference) head() int64 {
	if i := m.first(nil); i >= 0 {
		return m.items[i].seq
	}
	return m.next
}

func (m *reference) distance(at int) (d int64) {
	for _, it := range m.items[:at] {
		switch {
		case it.restores():
			d++
		case it.Op == Advance:
			d += max(it.Steps, 0)
		}
	}
	return d
}

func (m *reference) upcoming(from int64) (list []string) {
	for _, it := range m.items {
		if it.restores() && it.seq >= from {
			list = append(list, fmt.Sprint(it.seq, it.Key, it.Op == Last))
		}
	}
	return list
}

// popHead removes the first restore and the done ones directly behind it, with the elements before the last of these. It returns the drops among
// them. Intervals announced behind that are still ahead.
func (m *reference) popHead() (drops []model.Key) {
	drops = m.due()
	i := m.first(nil)
	m.items = m.items[i+1:]
	drops = append(drops, m.due()...)
	next := m.first(nil)
	if next < 0 {
		next = len(m.items)
	}
	for i := next - 1; i >= 0; i-- {
		if m.items[i].done {
			m.items = m.items[i+1:]
			break
		}
	}
	return drops
}

// due removes the drops before the first restore.
func (m *reference) due() (drops []model.Key) {
	end := m.first(nil)
	if end < 0 {
		end = len(m.items)
	}
	var kept []modelItem
	for _, it := range m.items[:end] {
		if it.Op == Drop {
			drops = append(drops, it.Key)
		} else {
			kept = append(kept, it)
		}
	}
	m.items = append(kept, m.items[end:]...)
	return drops
}

func (m *reference) restored(k model.Key) (v Verdict) {
	again := m.previous != nil && *m.previous == k
	m.previous = &k
	i := m.first(&k)
	if i < 0 || (again && i != m.first(nil)) {
		v.Drops = m.due()
		return v
	}
	v.Expected, v.Last = true, m.items[i].Op == Last
	for j := range m.items[:i] {
		if m.items[j].restores() {
			m.items[j].overtaken++
			v.Ahead++
		}
	}
	if v.Ahead == 0 {
		v.Drops = m.popHead()
		return v
	}
	m.items[i].done = true
	for h := m.first(nil); h >= 0 && m.items[h].overtaken > m.patience; h = m.first(nil) {
		key := m.items[h].Key
		v.Drops = append(v.Drops, m.popHead()...)
		if m.first(&key) < 0 {
			v.Withdrawn = append(v.Withdrawn, key)
		} else {
			v.Deferred = append(v.Deferred, key)
		}
	}
	v.Drops = append(v.Drops, m.due()...)
	return v
}

func someKey(n int64) *rapid.Generator[model.Key] {
	return rapid.Custom(func(t *rapid.T) model.Key {
		k := rapid.Int64Range(0, n-1).Draw(t, "number")
		if k%3 == 2 {
			return model.TextKey(fmt.Sprint("t", k))
		}
		return model.NumberKey(k)
	})
}

func someHint(keys int64) *rapid.Generator[Hint] {
	return rapid.Custom(func(t *rapid.T) Hint {
		h := Hint{Op: rapid.SampledFrom([]Op{Restore, Restore, Restore, Restore, Last, Drop, Advance}).Draw(t, "op")}
		if h.Op == Advance {
			h.Steps = rapid.Int64Range(-2, 9).Draw(t, "steps")
		} else {
			h.Key = someKey(keys).Draw(t, "key")
		}
		return h
	})
}

// The queue of hints behaves like the slice, under every mixture of appending, restoring in and out of turn, and clearing.
func TestQueueIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patience := rapid.SampledFrom([]int{-1, 1, 2, 8}).Draw(t, "patience")
		keys := rapid.SampledFrom([]int64{3, 12, 2000}).Draw(t, "keys")
		o := New(Options{Patience: patience})
		m := &reference{patience: max(patience, 0)}
		var steps int
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				list := rapid.SliceOfN(someHint(keys), 0, 6).Draw(t, "hints")
				o.Append(list...)
				m.append(list...)
			},
			"append many": func(t *rapid.T) { // across the borders of chunks
				if len(m.items) > 600 {
					return
				}
				n := rapid.IntRange(100, 400).Draw(t, "n")
				for i := range n {
					h := Hint{Op: Restore, Key: model.NumberKey(int64(i))}
					o.Append(h)
					m.append(h)
				}
			},
			"restore the head": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					i := m.first(nil)
					if i < 0 {
						return
					}
					sameVerdict(t, o, m, m.items[i].Key)
				}
			},
			"restore near the head": func(t *rapid.T) {
				i := rapid.IntRange(0, 12).Draw(t, "ahead")
				if i < len(m.items) && m.items[i].restores() {
					sameVerdict(t, o, m, m.items[i].Key)
				}
			},
			"restore any": func(t *rapid.T) { sameVerdict(t, o, m, someKey(keys).Draw(t, "key")) },
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					o.Clear()
					m.items = nil
				}
			},
			"": func(t *rapid.T) {
				if steps++; steps%4 == 0 || len(m.items) < 64 {
					sameState(t, o, m, keys)
				}
			},
		})
	})
}

// judge receives the failures: a test, or a property of one.
type judge interface {
	Fatalf(format string, args ...any)
}

func sameVerdict(t judge, o *Order, m *reference, k model.Key) {
	got, want := o.Restored(k), m.restored(k)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("restored %v: %+v, want %+v", k, got, want)
	}
}

func sameState(t judge, o *Order, m *reference, keys int64) {
	var n int
	for _, it := range m.items {
		if it.restores() {
			n++
		}
	}
	if o.Len() != n || o.Head() != m.head() {
		t.Fatalf("len %d, head %d, want %d, %d", o.Len(), o.Head(), n, m.head())
	}
	for i := range min(keys, 64) {
		for _, k := range []model.Key{model.NumberKey(i), model.TextKey(fmt.Sprint("t", i))} {
			d, ok := o.Distance(k)
			seq, ok2 := o.Seq(k)
			at := m.first(&k)
			if ok != (at >= 0) || ok2 != ok || (ok && (d != m.distance(at) || seq != m.items[at].seq)) {
				t.Fatalf("%v: distance %d, seq %d, expected %v; in the reference: %d", k, d, seq, ok, at)
			}
		}
	}
	for _, from := range []int64{math.MinInt64, m.head() + 5, m.next + 1} {
		var got []string
		o.Upcoming(from, func(seq int64, k model.Key, last bool) bool {
			got = append(got, fmt.Sprint(seq, k, last))
			return true
		})
		if want := m.upcoming(from); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("upcoming from %d: %v, want %v", from, got, want)
		}
	}
}

// Whatever an application does, a guessing order keeps its promises. The three views of the expectations agree. Numbers only grow and never serve
// twice. Every key that was ever expected is restored, reported as withdrawn, or still expected.
func TestGuessKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]int64{3, 8, 40}).Draw(t, "keys")
		o := New(Options{Guess: true, Lookahead: rapid.SampledFrom([]int{1, 5, 32}).Draw(t, "lookahead")})
		promised := map[model.Key]bool{}
		// Keys that were expected when the hints were cleared: whether a guess lost some of them as well does not matter.
		excused := map[model.Key]bool{}
		named := map[int64]model.Key{}
		alive := map[model.Key]bool{}
		var head int64
		cursor := int64(0)
		see := func() {
			o.Upcoming(0, func(_ int64, k model.Key, _ bool) bool {
				promised[k] = true
				return true
			})
		}
		restore := func(k model.Key) {
			see()
			_, expected := o.Seq(k)
			v := o.Restored(k)
			if v.Expected && !expected {
				t.Fatalf("%v was not expected before, %+v", k, v)
			}
			delete(promised, k)
			for _, w := range v.Withdrawn {
				if _, ok := o.Seq(w); ok {
					t.Fatalf("%v is withdrawn and expected", w)
				}
				if !promised[w] && !excused[w] && w != k {
					t.Fatalf("%v is withdrawn but was not expected", w)
				}
				delete(promised, w)
			}
			for p := range promised {
				if _, ok := o.Seq(p); !ok {
					t.Fatalf("%v is neither expected nor withdrawn after %v", p, k)
				}
			}
			see()
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				k := someKey(keys).Draw(t, "key")
				o.Written(k)
				alive[k] = true
			},
			"write all": func(t *rapid.T) {
				for i := range keys {
					o.Written(model.NumberKey(i))
					alive[model.NumberKey(i)] = true
				}
			},
			"drop": func(t *rapid.T) {
				k := someKey(keys).Draw(t, "key")
				o.Dropped(k)
				delete(alive, k)
			},
			"restore": func(t *rapid.T) { restore(someKey(keys).Draw(t, "key")) },
			"sweep": func(t *rapid.T) {
				step := rapid.SampledFrom([]int64{-2, -1, 1, 3}).Draw(t, "step")
				k := rapid.Int64Range(0, keys-1).Draw(t, "from")
				for range rapid.IntRange(1, 12).Draw(t, "n") {
					restore(model.NumberKey(k))
					if k += step; k < 0 || k >= keys {
						break
					}
				}
			},
			"sweep and drop": func(t *rapid.T) {
				for k := keys - 1; k >= 0; k-- {
					restore(model.NumberKey(k))
					o.Dropped(model.NumberKey(k))
					delete(alive, model.NumberKey(k))
				}
			},
			"hint": func(t *rapid.T) { o.Append(rapid.SliceOfN(someHint(keys), 0, 3).Draw(t, "hints")...) },
			"clear": func(t *rapid.T) {
				if o.Len() > 0 {
					maps.Copy(excused, promised)
					clear(promised)
				}
				o.Clear()
			},
			"": func(t *rapid.T) {
				if h := o.Head(); h < head {
					t.Fatalf("head went back from %d to %d", head, h)
				} else {
					head = h
				}
				first := map[model.Key]int64{}
				before := int64(math.MinInt64)
				var n, place int64
				o.Upcoming(0, func(seq int64, k model.Key, _ bool) bool {
					if seq <= before || seq < head {
						t.Fatalf("number %d after %d, head %d", seq, before, head)
					}
					if x, ok := named[seq]; ok && x != k {
						t.Fatalf("number %d served %v and %v", seq, x, k)
					}
					named[seq] = k
					before = seq
					if _, ok := first[k]; !ok {
						first[k] = seq
						if s, ok := o.Seq(k); !ok || s != seq {
							t.Fatalf("%v comes up as %d, but its number is %d %v", k, seq, s, ok)
						}
						if d, ok := o.Distance(k); o.Guessing() && (!ok || d != place) {
							t.Fatalf("%v is the %d-th to come, but its distance is %d %v", k, place, d, ok)
						}
						if o.Guessing() && !alive[k] {
							t.Fatalf("%v is guessed but does not exist", k)
						}
					}
					promised[k] = true
					place++
					n++
					return true
				})
				if o.Guessing() != (n > 0 && o.Len() == 0) {
					t.Fatalf("guessing %v with %d upcoming and %d queued", o.Guessing(), n, o.Len())
				}
				// A reader that continues where it stopped sees every number once, and misses none that matters.
				o.Upcoming(cursor, func(seq int64, _ model.Key, _ bool) bool {
					cursor = seq + 1
					return true
				})
				for i := range keys {
					if _, ok := o.Seq(model.NumberKey(i)); ok != (mapHas(first, model.NumberKey(i))) {
						t.Fatalf("%d: expected %v, but it does not come up", i, ok)
					}
				}
			},
		})
	})
}

func mapHas(m map[model.Key]int64, k model.Key) bool {
	_, ok := m[k]
	return ok
}
