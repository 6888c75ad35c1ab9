package engine

import (
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/lifecycle"
)

// Phase is the progress of an operation.
type Phase uint8

// Waiting: for room or a transfer. Ready: the caller has to copy in or out. Ended: the operation is over.
const (
	Waiting Phase = iota
	Ready
	Ended
)

// Capture is one checkpoint being taken. While it is Ready, the caller copies the bytes to where Rec's own object lies in Tier
// (Engine.Offset), and calls EndCapture. For a Spill, a transfer copies them straight from the caller's memory; it is Ended when the transfer is done.
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

// captures makes checkpoints of callers' bytes: it finds the tier that takes them, and the room there.
type captures struct {
	*state

	capturing  int  // captures that have room and are being copied
	alwaysDown bool // tests: captures go to the tier below whenever they may
}

// BeginCapture starts a checkpoint of size bytes. It fails at once when no tier is large enough.
func (cs *captures) BeginCapture(now int64, h *History, k model.Key, size, align int64, v *checkpoint.Version, o CaptureOptions) (*Capture, error) {
	if len(o.Needs) > 0 {
		if err := referable(o.Needs); err != nil {
			return nil, err
		}
		o.Top = int(o.Needs[0].top)
	}
	rec := cs.checkpoints.newRecord(h, k, size, align, v)
	rec.top, rec.own.top = uint8(o.Top), uint8(o.Top)
	rec.own.reform(o.Shape)
	if len(o.Needs) > 0 {
		cs.checkpoints.chain(rec, append(slices.Clip(o.Needs), &rec.own))
	}
	t, err := cs.captureTier(rec, o.SourceStays)
	if err != nil {
		cs.checkpoints.abandon(now, rec, err)
		return nil, err
	}
	c := &Capture{Rec: rec, home: t, quiet: true, stays: o.SourceStays, patient: o.Patient}
	if o.Down > 0 && o.Down < len(cs.tiers) {
		cs.waiters.want(now, rec, o.Down)
	}
	cs.ask(now, c, t)
	// Published after the demand: a capture that is refused at once must not cost the key's old version.
	if c.early && c.Phase != Ended {
		cs.publish(now, c.Rec, c.home)
	}
	cs.dependencies.followUnneeded(now)
	c.quiet = false
	return c, nil
}

// ask demands room in tier t. A transfer reads a source that stays. Into a device its caller copies it as any other source, while it is still in
// the call.
func (cs *captures) ask(now int64, c *Capture, t int) {
	tr := cs.tiers[t]
	c.Tier, c.early = t, c.stays && !(tr.Device && c.quiet)
	c.Spill = tr.Remote || c.early
	tr.captured, tr.captures = max(c.Rec.own.Bytes(t), tr.captured), cs.count
	c.claim = &claim{obj: &c.Rec.own, patient: c.patient,
		granted:   func(now int64) { cs.beginCopy(now, c) },
		denied:    func(now int64, err error) { cs.denyCapture(now, c, err) },
		elsewhere: func(now int64) bool { return cs.deflect(now, c) },
		below:     func(now int64) bool { return cs.descend(now, c) },
		sooner:    func(now int64, w evict.Window) bool { return cs.goDown(now, c, w) },
		came:      c.early,
	}
	cs.rooms.demand(now, t, c.claim)
}

// deflect redirects a capture whose source stays and for which its tier will never have room. It goes to the next tier that can take it, or else to
// the device that it bypassed. False when there is none.
func (cs *captures) deflect(now int64, c *Capture) bool {
	if !c.early || cs.tiers[c.Tier].Device {
		return false
	}
	t := -1
	if c.Tier >= len(cs.links) || cs.links[c.Tier].stuck == 0 { // otherwise a capture into the tier below would fail as its flushes do
		t = cs.copies.holds(&c.Rec.own, cs.Below(c.Tier))
	}
	if top := c.Rec.Top(); t < 0 && cs.tiers[top].Device && cs.tiers[top].fits(&c.Rec.own) {
		t = top
	}
	if t < 0 {
		return false
	}
	c.claim.over, c.home = true, t
	cs.ask(now, c, t)
	return true
}

