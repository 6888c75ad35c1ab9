package engine

import (
	"maps"
	"math"
	"slices"

	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// check compares the engine's counts and lists with a recount.
func (w *world) check() {
	w.checkTiers()
	w.checkRecords()
	w.checkObjects()
	w.checkNeeds()
	w.checkLinks()
	w.checkCounts()
	w.checkForecast()
	w.checkCatalog()
}

func (w *world) checkForecast() {
	var coming [MaxTiers]float64
	for _, h := range w.hists {
		awaited := 0
		h.Each(func(r *Record) {
			if r.seq != fragment.Unexpected {
				awaited++
			}
		})
		if h.sweep.awaited != awaited {
			w.fatalf("%s: %d checkpoints are expected, counted %d", h.Name, h.sweep.awaited, awaited)
		}
		coming[h.sweep.top] += h.sweep.coming
	}
	for t, bytes := range coming {
		if math.Abs(w.e.forecast.coming[t]-bytes) > 1e-3 {
			w.fatalf("tier %d: %g bytes are foreseen, counted %g", t, w.e.forecast.coming[t], bytes)
		}
	}
}

func (w *world) checkTiers() {
	for t, tr := range w.e.tiers {
		w.checkEntries(t)
		var sums [fragment.Held + 1]int64
		at, lent := int64(0), int64(0)
		for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
			f := tr.table.At(id)
			if f.Offset != at {
				w.fatalf("tier %d has a hole at %d", t, at)
			}
			at += f.Size
			sums[f.Class] += tr.within(f)
			if f.Pins > 0 {
				lent += f.Size
			}
			if f.Class == fragment.Gap {
				continue
			}
			o := f.Owner
			if o == nil && w.catalogued(t) {
				continue // reserved: checkCatalog knows for which row
			}
			if leaves := f.Class == fragment.Free || f.Class == fragment.Promised || f.Class == fragment.Dirty; leaves && tr.behind(f) && o.leaves&(onNext(t)|onDirty(t)) == 0 {
				w.fatalf("tier %d: nobody sees to it that %v, of class %d, leaves%s", t, name(o), f.Class, w.state())
			}
			if o == nil || o.copies[t] != id {
				w.fatalf("tier %d: a fragment that its owner %v does not know", t, o)
			}
			if w.e.Record(o.home.ID) != o.home || w.forgotten[o.home] > 0 {
				w.fatalf("tier %d: a fragment of %v, which has been forgotten", t, name(o))
			}
			if f.Size != tr.extent(o) {
				w.fatalf("tier %d: %v has %d bytes and room for %d", t, name(o), o.Bytes(t), f.Size)
			}
			if o.gone && f.Pins == 0 && f.Transfers == 0 && !o.isNeeded(t) {
				w.fatalf("tier %d: %v is gone and nobody reads it, but its room was not given back", t, name(o))
			}
			if !o.gone && f.Class != w.e.classify(o, t, f) {
				w.fatalf("tier %d: %v is of class %d, must be %d", t, name(o), f.Class, w.e.classify(o, t, f))
			}
			if spoiled := o.spoiled&(1<<t) != 0; spoiled && (f.Pins == 0 && f.Transfers == 0 || f.Class != fragment.Held || t != int(o.top)) {
				w.fatalf("tier %d: %v is spoiled, %d read it, and it is of class %d", t, name(o), f.Pins, f.Class)
			}
			if o.gone && f.Class != fragment.Held {
				w.fatalf("tier %d: %v is gone and read, but of class %d", t, name(o), f.Class)
			}
			if !o.gone && (f.Expected != o.place() || f.Lane != o.lane()) {
				w.fatalf("tier %d: %v is expected at %d, its row says %d", t, name(o), o.place(), f.Expected)
			}
			if h := w.e.histories[o.lane()]; !o.gone && o.next() != fragment.Unexpected && o.next() >= h.order.Head() && (h.order.Place(o.next()) != o.place() || w.e.places[h.lane] != h.order.Now()) {
				w.fatalf("tier %d: %v is expected at %d of %d, and the order says %d of %d", t, name(o), o.place(), w.e.places[h.lane], h.order.Place(o.next()), h.order.Now())
			}
			if f.State == lifecycle.Flushed && !o.gone && w.e.lower(o, t) < 0 {
				w.fatalf("tier %d: %v counts as flushed, but no lower tier has it", t, name(o))
			}
		}
		all := int64(0)
		for _, n := range sums {
			all += n
		}
		if lent != tr.pinned {
			w.fatalf("tier %d: %d bytes are lent, counted %d", t, tr.pinned, lent)
		}
		if at != tr.table.Reach() || all != tr.Capacity || sums != tr.bytes {
			w.fatalf("tier %d: bytes by class %v, counted %v", t, tr.bytes, sums)
		}
		w.checkLeaving(t)
	}
}

