package archive

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation/sim"
	"velocpy/gocore/tier/disk/durable"
)

// firstPlan is the first plan of a real push of ranks that have so many keys, each with a checkpoint of its own size.
func firstPlan(t fataler, simulated sim.Push) *Plan {
	r := newRun(t, len(simulated.Bytes))
	for rank, n := range simulated.Bytes {
		for key := range simulated.Keys {
			r.put(rank, place{"forward", model.NumberKey(int64(key))}, state{rank, key, n})
		}
	}
	p, err := NewPush(r.all(), durable.Options{FS: r.shared, Dir: archiveDir}, Options{Files: simulated.Files, Leaders: simulated.Leaders})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	plan, err := p.Plan(simulated.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// requireSimulated requires that the simulation copies what a real plan copies: the same ranges of the same ranks, to the same places of the same files, by the same
// readers and writers, in the same order.
func requireSimulated(t fataler, push sim.Push) {
	plan := firstPlan(t, push)
	push.Front = plan.Front
	plans, err := sim.Copies(push)
	if err != nil {
		t.Fatal(err)
	}
	var got []sim.Copy
	for _, c := range plan.Copies {
		part := plan.Parts[c.Part]
		got = append(got, sim.Copy{Rank: part.Rank, File: int(c.File), Reader: part.Reader, Writer: c.Leader, At: c.At - c.File*segmentBytes, Bytes: c.End - c.From})
	}
	if !slices.Equal(got, plans[0]) {
		t.Fatalf("%+v is copied as %+v, and simulated as %+v", push, got, plans[0])
	}
}

func TestTheSimulationPlansAsAPushDoes(t *testing.T) {
	few(t, "25")
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 10).Draw(t, "ranks")
		requireSimulated(t, sim.Push{
			Bytes:   rapid.SliceOfN(rapid.SampledFrom([]int64{4096, 8192, 409600, 1 << 20}), ranks, ranks).Draw(t, "bytes"),
			Nodes:   rapid.SliceOfN(rapid.IntRange(0, 4), ranks, ranks).Draw(t, "nodes"),
			Keys:    rapid.IntRange(1, 3).Draw(t, "keys"),
			Files:   rapid.IntRange(1, ranks).Draw(t, "files"),
			Leaders: rapid.IntRange(0, 3).Draw(t, "leaders"),
			Writers: 1, Buffer: 1, Buffers: 1,
		})
	})
}

// The simulation takes a plan to be about as long as it is: that of many ranks, whose numbers have more digits than those of this one.
func TestTheSimulatedTextOfAPlan(t *testing.T) {
	push := sim.Push{Keys: 2, Files: 8, Writers: 1, Buffer: 1, Buffers: 1}
	for rank := range 64 {
		push.Bytes, push.Nodes = append(push.Bytes, 8192), append(push.Nodes, rank/8)
	}
	plan := firstPlan(t, push)
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	told := sim.PlanText(len(plan.Stores), len(plan.Files), len(plan.Parts), len(plan.Copies))
	if part := float64(told) / float64(len(text)); part < 1 || part > 1.2 {
		t.Errorf("a plan of %d bytes is simulated as one of %d", len(text), told)
	}
}
