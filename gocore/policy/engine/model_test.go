package engine

import (
	"fmt"
	"syscall"
	"testing"

	"velocpy/gocore/policy/fragment"

	"pgregory.net/rapid"
)

// TestModel drives random operations, with transfers that end late, in any order, and sometimes with errors. After each it checks that the engine's
// state matches the outstanding operations, and that every byte is where the engine says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, someConfig(t))
		t.Repeat(w.acts())
		w.observe()
		w.finish()
	})
}

// TestModelOfLoads is the same for checkpoints most of which have to be loaded, with few other operations. Errors in loads are rare in TestModel.
func TestModelOfLoads(t *testing.T) {
	for range rounds(30) {
		rapid.Check(t, modelOfLoads)
	}
}

func modelOfLoads(t *rapid.T) {
	cfg := someConfig(t)
	cfg.Flush = Eager
	cfg.Tiers = []TierConfig{
		{Name: "top", Capacity: rapid.Int64Range(8, 16).Draw(t, "capacity"), WriteRate: 1e9, ReadRate: 2e9},
		{Name: "below", Capacity: 1000, WriteRate: 1e9, ReadRate: 2e9},
	}
	if rapid.IntRange(0, 2).Draw(t, "between") == 0 {
		cfg.Tiers[1].Capacity = rapid.Int64Range(16, 40).Draw(t, "capacity")
		cfg.Tiers = append(cfg.Tiers, TierConfig{Name: "last", Capacity: 1000, Remote: true})
	}
	w := newWorld(t, cfg)
	for range 8 {
		w.capture(t)
		w.quiet()
	}
	acts, some := w.acts(), map[string]func(*rapid.T){}
	for _, name := range []string{
		"restore", "restore more", "hint", "hand over", "end restore", "next", "next up", "next is queued", "queue", "done", "done as well", "fail",
		"fail when given", "fail when given, too", "capture", "refer", "own", "disown", "use", "pin", "unpin", "relocate", "recode", "need", "need no more", "need parts", "drop", "clear", "prefetch", "prove", "proved", "doubt", "shrink", "grow", "drain", "",
	} {
		some[name] = acts[name]
	}
	w.cat.acts(some)
	t.Repeat(some)
	w.observe()
	w.finish()
}

