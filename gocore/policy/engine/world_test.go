package engine

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"pgregory.net/rapid"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/plan"
)

// world drives an engine as the store does, with tiers whose bytes are numbers. Each byte of a checkpoint is its content's number. So a slot that is
// given away too early, or a transfer from the wrong offset, shows as a wrong number.
type world struct {
	t         *rapid.T
	e         *Engine
	now       int64
	bytes     [][]int // by tier
	content   int     // the last content number given
	hists     []*History
	truth     []map[model.Key]*Record // the restorable checkpoints, by history
	droppable []map[model.Key]bool    // keys that a plan was told to drop, by history
	captures  []*taken
	restores  []*given
	pins      []*pinned
	waits     []*waited
	flights   []*Transfer
	proofs    []Verification
	readings  []Reading
	parts     map[*Record][]*Object // what every checkpoint consists of
	encoded   map[inForm]int64      // bytes that an encoder makes
	forgotten map[*Record]int
	gone      map[*Record]bool // seen gone: no flush of them may start any more
	born      []*Record
	woken     map[any]bool
	cfg       Config
	cat       *catalog // nil: no tier is durable
}

// inForm is an object in a form.
type inForm struct {
	of   *Record
	form Form
}

type taken struct {
	*Capture
	content int
	phase   Phase // as last seen
	patient bool
}

type given struct {
	*Restore
	content int             // the content that it must deliver
	fetched map[*Object]int // the contents that fetches delivered
	phase   Phase
	handed  bool
	spoiled bool // the bytes that it was given before a load ended are not what was captured
	into    bool
	patient bool
}

type waited struct {
	*Wait
	phase  Phase
	recs   []*Record
	failed bool
}

// content returns the version of a record whose bytes stand for a number.
func content(number int) *checkpoint.Version { return &checkpoint.Version{Time: int64(number)} }

// contentOf returns the number that a record's bytes stand for.
func contentOf(r *Record) int { return int(r.Version.Time) }

func newWorld(t *rapid.T, cfg Config) *world {
	w := plainWorld(t, cfg)
	if w.cfg.Tiers[len(cfg.Tiers)-1].Remote && rapid.Bool().Draw(t, "catalog") {
		someDurable(t, &w.cfg)
		w.cat = newCatalog(w)
	}
	w.start()
	return w
}

// plainWorld is a world without an engine, and without a catalog.
func plainWorld(t *rapid.T, cfg Config) *world {
	return &world{t: t, cfg: cfg, parts: map[*Record][]*Object{}, encoded: map[inForm]int64{}, forgotten: map[*Record]int{}, gone: map[*Record]bool{}, woken: map[any]bool{}}
}

// start makes the engine, and tiers of unknown bytes.
func (w *world) start() {
	cfg, t := w.cfg, w.t
	cfg.Forget = func(r *Record) { w.forgotten[r]++ }
	cfg.Trace = w.traced
	if rapid.Bool().Draw(t, "predicts") {
		cfg.Expect = func(*Record, Form) int64 { return rapid.Int64Range(0, 10).Draw(w.t, "expected") }
	}
	if w.cat != nil {
		cfg.Catalog = w.cat
	}
	w.e = New(cfg)
	if rapid.Bool().Draw(t, "large") { // treat tables as large ones, of which a decision scans a part
		w.e.wholeTable, w.e.scanLimit = rapid.IntRange(0, 5).Draw(t, "whole"), rapid.IntRange(1, 4).Draw(t, "scan")
	}
	w.e.alwaysDown = rapid.Bool().Draw(t, "always down")
	w.e.streamFrom = rapid.Int64Range(0, 5).Draw(t, "stream from")
	w.bytes, w.hists, w.truth, w.droppable = nil, nil, nil, nil
	for i := range w.e.tiers {
		w.bytes = append(w.bytes, make([]int, w.e.Capacity(i)))
	}
	for i := range 2 {
		w.hists = append(w.hists, w.e.History(fmt.Sprint("h", i)))
		w.truth = append(w.truth, map[model.Key]*Record{})
		w.droppable = append(w.droppable, map[model.Key]bool{})
	}
	w.truth = append(w.truth, map[model.Key]*Record{}) // of objects without a checkpoint
}

