package sim

import (
	"errors"
	"math"
	"testing"

	"velocpy/gocore/policy/aggregation"
)

// simple is a cluster of which everything can be computed by hand: each resource moves a byte in a ns, and nothing else takes time.
func simple() Cluster {
	const fast, rate = 1e18, 1e9
	return Cluster{Cores: 1, HashRate: fast, ReadRate: rate, LinkRate: rate, StoreRate: rate, Servers: 1, ServerRate: rate, Stripe: 1 << 40, CreateRate: fast}
}

// piece is the ns of one read, message or write of a full piece.
const piece = int64(aggregation.CopyBytes)

func elapsedIs(t *testing.T, what string, r Result, err error, want int64) {
	t.Helper()
	if got := nanoseconds(r.Elapsed + 1e-10); err != nil || got != want {
		t.Errorf("%s takes %d ns, wanted %d: %v", what, got, want, err)
	}
}

func push(files, leaders int, nodes []int, bytes ...int64) Push {
	p := Default(bytes, nodes, files)
	p.Leaders = leaders
	return p
}

// A rank reads a piece and then writes it. A second thread reads the next one meanwhile; two ranks of a node share its disk, and those of two nodes the server.
func TestAFileForEachRank(t *testing.T) {
	for _, c := range []struct {
		name    string
		push    Push
		threads int
		want    int64
	}{
		{"a piece", push(1, 1, []int{0}, piece), 1, 2 * piece},
		{"two pieces", push(1, 1, []int{0}, 2*piece), 1, 4 * piece},
		{"two pieces by two threads", push(1, 1, []int{0}, 2*piece), 2, 3 * piece},
		{"two ranks of a node", push(1, 1, []int{0, 0}, piece, piece), 1, 3 * piece},
		{"two nodes", push(1, 1, []int{0, 1}, piece, piece), 1, 3 * piece}, // both read at once, and the server takes one after the other
		{"nothing", push(1, 1, []int{0}, 0), 1, 0},
	} {
		r, err := FilePerRank(simple(), c.push, c.threads)
		elapsedIs(t, c.name, r, err, c.want)
	}
	two := simple()
	two.Servers = 2
	r, err := FilePerRank(two, push(1, 1, []int{0, 1}, piece, piece), 1)
	elapsedIs(t, "two nodes and two servers", r, err, 2*piece)
}

// A metadata server makes one file after the other, and a rank begins when its own is there.
func TestFilesAreMadeOneAfterTheOther(t *testing.T) {
	c := simple()
	c.Servers, c.CreateRate, c.StoreDelay = 3, 1000, 5e-6
	r, err := FilePerRank(c, push(1, 1, []int{0, 1, 2}, 1000, 1000, 1000), 1)
	// The request goes there and back, behind those of two others. A read; its bytes go to a server, and the answer comes back.
	elapsedIs(t, "three files", r, err, 3*1_000_000+2*5000+2*1000+2*5000)
}

func TestOneProcess(t *testing.T) {
	p := push(1, 1, []int{0}, 2*piece)
	p.Writers = 1
	r, err := Alone(simple(), Software{}, p)
	elapsedIs(t, "two pieces by one writer", r, err, 4*piece)
	p.Writers = 2 // a checkpoint that one writer copies from its beginning to its end
	r, err = Alone(simple(), Software{}, p)
	elapsedIs(t, "two pieces by two writers", r, err, 4*piece)
	p.Bytes[0] = aggregation.LongestStream + piece // 17 pieces, which several writers copy
	r, err = Alone(simple(), Software{}, p)
	elapsedIs(t, "a long checkpoint by two writers", r, err, 18*piece)
	if r.LeaderMemory != 2*piece {
		t.Errorf("two writers have %d bytes", r.LeaderMemory)
	}
}

// copied plays what two ranks on two nodes do of one plan into one file, and returns when each has ended, ns.
func copied(t *testing.T, c Cluster, p Push) []*process {
	t.Helper()
	w, err := prepare(&c, &p)
	if err != nil {
		t.Fatal(err)
	}
	processes := make([]*process, len(p.Bytes))
	for rank := range processes {
		processes[rank] = newProcess(w, &p, rank)
	}
	planner := newPlanner(&p)
	w.carryOut(planner.next(planner.batch(p.Files), p.Nodes), processes, p.Buffer)
	return processes
}