// acts are the actions that can happen.
func (w *world) acts() map[string]func(*rapid.T) {
	pick := func(t *rapid.T, n int) int {
		if n == 0 {
			t.Skip("none")
		}
		return rapid.IntRange(0, n-1).Draw(t, "which")
	}
	all := map[string]func(*rapid.T){
		"capture": w.capture,
		"restore": w.restore,
		"hint":    w.hints,
		"await":   w.await,
		"end capture": func(t *rapid.T) {
			c := w.captures[pick(t, len(w.captures))]
			if c.Phase != Ready {
				t.Skip("not ready")
			}
			w.endCapture(c, rapid.IntRange(0, 7).Draw(t, "well") > 0)
		},
		"cancel capture": func(t *rapid.T) { w.cancelCapture(w.captures[pick(t, len(w.captures))]) },
		"show capture":   func(t *rapid.T) { w.showCapture(t, w.captures[pick(t, len(w.captures))]) },
		"hand over": func(t *rapid.T) {
			g := w.restores[pick(t, len(w.restores))]
			if g.Phase != Ready || g.handed {
				t.Skip("not ready")
			}
			w.hand(g)
		},
		"end restore": func(t *rapid.T) { w.end(w.restores[pick(t, len(w.restores))]) },
		"drop": func(t *rapid.T) {
			hi, k := w.hist(t), someKey(t)
			want := w.truth[hi][k] != nil || w.cat.findable(hi, k) != nil
			if w.e.Drop(w.now, w.hists[hi], k) != want {
				t.Fatalf("dropping %v", k)
			}
			delete(w.truth[hi], k)
		},
		"clear": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "really") > 0 {
				t.Skip("no")
			}
			hi := w.hist(t)
			w.clear(hi)
		},
		"clear hints": func(t *rapid.T) { w.e.ClearHints(w.now, w.hists[w.hist(t)]) },
		"recount":     func(t *rapid.T) { w.recount(t) },
		"prefetch":    func(t *rapid.T) { w.e.StartPrefetch(w.now, w.hists[w.hist(t)]) },
		"cancel wait": func(t *rapid.T) {
			x := w.waits[pick(t, len(w.waits))]
			w.e.CancelWait(x.Wait)
			x.phase = Ended
		},
		"time": func(t *rapid.T) { w.now += rapid.Int64Range(0, 100).Draw(t, "ns") },
		"prove": func(t *rapid.T) {
			if !w.prove() {
				t.Skip("nothing")
			}
		},
		"proved": func(t *rapid.T) { w.proved(pick(t, len(w.proofs)), rapid.IntRange(0, 5).Draw(t, "right") > 0) },
		"begin reading": func(t *rapid.T) {
			if !w.beginsReading(t) {
				t.Skip("nothing")
			}
		},
		"end reading":  func(t *rapid.T) { w.endsReading(pick(t, len(w.readings))) },
		"doubt":        func(t *rapid.T) { w.doubt(w.proofs[pick(t, len(w.proofs))]) },
		"next down":    func(t *rapid.T) { w.next(Down) },
		"next up":      func(t *rapid.T) { w.next(Up) },
		"next urgent":  func(t *rapid.T) { w.nextUrgent() },
		"done":         func(t *rapid.T) { w.done(pick(t, len(w.flights)), nil) },
		"done as well": func(t *rapid.T) { w.done(pick(t, len(w.flights)), nil) },
		"capture more": w.capture,
		"refer":        w.refer,
		"own":          w.own,
		"disown":       func(t *rapid.T) { w.disown(w.owned(t)) },
		"use":          w.use,
		"pin":          w.pin,
		"unpin":        func(t *rapid.T) { w.unpin(pick(t, len(w.pins))) },
		"relocate":     w.relocate,
		"need":         w.need,
		"need no more": w.needNoMore,
		"need parts":   w.needParts,
		"recode":       w.recode,
		"restore more": w.restore,
		"next":         func(t *rapid.T) { w.next(Down); w.next(Up) },
		"next is queued": func(t *rapid.T) {
			if !w.next(Up) {
				t.Skip("none")
			}
			if x := w.flights[len(w.flights)-1]; x.Kind == Load {
				w.queue(x)
			}
		},
		"fail": func(t *rapid.T) {
			i := pick(t, len(w.flights))
			errs := []error{syscall.EIO, syscall.ENOSPC}
			if x := w.flights[i]; x.Kind == Flush && x.Rec.gone {
				errs = append(errs, ErrStopped)
			}
			w.done(i, rapid.SampledFrom(errs).Draw(t, "error"))
		},
		"put aside": func(t *rapid.T) {
			x := w.flights[pick(t, len(w.flights))]
			if rapid.Bool().Draw(t, "again") {
				w.e.TakeUp(w.now, x)
			} else {
				w.e.PutAside(x)
			}
		},
		"fail when given":      func(t *rapid.T) { w.failWhenGiven(t) },
		"fail when given, too": func(t *rapid.T) { w.failWhenGiven(t) },
		"queue": func(t *rapid.T) {
			x := w.flights[pick(t, len(w.flights))]
			if x.Kind != Load || x.Early {
				t.Skip("no load")
			}
			w.queue(x)
		},
		"shrink": func(t *rapid.T) {
			i := w.resizable(t)
			w.e.Shrink(w.now, i, rapid.Int64Range(0, w.e.Capacity(i)).Draw(t, "capacity"))
		},
		"grow": func(t *rapid.T) {
			i := w.resizable(t)
			w.grow(i, w.e.Capacity(i)+rapid.Int64Range(0, 20).Draw(t, "more"))
		},
		"drain": func(t *rapid.T) {
			w.e.Drain(w.now, w.resizable(t), rapid.IntRange(0, 4).Draw(t, "steps"))
		},
		"give back": func(t *rapid.T) { w.giveBack(w.resizable(t)) },
		"quiet":     func(t *rapid.T) { w.quiet() },
		"":          func(t *rapid.T) { w.observe(); w.check() },
	}
	w.cat.acts(all)
	return all
}

// recount runs the recount of flushable bytes at an arbitrary time.
func (w *world) recount(t *rapid.T) {
	if k := rapid.IntRange(0, MaxTiers).Draw(t, "link"); k < len(w.e.links) {
		w.e.recount(w.e.links[k])
	}
}

// clear drops all checkpoints of a history.
func (w *world) clear(hi int) {
	w.cat.clear(hi)
	clear(w.truth[hi])
	w.e.Clear(w.now, w.hists[hi])
}

// failWhenGiven gives restores the bytes that a load has queued, before the load fails.
func (w *world) failWhenGiven(t *rapid.T) {
	if !w.next(Up) {
		t.Skip("none")
	}
	x := w.flights[len(w.flights)-1]
	if x.Kind != Load || x.Rec.Hist.anonymous {
		return
	}
	w.queue(x)
	again := func() {
		for range rapid.IntRange(0, 2).Draw(t, "restores") {
			w.restoreOf(t, w.index(x.Rec.Hist), x.Rec.Key)
		}
	}
	again()
	w.done(len(w.flights)-1, syscall.EIO)
	again()
}

// quiet ends everything that ends by itself: transfers and copies. Afterwards, only operations that the application itself delays may still wait.
func (w *world) quiet() {
	for round := 0; ; round++ {
		if round > 10_000 {
			w.fatalf("the engine never comes to rest")
		}
		w.observe()
		w.check()
		switch {
		case w.next(Up) || w.next(Down):
		case len(w.flights) > 0:
			w.done(0, nil)
		case w.prove():
		case len(w.proofs) > 0:
			w.proved(0, true)
		case len(w.readings) > 0:
			w.endsReading(0)
		case w.drain():
		case w.endOne():
		case w.cat != nil && len(w.cat.drops) > 0:
			w.cat.dropped(0)
		case w.e.Pending(anyUp) || w.e.Pending(anyDown): // an attempt has denied a claim, which made work for others
		default:
			w.observe()
			w.check()
			w.nobodyWaits()
			w.nothingLeaves()
			return
		}
	}
}

