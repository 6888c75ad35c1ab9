package engine

import (
	"velocpy/gocore/policy/fragment"
)

// TransferKind says where a transfer's bytes come from and go to.
type TransferKind uint8

// The kinds of transfer.
const (
	Flush    TransferKind = iota // tier From to the one below
	Load                         // tier From to a tier above
	Spill                        // the caller's memory to tier To, past the faster ones
	Fetch                        // tier From to the caller's memory, past the faster ones
	Relocate                     // inside tier From
	Encode                       // the same, into another form
	Decode                       // the same, to raw bytes
)

// Transfer is a piece of work for the caller: move an object. The caller must report it to Done exactly once.
type Transfer struct {
	Kind           TransferKind
	Rec            *Record // a checkpoint that the object is for
	Obj            *Object
	sent           int64 // bytes that cross the link, or the most that may
	Stage          Stage // what happens to the bytes
	Upper, Lower   Form  // of the object at the upper and at the lower end; the workers read them without the caller's lock
	Side           Side  // where that happens
	From, To       int   // tiers; -1: the caller's memory
	FromOff, ToOff int64
	Urgent         bool     // Load: a restore waits for it
	Capture        *Capture // Spill
	Restore        *Restore // Fetch
	Fetched        int64    // Fetch: bytes that were read, which may be fewer than the checkpoint's
	Early          bool     // Load: restores may have had its bytes before it ended
	Aside          bool     // no worker carries it (PutAside)
	// began is when its bytes began to move; the engine learns the link's rate from it. The worker that carries the transfer out sets it without the
	// caller's lock. So until Done the engine reads handed instead.
	began     int64
	handed    int64   // when the engine handed it out, or TakeUp was called
	at        int     // its place in the crossing of its link
	wrote     int64   // bytes written by a stage; 0: all of the room
	rewrote   bool    // Rewrote was called
	loosens   bool    // Loosen was called
	duplicate *Object // Relocate, Encode, Decode: has the other place
	spent     int64   // ns for which the stage kept the link waiting
}

// Begun tells that the bytes begin to move only now. Earlier waiting says nothing about the link.
func (x *Transfer) Begun(now int64) { x.began = now }

// Rested tells that the transfer waited for so many nanoseconds, not for its link.
func (x *Transfer) Rested(nanoseconds int64) { x.began += nanoseconds }

// transfers hands the transfers out to the workers, and takes their results.
type transfers struct {
	*state

	passing [2]ways // by direction: transfers that bypass the faster tiers
	running int     // transfers handed out by Next
}

// init makes the queues, one for each link.
func (ts *transfers) init() {
	for d := range ts.passing {
		ts.passing[d] = make(ways, max(len(ts.links), 1))
	}
}

// Queued tells that all copies of a load are queued, and that any reader of the copy is ordered after them. So restores need not wait for its end.
// Done follows. Until then the source copy stays where it is, and the new one is not evicted. It is for loads to a record's fastest tier only: from
// any other tier, further transfers would spread bytes that turn out to be wrong.
func (ts *transfers) Queued(now int64, x *Transfer) {
	if x.Obj.gone || x.To != int(x.Obj.top) {
		return
	}
	x.Early = true
	ts.loads.arrived(now, x)
	ts.objects.resumeAll(now, x.Obj)
	ts.makeProgress(now)
}

// Direction is the direction of a worker: Down transfers write to lower tiers, Up transfers read from them.
type Direction uint8

// The directions run concurrently; each has its own workers.
const (
	Down Direction = iota
	Up
)

func (ts *transfers) started(now int64, x *Transfer) *Transfer {
	if x != nil {
		x.began, x.handed = now, now
		ts.running++
		if l := ts.crosses(x); l != nil {
			x.at = len(l.crossing)
			l.crossing = append(l.crossing, x)
		}
	}
	return x
}

// PutAside records that a transfer waits for something other than its link, and that no worker carries it meanwhile. Its source is still to be
// filled, it is to be encoded with later ones, or its bytes are written and the catalog does not list them yet. Done or TakeUp follows.
func (ts *transfers) PutAside(x *Transfer) { x.Aside = true }

// TakeUp records that a worker carries out a transfer that was put aside: its bytes begin to move only now.
func (ts *transfers) TakeUp(now int64, x *Transfer) { x.began, x.handed, x.Aside = now, now, false }