// checkLeaving counts the objects on the lists of leaving.
func (w *world) checkLeaving(t int) {
	l := &w.e.tiers[t].leaving
	for on, list := range map[uint16][]*Object{onNext(t): l.next, onDirty(t): l.dirty} {
		listed := map[*Object]bool{}
		for _, o := range list {
			if listed[o] || o.leaves&on == 0 {
				w.fatalf("tier %d: %v is on list %d twice, or should not be: %b", t, name(o), on, o.leaves)
			}
			listed[o] = true
		}
		for _, r := range w.born {
			if r.own.leaves&on != 0 && !listed[&r.own] {
				w.fatalf("tier %d: %v is not on list %d", t, r.Key, on)
			}
		}
	}
}

// checkEntries looks for rows that were changed without an Update.
func (w *world) checkEntries(t int) {
	tr := w.e.tiers[t]
	for at, i := fragment.Leaf(0), 0; at != fragment.None && tr.table.First() != fragment.None; {
		ids, entries, next := tr.table.Leaf(at)
		for k, id := range ids {
			before := entries[k]
			if tr.table.Update(id); entries[k] != before {
				w.fatalf("tier %d: fragment %d is entered as %+v, not %+v", t, i+k, before, entries[k])
			}
		}
		at, i = next, i+len(ids)
	}
}

func (w *world) checkRecords() {
	for i, h := range w.hists {
		if h.Len() != len(w.truth[i]) {
			w.fatalf("%s has %d checkpoints, must have %d", h.Name, h.Len(), len(w.truth[i]))
		}
		h.Each(func(r *Record) {
			k := r.Key
			if w.truth[i][k] != r || r.gone || h.Get(k) != r {
				w.fatalf("%s: %v is not the version that was captured last", h.Name, k)
			}
			if seq, ok := h.order.Seq(k); !w.e.cfg.Guess && ((ok && r.seq != seq) || (!ok && r.seq != fragment.Unexpected)) {
				w.fatalf("%s: %v is noted at %d, the order says %d, %v", h.Name, k, r.seq, seq, ok)
			}
			if r.Captured() && w.e.Fastest(r) < 0 && len(w.of(r)) == 1 {
				w.fatalf("%s: no tier has the bytes of %v", h.Name, k)
			}
			if !r.Captured() && !w.underWay(r) {
				w.fatalf("%s: nobody will ever capture %v", h.Name, k)
			}
		})
	}
	for _, r := range w.born {
		if n := w.forgotten[r]; n > 1 || (n > 0 && !r.gone) {
			w.fatalf("%v was forgotten %d times", r.Key, n)
		}
		if !r.own.captured {
			continue
		}
		for t := range w.e.tiers {
			if w.e.complete(&r.own, t) {
				w.read("at rest", t, w.e.row(&r.own, t).Offset, &r.own)
			}
		}
	}
}

func (w *world) underWay(r *Record) bool {
	for _, c := range w.captures {
		if c.Rec == r {
			return true
		}
	}
	return false
}

// checkRefused looks for room that exists although it counts as refused.
func (w *world) checkRefused(k int) {
	l := w.e.links[k]
	for i, n := range l.refused {
		if others := slices.Delete(slices.Clone(l.refused), i, i+1); others.covers(n) {
			w.fatalf("link %d: what is refused covers itself: %v", k, l.refused)
		}
		if w.window(l.lower, n, func(f *fragment.Fragment[*Object]) bool { return f.Class == fragment.Gap || f.Class == fragment.Free }) {
			w.fatalf("link %d: %v is refused, and there is room%s", k, n, w.state())
		}
	}
}