// someDurable makes the last tier durable, and perhaps the remote ones above it.
func someDurable(t *rapid.T, cfg *Config) {
	for i := len(cfg.Tiers) - 1; i >= 0 && cfg.Tiers[i].Remote; i-- {
		cfg.Tiers[i].Durable = true
		if rapid.IntRange(0, 2).Draw(t, "more") == 0 {
			return
		}
	}
}

// privates is the number of private tiers.
func (w *world) privates() (n int) {
	for _, c := range w.cfg.Tiers {
		if c.Private {
			n++
		}
	}
	return n
}

// someConfig draws a hierarchy of one to four tiers, mostly larger downwards, sometimes with several devices above.
func someConfig(t *rapid.T) Config {
	cfg := Config{
		Flush:      rapid.SampledFrom([]FlushMode{Lazy, Eager}).Draw(t, "flush"),
		Policy:     rapid.SampledFrom([]evict.Kind{evict.Score, evict.Score, evict.LRU, evict.FIFO}).Draw(t, "policy"),
		Prefetch:   rapid.IntRange(0, 4).Draw(t, "prefetch") > 0,
		Guess:      rapid.Bool().Draw(t, "guess"),
		VerifyFrom: rapid.SampledFrom([]int64{0, 1, 1, 5}).Draw(t, "prove"),
		Workers:    rapid.IntRange(0, 2).Draw(t, "workers"),
	}
	n := rapid.SampledFrom([]int{1, 2, 2, 2, 3, 3, 4}).Draw(t, "tiers")
	memories := rapid.SampledFrom([]int{2, 2, 1}).Draw(t, "memories")
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "devices") {
		cfg.Tiers = append(cfg.Tiers, TierConfig{
			Name: fmt.Sprint("d", i), Capacity: rapid.Int64Range(8, 40).Draw(t, "capacity"), WriteRate: 1e9, ReadRate: 2e9,
			Private: true, Device: rapid.IntRange(0, 4).Draw(t, "device") > 0,
		})
	}
	for i := range n {
		c := TierConfig{
			Name:     fmt.Sprint("t", i),
			Capacity: rapid.Int64Range(8, 40<<i).Draw(t, "capacity"),
			Grain:    rapid.SampledFrom([]int64{0, 1, 2, 4}).Draw(t, "grain"),
			Remote:   i >= memories || (i > 0 && i == n-1), WriteRate: 1e9, ReadRate: 2e9,
		}
		if n == 1 {
			c.Remote = rapid.IntRange(0, 3).Draw(t, "remote") == 0
		}
		if i == n-1 && rapid.Bool().Draw(t, "roomy") {
			c.Capacity = 1000
		}
		cfg.Tiers = append(cfg.Tiers, c)
	}
	return cfg
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format, args...)
}

func (w *world) hist(t *rapid.T) int { return rapid.IntRange(0, len(w.hists)-1).Draw(t, "history") }

func someKey(t *rapid.T) model.Key { return model.NumberKey(rapid.Int64Range(0, 7).Draw(t, "key")) }

// traced follows the removals that a plan orders.
func (w *world) traced(ev Event) {
	if ev.Kind != Dropped {
		return
	}
	for i, h := range w.hists {
		if h == ev.Rec.Hist && w.truth[i][ev.Rec.Key] == ev.Rec && w.droppable[i][ev.Rec.Key] {
			delete(w.truth[i], ev.Rec.Key)
		}
	}
}

// in is how a content number reads in a form. Raw bytes are the number itself, and garbage is garbage in every form.
func in(f Form, number int) int {
	if number < 0 {
		return number
	}
	return number + int(f)*1e6
}

// write sets every byte of a slot to a content number in the form of its tier.
func (w *world) write(t int, off int64, o *Object, number int) {
	if off%max(o.home.Align, 1) != 0 {
		w.fatalf("a slot at %d, wanted aligned to %d", off, o.home.Align)
	}
	for i := off; i < off+o.Bytes(t); i++ {
		w.bytes[t][i] = in(o.Form(t), number)
	}
}

// read checks that every byte of a slot is the object's, in the form of its tier.
func (w *world) read(why string, t int, off int64, o *Object) int {
	number := contentOf(o.home)
	for i := off; i < off+o.Bytes(t); i++ {
		if w.bytes[t][i] != in(o.Form(t), number) {
			w.fatalf("%s: tier %d, byte %d of %v: content %d, must be %d", why, t, i-off, name(o), w.bytes[t][i], in(o.Form(t), number))
		}
	}
	return number
}

