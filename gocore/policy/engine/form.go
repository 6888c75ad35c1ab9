package engine

import (
	"velocpy/gocore/policy/bandwidth"
	"velocpy/gocore/policy/fragment"
)

// Form is how the bytes of an object are written.
type Form uint8

// The forms. Only Raw means something to the engine: what a caller captures and gets back is raw.
const (
	Raw         Form = iota
	Encoded          // compressed
	Accumulated      // several checkpoints as one
	Difference       // against other objects
	Pack             // small objects behind one another
	Temporary        // a buffer
	Index
	Deduplicated // what is new in it; the rest lies in copies of other objects in the same tier
)

// Side is an end of a link.
type Side uint8

// The sides. A stage on the upper side, such as a codec on a device, lets the encoded bytes cross the link in both directions.
const (
	UpperSide Side = iota
	LowerSide
)

// Shape says how an object is kept in each tier.
type Shape struct {
	Forms [MaxTiers]Form
	// Sizes are bytes; of raw forms they do not count. A size that is not known before the bytes have been encoded is an upper bound, for which room is
	// reserved. Transfer.Wrote and Capture.Wrote tell the exact one. It is that of all tiers with this form.
	Sizes [MaxTiers]int64
	// Stages says at which side of the link below each tier the bytes are encoded on their way down, and decoded on their way up.
	Stages [MaxTiers]Side
}

// Stage is what happens to the bytes of a transfer between its source and its sink.
type Stage uint8

// The stages.
const (
	Verbatim Stage = iota // both have the same form
	Encoding              // on the way down
	Decoding              // on the way up
)

// shaped is a shape of which some sizes have become known.
type shaped struct {
	Shape
	known    uint8           // bit t: the size in tier t is exact
	enlarged uint8           // bit t: a prediction was too low, and none is made any more
	other    uint8           // bit t: the tier below has other bytes, so the next copy in tier t may have another size
	bounds   [MaxTiers]int64 // the sizes before a prediction
}

// caller stands for the memory of a caller, where all bytes are raw.
const caller = -1

// shape is how the object is kept; nil: raw everywhere.
func (o *Object) shape() *shaped {
	if o.more == nil {
		return nil
	}
	return o.more.shape
}

// Form is the form of the object in tier t.
func (o *Object) Form(t int) Form {
	if o.more == nil || o.more.shape == nil || t == caller {
		return Raw
	}
	return o.more.shape.Forms[t]
}

// forms keeps account of the forms that copies have, and of their sizes.
type forms struct {
	*state
}

// Form is the form of a checkpoint's own object in tier t.
func (fm *forms) Form(r *Record, t int) Form { return r.own.Form(t) }

// Bytes is how many bytes the object has in tier t, or will have at the most.
func (o *Object) Bytes(t int) int64 {
	if o.more == nil || o.more.shape == nil || t == caller {
		return o.home.Size
	}
	return o.more.shape.Sizes[t]
}

// reform gives an object its shape before anything of it is placed.
func (o *Object) reform(s *Shape) {
	if s == nil {
		return
	}
	own := &shaped{Shape: *s}
	for t := range own.Sizes {
		if own.Sizes[t] = max(own.Sizes[t], 1); own.Forms[t] == Raw {
			own.Sizes[t] = o.home.Size
			own.known |= 1 << t
		}
	}
	own.bounds = own.Sizes
	o.extra().shape = own
}

// predict lowers the bound for o in tier t to what is expected, whenever a flush asks for room there: what others became since it was refused may say that it
// needs less. Enlarge raises it again.
func (fm *forms) predict(o *Object, t int) {
	s := o.shape()
	if fm.cfg.Expect == nil || s == nil || s.Forms[t] == Raw || (s.known|s.enlarged)&(1<<t) != 0 {
		return
	}
	for u, id := range o.copies {
		if s.Forms[u] == s.Forms[t] && id != fragment.None {
			return // it is being written
		}
	}
	n := max(1, fm.cfg.Expect(o.home, s.Forms[t]))
	for u := range s.Forms {
		if s.Forms[u] == s.Forms[t] {
			s.Sizes[u] = min(s.Sizes[u], n)
		}
	}
}

// Enlarge takes the place of Done for a flush whose encoder came to more bytes than were predicted. The flush is repeated with the room of the bound.
func (fm *forms) Enlarge(now int64, x *Transfer) {
	s := x.Obj.shape()
	for u := range s.Forms {
		if s.Forms[u] == s.Forms[x.To] && s.known&(1<<u) == 0 {
			s.Sizes[u] = s.bounds[u]
			s.enlarged |= 1 << u
		}
	}
	fm.flushes.Redo(now, x)
}