func (w *world) checkLinks() {
	for k, l := range w.e.links {
		bit := uint8(1) << k
		var queued, flushing, loads, stuck, dirty int
		var loading, passable int64
		for _, r := range w.e.slots {
			if r == nil || r.own.home == nil {
				continue
			}
			count := func(n *int, set uint8) {
				if set&bit != 0 {
					*n++
				}
			}
			count(&queued, r.own.queuedOn)
			count(&flushing, r.own.runs)
			count(&stuck, r.own.stuckOn)
			if r.own.runs&^r.own.queuedOn != 0 || r.own.loadRuns&^r.own.loadsOn != 0 {
				w.fatalf("%v: a transfer runs that was not queued", r.Key)
			}
			if r.own.copies[k] != fragment.None {
				count(&loads, r.own.loadsOn)
				if r.own.loadsOn&bit != 0 {
					loading += r.own.Bytes(k)
				}
			}
			at := r.own.dirtyAt[k]
			if at >= 0 {
				dirty++
				if l.dirty.heaps[r.own.lane()].objs[at] != &r.own {
					w.fatalf("%v is not where it believes in the heap", r.Key)
				}
			}
			if at >= 0 && !l.dirty.least.within(w.e.tiers[l.lower].need(&r.own)) {
				w.fatalf("%v: dirty, and needs less below than the least, %v", r.Key, l.dirty.least)
			}
			if r.own.queuedOn&bit != 0 && r.own.runs&bit == 0 && l.refuses(w.e.state, &r.own) {
				w.fatalf("%v: its flush is queued, although its room is refused: %v", r.Key, l.refused)
			}
			if at >= 0 && !l.refuses(w.e.state, &r.own) {
				passable += w.e.tiers[k].within(w.e.row(&r.own, k))
			}
			if isDirty := !r.own.gone && r.own.copies[k] != fragment.None && w.e.row(&r.own, k).Class == fragment.Dirty; isDirty != (at >= 0) {
				w.fatalf("%v: dirty %v, in the heap at %d", r.Key, isDirty, at)
			}
		}
		if passable > w.e.passable(w.e.tiers[k]) {
			w.fatalf("link %d: %d bytes could go down, counted %d at the most", k, passable, w.e.passable(w.e.tiers[k]))
		}
		w.checkRefused(k)
		if queued != l.queued || flushing != l.flushing || loads != l.loads || stuck != l.stuck || dirty != l.dirty.count {
			w.fatalf("link %d: queued %d flushing %d loads %d stuck %d dirty %d, counted %d %d %d %d %d",
				k, l.queued, l.flushing, l.loads, l.stuck, l.dirty.count, queued, flushing, loads, stuck, dirty)
		}
		crossing := 0
		for _, x := range w.flights {
			if w.e.crosses(x) == l {
				crossing++
				if l.crossing[x.at] != x {
					w.fatalf("link %d: the transfer of %v is not at %d of those that cross it", k, x.Rec.Key, x.at)
				}
			}
		}
		if crossing != len(l.crossing) {
			w.fatalf("link %d: %d transfers cross it, counted %d", k, crossing, len(l.crossing))
		}
		if loading != l.loading {
			w.fatalf("link %d: loads of %d bytes, counted %d", k, l.loading, loading)
		}
		for lane := range l.dirty.heaps {
			h := &l.dirty.heaps[lane]
			for i := 1; i < len(h.objs); i++ {
				if h.Less(i, (i-1)/2) {
					w.fatalf("link %d: the heap of history %d is out of order at %d", k, lane, i)
				}
			}
			if slices.Contains(l.dirty.lanes, int32(lane)) != (len(h.objs) > 0) {
				w.fatalf("link %d: history %d has %d dirty ones; those with any are %v", k, lane, len(h.objs), l.dirty.lanes)
			}
		}
	}
}

type copyAt struct {
	o *Object
	t int
}

type placeAt struct {
	t  int
	id fragment.ID
}

// reading is the set of the restores that pin copies.
func (w *world) reading() map[*Restore]bool {
	all := map[*Restore]bool{}
	for _, g := range w.restores {
		all[g.Restore] = true
	}
	orphans := func(x *Transfer) { // fetches whose restore was cancelled: they keep their pins until they end
		if x.Kind == Fetch {
			all[x.Restore] = true
		}
	}
	for _, x := range w.flights {
		orphans(x)
	}
	w.e.Unbegun(orphans)
	return all
}

// pinned counts the readers of every copy, checks that each restore pins what it reads, and returns the number of restores that end by themselves.
func (w *world) pinned() (pins map[placeAt]int32, copying int) {
	pins = map[placeAt]int32{}
	for g := range w.reading() {
		if g.copies {
			copying++
		}
		if (g.Phase == Ready || g.Direct) && len(g.held) != len(w.of(g.Rec)) {
			w.fatalf("a restore of %v in phase %d pins %d of %d objects", g.Rec.Key, g.Phase, len(g.held), len(w.of(g.Rec)))
		}
		for _, h := range g.held {
			if !slices.Contains(w.of(g.Rec), h.o) || !g.Direct && (h.t != g.Rec.Top() || !h.o.gone && !w.e.complete(h.o, h.t) && h.o.spoiled == 0 && h.id == h.o.copies[h.t]) {
				w.fatalf("a restore of %v pins %v in tier %d", g.Rec.Key, name(h.o), h.t)
			}
			pins[placeAt{h.t, h.id}]++
		}
	}
	return pins, copying
}

