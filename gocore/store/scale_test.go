package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// BenchmarkScale measures each operation among a thousand and a million checkpoints of 64 bytes, in descending and in random order.
func BenchmarkScale(b *testing.B) {
	for _, count := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			h := newClient(b, open(b, cached(int64(2*64*count), 0, nil)), "h")
			a := manyRegions(1, 64)
			for k := range count {
				capturing(b, h.h, &a, int64(k))
			}
			keys := make([]int64, min(count, 2000))
			for i := range keys {
				keys[i] = int64(count - 1 - i)
			}
			b.Run("backwards", func(b *testing.B) { turns(b, h, &a, keys) })
			for i, k := range rand.New(rand.NewPCG(1, 1)).Perm(count)[:len(keys)] {
				keys[i] = int64(k)
			}
			b.Run("random", func(b *testing.B) { turns(b, h, &a, keys) })
		})
	}
}

// turns leases, restores, drops and rewrites the keys, and reports the median time of each.
func turns(b *testing.B, h *client, a *operation.CheckpointArgs, keys []int64) {
	into := []model.Region{region(make([]byte, 64), 0)}
	var out operation.Outcome
	check := func(code status.Code, err error) {
		if code != status.OK {
			b.Fatal(code, err)
		}
	}
	kinds := []string{"lease", "into", "drop", "checkpoint"}
	calls := []func(k int64){
		func(k int64) {
			_, code, err := h.h.Restore(&operation.RestoreArgs{Key: model.NumberKey(k), Lease: true, FD: -1}, &out)
			check(code, err)
			release(b, out.Lease)
		},
		func(k int64) {
			_, code, err := h.h.Restore(&operation.RestoreArgs{Key: model.NumberKey(k), Into: into, FD: -1}, &out)
			check(code, err)
		},
		func(k int64) {
			if err := h.h.Drop(model.NumberKey(k)); err != nil {
				b.Fatal(err)
			}
		},
		func(k int64) { capturing(b, h.h, a, k) },
	}
	times := make([][]float64, len(calls))
	for b.Loop() {
		for i, call := range calls {
			began := time.Now()
			for _, k := range keys {
				call(k)
			}
			times[i] = append(times[i], float64(time.Since(began).Nanoseconds())/float64(len(keys)))
		}
	}
	sum := 0.0
	for i, all := range times {
		slices.Sort(all)
		sum += all[len(all)/2]
		b.ReportMetric(all[len(all)/2], kinds[i]+"-ns")
	}
	b.ReportMetric(sum, "cycle-ns")
}
