package engine

import (
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
	"velocpy/gocore/policy/plan"
)

// Phase is the progress of an operation.
type Phase uint8

// Waiting: for room or a transfer. Ready: the caller has to copy in or out. Ended: the operation is over.
const (
	Waiting Phase = iota
	Ready
	Ended
)

// Capture is one checkpoint being taken. While it is Ready, the caller copies the bytes to Offset of Tier and calls EndCapture. For a Spill, a
// transfer copies them straight from the caller's memory; it is Ended when the transfer is done.
type Capture struct {
	Rec     *Record
	Tier    int
	Phase   Phase
	Spill   bool
	Err     error
	Notify  any   // handed to TakeWoken when Phase changes after BeginCapture returned
	home    int   // the tier that it would be captured in if there were room
	ready   int64 // when it became Ready
	claim   *claim
	quiet   bool
	early   bool // visible to restores before its bytes are in a tier: copy=False
	stays   bool // CaptureOptions.SourceStays
	patient bool
	wrote   int64 // bytes that its caller has written; 0: all of the room
}

// CaptureOptions are the caller's options.
type CaptureOptions struct {
	// SourceStays says that the source does not change until the bytes are captured. A transfer may read it later, if the capture is a Spill.
	SourceStays bool
	Down        int    // flush it to this tier at once; 0: no request
	Top         int    // the fastest tier that it may be in: a private one, or the first shared one
	Patient     bool   // wait for room even if only the application can make some
	Shape       *Shape // how it is kept in each tier; nil: raw everywhere
	// Needs are objects that a restore needs before the one that the capture places: what a difference is against.
	Needs []*Object
}

// BeginCapture starts a checkpoint of size bytes. It fails at once when no tier is large enough.
func (e *Engine) BeginCapture(now int64, h *History, k model.Key, size, align int64, v *checkpoint.Version, o CaptureOptions) (*Capture, error) {
	if len(o.Needs) > 0 {
		if err := referable(o.Needs); err != nil {
			return nil, err
		}
		o.Top = int(o.Needs[0].top)
	}
	rec := e.newRecord(h, k, size, align, v)
	rec.top, rec.own.top = uint8(o.Top), uint8(o.Top)
	rec.own.reform(o.Shape)
	if len(o.Needs) > 0 {
		e.chain(rec, append(slices.Clip(o.Needs), &rec.own))
	}
	t, err := e.captureTier(rec, o.SourceStays)
	if err != nil {
		e.abandon(now, rec, err)
		return nil, err
	}
	c := &Capture{Rec: rec, home: t, quiet: true, stays: o.SourceStays, patient: o.Patient}
	if o.Down > 0 && o.Down < len(e.tiers) {
		e.want(now, rec, o.Down)
	}
	e.ask(now, c, t)
	// Published after the demand: a capture that is refused at once must not cost the key's old version.
	if c.early && c.Phase != Ended {
		e.publish(now, c.Rec, c.home)
	}
	e.followUnneeded(now)
	c.quiet = false
	return c, nil
}

// ask demands room in tier t. A transfer reads a source that stays. Into a device its caller copies it as any other source, while it is still in
// the call.
func (e *Engine) ask(now int64, c *Capture, t int) {
	tr := e.tiers[t]
	c.Tier, c.early = t, c.stays && !(tr.Device && c.quiet)
	c.Spill = tr.Remote || c.early
	tr.captured, tr.captures = max(c.Rec.own.Bytes(t), tr.captured), e.count
	c.claim = &claim{obj: &c.Rec.own, patient: c.patient,
		granted:   func(now int64) { e.beginCopy(now, c) },
		denied:    func(now int64, err error) { e.denyCapture(now, c, err) },
		elsewhere: func(now int64) bool { return e.deflect(now, c) },
		below:     func(now int64) bool { return e.descend(now, c) },
		sooner:    func(now int64, w evict.Window) bool { return e.goDown(now, c, w) },
		came:      c.early,
	}
	e.demand(now, t, c.claim)
}

// deflect redirects a capture whose source stays and for which its tier will never have room. It goes to the next tier that can take it, or else to
// the device that it bypassed. False when there is none.
func (e *Engine) deflect(now int64, c *Capture) bool {
	if !c.early || e.tiers[c.Tier].Device {
		return false
	}
	t := -1
	if c.Tier >= len(e.links) || e.links[c.Tier].stuck == 0 { // otherwise a capture into the tier below would fail as its flushes do
		t = e.holds(&c.Rec.own, e.Below(c.Tier))
	}
	if top := c.Rec.Top(); t < 0 && e.tiers[top].Device && e.tiers[top].fits(&c.Rec.own) {
		t = top
	}
	if t < 0 {
		return false
	}
	c.claim.over, c.home = true, t
	e.ask(now, c, t)
	return true
}

