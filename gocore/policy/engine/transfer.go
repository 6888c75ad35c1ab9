package engine

import (
	"errors"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
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

// Queued tells that all copies of a load are queued, and that any reader of the copy is ordered after them. So restores need not wait for its end.
// Done follows. Until then the source copy stays where it is, and the new one is not evicted. It is for loads to a record's fastest tier only: from
// any other tier, further transfers would spread bytes that turn out to be wrong.
func (e *Engine) Queued(now int64, x *Transfer) {
	if x.Obj.gone || x.To != int(x.Obj.top) {
		return
	}
	x.Early = true
	e.arrived(now, x)
	e.resumeAll(now, x.Obj)
	e.makeProgress(now)
}

// Direction is the direction of a worker: Down transfers write to lower tiers, Up transfers read from them.
type Direction uint8

// The directions run concurrently; each has its own workers.
const (
	Down Direction = iota
	Up
)

func (e *Engine) started(now int64, x *Transfer) *Transfer {
	if x != nil {
		x.began, x.handed = now, now
		e.running++
		if l := e.crosses(x); l != nil {
			x.at = len(l.crossing)
			l.crossing = append(l.crossing, x)
		}
	}
	return x
}

// PutAside records that a transfer waits for something other than its link, and that no worker carries it meanwhile. Its source is still to be
// filled, it is to be encoded with later ones, or its bytes are written and the catalog does not list them yet. Done or TakeUp follows.
func (e *Engine) PutAside(x *Transfer) { x.Aside = true }

// TakeUp records that a worker carries out a transfer that was put aside: its bytes begin to move only now.
func (e *Engine) TakeUp(now int64, x *Transfer) { x.began, x.handed, x.Aside = now, now, false }

// ended removes a transfer from those under way.
func (e *Engine) ended(x *Transfer) {
	e.running--
	if l := e.crosses(x); l != nil {
		last := len(l.crossing) - 1
		moved := l.crossing[last]
		l.crossing[x.at], moved.at = moved, x.at
		l.crossing[last] = nil
		l.crossing = l.crossing[:last]
	}
}

// way is the link over which a transfer bypasses the faster tiers. It is the link above the tier that it leaves or reaches, or the link below it if
// that tier is the record's fastest.
func (e *Engine) way(x *Transfer) int {
	t, k := max(x.From, x.To), x.Rec.Top()
	if t == k {
		return min(k, max(len(e.links)-1, 0))
	}
	for e.Below(k) != t {
		k = e.Below(k)
	}
	return k
}

// ways are the transfers past the faster tiers that have not begun, by the link that they cross. So a transfer that has to wait delays none of
// another device.
type ways []fifo[*Transfer]

// pass queues a transfer past the faster tiers.
func (e *Engine) pass(d Direction, x *Transfer) { e.passing[d][e.way(x)].push(x) }

func (w ways) len() (n int) {
	for k := range w {
		n += w[k].len()
	}
	return n
}

// Unbegun calls f for every transfer past the faster tiers that has not begun.
func (e *Engine) Unbegun(f func(*Transfer)) {
	for d := range e.passing {
		for k := range e.passing[d] {
			for q, i := &e.passing[d][k], 0; i < q.len(); i++ {
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

func (e *Engine) nextUp(over int) *Transfer {
	if x := e.nextDemanded(over); x != nil {
		return x
	}
	return e.nextLoadOf((*link).wanted, over)
}

func (e *Engine) nextDemanded(over int) *Transfer {
	x := e.nextLoadOf((*link).demanded, over)
	if x != nil {
		x.Urgent = true
	}
	return x
}

// nextLoadOf starts the first load in a queue of a link, or of any; nil when there is none.
func (e *Engine) nextLoadOf(queue func(*link) *fifo[*Object], over int) *Transfer {
	for k, l := range e.links {
		if over != AnyLink && over != k {
			continue
		}
		if o := l.nextLoad(queue(l)); o != nil {
			return e.startLoad(l, o)
		}
	}
	return nil
}

func (l *link) demanded() *fifo[*Object] { return &l.demand }
func (l *link) wanted() *fifo[*Object]   { return &l.ahead }

func (e *Engine) nextDown(now int64, over int) *Transfer {
	// An attempt may queue flushes further down that it has to wait for; the next round takes these.
	for range e.links {
		for k := len(e.links) - 1; k >= 0; k-- {
			if over != AnyLink && over != k {
				continue
			}
			if x := e.nextFlush(now, e.links[k]); x != nil {
				return x
			}
		}
	}
	return nil
}

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

func (e *Engine) startLoad(l *link, o *Object) *Transfer {
	o.loadRuns |= 1 << l.upper
	f := e.row(o, l.upper)
	f.Transfers++
	x := &Transfer{Kind: Load, Rec: o.Rec(), Obj: o, From: l.lower, To: l.upper, FromOff: e.row(o, l.lower).Offset, ToOff: f.Offset}
	return x.between(l.upper, l.lower)
}

func (e *Engine) startFlush(now int64, l *link, o *Object) *Transfer {
	o.runs |= 1 << l.upper
	l.flushing++
	e.tiers[l.lower].arriving++
	e.place(o, l.lower, o.copies[l.lower], lifecycle.BeginWrite)
	from, to := e.row(o, l.upper), e.row(o, l.lower)
	from.Transfers++
	to.Transfers++
	e.updateCopy(now, o, l.upper)
	x := &Transfer{Kind: Flush, Rec: o.Rec(), Obj: o, From: l.upper, To: l.lower, FromOff: from.Offset, ToOff: to.Offset}
	return x.between(l.upper, l.lower)
}

// Done reports the end of a transfer.
func (e *Engine) Done(now int64, x *Transfer, err error) {
	e.ended(x)
	switch x.Kind {
	case Flush:
		e.flushed(now, x, err)
	case Load:
		e.loaded(now, x, err)
	case Spill:
		e.spilled(now, x, err)
	case Fetch:
		e.fetched(now, x, err)
	case Relocate, Encode, Decode:
		e.relocated(now, x, err)
	}
	e.makeProgress(now)
}

func (e *Engine) flushed(now int64, x *Transfer, err error) {
	o, l, from := x.Obj, e.links[x.From], x.To
	e.endFlush(x)
	if err != nil {
		from = x.From
		e.notFlushed(x, err)
	} else {
		e.settleTransfer(x)
		l.observe(now, x)
		e.Stats.Tiers[x.To].Written += o.Bytes(x.To)
		e.tiers[x.To].inflow.arrived(now, e.count, o.Bytes(x.To))
		o.fail(nil)
		e.step(o, x.To, lifecycle.WriteDone)
		if x.loosens && !o.gone {
			e.loosen(o, x.From)
		}
		if e.row(o, x.From).State == lifecycle.WriteComplete {
			e.step(o, x.From, lifecycle.FlushDone)
		}
		e.traceMove(now, Flushed, o, x.To, now-x.began)
	}
	e.updateCopy(now, o, x.From)
	e.updateCopy(now, o, x.To)
	if !o.gone && o.stuckOn&(1<<x.From) == 0 {
		e.flushWanted(now, o, from)
	}
	e.wakeAll(now, o)
}

// notFlushed gives back the room of a flush that failed, or that its caller stopped because the checkpoint which it was for is gone. If another checkpoint
// needs the object, a stopped flush is tried again.
func (e *Engine) notFlushed(x *Transfer, err error) {
	o, l := x.Obj, e.links[x.From]
	e.step(o, x.To, lifecycle.Abort)
	e.vacate(o, x.To)
	if o.home.gone && errors.Is(err, ErrStopped) {
		e.Stats.CancelledFlush += o.Bytes(x.From)
		return
	}
	l.err = err
	o.fail(err)
	if !o.gone {
		o.stuckOn |= 1 << x.From
		l.stuck++
	}
}

// endFlush removes a flush from the counts, whether it succeeded or not.
func (e *Engine) endFlush(x *Transfer) {
	o, l := x.Obj, e.links[x.From]
	bit := uint8(1) << x.From
	o.runs &^= bit
	o.queuedOn &^= bit
	l.queued--
	l.flushing--
	e.arrive(x.To)
	e.row(o, x.From).Transfers--
	e.row(o, x.To).Transfers--
}

func (e *Engine) loaded(now int64, x *Transfer, err error) {
	o, l := x.Obj, e.links[x.To]
	bit := uint8(1) << x.To
	o.loadsOn &^= bit
	o.loadRuns &^= bit
	e.loadEnded(l, o)
	e.row(o, x.From).Transfers--
	e.row(o, x.To).Transfers--
	if err != nil {
		e.notLoaded(now, x, err)
		return
	}
	e.settleTransfer(x)
	l.observe(now, x)
	e.Stats.Tiers[x.From].Read += o.Bytes(x.From)
	e.traceMove(now, Loaded, o, x.To, now-x.began)
	if !x.Early {
		e.arrived(now, x)
	}
	e.updateCopy(now, o, x.To)
	e.updateCopy(now, o, x.From)
	e.resumeAll(now, o)
}

// arrived makes the bytes of a load readable for restores.
func (e *Engine) arrived(now int64, x *Transfer) {
	e.step(x.Obj, x.To, lifecycle.ReadDone)
	e.row(x.Obj, x.To).Verified = true
	if !x.Obj.gone && !e.expectedSoon(x.Obj, x.To) {
		e.release(now, x.Obj, x.To)
	}
	e.updateCopy(now, x.Obj, x.To)
}

// notLoaded gives back the room of a failed load, at once or when the readers of its early bytes have gone. Only a restore tries again.
func (e *Engine) notLoaded(now int64, x *Transfer, err error) {
	o := x.Obj
	seen := make([]int64, 0, 4)
	for _, r := range o.Refs() {
		seen = append(seen, r.Hist.promised[x.To])
	}
	switch {
	case x.Early:
		o.spoiled |= 1 << x.To
		e.updateCopy(now, o, x.To)
		e.resumeAll(now, o)
	default:
		e.step(o, x.To, lifecycle.Abort)
		if !o.gone && e.fastest(o) == x.From { // otherwise the waiting restores do not depend on this load
			for _, r := range o.Refs() {
				if r.Captured() {
					e.failWaiting(now, r, &TierError{Tier: x.From, Err: err})
				}
			}
		}
		e.free(o, x.To)
	}
	for i, r := range o.Refs() {
		r.Hist.promised[x.To] = seen[i]
	}
	e.updateCopy(now, o, x.From)
}

func (e *Engine) spilled(now int64, x *Transfer, err error) {
	c, rec, o := x.Capture, x.Rec, x.Obj
	c.Phase, c.Err = Ended, err
	e.arrive(x.To)
	e.row(o, x.To).Transfers--
	if err != nil {
		e.step(o, x.To, lifecycle.Abort)
		if !rec.gone {
			e.lose(rec, err)
		}
		e.abandon(now, rec, err)
	} else {
		e.settleTransfer(x)
		e.Stats.Tiers[x.To].Written += o.Bytes(x.To)
		if l := e.crosses(x); l != nil && l.lower == x.To {
			l.observe(now, x)
		}
		e.captured(now, c)
	}
	e.wake(c.Notify)
}

func (e *Engine) fetched(now int64, x *Transfer, err error) {
	r := x.Restore
	if err == nil {
		e.Stats.Tiers[x.From].Read += x.Fetched
	} else if r.Err == nil {
		r.Err = &TierError{Tier: x.From, Err: err}
	}
	if r.fetches--; r.fetches > 0 {
		return
	}
	r.Phase = Ready
	if r.over { // cancelled meanwhile: no other call ends it
		r.over = false
		e.EndRestore(now, r)
		return
	}
	e.wake(r.Notify)
}

// makeProgress does the work that the latest change has made possible: it grants claims, queues flushes, starts prefetches.
func (e *Engine) makeProgress(now int64) {
	for again := true; again; again = len(e.unneeded) > 0 { // what is evicted meanwhile may have needed others
		e.followUnneeded(now)
		e.progress(now)
	}
}

func (e *Engine) progress(now int64) {
	e.followMoved()
	for t := len(e.tiers) - 1; t >= 0; t-- {
		if e.tiers[t].claims.len() > 0 {
			e.serve(now, t)
		}
	}
	for _, l := range e.links {
		e.flushMore(now, l)
	}
	e.runPrefetchers(now)
}