// someShape draws how a checkpoint is kept: raw down to some tier, then encoded, then as a difference.
func (w *world) someShape(t *rapid.T, size int64) *Shape {
	if rapid.IntRange(0, 2).Draw(t, "shaped") > 0 {
		return nil
	}
	s := &Shape{}
	form, bytes := Raw, max(size, 1)
	for i := range w.e.tiers {
		if rapid.IntRange(0, 2).Draw(t, "other form") == 0 && form < Difference && (i == 0 || !w.cfg.Tiers[i].Private) {
			form, bytes = form+1, rapid.Int64Range(1, size+2).Draw(t, "bound")
		}
		s.Forms[i], s.Sizes[i], s.Stages[i] = form, bytes, rapid.SampledFrom([]Side{UpperSide, LowerSide}).Draw(t, "side")
	}
	return s
}

// exactly draws how many bytes a stage writes into the room that is reserved for them. An encoder does the same every time.
func (w *world) exactly(o *Object, t int) int64 {
	if o.Form(t) == Raw {
		return 0
	}
	if o.more.shape.known&(1<<t) != 0 {
		return o.Bytes(t)
	}
	of := inForm{o.home, o.Form(t)}
	if w.encoded[of] == 0 {
		w.encoded[of] = rapid.Int64Range(1, o.Bytes(t)).Draw(w.t, "exact")
	}
	return min(w.encoded[of], o.Bytes(t))
}

func (w *world) capture(t *rapid.T) {
	hi, k := w.hist(t), someKey(t)
	if rapid.IntRange(0, 9).Draw(t, "auto") == 0 {
		k = w.e.AutoKey(w.hists[hi])
		if w.truth[hi][k] != nil || w.cat.findable(hi, k) != nil {
			w.fatalf("%v is in use", k)
		}
	}
	most := int64(0)
	for _, tr := range w.e.tiers {
		most = max(most, tr.Capacity)
	}
	size := rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1, 8), rapid.Int64Range(0, 30), rapid.Int64Range(1, most+5)).Draw(t, "size")
	o := CaptureOptions{
		SourceStays: rapid.IntRange(0, 3).Draw(t, "stays") == 0, Patient: rapid.Bool().Draw(t, "patient"),
		Down: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, w.e.Tiers() - 1}).Draw(t, "down"), Top: rapid.IntRange(0, w.privates()).Draw(t, "top"),
	}
	w.content++
	body := content(w.content)
	old, row := w.truth[hi][k], w.cat.findable(hi, k)
	o.Shape = w.someShape(t, size)
	if o.Needs = w.someNeeds(t); o.Needs != nil {
		o.Top = int(o.Needs[0].top)
	}
	c, err := w.e.BeginCapture(w.now, w.hists[hi], k, size, rapid.SampledFrom([]int64{1, 1, 2, 4}).Draw(t, "align"), body, o)
	if err != nil {
		for _, tr := range w.e.tiers {
			if tr.listed && o.Needs != nil {
				continue
			}
			if g := max(tr.Grain, 1); (tr.index == o.Top || !tr.Private && tr.index > o.Top) && (bytesIn(o.Shape, tr.index, size)+g-1)/g*g <= tr.Capacity {
				w.fatalf("%d bytes refused for ever, tier %d has %d: %v", size, tr.index, tr.Capacity, err)
			}
		}
		return
	}
	c.Notify = c
	w.born = append(w.born, c.Rec)
	w.parts[c.Rec] = append(slices.Clip(o.Needs), &c.Rec.own)
	w.cat.numbered(c.Rec)
	if c.Phase == Waiting { // checked when it happens: the same call may make room afterwards
		denied := c.claim.denied
		c.claim.denied = func(now int64, err error) {
			w.refused(c.Tier, c.Rec, err)
			denied(now, err)
		}
	}
	if c.Phase == Ended {
		if o.Needs == nil { // otherwise its end may have freed what it needed, which has let others go on
			w.refused(c.Tier, c.Rec, c.Err)
		}
		w.denied("capture", c.Rec, c.Err)
		if now := w.hists[hi].Get(k); row != nil && old == nil {
			if now == nil || now != row.owner {
				w.fatalf("a capture that was refused at once changed what %v is in the catalog", k)
			}
		} else if now != old && (old == nil || old.own.captured) { // otherwise the same call may have refused the old one
			w.fatalf("a capture that was refused at once changed what %v is", k)
		}
		return
	}
	if c.early {
		w.truth[hi][k] = c.Rec
	}
	w.captures = append(w.captures, &taken{Capture: c, content: w.content, phase: c.Phase, patient: o.Patient})
}

