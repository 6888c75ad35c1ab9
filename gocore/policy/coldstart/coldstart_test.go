package coldstart

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// dgx are the rates of the paper's node (Maurya et al., HiPC'22, sections IV-A, V-A and V-E). A copy or driver call that has to allocate the pages
// first gets 3 GB/s. Copies get 12 GB/s to unregistered and 25 GB/s to registered memory. The other rates are implied by the paper's figures. Huge
// pages are touched several times faster than copies come. Registering touched pages takes a second for 32 GiB. Touching beside copies slows both
// down more than taking turns.
var dgx = Rates{
	Touch: 24e9, Register: 40e9, RegisterFresh: 3e9, Pinned: 25e9, Pageable: 12e9, Fresh: 3e9, Share: 0.3, ShareDMA: 0.8, Call: 64 * mib,
}

// largeHost is the paper's configuration of that name: 256 checkpoints of 128 MB, with 4 GB of device memory before 32 GB of host memory.
func largeHost(interval float64) Workload {
	return Workload{Interval: interval, Checkpoint: 128e6, Buffer: 4e9, Host: 32e9, Processes: 1}
}

func with[T any](x T, change func(*T)) T {
	change(&x)
	return x
}

// Which of the paper's own strategies wins, by the parameters that the paper varies.
func TestPaperStrategies(t *testing.T) {
	zeroing := with(dgx, func(r *Rates) { r.RegisterFresh, r.Touch, r.Pageable = 30e9, 6e9, 2e9 })
	for name, c := range map[string]struct {
		w    Workload
		r    Rates
		want Strategy
	}{
		// "… outperforms the concurrent approach for all compute intervals except the smallest interval of 5ms" (section V-E). At 10 ms the
		// copy of 128 MB at 12 GB/s fills the whole interval, which leaves the model no time for touching.
		"5 ms":                      {largeHost(5e-3), dgx, Concurrent},
		"20 ms":                     {largeHost(20e-3), dgx, Sequential},
		"30 ms":                     {largeHost(30e-3), dgx, Sequential},
		"no time at all":            {largeHost(0), dgx, Concurrent},
		"5 ms, 8 processes":         {with(largeHost(5e-3), func(w *Workload) { w.Processes = 8 }), dgx, Concurrent},
		"20 ms, 8 processes":        {with(largeHost(20e-3), func(w *Workload) { w.Processes = 8 }), dgx, Sequential},
		"small checkpoints, 5 ms":   {with(largeHost(5e-3), func(w *Workload) { w.Checkpoint = 32e6 }), dgx, Sequential},
		"large checkpoints, 20 ms":  {with(largeHost(20e-3), func(w *Workload) { w.Checkpoint = 512e6 }), dgx, Concurrent},
		"touching is free":          {largeHost(20e-3), with(dgx, func(r *Rates) { r.Share = 1 }), Concurrent},
		"the driver zeroes fastest": {largeHost(5e-3), zeroing, Direct},
	} {
		t.Run(name, func(t *testing.T) {
			_, blocked := Choose(c.w, c.r)
			best := Concurrent
			for _, s := range []Strategy{Sequential, Direct} {
				if blocked[s] < blocked[best] {
					best = s
				}
			}
			if best != c.want {
				t.Errorf("%v wins, not %v: %.3f s", best, c.want, blocked)
			}
		})
	}
}

// The size of the gain. At small intervals it is small. At some of the larger ones it is more than the paper's average of 43 %. At none does it
// exceed the paper's maximum of 2.7 times and the duration of the call in it.
func TestSequentialAgainstConcurrent(t *testing.T) {
	most := 0.0
	for _, interval := range []float64{12e-3, 15e-3, 20e-3, 25e-3, 30e-3} {
		w := largeHost(interval)
		most = max(most, Predict(Concurrent, w, dgx)/Predict(Sequential, w, dgx))
	}
	if most < 1.43 {
		t.Errorf("sequential touching is at most %.2f times as fast", most)
	}
}

