package catalog

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"velocpy/gocore/model"
)

const million = 1 << 20

// small is the row of a checkpoint of one region, 64 KiB.
func small(n int) *Row {
	return &Row{
		Key: model.NumberKey(int64(n)), Serial: uint64(n) + 1, Align: 4096, Sums: []uint64{uint64(n) * 0x9e3779b97f4a7c15},
		Layout:  &Layout{Layout: model.Layout{Slot: 64 << 10, Spans: []model.Span{{Offset: 0, Bytes: 64 << 10}}, Text: "u float32 (128, 128)"}},
		Extents: []Extent{{1 + uint64(n)>>14, int64(n) & (1<<14 - 1) << 16, 64 << 10}},
	}
}

// snapshotOf returns a State of many small rows, and the records of its snapshot.
func snapshotOf(b testing.TB, rows int, key func(n int) model.Key) (*State, [][]byte) {
	b.Helper()
	s := New()
	w := NewWriter(s)
	r := w.Record()
	for n := range rows {
		row := small(n)
		row.Key = key(n)
		must(b, r.Put("wave", row))
		if len(r.bytes) > 1<<20 || n == rows-1 {
			must(b, w.Acknowledged(r))
			r = w.Record()
		}
	}
	var records [][]byte
	must(b, s.Snapshot(func(record []byte) error {
		records = append(records, slices.Clone(record))
		return nil
	}))
	return s, records
}

func numbered(n int) model.Key { return model.NumberKey(int64(n)) }

func BenchmarkApply(b *testing.B) {
	for _, kind := range []struct {
		name string
		key  func(n int) model.Key
	}{
		{"numbers", numbered},
		{"scattered", func(n int) model.Key { return model.NumberKey(int64(uint64(n) * 0x9e3779b97f4a7c15)) }},
		{"texts", func(n int) model.Key { return model.TextKey(fmt.Sprintf("step %d", n)) }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			_, records := snapshotOf(b, million, kind.key)
			before := heap()
			var s *State
			for b.Loop() {
				s = New()
				for _, record := range records {
					must(b, s.Apply(record))
				}
			}
			b.ReportMetric(float64(heap()-before)/1e6, "MB")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/row")
			runtime.KeepAlive(s)
			runtime.KeepAlive(records)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkState(b *testing.B) {
	s, records := snapshotOf(b, million, numbered)
	discard := func([]byte) error { return nil }
	b.Run("EachExtent", func(b *testing.B) {
		for b.Loop() {
			n := 0
			s.EachExtent(func(uint32, uint64, Extent) bool { n++; return true })
		}
	})
	b.Run("Each", func(b *testing.B) {
		for b.Loop() {
			s.Each(1, func(Row) bool { return true })
		}
	})
	b.Run("EachKey", func(b *testing.B) {
		for b.Loop() {
			s.EachKey(1, func(model.Key, uint64) bool { return true })
		}
	})
	b.Run("Histories", func(b *testing.B) {
		for b.Loop() {
			s.Histories()
		}
	})
	b.Run("Find", func(b *testing.B) {
		n := 0
		for b.Loop() {
			s.Find(1, model.NumberKey(int64(n*7919%million)))
			n++
		}
	})
	b.Run("Snapshot", func(b *testing.B) {
		for b.Loop() {
			must(b, s.Snapshot(discard))
		}
	})
	b.Run("SnapshotBehindDrop", func(b *testing.B) { // drops the first row, so that all others move
		for b.Loop() {
			b.StopTimer()
			s := New()
			for _, record := range records {
				must(b, s.Apply(record))
			}
			w := NewWriter(s)
			r := w.Record()
			must(b, r.Drop("wave", model.NumberKey(0), 1), w.Acknowledged(r))
			b.StartTimer()
			must(b, s.Snapshot(discard))
		}
	})
}

func BenchmarkPut(b *testing.B) {
	w := NewWriter(New())
	row, n := small(0), 0
	for b.Loop() {
		n++
		row.Key.Number, row.Serial = int64(n%1000), uint64(n)
		r := w.Record()
		must(b, r.Put("wave", row), w.Acknowledged(r))
	}
}

func must(t interface {
	Helper()
	Fatal(args ...any)
}, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