// bytesIn is how much room a checkpoint of so many raw bytes asks for in tier t.
func bytesIn(s *Shape, t int, size int64) int64 {
	if s == nil || s.Forms[t] == Raw {
		return max(size, 1)
	}
	return max(s.Sizes[t], 1)
}

// endCapture ends a caller's copy into the cache.
func (w *world) endCapture(c *taken, ok bool) {
	if ok {
		c.Wrote(w.exactly(&c.Rec.own, c.Tier))
		w.write(c.Tier, w.e.row(&c.Rec.own, c.Tier).Offset, &c.Rec.own, c.content)
	}
	w.e.EndCapture(w.now, c.Capture, ok)
	c.phase = Ended
	if ok && !c.Rec.gone { // otherwise a later version has taken its room in the same call, and the catalog may have been asked for the key since
		w.truth[w.index(c.Rec.Hist)][c.Rec.Key] = c.Rec
	}
}

func (w *world) index(h *History) int {
	for i := range w.hists {
		if w.hists[i] == h {
			return i
		}
	}
	return len(w.hists)
}

func (w *world) cancelCapture(c *taken) {
	was := c.Phase
	if w.e.CancelCapture(w.now, c.Capture) {
		if was == Waiting {
			w.unpublished(c.Rec)
		}
		if c.Phase != Ended {
			w.fatalf("a capture that was cancelled is in phase %d", c.Phase)
		}
		c.phase = Ended
	}
}

// showCapture makes a capture visible whose transfer has its bytes.
func (w *world) showCapture(t *rapid.T, c *taken) {
	i := slices.IndexFunc(w.flights, func(x *Transfer) bool { return x.Capture == c.Capture })
	if i < 0 || c.Rec.gone || c.early {
		t.Skip("nobody has its bytes, or nobody may see it, or everybody can")
	}
	w.e.Show(w.now, c.Capture)
	w.truth[w.index(c.Rec.Hist)][c.Rec.Key] = c.Rec
	if w.cat != nil && rapid.Bool().Draw(t, "committed") {
		w.cat.commitEarly(w.flights[i])
	}
}

// unpublished records that a capture failed.
func (w *world) unpublished(r *Record) {
	if i := w.index(r.Hist); w.truth[i][r.Key] == r {
		delete(w.truth[i], r.Key)
	}
}

func (w *world) restore(t *rapid.T) { w.restoreOf(t, w.hist(t), someKey(t)) }

func (w *world) restoreOf(t *rapid.T, hi int, k model.Key) {
	into := rapid.Bool().Draw(t, "into")
	o := RestoreOptions{
		Last: rapid.IntRange(0, 3).Draw(t, "last") == 0, Peek: rapid.IntRange(0, 5).Draw(t, "peek") == 0,
		Into: into, Streams: into && rapid.Bool().Draw(t, "streams"), Patient: rapid.Bool().Draw(t, "patient"), Partial: rapid.IntRange(0, 5).Draw(t, "partial") == 0,
	}
	w.yielded() // the same act may have failed a transfer, and then a capture takes the room of the earlier version
	want, row := w.truth[hi][k], w.cat.findable(hi, k)
	r, err := w.e.BeginRestore(w.now, w.hists[hi], k, o)
	if want == nil && row != nil {
		want = row.owner
	}
	if want == nil {
		if !errors.Is(err, ErrNotFound) {
			w.fatalf("restore of %v, which is not there: %v", k, err)
		}
		return
	}
	if r == nil || r.Rec != want {
		w.fatalf("restore of %v gives %v, %v", k, r, err)
	}
	r.Notify = r
	if r.Phase == Ended {
		w.denied("restore", r.Rec, r.Err)
		return
	}
	w.restores = append(w.restores, &given{
		Restore: r, content: contentOf(want), phase: r.Phase, into: into, patient: o.Patient,
	})
}

// hand gives the caller of a Ready restore its bytes; a copy out ends there, a lease goes on.
func (w *world) hand(g *given) {
	if g.Err == nil {
		w.look(g)
		w.exclusive(g)
		w.e.HandOver(w.now, g.Restore)
		if g.Last {
			w.unpublished(g.Rec)
		}
	}
	g.handed = true
	if g.into || g.Direct || g.Err != nil {
		w.end(g)
	}
}