// endOne ends one copy that a caller is making.
func (w *world) endOne() bool {
	for _, c := range w.captures {
		if c.Phase == Ready {
			w.endCapture(c, true)
			return true
		}
	}
	for _, g := range w.restores {
		if g.Phase == Ready && (!g.handed || g.into) {
			w.hand(g)
			return true
		}
	}
	if len(w.pins) > 0 {
		w.unpin(0)
		return true
	}
	return false
}

func (w *world) nobodyWaits() {
	for _, c := range w.captures {
		if c.Phase == Waiting && !c.patient {
			w.fatalf("at rest, and the capture of %v waits", c.Rec.Key)
		}
		if c.Phase == Waiting {
			if why := w.movable(c.Tier, c.Rec); why != "" && w.first(c.claim, c.Tier) {
				w.fatalf("at rest, and the patient capture of %v waits, but %s", c.Rec.Key, why)
			}
		}
	}
	for _, g := range w.restores {
		if g.Phase == Waiting && !g.patient && !w.patience(g.Rec) {
			w.fatalf("at rest, and the restore of %v waits", g.Rec.Key)
		}
	}
	for _, x := range w.waits {
		patience := false
		for _, r := range x.recs {
			patience = patience || w.patience(r)
		}
		if x.Phase == Waiting && !patience {
			w.fatalf("at rest, and a wait for tier %d goes on%s", x.Tier, w.state())
		}
	}
}

// patience tells whether r waits for room that only the application can make.
func (w *world) patience(r *Record) bool {
	for _, c := range w.captures {
		if c.Rec == r && c.Phase == Waiting && c.patient {
			return true
		}
	}
	for _, g := range w.restores {
		if g.Rec == r && g.Phase == Waiting && g.patient {
			return true
		}
	}
	return false
}

func (w *world) first(c *claim, t int) bool {
	x, ok := w.e.tiers[t].claims.peek()
	return ok && x == c
}

// finish ends all leases, then all checkpoints. Nothing may be left.
func (w *world) finish() {
	w.quiet()
	for len(w.restores) > 0 {
		w.end(w.restores[0])
		w.observe()
		w.check()
	}
	w.quiet()
	for _, c := range w.captures {
		if c.Phase == Waiting && w.first(c.claim, c.Tier) && w.movable(c.Tier, c.Rec) != "" {
			w.fatalf("no lease is left, and the capture of %v waits", c.Rec.Key)
		}
	}
	for len(w.captures) > 0 {
		w.cancelCapture(w.captures[0])
		w.observe()
		w.quiet()
	}
	for i := range w.hists {
		w.clear(i)
	}
	w.quiet()
	for _, r := range w.truth[len(w.hists)] {
		w.disown(r)
	}
	w.quiet()
	if w.cat != nil {
		w.cat.emptied()
	}
	for t := range w.e.tiers {
		if u := w.e.Use(t); w.catalogued(t) {
			retired := w.cat.retiredBytes(t)
			if u.Used != 0 || u.Held != 0 || u.Fragments != 0 || u.Capacity != w.e.Capacity(t)-retired {
				w.fatalf("everything was dropped, %d bytes were retired, and in tier %d there is %+v", retired, t, u)
			}
		} else if u.Used != 0 || u.Fragments != 0 || w.e.Reach(t) != w.e.Capacity(t) {
			w.fatalf("tier %d is not empty after everything was dropped: %+v", t, u)
		}
	}
	if len(w.e.waiting) > 0 || len(w.e.durable) > 0 && len(w.waits) > 0 {
		w.fatalf("%d restores and %d waits are left", len(w.e.waiting), len(w.waits))
	}
	for _, r := range w.born {
		if w.forgotten[r] != 1 {
			w.fatalf("%v was forgotten %d times", r.Key, w.forgotten[r])
		}
	}
}

// state describes the engine for a failure's message.
func (w *world) state() string {
	s := ""
	for t, tr := range w.e.tiers {
		s += fmt.Sprintf("\ntier %d version %d claims %d:", t, tr.version, tr.claims.len())
		for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
			f := tr.table.At(id)
			s += fmt.Sprintf(" [%d class %d %s", f.Size, f.Class, f.State)
			if o := f.Owner; o != nil {
				s += fmt.Sprintf(" %v pins %d transfers %d queued %b runs %b loads %b stuck %b wants %b gone %v", name(o), f.Pins, f.Transfers, o.queuedOn, o.runs, o.loadsOn, o.stuckOn, o.wants, o.gone)
			}
			s += "]"
		}
	}
	for k, l := range w.e.links {
		s += fmt.Sprintf("\nlink %d queued %d flushing %d loads %d refused %v paused %d stuck %d", k, l.queued, l.flushing, l.loads, l.refused, l.paused, l.stuck)
	}
	return s
}
