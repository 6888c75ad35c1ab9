package archive

import (
	"encoding/json"
	"testing"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/durable"
)

// BenchmarkPlanning says what the steps of a push cost that copy nothing: the parameters of policy/aggregation/sim. Disks are memory. The figures are those of the last
// push, by ranks, parts or copies.
func BenchmarkPlanning(b *testing.B) {
	const ranks = 512
	var took struct{ read, replay, open, plan, write, parse, commit time.Duration }
	var catalogs, copies, text int
	for b.Loop() {
		r := newRun(b, ranks)
		for rank := range ranks {
			r.put(rank, place{"h", model.NumberKey(0)}, state{rank, 0, 4096})
		}
		r.settle()
		sources, nodes := r.all(), make([]int, ranks)
		for rank := range nodes {
			nodes[rank] = rank / 8
		}
		catalogs = 0
		began := time.Now()
		recorded := make([][]byte, ranks)
		for i, of := range sources {
			var err error
			if recorded[i], err = Metadata(of.Store); err != nil {
				b.Fatal(err)
			}
			catalogs += len(recorded[i])
		}
		took.read, began = time.Since(began), time.Now()
		for i := range sources {
			var err error
			if sources[i].Store.FS, err = vfs.Replay(recorded[i]); err != nil {
				b.Fatal(err)
			}
		}
		took.replay, began = time.Since(began), time.Now()
		p, err := NewPush(sources, durable.Options{FS: r.shared, Dir: archiveDir}, Options{Files: ranks / 8})
		if err != nil {
			b.Fatal(err)
		}
		took.open, began = time.Since(began), time.Now()
		plan, err := p.Plan(nodes)
		if err != nil {
			b.Fatal(err)
		}
		took.plan, began = time.Since(began), time.Now()
		reports := make([]Report, ranks)
		if err := p.Land(reports); err != nil {
			b.Fatal(err)
		}
		took.commit = time.Since(began)
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		plan.Copies = nil
		for i := range 100 * ranks { // as of long checkpoints
			plan.Copies = append(plan.Copies, Transfer{i / 100, int64(i / 800), i / 800 * 8, int64(i%100) * aggregation.CopyBytes, int64(i%100+1) * aggregation.CopyBytes, int64(i/800)*segmentBytes + int64(i%800)*aggregation.CopyBytes})
		}
		copies, began = len(plan.Copies), time.Now()
		said, err := json.Marshal(plan)
		if err != nil {
			b.Fatal(err)
		}
		took.write, text, began = time.Since(began), len(said), time.Now()
		if err := json.Unmarshal(said, &Plan{}); err != nil {
			b.Fatal(err)
		}
		took.parse = time.Since(began)
	}
	each := func(took time.Duration, count int, unit string) {
		b.ReportMetric(float64(took.Nanoseconds())/1e3/float64(count), unit)
	}
	each(took.read, ranks, "µs-read/store")
	each(took.replay, ranks, "µs-replay/store")
	each(took.open, ranks, "µs-open/store")
	each(took.plan, ranks, "µs-plan/part")
	each(took.commit, ranks, "µs-commit/part")
	each(took.write, copies, "µs-write/copy")
	each(took.parse, copies, "µs-parse/copy")
	b.ReportMetric(float64(catalogs)/ranks, "B/catalog")
	b.ReportMetric(float64(text)/float64(copies), "B/copy")
}