// exclusive checks that bytes which the caller of a restore may write to are no other's.
func (w *world) exclusive(g *given) {
	if !w.e.Exclusive(g.Restore) {
		return
	}
	for _, p := range w.pins {
		if slices.ContainsFunc(p.r.held, func(h held) bool { return slices.Contains(g.held, h) }) {
			w.fatalf("%v is pinned by another reader, and one may write to it", p.of.Key)
		}
	}
	for _, other := range w.restores {
		for _, o := range w.of(g.Rec) {
			if shares := slices.Contains(w.of(other.Rec), o); shares && other != g && other.Phase == Ready && !other.Direct && !g.Direct && !other.moved(g) {
				w.fatalf("%v is read by two restores, and one may write to it", name(o))
			}
		}
	}
	for _, r := range w.born {
		for _, o := range w.of(g.Rec) {
			if r != g.Rec && !r.gone && slices.Contains(w.of(r), o) {
				w.fatalf("%v serves %v and %v, and a restore of one may write to it", name(o), r.Key, g.Rec.Key)
			}
		}
	}
}

// moved tells whether two restores read different places.
func (g *given) moved(other *given) bool {
	return !slices.ContainsFunc(g.held, func(h held) bool { return slices.Contains(other.held, h) })
}

// look compares the bytes of a restore with the captured ones.
func (w *world) look(g *given) {
	if g.spoiled {
		return
	}
	if contentOf(g.Rec) != g.content || !slices.Equal(g.Rec.Objects(), w.of(g.Rec)) {
		w.fatalf("%v is not what it was any more", g.Rec.Key)
	}
	for _, o := range w.of(g.Rec) {
		if g.Direct {
			if want := contentOf(o.home); g.fetched[o] != want {
				w.fatalf("fetched %d, must be %d", g.fetched[o], want)
			}
			continue
		}
		t, off := w.e.Place(g.Restore, slices.Index(w.of(g.Rec), o))
		w.read("restore", t, off, o)
	}
}

func (w *world) end(g *given) {
	if g.phase == Ready && g.Err == nil {
		w.look(g) // a lease is exact to its end
	}
	w.e.EndRestore(w.now, g.Restore)
	if !g.Direct && g.Phase != Ended {
		w.fatalf("a restore that was ended is in phase %d", g.Phase)
	}
	g.phase = g.Phase
}

func (w *world) hints(t *rapid.T) {
	hi := w.hist(t)
	var hints []plan.Hint
	for range rapid.IntRange(1, 8).Draw(t, "hints") {
		h := plan.Hint{Op: rapid.SampledFrom([]plan.Op{plan.Restore, plan.Restore, plan.Restore, plan.Last, plan.Drop, plan.Advance}).Draw(t, "op"),
			Key: model.NumberKey(rapid.Int64Range(0, 9).Draw(t, "key"))}
		switch h.Op {
		case plan.Drop:
			w.droppable[hi][h.Key] = true
		case plan.Advance:
			h.Steps = 3
		}
		hints = append(hints, h)
	}
	w.e.Hint(w.now, w.hists[hi], hints)
}

func (w *world) await(t *rapid.T) {
	var recs []*Record
	for _, m := range w.truth {
		for _, k := range keys(m) {
			if rapid.Bool().Draw(t, "waits") {
				recs = append(recs, m[k])
			}
		}
	}
	x := w.e.Await(w.now, recs, rapid.IntRange(0, w.e.Tiers()-1).Draw(t, "tier"))
	x.Notify = x
	w.waits = append(w.waits, &waited{Wait: x, phase: x.Phase, recs: recs, failed: x.Err != nil})
	w.arrived(w.waits[len(w.waits)-1])
}

// arrived checks a wait that has ended: without an error, every live version has reached the tier.
func (w *world) arrived(x *waited) {
	if x.Phase != Ended || x.Err != nil || x.Notify == nil {
		return
	}
	for _, r := range x.recs {
		if !r.gone && !w.e.reached(r, x.Tier) {
			w.fatalf("a wait for tier %d ended without %v", x.Tier, r.Key)
		}
	}
}

