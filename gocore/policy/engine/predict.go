package engine

import (
	"math"
	"slices"

	"velocpy/gocore/policy/bandwidth"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

// foresight is how many transfers of a list a prediction looks at. It assumes that the transfers behind them are like them. So a prediction costs the
// same however many are queued.
const foresight = 16

// workers are the times (ns) at which the workers of a link are predicted to become idle.
type workers []int64

// predictions estimate when transfers end and when a tier has room.
type predictions struct {
	*state

	doneAt []int64 // buffer of workers
}

// workers predicts when the workers of link l finish the transfers under way. The list is valid until the next call.
func (pr *predictions) workers(now int64, l *link) workers {
	free := workers(pr.doneAt[:0])
	for _, x := range l.crossing[:min(len(l.crossing), foresight)] {
		switch end := l.endOf(now, x); {
		case x.Aside:
		case len(free) < pr.cfg.Workers:
			free = append(free, end)
		default: // one worker carries several small transfers
			free.take(end - now)
		}
	}
	for len(free) < pr.cfg.Workers {
		free = append(free, now)
	}
	pr.doneAt = free
	return free
}

// take assigns the next transfer, which takes ns, to the worker that becomes idle first, and returns its end.
func (w workers) take(ns int64) (end int64) {
	first := 0
	for i := range w {
		if w[i] < w[first] {
			first = i
		}
	}
	w[first] += ns
	return w[first]
}

// share spreads transfers that together take ns evenly over all workers.
func (w workers) share(ns int64) {
	for i := range w {
		w[i] += ns / int64(len(w))
	}
}

// endOf predicts when a transfer that crosses the link ends. A transfer that is late is expected to take as long again as it is late.
func (l *link) endOf(now int64, x *Transfer) int64 {
	took, whole := max(now-x.handed, 0), int64(0)
	if x.Kind == Spill {
		whole = l.straightFor(x.Obj)
	} else {
		whole = l.flushTime(x.Obj)
	}
	return now + max(whole-took, took-whole)
}

// wait predicts when a window of a tier has room for a capture.
type wait struct {
	l          *link
	tr         *tier
	bytes      int64 // size of the capture
	begin, end int64 // of the window: offsets of its first and its last fragment
	free       workers
	urgent     [foresight]*Object // objects whose flushes run before the window's
	some       int                // number of them
	ready      int64              // when all flushes of the window seen so far have ended
	alone      int64              // when a single flush that makes enough room has ended
}

// roomIn predicts after how many ns tier t has room for that many bytes. That is when window w is evictable, once its flushes are urgent, or as soon
// as one flush before them makes enough room alone. It is not known while flushes wait for room further down.
func (pr *predictions) roomIn(now int64, t int, bytes int64, w evict.Window) (ns int64, known bool) {
	l, tr := pr.links[t], pr.tiers[t]
	if l.paused == pr.tiers[l.lower].version+1 {
		return 0, false
	}
	p := wait{l: l, tr: tr, bytes: bytes, begin: tr.table.At(w.First).Offset, end: tr.table.At(w.Last).Offset, ready: now, alone: math.MaxInt64}
	for _, x := range l.crossing[:min(len(l.crossing), foresight)] {
		if x.Kind == Flush {
			p.flush(x.Obj, l.endOf(now, x))
		}
	}
	p.free = pr.workers(now, l)
	p.queued()
	p.window(w)
	return min(p.ready, p.alone) - now, true
}

// flush records the predicted end of the flush of o.
func (p *wait) flush(o *Object, ends int64) {
	f := p.tr.table.At(o.copies[p.tr.index])
	if f.Offset >= p.begin && f.Offset <= p.end {
		p.ready = max(p.ready, ends)
	}
	if f.Size >= p.bytes && f.Pins == 0 {
		p.alone = min(p.alone, ends)
	}
}

// queued goes through the flushes that are urgent already.
func (p *wait) queued() {
	q, took := &p.l.urgent, int64(0)
	n := min(q.len(), foresight)
	for i := range n {
		if o := q.at(i); p.l.unflushed(o) && !p.comes(o) {
			p.urgent[p.some] = o
			p.some++
			ns := p.l.flushTime(o)
			took += ns
			p.flush(o, p.free.take(ns))
		}
	}
	if n < q.len() {
		p.free.share(took / int64(n) * int64(q.len()-n))
	}
}

// comes tells whether queued has gone through the flush of o.
func (p *wait) comes(o *Object) bool { return slices.Contains(p.urgent[:p.some], o) }

// window goes through the flushes of the window's fragments that are not urgent yet.
func (p *wait) window(w evict.Window) {
	took := int64(0)
	id := w.First
	for range foresight {
		f := p.tr.table.At(id)
		if (f.Class == fragment.Dirty || f.Class == fragment.Flushing) && f.Owner.runs&(1<<p.tr.index) == 0 && !p.comes(f.Owner) {
			ns := p.l.flushTime(f.Owner)
			took += ns
			p.flush(f.Owner, p.free.take(ns))
		}
		if id == w.Last {
			return
		}
		id = p.tr.table.Next(id)
	}
	seen := p.tr.table.At(id).Offset - p.begin
	last := p.tr.table.At(w.Last)
	rest := last.Offset + last.Size - p.begin - seen
	p.free.share(int64(float64(took) * float64(rest) / float64(max(seen, 1))))
	p.ready = max(p.ready, slices.Max(p.free))
}

// straightIn predicts how many ns the capture of o takes that crosses link l at once: after the transfers under way, before flushes.
func (pr *predictions) straightIn(now int64, l *link, o *Object) int64 {
	free := pr.workers(now, l)
	q, took := &pr.transfers.passing[Down][l.upper], int64(0)
	n := min(q.len(), foresight)
	for i := range n {
		ns := l.straightFor(q.at(i).Obj)
		took += ns
		free.take(ns)
	}
	if n < q.len() {
		free.share(took / int64(n) * int64(q.len()-n))
	}
	return free.take(l.straightFor(o)) - now
}

// straightTime predicts how many ns a capture takes to cross the link: as many as a flush, until a capture was measured.
func (l *link) straightTime(bytes int64) int64 {
	if l.straight == nil {
		return l.down.Predict(bytes)
	}
	return l.straight.Predict(bytes)
}

func (l *link) observeStraight(bytes, ns int64) {
	if l.straight == nil {
		l.straight = bandwidth.New(l.down.Rate())
	}
	l.straight.Observe(bytes, ns)
}
