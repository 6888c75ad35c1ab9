package sim

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/policy/aggregation"
)

func drawPush(t *rapid.T) Push {
	ranks := rapid.IntRange(1, 12).Draw(t, "ranks")
	sizes := rapid.SampledFrom([]int64{0, 1, 4096, 100_000, 4 << 20, 5<<20 + 4096, 30 << 20, 70 << 20})
	p := Push{
		Bytes:   rapid.SliceOfN(sizes, ranks, ranks).Draw(t, "bytes"),
		Nodes:   rapid.SliceOfN(rapid.IntRange(0, 4), ranks, ranks).Draw(t, "nodes"),
		Keys:    rapid.IntRange(1, 3).Draw(t, "keys"),
		Files:   rapid.IntRange(1, ranks).Draw(t, "files"),
		Leaders: rapid.IntRange(0, 3).Draw(t, "leaders"),
		Writers: rapid.IntRange(1, 9).Draw(t, "writers"),
		Buffer:  rapid.SampledFrom([]int64{4096, 1 << 20, 4 << 20, 16 << 20}).Draw(t, "buffer"),
		Buffers: rapid.IntRange(1, 9).Draw(t, "buffers"),
	}
	if p.Buffer == 4096 { // few messages
		for i := range p.Bytes {
			p.Bytes[i] = min(p.Bytes[i], 100_000)
		}
	}
	return p
}

func drawCluster(t *rapid.T) Cluster {
	rate := rapid.Float64Range(1e8, 1e11)
	delay := rapid.SampledFrom([]float64{0, 1e-6, 1e-3})
	return Cluster{
		Cores: rapid.IntRange(1, 8).Draw(t, "cores"), HashRate: rate.Draw(t, "hash"), ReadRate: rate.Draw(t, "read"), ReadDelay: delay.Draw(t, "read"),
		LinkRate: rate.Draw(t, "link"), LinkDelay: delay.Draw(t, "link"), StoreRate: rate.Draw(t, "store"), StoreDelay: delay.Draw(t, "store"),
		Servers: rapid.IntRange(1, 9).Draw(t, "servers"), ServerRate: rate.Draw(t, "server"), ServerCost: delay.Draw(t, "server"), Stripe: rapid.SampledFrom([]int64{65536, 1 << 20, 4 << 20, 1 << 40}).Draw(t, "stripe"),
		LockDelay: delay.Draw(t, "lock"), CreateRate: 1e4, SyncDelay: delay.Draw(t, "sync"), OneMachine: rapid.Bool().Draw(t, "one machine"),
	}
}

// extent is a range of a file that was written.
type extent struct {
	file    int
	at, end int64
}

// record notes what is written in a world.
func record(w *world) *[]extent {
	all := &[]extent{}
	w.wrote = func(file int, at, bytes int64) { *all = append(*all, extent{file, at, at + bytes}) }
	return all
}

// requireOnce requires that so many bytes were written, and none twice.
func requireOnce(t *rapid.T, all []extent, total int64) {
	slices.SortFunc(all, func(a, b extent) int { return cmp.Or(a.file-b.file, cmp.Compare(a.at, b.at)) })
	sum := int64(0)
	for i, x := range all {
		sum += x.end - x.at
		if i > 0 && all[i-1].file == x.file && all[i-1].end > x.at {
			t.Fatalf("%+v and %+v overlap", all[i-1], x)
		}
	}
	if sum != total {
		t.Fatalf("%d bytes of %d are written", sum, total)
	}
}

// requirePossible requires that nothing is faster than the disks, the nodes' way to the storage and the servers are. written has the bytes by node.
func requirePossible(t *rapid.T, c *Cluster, p *Push, elapsed float64, written map[int]int64) {
	total := float64(p.total())
	least := total / (float64(c.Servers) * c.ServerRate)
	if c.OneMachine {
		least = total / c.ServerRate // one disk reads everything
	} else {
		read := map[int]int64{}
		for rank, n := range p.Bytes {
			read[p.Nodes[rank]] += n * int64(p.Keys)
		}
		for node, n := range read {
			least = max(least, float64(n)/c.ReadRate, float64(written[node])/c.StoreRate)
		}
	}
	if elapsed < least*(1-1e-6)-1e-6 {
		t.Fatalf("it takes %g s, and at least %g are needed", elapsed, least)
	}
}

