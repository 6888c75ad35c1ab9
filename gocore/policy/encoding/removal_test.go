package encoding

import (
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/codec"
)

// deviceHistory plays the captures and flushes of a device by Auto. So many checkpoints wait for their flushes.
type deviceHistory struct {
	cost   [ways]float64 // ns of each plain byte
	first  float64       // part that is new where a device de-duplicates
	queued int
	fails  func(i int) bool // the device cannot de-duplicate checkpoint i after all
}

// play captures so many checkpoints, and flushes them. spent is what that took, in flushes of plain bytes.
func (h deviceHistory) play(p *Planner, count int) (went [ways]int, spent float64) {
	const plain, layout = 1 << 20, 1
	type captured struct {
		number  int
		removes bool
	}
	var queue []captured
	flush := func() {
		x := queue[0]
		queue = queue[1:]
		plan := p.Next(Checkpoint{Layout: layout, Removable: true, Queued: true, Captured: x.removes})
		if plan.Sample {
			p.Sampled(layout, nil, plain, plain/2)
		}
		if (plan.Way == Deduplicated) != x.removes {
			panic("the flush has chosen another side than the capture")
		}
		way := plan.Way
		if way == Deduplicated && h.fails != nil && h.fails(x.number) {
			way = Plain
			p.NotDeduplicated()
		}
		cost := int64(h.cost[way] * plain)
		switch way {
		case Deduplicated:
			p.Deduplicated(plain, int64(h.first*plain), cost)
		case Difference:
			p.Related(layout, plain, plain/3, cost)
		case Encoded:
			p.Flushed(way, plain, cost)
			p.Became(layout, plain, plain/2)
		default:
			p.Flushed(way, plain, cost)
		}
		went[way]++
		spent += h.cost[way]
	}
	for i := range count {
		if queue = append(queue, captured{i, p.Deduplicates()}); len(queue) > h.queued {
			flush()
		}
	}
	for len(queue) > 0 {
		flush()
	}
	return went, spent
}

// A history of a device goes the way that costs least, also where captures run ahead of flushes. Beyond its first trials it loses at most 3 % against plain bytes, and, where much
// is old, 5 % against the best way: trials, the room that others save, and the choice between the other ways lose a little each.
func TestAutoOfADeviceLosesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Float64Range(0.1, 3)
		h := deviceHistory{queued: rapid.IntRange(0, 12).Draw(t, "queued"), first: rapid.Float64Range(0, 1).Draw(t, "new")}
		h.cost = [ways]float64{1, some.Draw(t, "encoded"), some.Draw(t, "difference"), some.Draw(t, "de-duplicated")}
		const count = 2000
		went, spent := h.play(New(Auto, codec.NoCompression), count)
		first := 0.0
		best := min(h.cost[Plain], h.cost[Encoded], h.cost[Difference])
		if h.first <= mostNew {
			best = min(best, h.cost[Deduplicated])
		}
		for _, x := range h.cost {
			first += float64(2*trial+2+2*h.queued) * max(0, x-best)
		}
		if h.first <= mostSure { // de-duplication goes on until the other ways are known
			first += 4 * firstWait * max(0, h.cost[Deduplicated]-best)
		}
		if spent > 1.03*count+first {
			t.Fatalf("%g where plain bytes take %d: %v", spent, count, went)
		}
		if h.first > mostSure && spent > 1.05*best*count+first {
			t.Fatalf("%g where the best way takes %g: %v", spent, best*count, went)
		}
	})
}

// Where hardly anything is new, nearly all checkpoints of a short history are de-duplicated, and where all is, nearly none.
func TestShortHistoriesOfADevice(t *testing.T) {
	cost := [ways]float64{1, 0.8, 0.6, 0.2}
	for _, x := range []struct{ first, cost float64 }{{0.05, 0.2}, {1, 1.08}} {
		for queued := range 4 {
			cost[Deduplicated] = x.cost
			went, _ := deviceHistory{cost: cost, first: x.first, queued: queued}.play(New(Auto, codec.NoCompression), 24)
			if few := x.first < mostSure; few && went[Deduplicated] < 24*3/5 || !few && went[Deduplicated] > mostDeduplicated {
				t.Errorf("%+v with %d queued: %v", x, queued, went)
			}
		}
	}
}

// What becomes new or old is noticed.
func TestADeviceNoticesChanges(t *testing.T) {
	p := New(Auto, codec.NoCompression)
	all := deviceHistory{cost: [ways]float64{1, 1.2, 1.2, 1.08}, first: 1}
	few := deviceHistory{cost: [ways]float64{1, 1.2, 1.2, 0.3}, first: 0.2}
	all.play(p, 500)
	few.play(p, 200)
	if went, _ := few.play(p, 500); went[Deduplicated] < 450 {
		t.Errorf("with few new bytes: %v", went)
	}
	all.play(p, 50)
	if went, _ := all.play(p, 500); went[Plain] < 430 {
		t.Errorf("with new bytes alone: %v", went)
	}
}

// A device that is not ready yet gets other checkpoints for its trial; one that never is gets few more.
func TestADeviceThatDoesNotDeduplicate(t *testing.T) {
	h := deviceHistory{cost: [ways]float64{1, 1.2, 1.2, 0.3}, first: 0.2, queued: 2, fails: func(i int) bool { return i < 6 }}
	if went, _ := h.play(New(Auto, codec.NoCompression), 100); went[Deduplicated] < 60 {
		t.Errorf("ready after six: %v", went)
	}
	tried := 0
	h.fails = func(int) bool { tried++; return true }
	if h.play(New(Auto, codec.NoCompression), mostWait-100); tried < mostFailed || tried > 3*mostFailed {
		t.Errorf("never ready: tried %d times", tried)
	}
}

// A checkpoint that its device has de-duplicated goes on as a difference, whatever the ways to the host cost, and counts for none of them.
func TestWhatADeviceHasDeduplicatedGoesOn(t *testing.T) {
	for _, m := range []Method{Auto, Lineage} {
		p := New(m, codec.NoCompression)
		if first, second := p.Deduplicates(), p.Deduplicates(); first != (m == Lineage) || !second {
			t.Fatalf("%d: %t for the first one, and %t for the second", m, first, second)
		}
		for range 100 {
			if x := p.Next(Checkpoint{Layout: 1, Removable: true, Captured: true}); x.Way != Difference || x.Look {
				t.Fatalf("%d: %+v", m, x)
			}
		}
		if p.costs.tried != [ways]int{} {
			t.Errorf("%d: %v", m, p.costs.tried)
		}
	}
	if New(Codec, codec.NoCompression).Deduplicates() {
		t.Error("another method removes duplicates")
	}
}

// A trial whose checkpoints are dropped, or never leave the device, is repeated soon, and then ever more seldom.
func TestATrialThatTellsNothing(t *testing.T) {
	for lost, want := range []int{900, 900, 800, 700, 600} {
		p, captured := New(Auto, codec.NoCompression), 0
		went := [ways]int{}
		for range 1000 {
			removes := p.Deduplicates()
			if removes {
				if captured++; captured <= 2*lost {
					continue
				}
			}
			plan := p.Next(Checkpoint{Layout: 1, Queued: true, Captured: removes})
			if plan.Sample {
				p.Sampled(1, nil, 1000, 990)
			}
			if went[plan.Way]++; plan.Way == Deduplicated {
				p.Deduplicated(1<<20, 1<<16, 1<<18)
			} else {
				p.Flushed(plan.Way, 1<<20, 1<<20)
			}
		}
		if went[Deduplicated] < want {
			t.Errorf("%d trials tell nothing: %v", lost, went)
		}
	}
}