// ended removes a transfer from those under way.
func (ts *transfers) ended(x *Transfer) {
	ts.running--
	if l := ts.crosses(x); l != nil {
		last := len(l.crossing) - 1
		moved := l.crossing[last]
		l.crossing[x.at], moved.at = moved, x.at
		l.crossing[last] = nil
		l.crossing = l.crossing[:last]
	}
}

// way is the link over which a transfer bypasses the faster tiers. It is the link above the tier that it leaves or reaches, or the link below it if
// that tier is the record's fastest.
func (ts *transfers) way(x *Transfer) int {
	t, k := max(x.From, x.To), x.Rec.Top()
	if t == k {
		return min(k, max(len(ts.links)-1, 0))
	}
	for ts.Below(k) != t {
		k = ts.Below(k)
	}
	return k
}

// crosses is the link whose workers carry a downward transfer; nil for other transfers.
func (ts *transfers) crosses(x *Transfer) *link {
	switch {
	case x.Kind == Flush:
		return ts.links[x.From]
	case x.Kind == Spill && len(ts.links) > 0:
		return ts.links[ts.way(x)]
	}
	return nil
}

// ways are the transfers past the faster tiers that have not begun, by the link that they cross. So a transfer that has to wait delays none of
// another device.
type ways []fifo[*Transfer]

// pass queues a transfer past the faster tiers.
func (ts *transfers) pass(d Direction, x *Transfer) { ts.passing[d][ts.way(x)].push(x) }

// passInside queues a transfer inside a tier, for the workers of the link below it, or of the last link.
func (ts *transfers) passInside(x *Transfer) {
	down := ts.passing[Down]
	down[min(x.From, len(down)-1)].push(x)
}

func (w ways) len() (n int) {
	for k := range w {
		n += w[k].len()
	}
	return n
}

// Unbegun calls f for every transfer past the faster tiers that has not begun.
func (ts *transfers) Unbegun(f func(*Transfer)) {
	for d := range ts.passing {
		for k := range ts.passing[d] {
			for q, i := &ts.passing[d][k], 0; i < q.len(); i++ {
				f(q.at(i))
			}
		}
	}
}

// next removes and returns the first transfer over a link, or over any; nil when there is none.
func (w ways) next(over int) *Transfer {
	for k := range w {
		if over == AnyLink || over == k {
			if x, ok := w[k].pop(); ok {
				return x
			}
		}
	}
	return nil
}

func (l *link) demanded() *fifo[*Object] { return &l.demand }
func (l *link) wanted() *fifo[*Object]   { return &l.ahead }

// nextLoad returns the first load of the queue that has not been started through the other queue.
func (l *link) nextLoad(q *fifo[*Object]) *Object {
	for {
		o, ok := q.pop()
		if !ok {
			return nil
		}
		if bit := uint8(1) << l.upper; o.loadsOn&bit != 0 && o.loadRuns&bit == 0 && o.copies[l.upper] != fragment.None {
			return o
		}
	}
}

// Done reports the end of a transfer.
func (ts *transfers) Done(now int64, x *Transfer, err error) {
	ts.ended(x)
	switch x.Kind {
	case Flush:
		ts.flushes.flushed(now, x, err)
	case Load:
		ts.loads.loaded(now, x, err)
	case Spill:
		ts.captures.spilled(now, x, err)
	case Fetch:
		ts.restores.fetched(now, x, err)
	case Relocate, Encode, Decode:
		ts.relocations.relocated(now, x, err)
	}
	ts.makeProgress(now)
}

// makeProgress does the work that the latest change has made possible: it grants claims, queues flushes, starts prefetches.
func (s *state) makeProgress(now int64) {
	for again := true; again; again = len(s.dependencies.unneeded) > 0 { // what is evicted meanwhile may have needed others
		s.dependencies.followUnneeded(now)
		s.progress(now)
	}
}

func (s *state) progress(now int64) {
	s.orders.followMoved()
	for t := len(s.tiers) - 1; t >= 0; t-- {
		if s.tiers[t].claims.len() > 0 {
			s.rooms.serve(now, t)
		}
	}
	for _, l := range s.links {
		s.flushes.flushMore(now, l)
	}
	s.prefetches.runPrefetchers(now)
}
