package store

import (
	"fmt"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/retention"
	"velocpy/gocore/transfer/copier"
)

// manyRegions returns the arguments of a checkpoint with n regions of size bytes.
func manyRegions(n, size int) (a operation.CheckpointArgs) {
	for range n {
		a.Regions = append(a.Regions, region(make([]byte, size), a.Slot))
		a.Slot += int64(size)
	}
	a.Layout, a.Tier, a.FD = []byte(fmt.Sprint(n, size)), status.TierNone, -1
	return a
}

func capturing(b *testing.B, h *History, a *operation.CheckpointArgs, k int64) {
	a.Key.Number = k
	var out operation.Outcome
	op, code, err := h.Checkpoint(a, &out)
	for code == status.Again {
		code, err = op.Step(&out)
	}
	if err != nil || code != status.OK {
		b.Fatal(code, err)
	}
}

func BenchmarkCaptureTenRegionsOf1KiB(b *testing.B) {
	for _, sum := range []bool{true, false} {
		b.Run(fmt.Sprint("checksum ", sum), func(b *testing.B) {
			c := cached(64<<20, 0, nil)
			c.Checksum = sum
			s := open(b, c)
			h := newClient(b, s, "h")
			a := manyRegions(10, 1024)
			b.ReportAllocs()
			b.SetBytes(10 << 10)
			for i := 0; b.Loop(); i++ {
				capturing(b, h.h, &a, int64(i%1000))
			}
		})
	}
}

func BenchmarkLease(b *testing.B) {
	s := open(b, cached(64<<20, 0, nil))
	h := newClient(b, s, "h")
	a := manyRegions(10, 1024)
	for k := range int64(1000) {
		capturing(b, h.h, &a, k)
		release(b, h.mustLease(k, operation.RestoreArgs{}))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var out operation.Outcome
		if _, code, err := h.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: int64(999 - i%1000)}, Lease: true, FD: -1}, &out); code != status.OK {
			b.Fatal(code, err)
		}
		release(b, out.Lease)
	}
}

// The benchmark captures bytes, copies them with a bare job, and copies them with one thread.
func BenchmarkCapture(b *testing.B) {
	for _, size := range []int{1 << 20, 16 << 20, 64 << 20, 256 << 20} {
		for _, sum := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dMiB/store/checksum %v", size>>20, sum), func(b *testing.B) {
				c := cached(int64(3*size+1<<20), 0, nil)
				c.Checksum = sum
				s := open(b, c)
				h := newClient(b, s, "h")
				a := manyRegions(1, size)
				for k := range int64(4) { // so that all slots have been prefaulted
					capturing(b, h.h, &a, k%2)
				}
				b.SetBytes(int64(size))
				for i := 0; b.Loop(); i++ {
					capturing(b, h.h, &a, int64(i%2))
				}
			})
			b.Run(fmt.Sprintf("%dMiB/copier/checksum %v", size>>20, sum), func(b *testing.B) {
				pool := copier.NewPool(helpers(0))
				defer pool.Close()
				from, to := make([]byte, size), make([]byte, size)
				p := region(from, 0)
				piece := copier.Piece{Slot: region(to, 0).Mem.Base, Bytes: p.Bytes, Mem: p.Mem}
				b.SetBytes(int64(size))
				for b.Loop() {
					j := copier.NewJob(copier.Gather, []copier.Piece{piece}, copier.Options{Checksum: sum, Pool: pool})
					j.Run(0)
					j.Free()
				}
			})
		}
		b.Run(fmt.Sprintf("%dMiB/one thread", size>>20), func(b *testing.B) {
			from, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(to, from)
			}
		})
	}
}

// The benchmark counts small checkpoints that are flushed to disk per second.
func BenchmarkSmallFlushes(b *testing.B) {
	for _, eager := range []bool{true, false} {
		b.Run(fmt.Sprint("eager ", eager), func(b *testing.B) {
			c := cached(64<<20, 8<<30, nil)
			c.Path = b.TempDir()
			if eager {
				c.Flush = "eager"
			}
			s := open(b, c)
			h := newClient(b, s, "h")
			a := manyRegions(1, 10<<10)
			a.FD = h.fd
			n := int64(0)
			for ; b.Loop(); n++ {
				a.Key.Number = n % 100_000
				if _, err := h.write(&a); err != nil {
					b.Fatal(err)
				}
			}
			if err := h.wait(0, status.TierDisk); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "checkpoints/s")
		})
	}
}

// The benchmark loads small checkpoints from disk, in descending order.
func BenchmarkSmallLoads(b *testing.B) {
	c := cached(8<<20, 8<<30, nil)
	c.Path = b.TempDir()
	s := open(b, c)
	h := newClient(b, s, "h")
	a := manyRegions(1, 10<<10)
	a.FD = h.fd
	const n = 20_000
	for k := range int64(n) {
		a.Key.Number = k
		if _, err := h.write(&a); err != nil {
			b.Fatal(err)
		}
	}
	k := int64(n)
	for b.Loop() {
		if k--; k < 0 {
			k = n - 1
		}
		l, _, err := h.lease(k, operation.RestoreArgs{})
		if err != nil {
			b.Fatal(err)
		}
		release(b, l)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checkpoints/s")
}

// The benchmark measures the cost of a rule of retention: each checkpoint that becomes durable makes the rule drop another.
func BenchmarkRetention(b *testing.B) {
	const text, meta = "", `{"step": 1200, "lr": 0.0001, "val": {"loss": 0.%d, "accuracy": 0.81}, "loss": 0.69}`
	for name, rule := range map[string]model.Retention{"last": {Last: 100, Every: 1000}, "best": {Last: 100, Every: 1000, Best: bestBy(100, "val", "loss")}} {
		b.Run(name, func(b *testing.B) {
			var metas []string
			for i := range 1000 {
				metas = append(metas, fmt.Sprintf(meta, i*7919%1000))
			}
			x := retention.New(&rule)
			b.ReportAllocs()
			for at := int64(1); b.Loop(); at++ {
				x.Add(candidateOf(&rule, retention.Written{At: at, Key: model.NumberKey(at)}, text, metas[at%1000]))
				x.Unkept()
			}
		})
	}
}