func keys(m map[model.Key]*Record) (list []model.Key) {
	for n := range int64(1000) {
		if k := model.NumberKey(n); m[k] != nil {
			list = append(list, k)
		}
		if len(list) == len(m) {
			break
		}
	}
	return list
}

// next takes a transfer; false when there is none.
func (w *world) next(d Direction) bool {
	return w.took(d, w.e.Next(w.now, Want{Direction: d, Link: AnyLink}))
}

// nextUrgent takes a transfer that a restore waits for.
func (w *world) nextUrgent() {
	x := w.e.Next(w.now, Want{Direction: Up, Link: AnyLink, Only: Awaited})
	if x == nil && w.e.Pending(Want{Direction: Up, Link: AnyLink, Only: Awaited}) {
		w.fatalf("nobody is waited for, but something is pending%s", w.state())
	}
	if x == nil {
		return
	}
	if x.Kind != Fetch && !x.Urgent {
		w.fatalf("nobody waits for %v", x.Rec.Key)
	}
	w.took(Up, x)
}

func (w *world) took(d Direction, x *Transfer) bool {
	w.observe()
	if x == nil {
		if w.e.Pending(Want{Direction: d, Link: AnyLink}) {
			w.fatalf("nothing to do in direction %d, but something is pending%s", d, w.state())
		}
		return false
	}
	if (x.Kind == Flush || x.Kind == Spill || x.duplicate != nil) != (d == Down) {
		w.fatalf("a transfer of kind %d goes in direction %d", x.Kind, d)
	}
	if (x.Kind == Flush || x.Kind == Spill) && (w.gone[x.Rec] || x.Obj.gone) {
		w.fatalf("%v is gone, and a transfer of it down begins", x.Rec.Key)
	}
	w.flights = append(w.flights, x)
	return true
}

// queue reports all copies of a load as queued, so that its bytes count as present: in this world they are.
func (w *world) queue(x *Transfer) {
	counts := !x.Obj.gone && x.To == x.Rec.Top()
	if counts {
		w.write(x.To, x.ToOff, x.Obj, w.read("load", x.From, x.FromOff, x.Obj))
	}
	w.e.Queued(w.now, x)
	if x.Early != counts {
		w.fatalf("%v is gone: %v; queued for tier %d: %v", x.Rec.Key, x.Rec.gone, x.To, x.Early)
	}
	for _, r := range x.Obj.Refs() {
		if counts && len(w.e.waiting[r]) > 0 && w.e.Complete(r, x.To) {
			w.fatalf("restores still wait for %v, which has been queued", r.Key)
		}
	}
}

// spoil records the restores that were given the bytes of a load that fails in the end.
func (w *world) spoil(x *Transfer) {
	for _, g := range w.restores {
		if slices.Contains(w.of(g.Rec), x.Obj) && g.Phase == Ready && !g.Direct && g.Tier == x.To {
			g.spoiled = true
		}
	}
}

// done ends the transfer in flight number i.
func (w *world) done(i int, err error) {
	x := w.flights[i]
	w.flights = append(w.flights[:i], w.flights[i+1:]...)
	if w.cat != nil && w.cat.committed[x] {
		err = nil
	}
	if x.Early && err != nil {
		w.spoil(x)
	}
	if err == nil && w.outgrows(x) {
		w.write(x.To, x.ToOff, x.Obj, -1)
		w.e.Enlarge(w.now, x)
		return
	}
	if err == nil && x.Early {
		w.read("queued", x.To, x.ToOff, x.Obj)
	} else if err == nil {
		number := 0
		if x.From >= 0 {
			number = w.read("transfer", x.From, x.FromOff, x.Obj)
		}
		w.staged(x)
		if x.duplicate != nil {
			w.write(x.To, x.ToOff, x.duplicate, number)
		}
		switch x.Kind {
		case Flush, Load:
			w.write(x.To, x.ToOff, x.Obj, number)
		case Spill:
			w.write(x.To, x.ToOff, x.Obj, contentOf(x.Rec))
		case Fetch:
			for _, g := range w.restores {
				if g.Restore == x.Restore {
					g.brought(x.Obj, number)
				}
			}
		}
	} else if x.duplicate != nil {
		w.write(x.To, x.ToOff, x.duplicate, -1)
	} else if x.To >= 0 {
		w.write(x.To, x.ToOff, x.Obj, -1) // a failing transfer leaves garbage
	}
	after := w.cat.ends(x, err)
	was := copyOf(w.e, x)
	if x.Kind == Flush && x.Obj.Source(x.From) != nil && w.now%2 == 0 {
		x.Loosen()
	}
	w.e.Done(w.now, x, err)
	if is := copyOf(w.e, x); is.State.HasBytes() && (is.Verified != was.Verified || is.Born != was.Born) {
		w.fatalf("%v was %+v before it was moved, and is %+v", name(x.Obj), was, is)
	}
	after()
	switch {
	case x.Kind == Spill && err != nil:
		w.unpublished(x.Rec)
	case x.Kind == Spill && !x.Rec.gone && !x.Capture.early:
		w.truth[w.index(x.Rec.Hist)][x.Rec.Key] = x.Rec
	}
}

