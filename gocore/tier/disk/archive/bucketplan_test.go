package archive

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/wire"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/bucket/buckettest"
)

// twoIntoBucket is a run of two ranks on two nodes, and their push into a bucket.
func twoIntoBucket(t *testing.T) (*run, *together, *buckettest.Double) {
	r, g := two(t)
	server := buckettest.New()
	g.server = server
	return r, g, server
}

// A part whose rooms lie in several packs of a rank is taken apart in their order.
func TestAPartInSeveralPacks(t *testing.T) {
	const count, bytes = 5, int64(4096)
	for range 20 { // a map has its entries in another order each time
		s := &Share{rank: 3, plan: &Plan{}, reads: map[int]*reading{0: {}}}
		for k := range int64(count) {
			x := PlannedPack{Pack: bucket.Pack{Number: uint64(k + 1), Bytes: bytes}, Leader: 3}
			s.plan.Packs = append(s.plan.Packs, x)
			s.plan.Copies = append(s.plan.Copies, Transfer{File: x.File(), Leader: 3, From: k * 10 * bytes, End: (k*10 + 1) * bytes, At: x.Offset()})
		}
		contents, err := s.contents()
		if err != nil || len(contents) != count {
			t.Fatalf("%d packs: %v", len(contents), err)
		}
		for x, c := range contents {
			if m := c.rooms[0].move; len(c.rooms) != 1 || m.at != x.Offset() || m.room.From != (int64(x.Number)-1)*10*bytes {
				t.Fatalf("pack %d has the room %+v", x.Number, m)
			}
		}
	}
}

// Each node uploads one pack, and the planning process one with the lists: no rank sends bytes of another node.
func TestEachNodeUploadsAPack(t *testing.T) {
	r := newRun(t, 4)
	for rank := range 4 {
		r.put(rank, place{"h", model.NumberKey(0)}, state{rank, 0, 100_000 * int64(rank+1)})
	}
	g, server := r.together([]int{0, 7, 0, 7}, 1), buckettest.New()
	g.server = server
	g.before = func(plan *Plan) {
		if len(plan.Packs) != 2 || plan.Packs[0].Leader != 2 || plan.Packs[1].Leader != 3 {
			t.Errorf("%+v", plan.Packs)
		}
		for _, m := range plan.Parts {
			if want := 2 + m.Rank%2; m.Reader != want {
				t.Errorf("rank %d reads the part of rank %d, and not rank %d", m.Reader, m.Rank, want)
			}
		}
	}
	asked := int64(0)
	server.Before = func(*wire.Request) error {
		asked++
		return nil
	}
	done, err := g.push(Options{})
	if err != nil || done.Keys != 1 || done.Parts != 4 || done.Files != 3 {
		t.Fatalf("%+v: %v", done, err)
	}
	if packs := packsIn(server); packs != 3 {
		t.Errorf("%d packs", packs)
	}
	if done.Requests != asked {
		t.Errorf("%d requests of %d are counted", done.Requests, asked)
	}
	g.require(r.complete(nil))
}

