package engine

// Want says which transfers a worker carries out.
type Want struct {
	Direction Direction
	// Link is the link that they cross, by its upper tier, or AnyLink. In a hierarchy with more than two tiers each link needs workers of its own;
	// otherwise its slow links keep all workers busy.
	Link int
	Only Selection
}

// AnyLink stands for all links.
const AnyLink = -1

// Selection is a part of the transfers of a direction.
type Selection uint8

// The selections. Awaited and AwaitedLoads are for upward transfers. A worker that serves only awaited loads is never busy with a load that no restore
// waits for.
const (
	Everything   Selection = iota
	Awaited                // those that a restore waits for
	AwaitedLoads           // of these, the loads
)

// over tells whether the transfers that cross a link, by its upper tier, are wanted.
func (w Want) over(link int) bool { return w.Link == AnyLink || w.Link == link }

// Pending tells whether Next may have a transfer.
func (ts *transfers) Pending(w Want) bool {
	if w.Only != AwaitedLoads {
		for k := range ts.passing[w.Direction] {
			if w.over(k) && ts.passing[w.Direction][k].len() > 0 {
				return true
			}
		}
	}
	for k, l := range ts.links {
		if w.over(k) && l.pending(ts.state, w) {
			return true
		}
	}
	return false
}

// pending tells whether the link may have a flush or a load for a worker.
func (l *link) pending(s *state, w Want) bool {
	if w.Direction == Down {
		return l.canFlush(s)
	}
	return l.demand.len() > 0 || w.Only == Everything && l.ahead.len() > 0
}

// Next returns the most urgent transfer that is wanted, or nil. After nil, Pending is false until the state changes.
func (ts *transfers) Next(now int64, w Want) *Transfer {
	for again := true; again; again = w.Link == AnyLink {
		if x := ts.find(now, w); x != nil {
			return ts.started(now, x)
		}
		if w.Only != Everything {
			break
		}
		// Apparent work may have been done or dropped meanwhile; then claims must not wait for it. Claims that end may make work.
		for t := range ts.tiers {
			ts.rooms.failStalled(now, t)
		}
		if !ts.Pending(w) {
			break
		}
	}
	return nil
}

func (ts *transfers) find(now int64, w Want) *Transfer {
	if w.Only == AwaitedLoads {
		return ts.loads.nextDemanded(w.Link)
	}
	for x := ts.passing[w.Direction].next(w.Link); x != nil; x = ts.passing[w.Direction].next(w.Link) {
		if x.Kind != Spill || !x.Obj.gone {
			return x
		}
		ts.captures.spilled(now, x, ErrDropped) // the version is not needed any more
		ts.makeProgress(now)
	}
	switch {
	case w.Direction == Down:
		return ts.flushes.nextDown(now, w.Link)
	case w.Only == Awaited:
		return ts.loads.nextDemanded(w.Link)
	}
	return ts.loads.nextUp(w.Link)
}