// outgrows draws whether an encoder comes to more bytes than were predicted.
func (w *world) outgrows(x *Transfer) bool {
	if x.Kind != Flush || x.Stage != Encoding || w.cat != nil && w.cat.committed[x] || w.encoded[inForm{x.Obj.home, x.Obj.Form(x.To)}] != 0 {
		return false
	}
	s := x.Obj.shape()
	return s.known&(1<<x.To) == 0 && s.Sizes[x.To] < s.bounds[x.To] && rapid.Bool().Draw(w.t, "outgrows")
}

// staged checks what a transfer does to the bytes, and draws how many it writes.
func (w *world) staged(x *Transfer) {
	if x.duplicate != nil {
		if x.Kind == Encode {
			x.Wrote(w.exactly(x.duplicate, x.To))
		}
		return
	}
	if change := x.Obj.Form(x.From) != x.Obj.Form(x.To); change != (x.Stage != Verbatim) {
		w.fatalf("%v goes from tier %d to tier %d, and the stage is %d", name(x.Obj), x.From, x.To, x.Stage)
	}
	if least, most := min(x.Reads(), x.Writes()), max(x.Reads(), x.Writes()); x.Sends() < least || x.Sends() > most || x.Stage == Verbatim && least != most {
		w.fatalf("%v: a transfer reads %d, sends %d and writes %d", name(x.Obj), x.Reads(), x.Sends(), x.Writes())
	}
	if x.To >= 0 && x.Stage != Verbatim {
		x.Spent(rapid.Int64Range(0, w.now-x.began).Draw(w.t, "spent"))
		x.Wrote(w.exactly(x.Obj, x.To))
	}
}

// copyOf is the row of a relocation's copy.
func copyOf(e *Engine, x *Transfer) (row fragment.Fragment[*Object]) {
	if x.Kind == Relocate && x.Obj.copies[x.From] != fragment.None {
		row = *e.row(x.Obj, x.From)
	}
	return row
}

// observe records the changes of the last call, and checks that the waiting operations were woken.
func (w *world) observe() {
	for _, n := range w.e.TakeWoken() {
		w.woken[n] = true
	}
	told := func(n any, was, is Phase) {
		if was != is && !w.woken[n] {
			w.fatalf("%T went from phase %d to %d and nobody was told", n, was, is)
		}
	}
	w.yielded()
	live := w.captures[:0]
	for _, c := range w.captures {
		told(c.Capture, c.phase, c.Phase)
		if c.phase == Waiting && c.Phase == Ended && c.Err != nil {
			w.unpublished(c.Rec)
			w.denied("capture", c.Rec, c.Err)
		}
		if c.phase = c.Phase; c.phase != Ended {
			live = append(live, c)
		}
	}
	w.captures = live
	open := w.restores[:0]
	for _, g := range w.restores {
		told(g.Restore, g.phase, g.Phase)
		if g.phase == Waiting && g.Phase == Ended {
			w.denied("restore", g.Rec, g.Err)
			if at := (*TierError)(nil); errors.As(g.Err, &at) && errors.Is(at, syscall.EIO) && !g.Rec.gone && !w.below(g.Rec, at.Tier) {
				w.fatalf("the restore of %v fails, as tier %d does, and tiers above have the bytes%s", g.Rec.Key, at.Tier, w.state())
			}
		}
		if g.phase = g.Phase; g.phase != Ended && !g.over {
			open = append(open, g)
		}
	}
	w.restores = open
	still := w.waits[:0]
	for _, x := range w.waits {
		told(x.Wait, x.phase, x.Phase)
		if x.Err != nil && !x.failed {
			x.failed = true
			w.cat.hopeless(x)
		}
		if w.arrived(x); x.Phase != Ended {
			still = append(still, x)
		}
	}
	w.waits = still
	w.cat.observed()
	clear(w.woken)
	for _, r := range w.born {
		if r.gone {
			w.gone[r] = true
		}
	}
}

