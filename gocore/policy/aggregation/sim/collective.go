package sim

import (
	"math/bits"

	"velocpy/gocore/policy/aggregation"
)

// Collective plays two-phase collective writes, as MPI-IO has them: all ranks of a file write a piece by each call. Its bytes go to an aggregator on each node, by
// their places; aggregators write them one after the other; and then the next call begins. Nothing is read ahead.
func Collective(c Cluster, p Push) (Result, error) {
	w, err := prepare(&c, &p)
	if err != nil {
		return Result{}, err
	}
	return w.collectively(&p), nil
}

func (w *world) collectively(p *Push) Result {
	r := Result{Bytes: p.total(), Files: p.Files}
	from := 0
	receives, sends := map[int]int64{}, map[int]int64{}
	// MPI-IO's groups are ranks of one communicator: as many of each, whatever they have.
	for file := range p.Files {
		end := (file + 1) * len(p.Bytes) / p.Files
		f := &collective{w: w, push: p, file: file, from: from, end: end, receives: receives, sends: sends}
		w.create(f.begin)
		r.Leaders += len(f.aggregators())
		from = end
	}
	w.drain()
	w.pass(w.syncDelay)
	r.Elapsed = seconds(w.Now())
	r.Copying = r.Elapsed
	for _, n := range receives {
		r.Messages += n
		r.LeaderReceives = max(r.LeaderReceives, n)
	}
	for _, n := range sends {
		r.SenderSends = max(r.SenderSends, n)
	}
	return r
}

// collective is the ranks that write one file.
type collective struct {
	w               *world
	push            *Push
	file, from, end int
	all             []int // aggregators
	starts          []int64
	call            int64
	left            int             // of this call's reads, messages or writes
	has             map[int][]write // by aggregator
	receives, sends map[int]int64   // by rank
}

// write is a piece that an aggregator writes.
type write struct{ at, bytes int64 }

// aggregators are the lowest ranks of each node.
func (f *collective) aggregators() []int {
	if f.all == nil {
		seen := map[int]bool{}
		for rank := f.from; rank < f.end; rank++ {
			if node := f.push.Nodes[rank]; !seen[node] {
				seen[node] = true
				f.all = append(f.all, rank)
			}
		}
	}
	return f.all
}

func (f *collective) begin() {
	f.w.shared[f.file] = len(f.aggregators()) > 1
	at := int64(0)
	for rank := f.from; rank < f.end; rank++ {
		f.starts = append(f.starts, at)
		at += f.push.Bytes[rank] * int64(f.push.Keys)
	}
	f.next()
}

// next begins a call: every rank reads a piece.
func (f *collective) next() {
	offset := f.call * aggregation.CopyBytes
	f.call++
	f.has = map[int][]write{}
	pieces := map[int]write{}
	first, last := int64(-1), int64(0) // the range of the call
	for i, start := range f.starts {
		rank := f.from + i
		if n := min(f.push.Bytes[rank]*int64(f.push.Keys)-offset, aggregation.CopyBytes); n > 0 {
			pieces[rank] = write{start + offset, n}
			if first < 0 {
				first = start + offset
			}
			last = start + offset + n
		}
	}
	if len(pieces) == 0 {
		return
	}
	f.left = len(pieces)
	for rank := f.from; rank < f.end; rank++ {
		piece, some := pieces[rank]
		if !some {
			continue
		}
		f.w.read(f.w.nodes[f.push.Nodes[rank]], piece.bytes, func() {
			if f.left--; f.left == 0 {
				f.exchange(pieces, first, last)
			}
		})
	}
}

// exchange brings the pieces of a call to the aggregators that have their places.
func (f *collective) exchange(pieces map[int]write, first, last int64) {
	all := f.aggregators()
	f.left = 1
	arrived := func() {
		if f.left--; f.left == 0 {
			f.flush()
		}
	}
	for rank := f.from; rank < f.end; rank++ {
		piece, some := pieces[rank]
		if !some {
			continue
		}
		to := all[min(int((piece.at-first)*int64(len(all))/max(last-first, 1)), len(all)-1)]
		f.has[to] = append(f.has[to], piece)
		if source, target := f.push.Nodes[rank], f.push.Nodes[to]; source != target || f.w.c.OneMachine && rank != to {
			f.left++
			f.receives[to]++
			f.sends[rank]++
			f.w.send(f.w.nodes[source], f.w.nodes[target], piece.bytes, arrived)
		}
	}
	// Ranks tell each other first which pieces they have.
	f.w.after(int64(bits.Len(uint(f.end-f.from-1)))*f.w.linkDelay, arrived)
}

// flush writes what the aggregators have got, each one piece after the other, and begins the next call.
func (f *collective) flush() {
	f.left = len(f.has)
	for _, rank := range f.aggregators() {
		if list := f.has[rank]; len(list) > 0 {
			f.writeAll(f.w.nodes[f.push.Nodes[rank]], list)
		}
	}
}

func (f *collective) writeAll(on *node, list []write) {
	if len(list) == 0 {
		if f.left--; f.left == 0 {
			f.next()
		}
		return
	}
	f.w.write(on, f.file, list[0].at, list[0].bytes, func() { f.writeAll(on, list[1:]) })
}
