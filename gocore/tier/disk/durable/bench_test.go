package durable

import (
	"fmt"
	"testing"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// filled makes a store with rows checkpoints of one block each in a compacted catalog, and with more checkpoints after the compaction, one by one. The caller
// closes the store. The bytes of the checkpoints are never written.
func filled(t testing.TB, o Options, rows, more int) *Dir {
	t.Helper()
	landed := make(chan *Change, rows)
	var d *Dir
	ready := make(chan struct{})
	o.Land = func(group []*Change, _ []int64) {
		<-ready
		for _, c := range group {
			d.Apply(c)
			landed <- c
		}
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	commit := func(from, end int) {
		changes := make([]*Change, 0, end-from)
		for i := from; i < end; i++ {
			l := &catalog.Layout{Layout: model.Layout{Slot: catalog.Block, Spans: []model.Span{{Bytes: catalog.Block}}, Text: fmt.Sprintf("u%d float32 (1024,)", i%3)}}
			row := &catalog.Row{Key: model.NumberKey(int64(i)), Serial: uint64(i + 1), Layout: l, Align: 64, Sums: []uint64{uint64(i) * 0x9e3779b97f4a7c15}}
			changes = append(changes, &Change{History: fmt.Sprintf("wave %d", i%5), Put: row, Off: int64(i) * catalog.Block})
		}
		d.Commit(changes...)
		for range changes {
			if c := <-landed; c.Err != nil {
				t.Fatal(c.Err)
			}
		}
	}
	commit(0, rows)
	if err := d.compaction.compact(); err != nil {
		t.Fatal(err)
	}
	for i := range more {
		commit(rows+i, rows+i+1)
	}
	return d
}

// BenchmarkOpening reads a compacted catalog of a million checkpoints.
func BenchmarkOpening(b *testing.B) {
	const rows = 1 << 20
	o := Options{FS: vfs.OS(), Dir: b.TempDir(), Capacity: rows * catalog.Block, SegmentBytes: rows * catalog.Block}
	if err := filled(b, o, rows, 0).Close(); err != nil {
		b.Fatal(err)
	}
	least := time.Hour
	for b.Loop() {
		begun := time.Now()
		v, err := Read(o)
		least = min(least, time.Since(begun))
		if err != nil {
			b.Fatal(err)
		}
		if n := len(serials(v.State())); n != rows {
			b.Fatal(n)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(least.Microseconds())/1e3, "least-ms/op")
}