// A rank sends a piece to the leader on another node, which writes its own one meanwhile. Ranks look 0.1, 0.3, 0.7, 1.5 and 3.1 ms after they had something to do last,
// and then every 2 ms.
func TestARankSendsToALeader(t *testing.T) {
	all := copied(t, simple(), push(1, 1, []int{0, 1}, piece, piece))
	// The sender has read its piece after 4.194304 ms, and looks at 5.1.
	arrives := 5_100_000 + piece + trailer
	// It looks 5.1 ms later whether the piece was taken.
	if got, want := all[1].ended, int64(5_100_000+5_100_000); got != want {
		t.Errorf("the sender ends after %d ns, wanted %d", got, want)
	}
	// The leader has written its own piece after 8.388608 ms, and looks at 9.1; what has arrived at 9.294336 it writes at 9.4, and looks 5.1 ms later.
	if arrives != 9_294_336 {
		t.Fatalf("the message arrives at %d", arrives)
	}
	if got, want := all[0].ended, int64(9_400_000+5_100_000); got != want {
		t.Errorf("the leader ends after %d ns, wanted %d", got, want)
	}
	if all[1].sentCount != 1 || all[0].receivedCount != 1 || all[0].mostIn != 1 || all[0].mostCopying != 1 || all[1].mostOut != 1 {
		t.Errorf("the sender is %+v, the leader %+v", all[1], all[0])
	}
}

// With a leader on each node nothing is sent. Each change of the node that writes to a server costs a delay.
func TestLeadersOfOneFile(t *testing.T) {
	c := simple()
	all := copied(t, c, push(1, 2, []int{0, 1}, piece, piece))
	if all[0].receivedCount+all[1].receivedCount != 0 {
		t.Error("messages are sent")
	}
	// Both have read at once. The server writes the first one's piece, and then the second one's, which are seen at the next look: at 9.1 and 13.1 ms.
	if all[0].ended != 9_100_000 || all[1].ended != 13_100_000 {
		t.Errorf("they end after %d and %d ns", all[0].ended, all[1].ended)
	}
	c.LockDelay = 3e-3
	all = copied(t, c, push(1, 2, []int{0, 1}, piece, piece))
	if all[0].ended != 9_100_000 || all[1].ended != 17_100_000 { // 3 * 4.194304 + 3 = 15.58
		t.Errorf("with a delay of 3 ms they end after %d and %d ns", all[0].ended, all[1].ended)
	}
}

// Ranks of a call read, the aggregator writes what all have, one piece after the other, and the next call begins.
func TestCollectiveCalls(t *testing.T) {
	r, err := Collective(simple(), push(1, 1, []int{0, 0}, piece, piece))
	elapsedIs(t, "a call of two ranks of a node", r, err, 4*piece)
	r, err = Collective(simple(), push(1, 1, []int{0, 0}, 2*piece, 2*piece))
	elapsedIs(t, "two calls", r, err, 8*piece)
	r, err = Collective(simple(), push(1, 1, []int{0, 1}, piece, piece))
	elapsedIs(t, "two nodes, each with an aggregator", r, err, 3*piece)
	if r.Messages != 0 {
		t.Errorf("%d messages", r.Messages)
	}
}

// Before and behind copies, ranks make calls together: two for each gathering, decision and plan. Each is noticed at the first look, after 0.2 ms.
func TestControl(t *testing.T) {
	p := push(1, 1, []int{0, 1}, 1000, 1000)
	r, err := Together(simple(), Software{CatalogBytes: 20 << 20}, p)
	if err != nil {
		t.Fatal(err)
	}
	const gathers, decisions, plans = 9, 5, 2 // in velocpy/archive/together.py; the last plan says that nothing is left
	if r.Calls != 2*(gathers+decisions+plans) || r.LowestReceives != 2 || r.Plans != 1 {
		t.Errorf("%d calls, %d messages with metadata, %d plans", r.Calls, r.LowestReceives, r.Plans)
	}
	if want := PlanText(2, 1, 2, 2); r.PlanText != want {
		t.Errorf("the plan has %d bytes, wanted %d", r.PlanText, want)
	}
}

