package durable

import (
	"testing"
	"time"

	"velocpy/gocore/catalog"
	"velocpy/gocore/plan"
	"velocpy/gocore/vfs"
)

// filled makes a store whose catalog says of so many checkpoints of one block each where they lie, and was written anew. Their bytes are never written.
func filled(t testing.TB, o Options, rows int) {
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
	changes := make([]*Change, rows)
	l := &catalog.Layout{Slot: catalog.Block, Spans: []catalog.Span{{Bytes: catalog.Block}}, Text: "u float32 (1024,)"}
	for i := range changes {
		row := &catalog.Row{Key: plan.Number(int64(i)), Serial: uint64(i + 1), Layout: l, Align: 64, Sums: []uint64{uint64(i) * 0x9e3779b97f4a7c15}}
		changes[i] = &Change{History: "wave", Put: row, Off: int64(i) * catalog.Block}
	}
	d.Commit(changes...)
	for range changes {
		if c := <-landed; c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	if err := d.compact(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkOpening reads a catalog of a million checkpoints that was written anew.
func BenchmarkOpening(b *testing.B) {
	const rows = 1 << 20
	o := Options{FS: vfs.OS(), Dir: b.TempDir(), Capacity: rows * catalog.Block, SegmentBytes: rows * catalog.Block}
	filled(b, o, rows)
	least := time.Hour
	for b.Loop() {
		begun := time.Now()
		v, err := Read(o)
		least = min(least, time.Since(begun))
		if err != nil {
			b.Fatal(err)
		}
		if n := v.State().Histories()[0].Rows; n != rows {
			b.Fatal(n)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(least.Microseconds())/1e3, "least-ms/op")
}
