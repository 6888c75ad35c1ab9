package plan

import (
	"runtime"
	"slices"
	"testing"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// The written keys are a slice: a dropped key leaves it, a written key moves to its end.
func TestWrittenIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]int64{4, 30, 300}).Draw(t, "keys")
		w := newWritten(&Keys{})
		var m []model.Key
		leave := func(k model.Key) bool {
			i := slices.Index(m, k)
			if i >= 0 {
				m = slices.Delete(m, i, i+1)
			}
			return i >= 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				k := someKey(keys).Draw(t, "key")
				if fresh := w.write(k); fresh == leave(k) {
					t.Fatalf("%v: fresh %v", k, fresh)
				}
				m = append(m, k)
			},
			"write many": func(t *rapid.T) {
				for i := range keys {
					w.write(model.NumberKey(i))
					leave(model.NumberKey(i))
					m = append(m, model.NumberKey(i))
				}
			},
			"drop": func(t *rapid.T) {
				k := someKey(keys).Draw(t, "key")
				w.drop(k)
				leave(k)
			},
			"drop many": func(t *rapid.T) {
				for i := range keys / 2 {
					w.drop(model.NumberKey(2 * i))
					leave(model.NumberKey(2 * i))
				}
			},
			"": func(t *rapid.T) {
				for _, k := range []model.Key{someKey(keys).Draw(t, "one"), someKey(keys).Draw(t, "another")} {
					at := slices.Index(m, k)
					if w.has(k) != (at >= 0) {
						t.Fatalf("has %v: %v, want %d", k, w.has(k), at)
					}
					before, ok := w.beside(k, -1)
					if want := at > 0; ok != want || (ok && before != m[at-1]) {
						t.Fatalf("before %v: %v %v, want the one before %d of %v", k, before, ok, at, m)
					}
					after, ok := w.beside(k, +1)
					if want := at >= 0 && at < len(m)-1; ok != want || (ok && after != m[at+1]) {
						t.Fatalf("after %v: %v %v, want the one after %d of %v", k, after, ok, at, m)
					}
				}
				for r, i := w.oldest, 0; r != Nobody; r, i = w.keys.row(r).next, i+1 {
					if i >= len(m) || w.keys.Key(r) != m[i] {
						t.Fatalf("the %d-th written is %v, want %v", i, w.keys.Key(r), m)
					}
				}
				if w.n != len(m) || w.keys.Len() != len(m) {
					t.Fatal(w.n, w.keys.Len(), len(m))
				}
			},
		})
	})
}

// A live key costs a guessing order less than 40 bytes.
func TestWrittenMemory(t *testing.T) {
	const n = 1_000_000
	start := heap()
	w := newWritten(&Keys{})
	for i := range int64(n) {
		w.write(model.NumberKey(i))
	}
	per := float64(heap()-start) / n
	t.Logf("%.1f bytes per live key", per)
	if per > 40 {
		t.Errorf("%.1f bytes per live key", per)
	}
	runtime.KeepAlive(&w)
}