// descend redirects a capture that waits for a tier which has become too small to the next tier that can take it. False when there is none. A capture
// that its caller copies stays in tiers that callers can address.
func (e *Engine) descend(now int64, c *Capture) bool {
	t := e.holds(&c.Rec.own, e.Below(c.Tier))
	if t < 0 || !c.Spill && (e.tiers[t].Remote || c.stays) {
		return false
	}
	c.claim.over, c.home = true, t
	e.ask(now, c, t)
	return true
}

// captureTier is the fastest tier that can hold the checkpoint at all. A source that stays does not need the room of the fastest tier: it bypasses
// that tier if a lower one can hold it.
func (e *Engine) captureTier(r *Record, sourceStays bool) (int, error) {
	top := int(r.top)
	if t := e.holds(&r.own, e.Below(top)); sourceStays && t >= 0 {
		return t, nil
	}
	if t := e.holds(&r.own, top); t >= 0 {
		return t, nil
	}
	largest := e.largest(top)
	if !r.isWhole() && e.outlives {
		return 0, full(largest, "the difference has %s, and tiers with a catalog take whole checkpoints only", quantity.Exact(r.own.Bytes(largest)))
	}
	return 0, full(largest, "the checkpoint has %s, the largest budget is %s", quantity.Exact(r.own.Bytes(largest)), quantity.Exact(e.tiers[largest].Capacity))
}

// largest is the tier with the largest capacity from t on, the lowest of those.
func (e *Engine) largest(t int) int {
	largest := t
	for ; t >= 0; t = e.Below(t) {
		if e.tiers[t].Capacity >= e.tiers[largest].Capacity {
			largest = t
		}
	}
	return largest
}

// holds is the fastest tier from t on that is large enough for r, or -1.
func (e *Engine) holds(o *Object, t int) int {
	for t >= 0 && !e.tiers[t].fits(o) {
		t = e.Below(t)
	}
	return t
}

func (e *Engine) beginCopy(now int64, c *Capture) {
	o := &c.Rec.own
	e.place(o, c.Tier, o.copies[c.Tier], lifecycle.BeginWrite)
	if c.Spill {
		f := e.row(o, c.Tier)
		f.Transfers++
		e.tiers[c.Tier].arriving++
		x := &Transfer{Kind: Spill, Rec: c.Rec, Obj: o, From: caller, To: c.Tier, ToOff: f.Offset, Capture: c}
		e.pass(Down, x.between(caller, c.Tier))
	} else {
		e.capturing++
		c.Phase, c.ready = Ready, now
	}
	if !c.quiet {
		e.wake(c.Notify)
	}
}

func (e *Engine) denyCapture(now int64, c *Capture, err error) {
	c.Phase, c.Err = Ended, err
	if c.early && !c.quiet && !c.Rec.gone {
		e.lose(c.Rec, err) // its caller has been told that it is captured
	}
	e.abandon(now, c.Rec, err)
	if !c.quiet {
		e.wake(c.Notify)
	}
}

// EndCapture ends a capture that was Ready: the bytes are in place, or the caller gave up (ok is false).
func (e *Engine) EndCapture(now int64, c *Capture, ok bool) {
	c.Phase = Ended
	e.capturing--
	if !ok {
		e.step(&c.Rec.own, c.Tier, lifecycle.Abort)
		e.abandon(now, c.Rec, ErrDropped)
		e.makeProgress(now)
		return
	}
	e.copied(now, c)
	e.settle(&c.Rec.own, c.Tier, c.wrote)
	e.captured(now, c)
	e.makeProgress(now)
}

// CancelCapture gives up a capture that still waits for room. It returns false for one that a transfer already copies: that cannot be stopped.
func (e *Engine) CancelCapture(now int64, c *Capture) bool {
	switch {
	case c.Phase == Ended:
		return true
	case c.Phase == Ready:
		e.EndCapture(now, c, false)
		return true
	case c.Rec.own.copies[c.Tier] != fragment.None:
		// A visible version stays. Any other one must not replace a version that is written in the meantime.
		if !c.early {
			e.discard(now, c.Rec)
		}
		return false
	}
	c.claim.deny(now, ErrDropped)
	e.makeProgress(now)
	return true
}

// Show makes a checkpoint visible whose bytes a transfer has taken and that cannot be recalled any more. Its caller goes on; later checkpoints of the
// same key replace it.
func (e *Engine) Show(now int64, c *Capture) {
	if c.early || c.Rec.gone {
		return
	}
	c.early = true
	e.publish(now, c.Rec, c.home)
	e.makeProgress(now)
}

