package archive

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/durable"
)

// BenchmarkPlanning says what the steps of a push cost that copy nothing: the parameters of policy/aggregation/sim. Disks are memory. The figures are those of the last
// push, by ranks, parts, files or copies. They are times of processors, so that other processes of the machine count little. "open" is the time that one
// processor takes to open stores, and "open-2" the time in which two do. Half of "commit" is the disk in memory, whose syncs copy.
func BenchmarkPlanning(b *testing.B) {
	const ranks, files = 512, 64
	var took struct{ read, open, openTwo, list, make, plan, write, parse, commit time.Duration }
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
		timed := func(took *time.Duration, do func() error) {
			began := processorTime(b)
			err := do()
			if *took = processorTime(b) - began; err != nil {
				b.Fatal(err)
			}
		}
		catalogs = 0
		timed(&took.read, func() (err error) {
			for i, of := range sources {
				if sources[i].Metadata, err = Metadata(of.Store); err != nil {
					return err
				}
				catalogs += len(sources[i].Metadata)
			}
			return nil
		})
		for i, of := range []*time.Duration{&took.open, &took.openTwo} {
			opened, had := &Push{o: Options{Writers: i + 1}}, runtime.GOMAXPROCS(i+1)
			runtime.GC()
			began := time.Now()
			if err := opened.openAll(sources); err != nil {
				b.Fatal(err)
			}
			*of = time.Since(began)
			runtime.GOMAXPROCS(had)
			timed(&took.list, opened.gather)
			if err := opened.Close(); err != nil {
				b.Fatal(err)
			}
		}
		p, err := NewPush(sources, durable.Options{FS: r.shared, Dir: archiveDir}, Options{Files: files})
		if err != nil {
			b.Fatal(err)
		}
		all := make([]int64, files)
		for file := range all {
			all[file] = int64(file)
		}
		timed(&took.make, func() error { return makeFiles(p, all) })
		var plan *Plan
		timed(&took.plan, func() (err error) {
			plan, err = p.Plan(nodes)
			return err
		})
		timed(&took.commit, func() error { return p.Land(make([]Report, ranks)) })
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		plan.Copies = nil
		for i := range 100 * ranks { // as of long checkpoints
			plan.Copies = append(plan.Copies, Transfer{i / 100, int64(i / 800), i / 800 * 8, int64(i%100) * aggregation.CopyBytes, int64(i%100+1) * aggregation.CopyBytes, int64(i/800)*segmentBytes + int64(i%800)*aggregation.CopyBytes})
		}
		copies = len(plan.Copies)
		var said []byte
		timed(&took.write, func() (err error) {
			said, err = json.Marshal(plan)
			return err
		})
		text = len(said)
		timed(&took.parse, func() error { return json.Unmarshal(said, &Plan{}) })
	}
	each := func(took time.Duration, count int, unit string) {
		b.ReportMetric(float64(took.Nanoseconds())/1e3/float64(count), unit)
	}
	each(took.read, ranks, "µs-read/store")
	each(took.open, ranks, "µs-open/store")
	each(took.openTwo, ranks, "µs-open-2/store")
	each(took.list, ranks, "µs-list/store")
	each(took.make, files, "µs-make/file")
	each(took.plan, ranks, "µs-plan/part")
	each(took.commit, ranks, "µs-commit/part")
	each(took.write, copies, "µs-write/copy")
	each(took.parse, copies, "µs-parse/copy")
	b.ReportMetric(float64(catalogs)/ranks, "B/catalog")
	b.ReportMetric(float64(text)/float64(copies), "B/copy")
}

// processorTime is the time that processors have spent on this process.
func processorTime(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