// WasEnlarged tells whether the object has needed more room in tier t than was predicted. So it differs from those that the prediction was learnt from.
func (o *Object) WasEnlarged(t int) bool {
	s := o.shape()
	return s != nil && s.enlarged&(1<<t) != 0
}

// settle records that the form of tier t has exactly n bytes there, and gives back the rest of the room that was reserved for it. n is 0 if all of the
// room is used.
func (fm *forms) settle(o *Object, t int, n int64) {
	if o.Form(t) == Raw {
		return
	}
	s := o.more.shape
	if n > s.Sizes[t] {
		panic("engine: an object was written behind the end of its room")
	}
	if n == 0 {
		n = s.Sizes[t]
	}
	for u := range s.Forms {
		if s.Forms[u] == s.Forms[t] {
			s.Sizes[u] = n
			s.known |= 1 << u
		}
	}
	fm.trim(o, t)
}

// forgetSize makes the size of o in tier t unknown, where its copy has gone, if the next one may have another.
func (o *Object) forgetSize(t int) {
	if s := o.shape(); s != nil && s.other&(1<<t) != 0 {
		s.other, s.known, s.Sizes[t] = s.other&^(1<<t), s.known&^(1<<t), s.bounds[t]
	}
}

// trim gives back the end of the room of o's copy in tier t that its bytes do not reach.
func (fm *forms) trim(o *Object, t int) {
	tr, id := fm.tiers[t], o.copies[t]
	f, needs := tr.table.At(id), tr.extent(o)
	if f.Size <= needs {
		return
	}
	from, all, end, pinned := f.Offset, f.Size, f.Offset+needs, f.Pins > 0
	_, rest := tr.table.Cut(id, f.Offset, needs)
	f = tr.table.At(rest)
	n := tr.within(f)
	tr.bytes[f.Class] -= n
	tr.bytes[fragment.Gap] += n
	if pinned {
		tr.pinned -= f.Size
	}
	fm.copies.tellRoom(t, from, needs, true) // who counts the rooms in a page counts whole ones
	fm.copies.tellRoom(t, from, all, false)
	fm.budgets.emptied(t, tr.table.Free(rest), end, n)
}

// sent is how many bytes of o cross the link between an upper tier, or the memory of a caller, and a lower one.
func (o *Object) sent(upper, lower int) int64 {
	if o.more == nil || o.Form(upper) == o.Form(lower) || o.side(upper) == LowerSide {
		return o.Bytes(upper)
	}
	return o.Bytes(lower)
}

// side is where o changes its form on the link below an upper tier. Bytes between a caller and a lower tier pass the link below the fastest tier.
func (o *Object) side(upper int) Side {
	if o.more == nil || o.more.shape == nil {
		return UpperSide
	}
	return o.more.shape.Stages[max(upper, int(o.top))]
}

// willSend predicts how many bytes a flush of o sends over the link. As long as the size of the encoded bytes is not known, the part that the link's
// flushes have sent lately is the best guess.
func (l *link) willSend(o *Object) int64 {
	bytes := o.sent(l.upper, l.lower)
	if o.more == nil || o.more.shape == nil || o.more.shape.known&(1<<l.lower) != 0 || o.side(l.upper) == LowerSide {
		return bytes
	}
	return min(bytes, int64(float64(o.Bytes(l.upper))*l.sends))
}

// encoderCosts are the measured costs of the encoders of a link, by the side at which they run; nil: not measured, and free. No decision predicts how long a load
// takes, so decoders have none.
type encoderCosts [LowerSide + 1]*bandwidth.Estimator

// observe records that an encoder took ns for so many bytes before they were encoded.
func (s *encoderCosts) observe(at Side, bytes, ns int64) {
	if s[at] == nil {
		s[at] = bandwidth.New(float64(bytes) / float64(max(ns, 1)) * 1e9)
	}
	s[at].Observe(bytes, ns)
}

// time predicts how many ns an encoder takes for so many bytes.
func (s *encoderCosts) time(at Side, bytes int64) int64 {
	if s[at] == nil {
		return 0
	}
	return s[at].Predict(bytes)
}

// flushTime predicts how many ns a flush of o takes: its way over the link, and its stage.
func (l *link) flushTime(o *Object) int64 {
	if o.more == nil {
		return l.down.Predict(o.home.Size)
	}
	ns := l.down.Predict(l.willSend(o))
	if o.Form(l.upper) == o.Form(l.lower) {
		return ns
	}
	return ns + l.encode.time(o.side(l.upper), o.Bytes(l.upper))
}

