package sim

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

var rewrite = flag.Bool("rewrite", false, "write docs/policy-grid.md anew")

const gridFile = "../../../docs/policy-grid.md"

// machine is one of the hierarchies for shots.
type machine struct {
	name  string
	tiers []engine.TierConfig
	media []Medium
	copy  float64
}

const (
	gb  = int64(1e9) // the paper's budgets are decimal
	gib = 1 << 30
)

// The machines of Maurya et al., HPDC'23, section 5: one process's share of a node with eight GPUs and four SSDs.
var (
	hostMachine = machine{"host 29.8 GiB over SSD",
		[]engine.TierConfig{{Name: "host", Capacity: 32 * gb, Grain: 4096}, {Name: "disk", Capacity: 1000 * gb, Grain: 4096, Remote: true}},
		[]Medium{{WriteRate: 2e9, ReadRate: 2e9, Workers: 2, Latency: 100e3}}, 10e9}
	deviceMachine = machine{"device 3.7 GiB over host 29.8 GiB over SSD",
		[]engine.TierConfig{{Name: "device", Capacity: 4 * gb, Grain: 4096}, {Name: "host", Capacity: 32 * gb, Grain: 4096}, {Name: "disk", Capacity: 1000 * gb, Grain: 4096, Remote: true}},
		[]Medium{{WriteRate: 25e9, ReadRate: 25e9, Workers: 2, Latency: 20e3}, {WriteRate: 2e9, ReadRate: 2e9, Workers: 2, Latency: 100e3}}, 500e9}
)

func (x *machine) build(p evict.Kind, f engine.FlushMode) *Machine {
	return NewMachine(engine.Config{Tiers: append([]engine.TierConfig(nil), x.tiers...), Policy: p, Flush: f, Prefetch: true, Guess: true}, x.media, x.copy)
}

const shotLength = 384

// traceSizes is the trace of compressed checkpoints, one GPU's after the other's, repeated until the shot is full.
func traceSizes(t testing.TB) []int64 {
	f, err := os.Open("../../../benchmarks/data/rtm-checkpoint-sizes.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int64, shotLength)
	for k := range sizes {
		n, err := strconv.ParseInt(rows[k%len(rows)][k/len(rows)%len(rows[0])], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes[k] = n
	}
	return sizes
}

var orders = []struct {
	name string
	make func() []int64
}{
	{"sequential", func() []int64 { return Sequential(shotLength) }},
	{"reverse", func() []int64 { return Reverse(shotLength) }},
	{"irregular", func() []int64 { return Irregular(shotLength, 7) }},
}

func play(t testing.TB, x *machine, s Shot, p evict.Kind, f engine.FlushMode) (Result, int64) {
	m := x.build(p, f)
	r, err := s.Run(m)
	if err != nil {
		t.Fatalf("%s, %s: %v", x.name, p, err)
	}
	bound := m.LowerBound(&s)
	if blocked := r.CaptureBlocked + r.RestoreBlocked; blocked < bound-int64(len(s.Sizes)+len(s.Order)) {
		t.Errorf("%s %s: blocked for %d ns, which is less than the bound of %d", x.name, p, blocked, bound)
	}
	return r, bound
}

func TestGrid(t *testing.T) {
	if underRace {
		t.Skip("nothing runs beside anything else here")
	}
	var b strings.Builder
	b.WriteString(gridPreface)
	for _, x := range []*machine{&hostMachine, &deviceMachine} {
		for _, sizes := range []struct {
			name string
			list []int64
		}{{"384 of 128 MiB", uniform(shotLength, 128<<20)}, {"384 from the RTM trace", traceSizes(t)}} {
			for _, compute := range []int64{10e6, 70e6} {
				fmt.Fprintf(&b, "\n## %s; %s; %d ms between calls\n\n", x.name, sizes.name, compute/1e6)
				b.WriteString("| order | hints | policy | lazy: blocked s | x bound | hits | distance | written GiB | eager: blocked s | x bound | hits | distance | written GiB |\n")
				b.WriteString("| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
				for _, o := range orders {
					for _, hints := range []Hints{NoHints, OneHint, AllHints} {
						for _, p := range []evict.Kind{evict.Score, evict.LRU, evict.FIFO} {
							fmt.Fprintf(&b, "| %s | %s | %s |", o.name, hints, p)
							for _, f := range []engine.FlushMode{engine.Lazy, engine.Eager} {
								r, bound := play(t, x, Shot{Sizes: sizes.list, Compute: compute, Order: o.make(), Hints: hints, Last: true}, p, f)
								blocked := r.CaptureBlocked + r.RestoreBlocked
								fmt.Fprintf(&b, " %.2f | %.2f | %d | %.1f | %.1f |",
									float64(blocked)/1e9, float64(blocked)/float64(bound), r.Hits, r.Distance, float64(r.Written)/gib)
							}
							b.WriteString("\n")
						}
					}
				}
			}
		}
	}
	b.WriteString("\n## A schedule of the Revolve family\n\n4096 steps by bisection with 16 checkpoints of 1 MiB at once; the host cache holds 12. Captures and restores come in turns.\n\n")
	b.WriteString("| flush | captured MiB | written MiB | took s |\n| --- | --: | --: | --: |\n")
	for _, f := range []engine.FlushMode{engine.Lazy, engine.Eager} {
		captured, written, took := interleaved(t, f)
		fmt.Fprintf(&b, "| %s | %d | %d | %.2f |\n", []string{"lazy", "eager"}[f], captured/mib, written/mib, float64(took)/1e9)
	}
	golden(t, b.String())
}

func golden(t *testing.T, text string) {
	if *rewrite {
		if err := os.WriteFile(gridFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(gridFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == text {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(text, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Fatalf("the policies do something else than the committed table says (go test ./gocore/policy/sim -rewrite writes it anew); line %d\nwas %s\nis  %s", i+1, was[i], is[i])
		}
	}
	t.Fatalf("the committed table has %d lines, must have %d", len(was), len(is))
}

const gridPreface = `# What the policies do, simulated

<!-- generated: go test ./gocore/policy/sim -run TestGrid -rewrite -->

Nothing here was measured on hardware: this is the engine's own policy code on a virtual clock (` + "`gocore/policy/sim`" + `). A shot captures 384 checkpoints, then restores each
of them once, for the last time, without waiting for the flushes in between (Maurya et al., HPDC'23, section 5). Budgets are the paper's 32 GB and 4 GB. Rates are one process's share of the paper's node: device to host 25 GB/s, host
to SSD 2 GB/s each way; copies into and out of the fastest tier take 500 GB/s on the device, 10 GB/s on the host.

- **blocked**: how long captures and restores kept the application, copies included; **x bound**: the same, as a multiple of the offline lower bound, which
  no policy can beat (its proof is in ` + "`gocore/policy/sim/bound.go`" + `).
- **hits**: restores of 384 that found their checkpoint in the fastest tier. **distance**: how many of the next checkpoints lay there already, on average.
- **written**: bytes that went to the SSD. Lazy flushing writes what space demands, eager flushing everything.
`
