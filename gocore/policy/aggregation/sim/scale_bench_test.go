package sim

import (
	"fmt"
	"strings"
	"testing"
)

// ofNode is the ranks of a node (Gossman et al., section 5.1).
const ofNode = 8

// uneven are the sizes of ranks' checkpoints, which differ by up to a fifth from one size (section 5.1), in whole blocks, and the ranks' nodes.
func uneven(ranks int, size int64) (bytes []int64, nodes []int) {
	random := uint64(1)
	for rank := range ranks {
		random = random*6364136223846793005 + 1442695040888963407
		part := 0.8 + 0.4*float64(random>>40)/(1<<24)
		bytes, nodes = append(bytes, int64(float64(size)*part)/4096*4096), append(nodes, rank/ofNode)
	}
	return bytes, nodes
}

// played is a way to push.
type played struct {
	way  string
	play func() (Result, error)
}

// ways are those that benchmarks/host/aggregation.py compares, for ranks on nodes of the paper's machine.
func ways(ranks int, size int64) []played {
	bytes, nodes := uneven(ranks, size)
	count := (ranks + ofNode - 1) / ofNode
	all := []played{{"file-per-rank", func() (Result, error) { return FilePerRank(Frontier(), Default(bytes, nodes, ranks), 8) }}}
	for _, of := range []struct {
		name  string
		files int
	}{{"nodes", count}, {"quarter", max(count/4, 1)}} {
		for _, leaders := range []int{0, 1, 4} {
			p := Default(bytes, nodes, of.files)
			p.Leaders = leaders
			all = append(all, played{fmt.Sprintf("archive/files=%s/leaders=%d", of.name, leaders), func() (Result, error) { return Together(Frontier(), ThisSoftware(), p) }})
		}
		all = append(all, played{"collective/files=" + of.name, func() (Result, error) { return Collective(Frontier(), Default(bytes, nodes, of.files)) }})
	}
	return all
}

// BenchmarkScale plays pushes of few and of many ranks. What it says is the result of the simulation; the time that it takes itself means nothing.
func BenchmarkScale(b *testing.B) {
	for _, ranks := range []int{16, 64, 256, 1024, 4096, 16384} {
		for _, size := range []int64{16 << 20, 64 << 20, 256 << 20, 1 << 30} {
			if size < 1<<30 && ranks != 4096 {
				continue
			}
			for _, x := range ways(ranks, size) {
				b.Run(fmt.Sprintf("ranks=%d/MiB=%d/%s", ranks, size>>20, x.way), func(b *testing.B) { report(b, x) })
			}
		}
	}
}

func report(b *testing.B, x played) {
	for b.Loop() {
		r, err := x.play()
		if err != nil {
			b.Fatal(err)
		}
		for unit, value := range map[string]float64{
			"bytes": float64(r.Bytes), "elapsed-ms": r.Elapsed * 1e3, "copying-ms": r.Copying * 1e3, "files": float64(r.Files), "leaders": float64(r.Leaders), "plans": float64(r.Plans),
			"messages": float64(r.Messages), "leader-receives": float64(r.LeaderReceives), "sender-sends": float64(r.SenderSends), "calls": float64(r.Calls), "lowest-receives": float64(r.LowestReceives),
			"leader-buffers": float64(r.LeaderBuffers), "leader-memory": float64(r.LeaderMemory), "plan-text": float64(r.PlanText),
		} {
			b.ReportMetric(value, unit)
		}
		if p := (&Push{Buffers: 8, Buffer: 4 << 20, Writers: 8}); strings.HasPrefix(x.way, "archive") {
			b.ReportMetric(float64(p.MostMemory()), "most-memory")
			b.ReportMetric(float64(int64(p.Buffers)*(p.Buffer+page)), "most-buffers")
		}
	}
}