// Pinning everything first is the paper's baseline. Every other strategy beats it, by more with more processes and a larger host tier (section V-E,
// figures 6a and 6c). It takes as long as 32 GB need at 3 GB/s, by process.
func TestAgainstPinningFirst(t *testing.T) {
	times := func(w Workload) float64 {
		_, blocked := Choose(w, dgx)
		return blocked[Direct] / min(blocked[Concurrent], blocked[Sequential])
	}
	last := 0.0
	for _, processes := range []int{1, 2, 4, 8} {
		w := with(largeHost(20e-3), func(w *Workload) { w.Processes = processes })
		direct := 32e9 / 3e9 * float64(processes)
		if got := Predict(Direct, w, dgx); math.Abs(got-direct) > 0.01 {
			t.Errorf("%d processes that pin first are blocked for %.2f s, not %.2f s", processes, got, direct)
		}
		now := times(w)
		if now < 4 || now < last {
			t.Errorf("%d processes: %.1f times as long, fewer: %.1f", processes, now, last)
		}
		last = now
	}
	small := times(with(largeHost(20e-3), func(w *Workload) { w.Host = 8e9 }))
	if large := times(with(largeHost(20e-3), func(w *Workload) { w.Host = 64e9 })); large < 4 || small < 4 {
		t.Errorf("8 GB: %.1f times as long, 64 GB: %.1f", small, large)
	}
}

// "… we do not experience any transfer stalls if the time between consecutive checkpoints is greater than 43 ms": 128 MB at 3 GB/s (section V-E).
func TestNoStallBeyondTheMappingRate(t *testing.T) {
	r := with(dgx, func(r *Rates) { r.Touch, r.Pageable, r.Share = 3e9, 3e9, 1 })
	call := 32e9 / r.Register
	for interval, stalls := range map[float64]bool{40e-3: true, 44e-3: false} {
		w := with(largeHost(interval), func(w *Workload) { w.Buffer = 256e6 })
		if got := Predict(Concurrent, w, r) - call; (got > 0.1) != stalls {
			t.Errorf("every %g s: blocked for %.3f s beside the registration", interval, got)
		}
	}
}

// Registering pieces as they are touched beats the paper's strategies on its own node. It does not where registering is slow and shared by many
// processes: small pages, which the kernel pins one by one.
func TestPipeline(t *testing.T) {
	h200 := Rates{
		Touch: 24e9, Register: 70e9, RegisterFresh: 2.7e9, Pinned: 55e9, Pageable: 6e9, Fresh: 3e9, Share: 0.6, ShareDMA: 0.8, Call: 64 * mib,
	}
	smallPages := with(h200, func(r *Rates) { r.Register = 5e9 })
	for name, c := range map[string]struct {
		interval  float64
		processes int
		r         Rates
		want      Strategy
	}{
		"H200, 10 ms":                           {10e-3, 1, h200, Pipeline},
		"H200, no time at all":                  {0, 1, h200, Pipeline},
		"H200, 10 ms, 4 processes":              {10e-3, 4, h200, Pipeline},
		"H200, 100 ms, 8 processes":             {100e-3, 8, h200, Pipeline},
		"small pages, 10 ms":                    {10e-3, 1, smallPages, Pipeline},
		"small pages, 50 ms, 8 processes":       {50e-3, 8, smallPages, Concurrent},
		"small pages, 50 ms, 8, touching hurts": {50e-3, 8, with(smallPages, func(r *Rates) { r.Share = 0.3 }), Sequential},
		"the driver zeroes, touching is slow":   {0, 1, with(h200, func(r *Rates) { r.RegisterFresh, r.Touch = 30e9, 3e9 }), Direct},
	} {
		t.Run(name, func(t *testing.T) {
			w := with(largeHost(c.interval), func(w *Workload) { w.Processes = c.processes })
			if got, blocked := Choose(w, c.r); got != c.want {
				t.Errorf("chooses %v, not %v: %.3f s", got, c.want, blocked)
			}
		})
	}
}