// isDue tells whether a restore reads an object, waits for it, or is expected.
func (w *world) isDue(o *Object) bool {
	return w.e.isPinned(o) || w.e.awaited(o) || o.next() != fragment.Unexpected
}

// countMoving counts the copies that are being written into tier t by captures and flushes, and those that restores copy out of it.
func (w *world) countMoving(t int) (arriving, copying int) {
	for _, c := range w.captures {
		if c.Tier == t && (c.Phase == Ready || c.Spill && c.Rec.own.copies[t] != fragment.None && c.Phase == Waiting) {
			arriving++
		}
	}
	for _, x := range w.flights {
		if x.Kind == Flush && x.To == t {
			arriving++
		}
	}
	readers := slices.Collect(maps.Keys(w.reading()))
	for _, p := range w.pins {
		readers = append(readers, &p.r)
	}
	for _, r := range readers {
		for _, h := range r.held {
			if h.t == t && r.copies {
				copying++
			}
		}
	}
	return arriving, copying
}

func (w *world) checkCounts() {
	transfers := map[copyAt]uint8{}
	pins, copying := w.pinned()
	copies := w.countPins(pins)
	copying += len(w.pins)
	capturing := 0
	for _, c := range w.captures {
		if c.Phase == Ready {
			capturing++
		}
		if c.Spill && c.Rec.own.copies[c.Tier] != fragment.None && c.Phase == Waiting {
			transfers[copyAt{&c.Rec.own, c.Tier}]++
		}
	}
	for _, x := range w.flights {
		switch x.Kind {
		case Flush:
			transfers[copyAt{x.Obj, x.From}]++
			transfers[copyAt{x.Obj, x.To}]++
		case Load:
			transfers[copyAt{x.Obj, x.To}]++
		case Relocate, Encode, Decode:
			transfers[copyAt{x.Obj, x.From}]++
		}
	}
	w.e.Unbegun(func(x *Transfer) {
		if x.duplicate != nil {
			transfers[copyAt{x.Obj, x.From}]++
		}
	})
	for _, p := range w.proofs {
		transfers[copyAt{p.Obj, p.Tier}]++
	}
	for _, x := range w.readings {
		transfers[copyAt{x.Obj, x.Tier}]++
	}
	for _, g := range w.restores {
		if g.Phase == Ready && g.copies && !g.Direct {
			for _, o := range w.of(g.Rec) {
				copies[o]++
			}
		}
	}
	for _, r := range w.e.slots {
		if r == nil || r.own.home == nil {
			continue
		}
		o := &r.own
		if o.copying != copies[o] {
			w.fatalf("%d restores copy %v, counted %d", o.copying, name(o), copies[o])
		}
		for t := range w.e.tiers {
			if o.copies[t] == fragment.None {
				continue
			}
			for k, l := range w.e.links {
				if l.lower == t && o.loadsOn&(1<<k) != 0 {
					transfers[copyAt{o, t}]++
				}
			}
			if !w.e.uses(o, t) {
				w.fatalf("%v of tier %d lies in tier %d, which is not its own", name(o), r.Top(), t)
			}
			f := w.e.row(o, t)
			if at := (copyAt{o, t}); f.Transfers != transfers[at] {
				w.fatalf("%v in tier %d: %d transfers; counted %d", name(o), t, f.Transfers, transfers[at])
			}
			forNobody := !o.gone && !w.isDue(o) && !slices.ContainsFunc(o.users(), func(u *Object) bool { return !u.needsParts() && w.isDue(u) }) && f.Transfers == 0 && !w.e.expectedSoon(o, t)
			if forNobody && (f.State == lifecycle.ReadComplete || o.loadsOn&(1<<t) != 0) {
				w.fatalf("%v is kept in tier %d, or to be loaded, for nobody%s", name(o), t, w.state())
			}
		}
	}
	for t, tr := range w.e.tiers {
		if arriving, copying := w.countMoving(t); tr.arriving != arriving || tr.copying != copying {
			w.fatalf("tier %d: arriving %d copying %d, counted %d %d", t, tr.arriving, tr.copying, arriving, copying)
		}
		for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
			if f := tr.table.At(id); f.Pins != pins[placeAt{t, id}] {
				w.fatalf("tier %d: the copy at %d has %d readers, counted %d", t, f.Offset, f.Pins, pins[placeAt{t, id}])
			}
		}
	}
	if w.e.running != len(w.flights) || w.e.capturing != capturing || w.e.copying != copying {
		w.fatalf("running %d capturing %d copying %d, counted %d %d %d", w.e.running, w.e.capturing, w.e.copying, len(w.flights), capturing, copying)
	}
}