// descend redirects a capture that waits for a tier which has become too small to the next tier that can take it. False when there is none. A capture
// that its caller copies stays in tiers that callers can address.
func (cs *captures) descend(now int64, c *Capture) bool {
	t := cs.copies.holds(&c.Rec.own, cs.Below(c.Tier))
	if t < 0 || !c.Spill && (cs.tiers[t].Remote || c.stays) {
		return false
	}
	c.claim.over, c.home = true, t
	cs.ask(now, c, t)
	return true
}

// captureTier is the fastest tier that can hold the checkpoint at all. A source that stays does not need the room of the fastest tier: it bypasses
// that tier if a lower one can hold it.
func (cs *captures) captureTier(r *Record, sourceStays bool) (int, error) {
	top := int(r.top)
	if t := cs.copies.holds(&r.own, cs.Below(top)); sourceStays && t >= 0 {
		return t, nil
	}
	if t := cs.copies.holds(&r.own, top); t >= 0 {
		return t, nil
	}
	largest := cs.largest(top)
	if !r.isWhole() && cs.outlives {
		return 0, full(largest, "the difference has %s, and tiers with a catalog take whole checkpoints only", quantity.Exact(r.own.Bytes(largest)))
	}
	return 0, full(largest, "the checkpoint has %s, the largest budget is %s", quantity.Exact(r.own.Bytes(largest)), quantity.Exact(cs.tiers[largest].Capacity))
}

// largest is the tier with the largest capacity from t on, the lowest of those.
func (cs *captures) largest(t int) int {
	largest := t
	for ; t >= 0; t = cs.Below(t) {
		if cs.tiers[t].Capacity >= cs.tiers[largest].Capacity {
			largest = t
		}
	}
	return largest
}

func (cs *captures) beginCopy(now int64, c *Capture) {
	o := &c.Rec.own
	cs.copies.place(o, c.Tier, o.copies[c.Tier], lifecycle.BeginWrite)
	cs.tiers[c.Tier].arriving++
	if c.Spill {
		f := cs.copies.row(o, c.Tier)
		f.Transfers++
		x := &Transfer{Kind: Spill, Rec: c.Rec, Obj: o, From: caller, To: c.Tier, ToOff: f.Offset, Capture: c}
		cs.transfers.pass(Down, x.between(caller, c.Tier))
	} else {
		cs.capturing++
		c.Phase, c.ready = Ready, now
	}
	if !c.quiet {
		cs.wake(c.Notify)
	}
}

func (cs *captures) denyCapture(now int64, c *Capture, err error) {
	c.Phase, c.Err = Ended, err
	if c.early && !c.quiet && !c.Rec.gone {
		cs.waiters.lose(c.Rec, err) // its caller has been told that it is captured
	}
	cs.checkpoints.abandon(now, c.Rec, err)
	if !c.quiet {
		cs.wake(c.Notify)
	}
}

// EndCapture ends a capture that was Ready: the bytes are in place, or the caller gave up (ok is false).
func (cs *captures) EndCapture(now int64, c *Capture, ok bool) {
	c.Phase = Ended
	cs.capturing--
	cs.arrive(c.Tier)
	if !ok {
		cs.copies.step(&c.Rec.own, c.Tier, lifecycle.Abort)
		cs.checkpoints.abandon(now, c.Rec, ErrDropped)
		cs.makeProgress(now)
		return
	}
	cs.copied(now, c)
	cs.forms.settle(&c.Rec.own, c.Tier, c.wrote)
	cs.captured(now, c)
	cs.makeProgress(now)
}