// captured makes the checkpoint visible, whichever tier received its bytes.
func (e *Engine) captured(now int64, c *Capture) {
	r, o := c.Rec, &c.Rec.own
	o.captured = true
	e.step(o, c.Tier, lifecycle.WriteDone)
	e.tiers[c.Tier].inflow.arrived(now, e.count, o.Bytes(c.Tier))
	if !r.Hist.anonymous {
		e.Stats.Captured += r.Size
		e.Stats.Captures++
		e.trace(now, Captured, r, c.Tier, 0)
	}
	if r.gone { // replaced or dropped before its bytes were captured
		e.updateCopy(now, o, c.Tier)
		e.wakeWaits(now, r)
		return
	}
	if !c.early {
		e.publish(now, r, c.home)
	}
	// The prefetchers of the tiers above may have passed it too while it was only announced.
	for t := r.Top(); t <= c.Tier; t++ {
		if e.uses(o, t) {
			e.lookAgain(r.Hist, t, r.seq)
		}
	}
	e.updateCopy(now, o, c.Tier)
	e.flushWanted(now, o, c.Tier)
	e.wakeAll(now, o)
	e.resumeAll(now, o)
}

// publish makes r the checkpoint of its key; t is the tier that was to capture it.
func (e *Engine) publish(now int64, r *Record, t int) {
	h := r.Hist
	if h.anonymous {
		return
	}
	old := h.Get(r.Key)
	if old != nil {
		e.replace(now, old, r)
	}
	h.records.put(r)
	h.order.Written(r.Key)
	if seq, ok := h.order.Seq(r.Key); ok {
		e.expect(r, seq)
	}
	for _, k := range h.order.Withdrawn() {
		e.renew(now, h, k)
	}
	e.follow(h) // the guess may have changed
	e.swept(r, t, old == nil)
	if !r.Key.IsText && r.Key.Number >= h.auto {
		h.auto = r.Key.Number + 1
	}
}

// AutoKey is an integer key that the history does not use.
func (e *Engine) AutoKey(h *History) model.Key {
	for {
		k := model.Key{Number: h.auto}
		h.auto++
		if _, used := h.Lookup(k); !used {
			return k
		}
	}
}

// abandon removes a record whose capture failed.
func (e *Engine) abandon(now int64, r *Record, err error) {
	r.own.fail(err)
	if !r.gone && r.ref != plan.Nobody {
		e.remove(now, r)
		return
	}
	e.discard(now, r)
}

// Drop removes a checkpoint; false when there is none.
func (e *Engine) Drop(now int64, h *History, k model.Key) bool {
	r := h.Get(k)
	if r == nil {
		return false
	}
	e.count++
	e.forecast.surprise = e.count
	e.trace(now, Dropped, r, -1, 0)
	e.remove(now, r)
	e.makeProgress(now)
	return true
}

// Clear removes all checkpoints of a history and its plan.
func (e *Engine) Clear(now int64, h *History) {
	h.order.Clear()
	h.due.Clear()
	h.Each(func(r *Record) { e.remove(now, r) })
	e.resetPlan(now, h)
	e.makeProgress(now)
}

// remove takes r out of its history. It gives back all room of r, now or when its last reader has gone. A removed record is not flushed.
func (e *Engine) remove(now int64, r *Record) { e.replace(now, r, nil) }

// replace is remove with the version that takes r's place; nil for none.
func (e *Engine) replace(now int64, r, by *Record) {
	if e.cfg.Catalog != nil {
		e.cfg.Catalog.Removed(r, by)
	}
	r.Hist.order.Dropped(r.Key)
	e.unhide(r)
	r.Hist.records.take(r)
	if r.seq != fragment.Unexpected {
		r.Hist.sweep.awaited--
	}
	e.foresee(r.Hist)
	e.followLater(r.Hist)
	e.discard(now, r)
}

func (e *Engine) discard(now int64, r *Record) {
	r.gone = true
	e.unchained = e.unchained || !r.isWhole()
	for _, o := range r.Objects() {
		e.unrefer(now, o, r)
	}
	why := ErrDropped
	if err := r.own.failed(); !r.own.captured && err != nil {
		why = err // acknowledged before its bytes were taken, and then taking them failed
	}
	e.failWaiting(now, r, why)
	e.wakeWaits(now, r)
	e.forget(r)
}

// cancelLoads withdraws the loads of o that have room but have not begun, and calls f for the tier of each.
func (e *Engine) cancelLoads(o *Object, f func(t int)) {
	for k, l := range e.links {
		if bit := uint8(1) << k; o.loadsOn&bit != 0 && o.loadRuns&bit == 0 && o.copies[k] != fragment.None {
			o.loadsOn &^= bit
			e.loadEnded(l, o)
			for _, q := range []*fifo[*Object]{&l.demand, &l.ahead} {
				q.without(func(queued *Object) bool { return queued == o })
			}
			e.row(o, l.lower).Transfers--
			f(k)
		}
	}
}

func (e *Engine) unstick(o *Object, k int) {
	if bit := uint8(1) << k; o.stuckOn&bit != 0 {
		o.stuckOn &^= bit
		e.links[k].stuck--
	}
}