// What the lowest rank does alone: it opens stores by its processors, lists keys, receives catalogs of 64 ranks at once, and makes 32 files at once.
func TestTheLowestRankAlone(t *testing.T) {
	const ranks, files = 130, 64
	s := Software{CatalogBytes: 1000, OpenStore: 1e-3, OpenAlone: 0.5, ListStore: 1e-4}
	p := Default(make([]int64, ranks), make([]int, ranks), files)
	for rank := range ranks {
		p.Bytes[rank], p.Nodes[rank] = 1000, rank
	}
	c := simple()
	c.Cores, c.SyncDelay = 4, 2e-3
	of := func(p Push) *control {
		w, err := prepare(&c, &p)
		if err != nil {
			t.Fatal(err)
		}
		return &control{w: w, s: &s, push: &p, files: map[int]bool{}}
	}
	const alone, ofFour = 0.130 * 1.1, 0.130 * (0.5 + 0.5/4 + 0.1)
	if got := of(p).opening(); math.Abs(got-ofFour) > 1e-9 {
		t.Errorf("4 processors open %d stores in %g s, wanted %g", ranks, got, ofFour)
	}
	two := p
	two.Writers = 1
	if got := of(two).opening(); math.Abs(got-alone) > 1e-9 {
		t.Errorf("one goroutine opens them in %g s, wanted %g", got, alone)
	}
	two = Default(p.Bytes, make([]int, ranks), files) // all on one node, where each rank has less than a processor
	if got := of(two).opening(); math.Abs(got-alone) > 1e-9 {
		t.Errorf("a rank of a full node opens them in %g s, wanted %g", got, alone)
	}
	talk := of(p)
	talk.collect() // of 129 ranks, by 64, 64 and 1; what they have sent is there at the first look
	if got, want := talk.w.Now(), int64(3*shortestWait); got != want || talk.came != ranks-1 {
		t.Errorf("%d catalogs come in %d ns, wanted %d", talk.came, got, want)
	}
	c.LinkRate = 1e18
	calls := talk.calls
	talk = of(p)
	plan := newPlanner(&p).next(1, p.Nodes)
	talk.plan(plan) // and three calls
	if got, want := talk.w.Now(), int64(3*2_000_000+(talk.calls-calls)*shortestWait); got != want {
		t.Errorf("%d files are made, and a plan told, in %d ns, wanted %d", files, got, want)
	}
}

func TestNextLook(t *testing.T) {
	for _, c := range []struct{ since, now, want int64 }{
		{0, 0, 100}, {0, 100, 100}, {0, 101, 300}, {0, 3100, 3100}, {0, 3101, 5100}, {0, 5101, 7100}, {1000, 1000, 1100}, {1000, 1_000_000, 1_000_100},
	} {
		if got := nextLook(c.since*1000, c.now*1000, shortestLook, longest); got != c.want*1000 {
			t.Errorf("a process that waits since %d µs looks behind %d µs at %d ns, wanted %d µs", c.since, c.now, got, c.want)
		}
	}
}

func TestBadParameters(t *testing.T) {
	good := push(1, 1, []int{0}, 1)
	for name, spoil := range map[string]func(c *Cluster, p *Push){
		"no ranks":          func(_ *Cluster, p *Push) { p.Bytes, p.Nodes = nil, nil },
		"a rank on no node": func(_ *Cluster, p *Push) { p.Nodes = nil },
		"too many files":    func(_ *Cluster, p *Push) { p.Files = 2 },
		"no writers":        func(_ *Cluster, p *Push) { p.Writers = 0 },
		"negative bytes":    func(_ *Cluster, p *Push) { p.Bytes = []int64{-1} },
		"no servers":        func(c *Cluster, _ *Push) { c.Servers = 0 },
		"no rate":           func(c *Cluster, _ *Push) { c.LinkRate = 0 },
		"negative delay":    func(c *Cluster, _ *Push) { c.LinkDelay = -1 },
	} {
		c, p := simple(), good
		spoil(&c, &p)
		for way, play := range map[string]func() error{
			"together":   func() error { _, err := Together(c, Software{}, p); return err },
			"alone":      func() error { _, err := Alone(c, Software{}, p); return err },
			"files":      func() error { _, err := FilePerRank(c, p, 1); return err },
			"collective": func() error { _, err := Collective(c, p); return err },
		} {
			if err := play(); !errors.Is(err, ErrPush) && !errors.Is(err, ErrCluster) {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
}