// yielded records versions that were given up for the room of their replacements.
func (w *world) yielded() {
	for _, c := range w.captures {
		i := w.index(c.Rec.Hist)
		if old := w.truth[i][c.Rec.Key]; old != nil && old.gone && c.Rec.own.copies[c.Tier] != fragment.None {
			delete(w.truth[i], c.Rec.Key)
		}
	}
}

// refused checks that a tier reported full is full.
func (w *world) refused(t int, r *Record, err error) {
	if !errors.Is(err, ErrFull) || !w.e.tiers[t].fits(&r.own) { // a shrunk tier may have become too small
		return
	}
	if w.cat != nil && len(w.cat.drops) > 0 {
		w.fatalf("the capture of %v is refused by tier %d, while %d drops are under way%s", r.Key, t, len(w.cat.drops), w.state())
	}
	if w.e.progressing() {
		w.fatalf("the capture of %v, %d bytes, is refused by tier %d while something moves%s", r.Key, r.Size, t, w.state())
	}
	if why := w.movable(t, r); why != "" {
		w.fatalf("the capture of %v, %d bytes, is refused by tier %d (%v), but %s%s", r.Key, r.Size, t, err, why, w.state())
	}
}

// denied checks why an operation failed.
func (w *world) denied(what string, r *Record, err error) {
	var at *TierError
	switch {
	case errors.Is(err, ErrDropped):
		if !r.gone {
			w.fatalf("%s of %v fails because it was dropped, which is not so", what, r.Key)
		}
	case errors.As(err, &at) && errors.Is(err, ErrFull):
	case errors.As(err, &at) && (errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC)):
	case err == syscall.EIO || err == syscall.ENOSPC: // the error of a spill, or of a capture acknowledged before it
	default:
		w.fatalf("%s of %v fails with %v", what, r.Key, err)
	}
}

// name is what messages call an object.
func name(o *Object) string { return o.home.Hist.Name + "/" + o.home.Key.String() }

// movable tells how room in tier t could be made, or "".
func (w *world) movable(t int, r *Record) string {
	if w.windowIn(t, &r.own, func(f *fragment.Fragment[*Object]) bool {
		c := f.Owner
		return f.Class == fragment.Gap || f.Class == fragment.Free || (f.Class == fragment.Promised && w.e.lower(c, t) >= 0)
	}) {
		return "there is room"
	}
	below := w.e.Below(t)
	if below < 0 || w.e.Below(below) >= 0 {
		return "" // between memories, waiting loads may keep others from being flushed
	}
	can := false
	w.e.links[t].dirty.each(func(d *Object) {
		flushable := w.windowIn(below, d, func(f *fragment.Fragment[*Object]) bool {
			return f.Class == fragment.Gap
		})
		if flushable && !d.isNeeded(t) && w.windowIn(t, &r.own, func(f *fragment.Fragment[*Object]) bool {
			return f.Class == fragment.Gap || f.Class == fragment.Free || f.Owner == d
		}) {
			can = true
		}
	})
	if can {
		return "one flush would make room"
	}
	return ""
}

// windowIn tells whether the fragments of tier t that may be evicted include room for o.
func (w *world) windowIn(t int, o *Object, may func(*fragment.Fragment[*Object]) bool) bool {
	return w.window(t, w.e.tiers[t].need(o), may)
}

// window tells whether the fragments of tier t that may be evicted include so much room.
func (w *world) window(t int, n need, may func(*fragment.Fragment[*Object]) bool) bool {
	tr, at := w.e.tiers[t], int64(-1)
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		f := tr.table.At(id)
		if tr.behind(f) {
			return false
		}
		if !may(f) {
			at = -1
			continue
		}
		if at < 0 {
			at = f.Offset + fragment.Padding(f.Offset, n.align)
		}
		if f.Offset+f.Size-at >= n.size {
			return true
		}
	}
	return false
}

// brought records what a fetch has delivered.
func (g *given) brought(o *Object, number int) {
	if g.fetched == nil {
		g.fetched = map[*Object]int{}
	}
	g.fetched[o] = number
}