// Finished work is not paid for again, whichever strategy continues. Less is left when a part has been touched, and nothing when all is ready.
func TestGoingOnHalfWay(t *testing.T) {
	for _, s := range Strategies() {
		w := with(largeHost(0), func(w *Workload) { w.Host = 16e9 })
		whole := Predict(s, largeHost(0), dgx)
		half := Predict(s, w, dgx)
		touched := Predict(s, with(w, func(w *Workload) { w.Touched = w.Host }), dgx)
		if half >= whole || touched > half+1e-9 {
			t.Errorf("%v: %.3f s for all, %.3f s for half of it, %.3f s when that has been touched", s, whole, half, touched)
		}
		if got := Predict(s, Workload{Interval: 1, Checkpoint: 1e6, Buffer: 1e9}, dgx); got != 0 {
			t.Errorf("%v: %g s for nothing", s, got)
		}
		ready := Workload{Interval: 0.1, Checkpoint: 100e6, Buffer: 1e9, Ready: 1e9}
		if got := Predict(s, ready, dgx); got != 0 {
			t.Errorf("%v: %g s for what is ready", s, got)
		}
	}
}

func drawRates(t *rapid.T) Rates {
	rate := func(name string) float64 { return rapid.Float64Range(0.2e9, 100e9).Draw(t, name) }
	share := func(name string) float64 { return rapid.Float64Range(0.05, 1).Draw(t, name) }
	r := Rates{
		Touch: rate("touch"), TouchNode: rapid.SampledFrom([]float64{0, 5e9, 50e9}).Draw(t, "touch node"), Register: rate("register"),
		RegisterFresh: rate("register fresh"), Pinned: rate("pinned"),
		Share: share("share"), ShareDMA: share("share dma"), Call: rapid.Float64Range(mib, 256*mib).Draw(t, "call"),
	}
	r.Pageable = r.Pinned * share("pageable")
	r.Fresh = r.Pageable * share("fresh")
	return r
}

func drawWorkload(t *rapid.T) Workload {
	w := Workload{
		Interval: rapid.Float64Range(0, 0.3).Draw(t, "interval"), Checkpoint: rapid.Float64Range(0, 2*gib).Draw(t, "checkpoint"),
		Buffer: rapid.Float64Range(0, 16*gib).Draw(t, "buffer"), Host: rapid.Float64Range(0, 64*gib).Draw(t, "host"),
		Ready: rapid.Float64Range(0, gib).Draw(t, "ready"), Processes: rapid.IntRange(0, 16).Draw(t, "processes"),
	}
	w.Touched = w.Host * rapid.Float64Range(0, 1).Draw(t, "touched")
	return w
}

// By the model's own prediction, the choice is never slower than the pipeline. It is slower than another strategy only by the gain that a change
// requires.
func TestChoiceIsTheFastest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWorkload(t), drawRates(t)
		best, blocked := Choose(w, r)
		for _, s := range Strategies() {
			if math.IsNaN(blocked[s]) || math.IsInf(blocked[s], 0) || blocked[s] < 0 || blocked[s] != Predict(s, w, r) {
				t.Fatalf("%v: %g s", s, blocked[s])
			}
		}
		least := slices.Min(blocked[:])
		if blocked[best] > blocked[Pipeline] || best != Pipeline && blocked[best] > least ||
			blocked[best]-least > max(advantage*blocked[Pipeline], 1e-3) {
			t.Fatalf("chooses %v of %v", best, blocked)
		}
	})
}

