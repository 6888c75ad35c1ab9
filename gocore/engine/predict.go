package engine

import (
	"math"
	"slices"

	"velocpy/gocore/bandwidth"
	"velocpy/gocore/evict"
	"velocpy/gocore/fragment"
)

// foresight is how many queued transfers of a link a prediction looks at. More of them make the predicted time too short.
const foresight = 64

// workers are the times (ns) at which the workers of a link are predicted to be free.
type workers []int64

// workers predicts when the workers of link l end what is under way. The list is valid until the next call.
func (e *Engine) workers(now int64, l *link) workers {
	free := e.doneAt[:0]
	for _, x := range l.crossing {
		free = append(free, l.endOf(now, x))
	}
	for len(free) < e.cfg.Workers {
		free = append(free, now)
	}
	e.doneAt = free
	return free
}

// take gives the next transfer, of so many ns, to the worker that is free first, and returns when it ends.
func (w workers) take(ns int64) (end int64) {
	first := slices.Index(w, slices.Min(w))
	w[first] += ns
	return w[first]
}

// endOf is when a transfer that crosses the link is predicted to end. One that is late is expected to be as late again.
func (l *link) endOf(now int64, x *Transfer) int64 {
	took, whole := max(now-x.began, 0), l.down.Predict(x.Rec.Size)
	if x.Kind == Spill {
		whole = l.straightTime(x.Rec.Size)
	}
	return now + max(whole-took, took-whole)
}

// roomIn predicts after how many ns tier t has room for so many bytes: when window w is evictable, once its flushes are urgent, or as soon as
// one flush that comes before them makes room alone. That is not known while flushes wait for room further down.
func (e *Engine) roomIn(now int64, t int, bytes int64, w evict.Window) (ns int64, known bool) {
	l, tr := e.links[t], e.tiers[t]
	if l.paused == e.tiers[l.lower].version+1 {
		return 0, false
	}
	begin, end := tr.table.At(w.First).Offset, tr.table.At(w.Last).Offset
	ready, alone := now, int64(math.MaxInt64)
	flush := func(r *Record, ends int64) {
		f := tr.table.At(r.copies[t])
		if f.Offset >= begin && f.Offset <= end {
			ready = max(ready, ends)
		}
		if f.Size >= bytes && f.Pins == 0 {
			alone = min(alone, ends)
		}
	}
	for _, x := range l.crossing {
		if x.Kind == Flush {
			flush(x.Rec, l.endOf(now, x))
		}
	}
	free := e.workers(now, l)
	var urgent [foresight]*Record
	n := 0
	for i := 0; i < l.urgent.len() && n < foresight; i++ {
		if r := l.urgent.at(i); l.unflushed(r) && !slices.Contains(urgent[:n], r) {
			urgent[n] = r
			n++
			flush(r, free.take(l.down.Predict(r.Size)))
		}
	}
	for id := w.First; ; id = tr.table.Next(id) {
		f := tr.table.At(id)
		if (f.Class == fragment.Dirty || f.Class == fragment.Flushing) && f.Owner.runs&(1<<t) == 0 && !slices.Contains(urgent[:n], f.Owner) {
			flush(f.Owner, free.take(l.down.Predict(f.Owner.Size)))
		}
		if id == w.Last {
			return min(ready, alone) - now, true
		}
	}
}

// straightIn predicts how many ns a capture of so many bytes takes that crosses link l at once: behind what is under way, before flushes.
func (e *Engine) straightIn(now int64, l *link, bytes int64) int64 {
	free := e.workers(now, l)
	for q, i := &e.passing[Down][l.upper], 0; i < min(q.len(), foresight); i++ {
		free.take(l.straightTime(q.at(i).Rec.Size))
	}
	return free.take(l.straightTime(bytes)) - now
}

// crosses is the link whose workers carry a transfer downward; nil for others.
func (e *Engine) crosses(x *Transfer) *link {
	switch {
	case x.Kind == Flush:
		return e.links[x.From]
	case x.Kind == Spill && len(e.links) > 0:
		return e.links[e.way(x)]
	}
	return nil
}

// straightTime is how many ns a capture takes to cross the link: as many as a flush, until one was seen.
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

// copyTime is how many ns a caller takes to copy into the tier: none, until one was seen.
func (tr *tier) copyTime(bytes int64) int64 {
	if tr.copies == nil {
		return 0
	}
	return tr.copies.Predict(bytes)
}

// copied learns from a caller's copy: into the tier that the capture was to lie in, or over the link to the tier below.
func (e *Engine) copied(now int64, c *Capture) {
	bytes, took := c.Rec.Size, now-c.ready
	if c.Tier != c.home {
		if l := e.links[c.home]; l.lower == c.Tier {
			l.observeStraight(bytes, took)
		}
		return
	}
	tr := e.tiers[c.Tier]
	if tr.copies == nil {
		tr.copies = bandwidth.New(float64(bytes) / float64(max(took, 1)) * 1e9)
	}
	tr.copies.Observe(bytes, took)
}