// One request of a push fails, or all from one on, before the object store has carried it out or after. Each key is there in its old version or in the new one, and the
// next push brings the rest.
func TestABucketOfSeveralNodesIsOldOrNew(t *testing.T) {
	points := 0
	for mode := range 4 {
		after, ever := mode&1 > 0, mode&2 > 0
		for n := 0; ; n++ {
			points++
			r, g, server := twoIntoBucket(t)
			if _, err := g.push(Options{}); err != nil {
				t.Fatal(err)
			}
			before := r.complete(nil)
			for rank := range 2 {
				r.put(rank, place{"h", model.NumberKey(1)}, state{rank, 9, 9000})
				r.put(rank, place{"c", model.NumberKey(0)}, state{rank, 1, 100})
			}
			g.from = r.all()
			want := r.complete(before)
			count := cutting(server, n, after, ever)
			_, err := g.push(Options{})
			server.Before, server.After = nil, nil
			got, bad := bucketContents(server, t)
			if bad != nil || !sameContents(got, want) && (err == nil || !sameContents(got, before)) {
				t.Fatalf("request %d (after %v, ever %v): %v, and there is\n%v: %v", n, after, ever, err, got, bad)
			}
			if _, err := g.push(Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := CollectBucket(inBucket(t, server), 0, false); err != nil {
				t.Fatal(err)
			}
			g.require(want)
			if packs := packsIn(server); packs != 6 {
				t.Fatalf("request %d (after %v, ever %v): %d packs are left", n, after, ever, packs)
			}
			if *count <= n {
				break
			}
		}
	}
	if points < 20 {
		t.Fatalf("only %d points", points)
	}
}

// Another process changes the archive between a plan and its commit. The push begins its batch again, and what both have brought is there.
func TestAnotherCommitBehindAPlan(t *testing.T) {
	r, g, server := twoIntoBucket(t)
	other := newRun(t, 1)
	other.put(0, place{"other", model.NumberKey(5)}, state{0, 0, 3000})
	plans := 0
	g.before = func(*Plan) {
		if plans++; plans == 1 {
			if _, err := pushToBucket(inBucket(t, server), other.all(), Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	done, err := g.push(Options{})
	if err != nil || done.Keys != 3 || plans != 2 {
		t.Fatalf("%d plans: %+v, %v", plans, done, err)
	}
	g.require(r.complete(other.complete(nil)))
}

// A process that collects orphans takes away what a rank is uploading. The push uploads it again.
func TestAnUploadThatIsCollected(t *testing.T) {
	r := newRun(t, 2)
	for rank := range 2 {
		r.put(rank, place{"h", model.NumberKey(0)}, state{rank, 0, 20 << 20})
	}
	g, server := r.together([]int{0, 1}, 1), buckettest.New()
	g.server = server
	lost := false
	server.After = func(q *wire.Request, reply *wire.Reply) error {
		if q.Op == wire.Complete && !lost {
			lost, reply.Why = true, wire.Absent
			for key := range server.Objects {
				if key == q.Key {
					delete(server.Objects, key)
				}
			}
		}
		return nil
	}
	done, err := g.push(Options{})
	if err != nil || !lost || done.Keys != 1 {
		t.Fatalf("lost %v: %+v, %v", lost, done, err)
	}
	g.require(r.complete(nil))
}

// On a node whose process reaches another object store, nothing is uploaded.
func TestANodeThatReachesAnotherBucket(t *testing.T) {
	r, g, server := twoIntoBucket(t)
	if _, err := g.push(Options{}); err != nil {
		t.Fatal(err)
	}
	foreign := buckettest.New()
	if _, err := pushToBucket(inBucket(t, foreign), r.all(), Options{}); err != nil {
		t.Fatal(err)
	}
	image, err := inBucket(t, server).Read()
	if err != nil {
		t.Fatal(err)
	}
	view, err := ViewBucket(image)
	if err != nil {
		t.Fatal(err)
	}
	plan := &Plan{Store: view.About().Store}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	for name, reached := range map[string]*buckettest.Double{"nothing": buckettest.New(), "another archive": foreign} {
		s := NewBucketShare(1, r.sources(1), inBucket(t, reached))
		if err := s.Begin(plan); !errors.Is(err, ErrOtherArchive) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := NewBucketShare(1, r.sources(1), inBucket(t, server))
	if err := errors.Join(s.Begin(plan), s.Close()); err != nil {
		t.Error(err)
	}
}

// A share uploads nothing that its plan does not give it as a whole.
func TestPacksThatContradictTheirPlan(t *testing.T) {
	for name, spoil := range map[string]func(plan *Plan){
		"a copy is missing":   func(plan *Plan) { plan.Copies = plan.Copies[1:] },
		"copies change place": func(plan *Plan) { plan.Copies[0], plan.Copies[1] = plan.Copies[1], plan.Copies[0] },
		"a longer pack":       func(plan *Plan) { plan.Packs[0].Bytes++ },
		"another reader":      func(plan *Plan) { plan.Parts[plan.Copies[0].Part].Reader = 1 },
	} {
		_, g, server := twoIntoBucket(t)
		g.before = spoil
		if _, err := g.push(Options{}); !errors.Is(err, errShare) {
			t.Errorf("%s: %v", name, err)
		}
		got, err := bucketContents(server, t)
		if err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A push whose process dies while packs are sent leaves parts. The next one sends what is missing, by whichever rank of the node, and names the packs that it finds.
func TestThePacksOfADeadPushAreResumed(t *testing.T) {
	for _, nodes := range [][]int{{0, 1}, {0, 0}} {
		r := newRun(t, 2)
		for rank := range 2 {
			r.put(rank, place{"h", model.NumberKey(0)}, state{rank, 0, 40 << 20})
		}
		g, server := r.together(nodes, 1), buckettest.New()
		g.server = server
		parts := 0
		server.Before = func(q *wire.Request) error {
			if q.Op == wire.Part {
				if parts++; parts == 3 {
					return fmt.Errorf("cut: %w", unix.ECONNRESET)
				}
			}
			return nil
		}
		if _, err := g.push(Options{}); !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
		sent := parts - 1
		if server.Before = func(q *wire.Request) error {
			if q.Op == wire.Part {
				parts++
			}
			return nil
		}; server.Uploads() == 0 {
			t.Fatal("no parts are left")
		}
		parts = 0
		done, err := g.push(Options{})
		if err != nil || done.Keys != 1 {
			t.Fatalf("%+v: %v", done, err)
		}
		if all := 6; parts > all-sent+2 || server.Uploads() != 0 { // two senders: the part beside the one that failed may have arrived or not
			t.Errorf("%d parts of %d are sent again, of which %d were there; %d uploads are left", parts, all, sent, server.Uploads())
		}
		g.require(r.complete(nil))
	}
}