// CancelCapture gives up a capture that still waits for room. It returns false for one that a transfer already copies: that cannot be stopped.
func (cs *captures) CancelCapture(now int64, c *Capture) bool {
	switch {
	case c.Phase == Ended:
		return true
	case c.Phase == Ready:
		cs.EndCapture(now, c, false)
		return true
	case c.Rec.own.copies[c.Tier] != fragment.None:
		// A visible version stays. Any other one must not replace a version that is written in the meantime.
		if !c.early {
			cs.checkpoints.discard(now, c.Rec)
		}
		return false
	}
	c.claim.deny(now, ErrDropped)
	cs.makeProgress(now)
	return true
}

// Show makes a checkpoint visible whose bytes a transfer has taken and that cannot be recalled any more. Its caller goes on; later checkpoints of the
// same key replace it.
func (cs *captures) Show(now int64, c *Capture) {
	if c.early || c.Rec.gone {
		return
	}
	c.early = true
	cs.publish(now, c.Rec, c.home)
	cs.makeProgress(now)
}

// captured makes the checkpoint visible, whichever tier received its bytes.
func (cs *captures) captured(now int64, c *Capture) {
	r, o := c.Rec, &c.Rec.own
	o.captured = true
	cs.copies.step(o, c.Tier, lifecycle.WriteDone)
	cs.tiers[c.Tier].inflow.arrived(now, cs.count, o.Bytes(c.Tier))
	if !r.Hist.anonymous {
		cs.Stats.Captured += r.Size
		cs.Stats.Captures++
		cs.trace(now, Captured, r, c.Tier, 0)
	}
	if r.gone { // replaced or dropped before its bytes were captured
		cs.copies.updateCopy(now, o, c.Tier)
		cs.waiters.wakeWaits(now, r)
		return
	}
	if !c.early {
		cs.publish(now, r, c.home)
	}
	// The prefetchers of the tiers above may have passed it too while it was only announced.
	for t := r.Top(); t <= c.Tier; t++ {
		if cs.copies.uses(o, t) {
			cs.prefetches.lookAgain(r.Hist, t, r.seq)
		}
	}
	cs.copies.updateCopy(now, o, c.Tier)
	cs.flushes.flushWanted(now, o, c.Tier)
	cs.objects.wakeAll(now, o)
	cs.objects.resumeAll(now, o)
}

func (cs *captures) spilled(now int64, x *Transfer, err error) {
	c, rec, o := x.Capture, x.Rec, x.Obj
	c.Phase, c.Err = Ended, err
	cs.arrive(x.To)
	cs.copies.row(o, x.To).Transfers--
	if err != nil {
		cs.copies.step(o, x.To, lifecycle.Abort)
		if !rec.gone {
			cs.waiters.lose(rec, err)
		}
		cs.checkpoints.abandon(now, rec, err)
	} else {
		cs.forms.settleTransfer(x)
		cs.Stats.Tiers[x.To].Written += o.Bytes(x.To)
		if l := cs.transfers.crosses(x); l != nil && l.lower == x.To {
			l.observe(now, x)
		}
		cs.captured(now, c)
	}
	cs.wake(c.Notify)
}

// publish makes r the checkpoint of its key; t is the tier that was to capture it.
func (cs *captures) publish(now int64, r *Record, t int) {
	h := r.Hist
	if h.anonymous {
		return
	}
	old := h.Get(r.Key)
	if old != nil {
		cs.checkpoints.replace(now, old, r)
	}
	h.records.put(r)
	h.order.Written(r.Key)
	if seq, ok := h.order.Seq(r.Key); ok {
		cs.checkpoints.expect(r, seq)
	}
	for _, k := range h.order.Withdrawn() {
		cs.orders.renew(now, h, k)
	}
	cs.orders.follow(h) // the guess may have changed
	cs.forecasts.swept(r, t, old == nil)
	if !r.Key.IsText && r.Key.Number >= h.auto {
		h.auto = r.Key.Number + 1
	}
}

// copied updates the estimate of a link from a caller's copy that crossed it to the tier below.
func (cs *captures) copied(now int64, c *Capture) {
	if c.Tier == c.home {
		return
	}
	if l := cs.links[c.home]; l.lower == c.Tier {
		l.observeStraight(c.Rec.own.sent(caller, c.Tier), now-c.ready)
	}
}