// More memory to prepare, more processes and slower rates never block less; a longer interval never blocks more. The moment at which a call of the
// driver meets a capture may shift by one interval, and so may the last flush.
func TestPredictionsAreMonotone(t *testing.T) {
	type worse struct {
		name       string
		change     func(*Workload, *Rates)
		strategies []Strategy
	}
	all := []worse{
		{"more processes", func(w *Workload, _ *Rates) { w.Processes = max(w.Processes, 1) * 2 }, []Strategy{Pipeline, Concurrent, Sequential, Direct}},
		{"slower registering", func(_ *Workload, r *Rates) { r.Register /= 2 }, []Strategy{Pipeline, Concurrent, Sequential, Direct}},
		{"slower registering of absent pages", func(_ *Workload, r *Rates) { r.RegisterFresh /= 2 }, Strategies()},
		{"a slower link", func(_ *Workload, r *Rates) { r.Pinned /= 2 }, []Strategy{Pipeline, Direct}},
		{"slower touching", func(_ *Workload, r *Rates) { r.Touch /= 2 }, []Strategy{Pipeline, Direct}},
		{"less left of it beside copies", func(_ *Workload, r *Rates) { r.ShareDMA /= 2 }, []Strategy{Pipeline, Direct}},
		{"shorter intervals", func(w *Workload, _ *Rates) { w.Interval /= 2 }, []Strategy{Pipeline, Direct}},
		{"a smaller device", func(w *Workload, _ *Rates) { w.Buffer /= 2 }, []Strategy{Direct}},
	}
	rapid.Check(t, func(t *rapid.T) {
		w, r := drawWorkload(t), drawRates(t)
		r.TouchNode = 0
		x := rapid.SampledFrom(all).Draw(t, "worse")
		s := rapid.SampledFrom(x.strategies).Draw(t, "strategy")
		w2, r2 := w, r
		x.change(&w2, &r2)
		m := newModel(s, w, r)
		slack := 2*m.interval + 2*m.checkpoint/min(r.Pinned, r.Pageable, r.Fresh, r.Touch)/r.Share/r.ShareDMA + (r.Call+w.Host)/r.Register + 1e-6
		if before, after := Predict(s, w, r), Predict(s, w2, r2); after < before-slack {
			t.Fatalf("%s: %v is blocked for %g s instead of %g s", x.name, s, after, before)
		}
	})
}

func TestNames(t *testing.T) {
	for i, s := range Strategies() {
		if int(s) != i || s.String() == "" {
			t.Errorf("strategy %d is %v", i, s)
		}
	}
}

// The table of docs/device.md is what Choose returns. Rates are those of pinning on a node with H200 (see package store), its links of 55 GB/s and 12
// threads.
func TestTableOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	h200 := Rates{
		Touch: 24e9, Register: 70e9, RegisterFresh: 2.7e9, Pinned: 55e9, Pageable: 6e9, Fresh: 3e9, Share: 0.5, ShareDMA: 0.8, Call: 64 * mib,
	}
	for _, row := range []struct {
		node string
		r    Rates
	}{
		{"huge pages, 24 GB/s prefaulted, 70 GB/s registered", h200},
		{"cold virtual machine, 5 GB/s prefaulted", with(h200, func(r *Rates) { r.Touch, r.RegisterFresh, r.Fresh = 5e9, 2e9, 2e9 })},
		{"small pages, 5 GB/s registered", with(h200, func(r *Rates) { r.Register = 5e9 })},
		{"small pages, prefaulting beside copies at a fifth", with(h200, func(r *Rates) { r.Register, r.Share = 5e9, 0.2 })},
		{"driver that zeroes at 30 GB/s, 3 GB/s prefaulted", with(h200, func(r *Rates) { r.Touch, r.RegisterFresh = 3e9, 30e9 })},
	} {
		line := "| " + row.node + " |"
		for _, c := range []struct {
			processes int
			interval  float64
		}{{1, 5e-3}, {1, 50e-3}, {8, 5e-3}, {8, 50e-3}} {
			w := with(largeHost(c.interval), func(w *Workload) { w.Processes = c.processes })
			best, blocked := Choose(w, row.r)
			line += fmt.Sprintf(" %v %.2f", best, blocked[best])
			if best != Pipeline {
				line += fmt.Sprintf(" (%.2f)", blocked[Pipeline])
			}
			line += " |"
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/device.md lacks\n%s", line)
		}
	}
}
