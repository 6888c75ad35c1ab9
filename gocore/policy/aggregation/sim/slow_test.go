package sim

import (
	"testing"

	"velocpy/gocore/policy/aggregation"
)

// slowNode plays the push of 64 ranks on 8 nodes, with one node that writes slowly.
func slowNode(t *testing.T, factor float64, files, leaders int, even bool) Result {
	c := Frontier()
	c.Slow = []float64{1, 1, factor}
	bytes, nodes := make([]int64, 8*ofNode), make([]int, 8*ofNode)
	for rank := range bytes {
		bytes[rank], nodes[rank] = 64<<20, rank/ofNode
	}
	p := Default(bytes, nodes, files)
	p.Keys, p.Leaders, p.Even = 12, leaders, even
	r, err := Together(c, ThisSoftware(), p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A node that writes slowly is waited for once. Then its ranks send to leaders on other nodes, as far as that is sooner, or another node leads the file.
func TestASlowNodeIsWaitedForOnce(t *testing.T) {
	for _, factor := range []float64{3, 10} {
		// With one leader, a file goes to another node as a whole, which has twice as much to write then.
		for _, c := range []struct {
			files, leaders int
			most           float64 // of what was lost that is left
		}{{2, 0, 0.2}, {8, 0, 0.2}, {8, 1, 0.8}} {
			usual := slowNode(t, 1, c.files, c.leaders, true)
			alike := slowNode(t, 1, c.files, c.leaders, false)
			waited := slowNode(t, factor, c.files, c.leaders, true)
			rerouted := slowNode(t, factor, c.files, c.leaders, false)
			t.Logf("%d files, leaders %d, a node that is slow by %v: copying takes %.2f s, %.2f where plans take no account, %.2f where no node is slow; %d plans",
				c.files, c.leaders, factor, rerouted.Copying, waited.Copying, usual.Copying, rerouted.Plans)
			if alike.Copying != usual.Copying || alike.Messages != usual.Messages {
				t.Errorf("without a slow node, copying takes %v and %v", alike.Copying, usual.Copying)
			}
			if rerouted.Plans < 4 {
				t.Fatalf("there are %d plans", rerouted.Plans)
			}
			// The first plan takes as long as before; the others gain most of what was lost.
			lost, left := waited.Copying-usual.Copying, rerouted.Copying-usual.Copying
			if left > c.most*lost {
				t.Errorf("of %.2f s that are lost, %.2f are left", lost, left)
			}
		}
	}
}

// Where bytes lie in files does not depend on who writes them.
func TestPlacesDoNotDependOnSlowNodes(t *testing.T) {
	bytes, nodes := []int64{5 << 20, 6 << 20, 7 << 20, 8 << 20}, []int{0, 0, 1, 2}
	place := func(slow aggregation.Paces) (all []Copy) {
		p := Default(bytes, nodes, 2)
		l := newPlanner(&p)
		l.paces = slow
		for _, c := range l.next(l.batch(2), nodes).copies {
			c.Reader, c.Writer = 0, 0
			all = append(all, c)
		}
		return all
	}
	usual, slow := place(nil), place(aggregation.Paces{0: 1, 1: 9, 2: 1})
	if len(usual) != len(slow) {
		t.Fatal(len(usual), len(slow))
	}
	for i := range usual {
		if usual[i] != slow[i] {
			t.Fatalf("%+v, and %+v with a slow node", usual[i], slow[i])
		}
	}
}
