package workers

import (
	"math"
	"testing"

	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// deviceLink plays two workers that flush checkpoints of a device. Kernels and copies of a worker take turns. A copy waits for those of the other that were queued
// before, and plain bytes are one copy.
type deviceLink struct {
	p       *encoding.Planner
	plain   float64 // ns that the link takes for the plain bytes
	encoder float64 // ns that the device takes to encode them
	part    float64 // of the plain bytes that they become
	free    float64 // when the link has copied all that was queued
	link    occupied
	workers [2]struct {
		at    float64 // when its next step begins, or the last one ends
		steps []step
		busy  bool
		way   encoding.Way
		use   use
	}
	went [3]int
}

type step struct {
	ns   float64
	link bool
}

const playedBytes = 1 << 20

// run flushes so many checkpoints and returns how long that took.
func (l *deviceLink) run(count int) float64 {
	for left := count; ; {
		i := 0
		switch a, b := &l.workers[0], &l.workers[1]; {
		case left == 0 && !a.busy && !b.busy:
			return max(a.at, b.at)
		case !a.busy && left == 0, (b.busy || left > 0) && b.at < a.at:
			i = 1
		}
		w := &l.workers[i]
		switch {
		case len(w.steps) > 0:
			l.step(i)
		case w.busy:
			l.end(i)
		default:
			left--
			l.begin(i)
		}
	}
}

func (l *deviceLink) step(i int) {
	w := &l.workers[i]
	s := w.steps[0]
	w.steps = w.steps[1:]
	if !s.link {
		w.at += s.ns
		return
	}
	l.free = max(l.free, w.at) + s.ns
	w.at = l.free
}

func (l *deviceLink) begin(i int) {
	w := &l.workers[i]
	plan := l.p.Next(encoding.Checkpoint{Layout: 1, Queued: true})
	if plan.Sample {
		l.p.Sampled(1, []regions.Choice{{Kind: codec.Float32, Modes: codec.AllModes}}, playedBytes, int64(l.part*playedBytes))
		plan = l.p.Resume(plan, 1)
	}
	w.way = plan.Way
	l.went[w.way]++
	const groups = 16
	if w.way == encoding.Plain {
		w.steps = []step{{l.plain, true}}
	} else {
		for range groups {
			w.steps = append(w.steps, step{l.encoder / groups, false}, step{l.part * l.plain / groups, true})
		}
	}
	w.busy, w.use = true, l.link.begin(int64(w.at))
}

func (l *deviceLink) end(i int) {
	w := &l.workers[i]
	w.busy = false
	bytes := int64(playedBytes)
	if w.way == encoding.Encoded {
		bytes = int64(l.part * playedBytes)
	}
	l.p.Flushed(w.way, playedBytes, w.use.end(int64(w.at), bytes))
}

// Auto finds the way that costs less also where copies wait for each other.
func TestAutoWhereCopiesWait(t *testing.T) {
	for _, x := range []struct {
		encoder, part float64
		want          encoding.Way
	}{
		{0.3, 0.01, encoding.Encoded}, {0.3, 0.7, encoding.Encoded}, {0.6, 0.5, encoding.Encoded}, {0.3, 0.9, encoding.Encoded},
		{2.5, 0.5, encoding.Plain}, {3, 0.9, encoding.Plain},
	} {
		const ns, trials = 3.4e6, 8 // other ways than the best: at first, and once again
		for _, count := range []int{24, 240, 2400} {
			took := map[encoding.Method]float64{}
			var went [3]int
			for _, m := range []encoding.Method{encoding.Raw, encoding.Codec, encoding.Auto} {
				l := deviceLink{p: encoding.New(m, codec.NoCompression), plain: ns, encoder: x.encoder * ns, part: x.part, link: occupied{byBytes: true}}
				took[m], went = l.run(count), l.went
			}
			raw, coded, auto := took[encoding.Raw], took[encoding.Codec], took[encoding.Auto]
			t.Logf("encoder %g, part %g: auto takes %.3f of raw's time, codec %.3f; ways %v", x.encoder, x.part, auto/raw, coded/raw, went)
			if most := 1.03*min(raw, coded) + trials*math.Abs(raw-coded)/float64(count); auto > most || went[x.want] < count*9/10-trials {
				t.Error("that is too much")
			}
		}
	}
}