// All bytes are written once, every message arrives, no rank needs more memory than its buffers and threads, nothing is faster than the resources are, and a second
// time it is the same.
func TestAnyPushOfAllRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := drawCluster(t), drawPush(t)
		w, err := prepare(&c, &p)
		if err != nil {
			t.Fatal(err)
		}
		all, s := record(w), ThisSoftware()
		var copies []Copy // of all plans, each of which takes account of those before it
		w.planned = func(of []Copy) { copies = append(copies, of...) }
		r := w.together(&s, &p)
		requireOnce(t, *all, p.total())
		again, err := Together(c, s, p)
		if err != nil || again != r {
			t.Fatalf("%+v, and then %+v: %v", r, again, err)
		}
		if r.LeaderBuffers > int64(p.Buffers)*(p.Buffer+page) || r.LeaderMemory > p.MostMemory() {
			t.Fatalf("%+v: %d bytes are the most", r, p.MostMemory())
		}
		messages, written := int64(0), map[int]int64{}
		for _, x := range copies {
			written[p.Nodes[x.Writer]] += x.Bytes
			if x.Reader != x.Writer {
				messages += (x.Bytes + p.Buffer - 1) / p.Buffer
			}
			if x.Reader != x.Rank && p.Nodes[x.Reader] != p.Nodes[x.Rank] {
				t.Fatalf("rank %d reads what rank %d of another node has", x.Reader, x.Rank)
			}
		}
		if r.Messages != messages {
			t.Fatalf("%d messages of %d", r.Messages, messages)
		}
		requirePossible(t, &c, &p, r.Copying, written)
		if r.Elapsed < r.Copying {
			t.Fatalf("%+v", r)
		}
	})
}

func TestAnyFilesOfRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := drawCluster(t), drawPush(t)
		w, err := prepare(&c, &p)
		if err != nil {
			t.Fatal(err)
		}
		all, threads := record(w), rapid.IntRange(1, 3).Draw(t, "threads")
		r := w.filePerRank(&p, threads)
		requireOnce(t, *all, p.total())
		written := map[int]int64{}
		for rank, n := range p.Bytes {
			written[p.Nodes[rank]] += n * int64(p.Keys)
		}
		requirePossible(t, &c, &p, r.Elapsed, written)
		if again, err := FilePerRank(c, p, threads); err != nil || again != r {
			t.Fatalf("%+v, and then %+v: %v", r, again, err)
		}
	})
}

func TestAnyPushOfOneProcessAndCollectiveCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := drawCluster(t), drawPush(t)
		for name, play := range map[string]func(w *world) Result{
			"alone":      func(w *world) Result { s := ThisSoftware(); return w.alone(&s, &p) },
			"collective": func(w *world) Result { return w.collectively(&p) },
		} {
			w, err := prepare(&c, &p)
			if err != nil {
				t.Fatal(err)
			}
			all := record(w)
			r := play(w)
			requireOnce(t, *all, p.total())
			if least := float64(p.total()) / (float64(c.Servers) * c.ServerRate); r.Elapsed < least*(1-1e-6)-1e-6 {
				t.Fatalf("%s: it takes %g s, and at least %g are needed", name, r.Elapsed, least)
			}
			if w, err = prepare(&c, &p); err != nil {
				t.Fatal(err)
			}
			if again := play(w); again != r {
				t.Fatalf("%s: %+v, and then %+v", name, r, again)
			}
		}
	})
}

// However many ranks there are, and however few leaders, a leader's memory is its buffers and its threads.
func TestTheMemoryOfALeader(t *testing.T) {
	for _, ranks := range []int{2, 16, 128, 1024} {
		var bytes []int64
		var nodes []int
		for rank := range ranks {
			bytes, nodes = append(bytes, 3*aggregation.CopyBytes), append(nodes, rank)
		}
		p := Default(bytes, nodes, 1)
		p.Leaders = 1
		r, err := Together(Frontier(), ThisSoftware(), p)
		if err != nil || r.LeaderReceives != int64(3*(ranks-1)) || r.LeaderBuffers > 8*(p.Buffer+page) || r.LeaderMemory > p.MostMemory() {
			t.Errorf("%d ranks: %+v: %v", ranks, r, err)
		}
	}
}