// observe updates the estimates of a link from a transfer that has ended.
func (l *link) observe(now int64, x *Transfer) {
	took := now - x.began - x.spent
	switch x.Kind {
	case Load:
		l.up.Observe(x.sent, took)
	case Spill:
		l.observeStraight(x.sent, took)
	default:
		l.down.Observe(x.sent, took)
		l.flushed(x)
	}
	if x.Stage == Encoding {
		l.encode.observe(x.Side, x.Reads(), x.spent)
	}
}

// straightFor predicts how many ns it takes to bring the bytes of a caller over the link as o.
func (l *link) straightFor(o *Object) int64 {
	if o.more == nil {
		return l.straightTime(o.home.Size)
	}
	ns := l.straightTime(o.sent(caller, l.lower))
	if o.Form(l.lower) != Raw {
		ns += l.encode.time(o.side(caller), o.Bytes(caller))
	}
	return ns
}

// ratios are moving averages, over the flushes of a link, of what they send and write for each byte that they read, and of the ns that their stages take for
// it: 1, 1 and 0 for raw objects.
type ratios struct{ sends, writes, stalls float64 }

func (p *ratios) flushed(x *Transfer) {
	const weight = 0.2
	read := float64(x.Reads())
	p.sends += weight * (float64(x.sent)/read - p.sends)
	p.writes += weight * (float64(x.Writes())/read - p.writes)
	p.stalls += weight * (float64(x.spent)/read - p.stalls)
}

// drain is the rate (bytes/s) at which bytes of the upper tier leave over the link.
func (l *link) drain(s *state) float64 {
	rate := l.down.Rate() * float64(s.cfg.Workers) / l.sends
	return rate / (1 + rate*l.stalls/1e9/float64(s.cfg.Workers))
}

// between fills in what a transfer does to the bytes on their way between an upper tier, or the memory of a caller, and a lower one.
func (x *Transfer) between(upper, lower int) *Transfer {
	o := x.Obj
	x.sent = o.sent(upper, lower)
	if x.Upper, x.Lower = o.Form(upper), o.Form(lower); x.Upper == x.Lower {
		return x
	}
	x.Side = o.side(upper)
	if x.Stage = Encoding; x.Kind == Load || x.Kind == Fetch {
		x.Stage = Decoding
	}
	return x
}

// Reads is how many bytes the transfer takes from its source.
func (x *Transfer) Reads() int64 { return x.Obj.Bytes(x.From) }

// Writes is how many bytes the transfer gives to its sink, or at the most as long as Wrote has not been called.
func (x *Transfer) Writes() int64 {
	if x.duplicate != nil {
		return x.duplicate.Bytes(x.To)
	}
	return x.Obj.Bytes(x.To)
}

// Wrote tells, before Done, how many bytes a transfer with a stage has written: not more than Writes.
func (x *Transfer) Wrote(n int64) { x.wrote = n }

// Sends is how many bytes cross the link. Those of an encoder on the upper side are known after Wrote.
func (x *Transfer) Sends() int64 {
	if x.Stage == Encoding && x.Side == UpperSide && x.wrote > 0 {
		return x.wrote
	}
	return x.sent
}

// Crossed tells, before Done, how many bytes of a load have crossed its link, where that is not the size of the copy below: other copies have bytes of it, or the tier above.
func (x *Transfer) Crossed(n int64) { x.sent = n }

// Rewrote tells, before Done, that the bytes of a flush between two forms other than Raw were made anew, so that a load brings others up than there were.
func (x *Transfer) Rewrote() { x.rewrote = true }

// Spent tells, before Done, for how many ns the stage of a transfer has kept its link waiting. A stage that runs while the bytes move costs nothing.
func (x *Transfer) Spent(ns int64) { x.spent = ns }

// settleTransfer counts what a transfer has really written and sent.
func (fm *forms) settleTransfer(x *Transfer) {
	if x.Stage != Verbatim {
		x.sent = x.Sends()
		fm.settle(x.Obj, x.To, x.wrote)
		if x.rewrote {
			x.Obj.shape().other |= 1 << x.From
		}
	}
}

// Wrote tells, before EndCapture, how many bytes the caller has written into a tier whose form is not raw: not more than Object.Bytes of that tier.
func (c *Capture) Wrote(n int64) { c.wrote = n }
