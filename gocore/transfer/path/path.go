// Package path moves the bytes of one transfer: from a source, past stages that look at them, to a sink. How the bytes move depends on the methods
// of source and sink. The tier decides which source and sink a path gets: slots of a device, or the tier's objects.
//
// A path takes the first of these ways that source and sink allow:
//   - The sink gathers the bytes from the caller's regions by itself: a device fills a slot of its memory by one kernel.
//   - The host can address the sink: the source brings the bytes to their place.
//   - The host can address the source: the sink takes the bytes from their place.
//   - Otherwise the bytes pass through a window, memory beside the cache, part by part.
//
// Before that, an encoder or a decoder takes its place where the transfer has such a stage: it replaces the bytes on their way. Other stages verify.
package path

import (
	"cmp"
	"errors"
	"iter"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/fanout"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// source gives the bytes of a checkpoint at their offsets in its slot.
type source interface {
	tier.Source
	// prepare waits until the bytes can be read, and close gives back what the source holds.
	prepare() error
	close()
}

// sink takes the bytes of a checkpoint.
type sink interface {
	// Bytes returns the memory that the bytes are written to; nil if the host cannot address it.
	Bytes() []byte
	// Write takes bytes at an offset of the slot. Offsets ascend.
	Write(at int64, p []byte) error
}

// reporter is a source, stage or sink that adds to the result of the transfer.
type reporter interface{ report(r *Result) }

// gatherer is a sink that copies from the caller's regions by itself.
type gatherer interface {
	Gather(src *borrow.Source, spans []model.Span) error
}

// Options say what the worker contributes.
type Options struct {
	// Lane is the worker's own lane of the device between whose memory and the host the bytes move; nil for a worker of no device.
	Lane device.Lane
	// From and To are memory that stands for the source or the sink: the worker reads or writes it together with that of other transfers. nil: none.
	From, To []byte
	// Read is called when all bytes have been read, before the last of them are verified; nil: no function is.
	Read func()
	// Into is the caller's memory that a fetch may write to, parallel to what is wanted; nil: it writes to memory of its own.
	Into *borrow.Source
	// Forwarder is for a transfer of encoded bytes to a tier that keeps them in another form; nil: it is none.
	Forwarder Forwarder
	// Planner decides whether a transfer with an encoding stage encodes; nil: it does not.
	Planner Planner
	// Anchor is the checkpoint with which one was encoded that a transfer decodes; nil: none.
	Anchor *Anchor
	// Parts are where the bytes of a checkpoint lie whose copy in the source a device has de-duplicated; nil: it has the plain bytes, or is another copy.
	Parts *Parts
	// Deduplicates tells that the device of the source may de-duplicate the checkpoint.
	Deduplicates bool
	// Copies are what memory has of the lineage of a transfer with a decoding stage; nil: nothing.
	Copies Copies
	// Room is memory for encoders and decoders, and Staging memory of the lane's device for those; nil: there is none.
	Room    *regions.Room
	Staging *cache.Staging
}

// Path is the way of one transfer. The engine holds source and sink for it; the lock of the cache is not held.
type Path struct {
	c        *cache.Cache
	x        *engine.Transfer
	version  *checkpoint.Version
	o        Options
	source   source
	sink     sink
	spans    []model.Span        // the parts of the slot that are moved
	reading  *checkpoint.Reading // of a fetch of some regions, or of parts of them; nil: the whole slot is moved
	stages   []stage
	streamed *streamed // a fetch to the caller's memory, without sink and stages; nil: it is another transfer
	created  tier.Sink // the object that the sink writes; nil: none
	anchor   *Anchor   // with which the checkpoint was or is encoded; nil: none
	began    time.Time // when what the planner is told of began
	regions  []int32   // those that are wanted
	encoder  encoder
	result   Result

	// Room for what most paths need, so that a path is one allocation.
	from, to     hostMemory
	arrivals     arrivals
	verification checkpoint.Verification
	oneSpan      [1]model.Span
	oneStage     [1]stage
}

// Result is what a transfer came to.
type Result struct {
	Err     error
	Fetched *memory.Mapping // the bytes of a fetch, beside the cache; nil: they are in the caller's memory
	Sums    []uint64        // checksums of the bytes that were taken from the caller
	Bad     []int32         // regions whose bytes on a device are not those captured
	Leaves  []uint64        // hashes of the leaves of all regions with more than one: of the bytes that were taken, or that go to a tier that outlives the store
	Staged  Staged

	// Ended is called under the cache's lock once the engine knows how the transfer has ended; nil: nothing has to know it.
	Ended func(ok bool)
}

// Unmap unmaps the bytes of a fetch that no operation has taken over.
func (r *Result) Unmap() {
	if r.Fetched != nil {
		_ = r.Fetched.Unmap() // mapped for this transfer; no other goroutine uses it
	}
}

func newPath(c *cache.Cache, x *engine.Transfer, o Options) *Path {
	p := &Path{c: c, x: x, version: x.Rec.Version, o: o}
	p.encoder.Path = p
	return p
}

// Move carries out a transfer of what is wanted: of all regions, or, of a fetch, also of some, or of parts of them.
func Move(c *cache.Cache, x *engine.Transfer, want checkpoint.Selection, o Options) *Result {
	p := newPath(c, x, o)
	defer p.leaveTurn()
	if p.result.Err = p.open(&p.result, want); p.result.Err == nil {
		p.close(p.runStaged())
	} else {
		p.endAnchor(Unused)
	}
	return &p.result
}

// leaveTurn ends the turn of a path that panics, so that no other goroutine waits for it. The panic goes on.
func (p *Path) leaveTurn() {
	if cause := recover(); cause != nil {
		if p.result.Ended != nil {
			p.c.Lock()
			p.result.Ended(false)
			p.c.Unlock()
		}
		panic(cause)
	}
}

// close makes the result, of a path that was opened and has been run.
func (p *Path) close(err error) {
	r := &p.result
	r.Err = err
	p.source.close()
	for _, s := range p.stages {
		s.report(r)
	}
	if end, ok := p.source.(reporter); ok {
		end.report(r)
	}
	if end, ok := p.sink.(reporter); ok {
		end.report(r)
	}
	if err == nil && r.Staged.Encoding != nil {
		p.endAnchor(Used)
	} else {
		p.endAnchor(Unused)
	}
}

// open chooses source, sink and stages.
func (p *Path) open(r *Result, want checkpoint.Selection) error {
	l := p.version.Layout
	p.anchor = p.o.Anchor
	p.oneSpan[0].Bytes = l.End() // bytes behind the last region may never have been written
	if p.movesEncoded() {
		p.oneSpan[0].Bytes = p.version.Encoding.Bytes()
	}
	p.spans = p.oneSpan[:]
	if p.x.To < 0 { // gaps between regions may be large, and may never have been written
		p.reading = p.version.Reading(want, p.c.Set.Verifies != config.VerifyOff)
		p.spans, p.x.Fetched = p.reading.Spans, p.reading.Bytes()
	}
	var err error
	if p.source, err = p.sourceOf(p.x.From); err != nil {
		return err
	}
	if p.x.To < 0 {
		err = p.openFetch(r)
	} else {
		p.sink, err = p.sinkOf(p.x.To)
	}
	if err == nil && p.streamed == nil {
		p.regions = want.Regions
		p.stages = p.stagesFor(p.regions)
	}
	return err
}

func (p *Path) sourceOf(t int) (source, error) {
	x, c := p.x, p.c
	a := c.DeviceTier(t)
	switch {
	case p.o.From != nil:
		return p.from.at(p.o.From), nil
	case t < 0:
		src := pending.Of(p.version).Source
		regions := hostRegions{c: c, src: src, end: p.version.Layout.End()}
		if a := c.DeviceOf(x.Rec); a != nil {
			return &deviceRegions{hostRegions: regions, a: a, lane: p.o.Lane, spans: p.version.Layout.Spans, await: p.awaitPinned}, nil
		}
		return &regions, nil
	case a != nil:
		return &deviceSlot{p: p, a: a, lane: p.o.Lane, at: x.FromOff}, nil
	}
	object, err := c.Objects(t).Open(tier.Object{Offset: x.FromOff, Bytes: p.room(x.Reads)})
	if err != nil {
		return nil, err
	}
	bytes := object.Bytes()
	switch {
	case bytes == nil:
		return &objectSource{object, p}, nil
	case p.o.Parts != nil && x.Stage == engine.Encoding:
		return p.gather()
	}
	return p.from.at(bytes), nil
}

// room is how many bytes the object has in the source or the sink: those of its form, which formed says, or the plain ones.
func (p *Path) room(formed func() int64) int64 {
	if p.x.Stage == engine.Verbatim && !p.movesEncoded() {
		return p.x.Rec.Size
	}
	return formed()
}

// movesEncoded tells whether encoded bytes move as they are. A checkpoint of this form may have its plain bytes all the same.
func (p *Path) movesEncoded() bool {
	return p.x.Stage == engine.Verbatim && p.x.Lower == engine.Encoded && p.version.Encoding != nil
}

func (p *Path) sinkOf(t int) (sink, error) {
	x, c := p.x, p.c
	if p.o.To != nil {
		return p.to.at(p.o.To), nil
	}
	if a := c.DeviceTier(t); a != nil {
		return &deviceSlot{p: p, a: a, lane: p.o.Lane, at: x.ToOff}, nil
	}
	wanted := func() bool { return !p.version.Gone.Load() }
	if x.From < 0 { // its caller learns of the drop by itself, and takes the memory back
		wanted = nil
	}
	object, err := c.Objects(t).Create(tier.Object{Offset: x.ToOff, Bytes: p.room(x.Writes)}, wanted)
	if err != nil {
		return nil, err
	}
	p.created = object
	if bytes := object.Bytes(); bytes != nil {
		return p.to.at(bytes), nil
	}
	return &objectSink{object}, nil
}

// openFetch streams the bytes of a fetch, or maps memory beside the cache for them, when the source is known to have them.
func (p *Path) openFetch(r *Result) (err error) {
	if s, ok := p.source.(*objectSource); ok {
		if err := s.holds(p.stored()); err != nil {
			return err
		}
	}
	if p.streamed = newStreamed(p); p.streamed != nil {
		return nil
	}
	read := p.version.Layout.Slot
	if p.reading != nil {
		read = p.reading.Bytes()
	}
	if r.Fetched, err = slots.Beside(p.version.Layout, read); err != nil {
		return err
	}
	p.sink = p.to.at(r.Fetched.Bytes(0, r.Fetched.Size()))
	return nil
}

// awaitPinned waits until the host tier's memory is pinned up to an offset of the sink, or until that is not worth waiting for. It returns how long that
// took, in ns.
func (p *Path) awaitPinned(end int64) int64 {
	return int64(p.c.Host.Watermark().Await(p.x.ToOff + end))
}

// run moves the bytes, with the stages around them.
func (p *Path) run() error {
	if p.streamed != nil {
		return p.streamed.run()
	}
	if err := p.source.prepare(); err != nil {
		return p.end(err)
	}
	for _, s := range p.stages {
		s.begin(p)
	}
	return p.conclude(p.move())
}

// conclude waits for the stages after the bytes have moved, or not.
func (p *Path) conclude(err error) error {
	for _, s := range p.stages {
		err = s.end(err)
	}
	return p.end(err)
}

// end commits the object that the sink writes, or gives it up after an error.
func (p *Path) end(err error) error {
	switch {
	case p.created == nil:
		return err
	case err == nil:
		return p.created.Commit()
	}
	if failed := p.created.Abort(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

func (p *Path) move() error {
	switch {
	case p.encoder.lineage != nil:
		return p.encoder.writeDifference()
	case p.encoder.onDevice != nil:
		s, _ := p.source.(*deviceSlot)
		return p.deduplicate(s)
	case p.encoder.encodes():
		if isDeviceSlot(p.source) {
			return encodeOnDevice([]*Path{p})[0]
		}
		return p.encoder.encode()
	case p.decodes():
		if s, ok := p.sink.(*deviceSlot); ok {
			return p.decodeToDevice(s)
		}
		return (&decoder{Path: p}).decode(p.sink.Bytes())
	}
	if taken, ok := p.source.(*deviceRegions); ok {
		if g, ok := p.sink.(gatherer); ok {
			return g.Gather(taken.src, p.version.Layout.Spans)
		}
	}
	if to := p.sink.Bytes(); to != nil {
		return p.fill(to)
	}
	if from := p.source.Bytes(); from != nil {
		return p.sink.Write(0, from)
	}
	if isDeviceSlot(p.source) || isDeviceSlot(p.sink) { // the checksums of a slot there are of the whole slot
		return status.New(status.Unavailable, "bytes on a device go only to memory that the host can address")
	}
	return p.throughWindow()
}

func isDeviceSlot(end any) bool {
	_, device := end.(*deviceSlot)
	return device
}

// spansAtOnce is how many spans are read at once from a tier that the host cannot address. One span that is no longer than a piece does not use all of a disk.
const spansAtOnce = 4

// fill lets the source bring the bytes to their place.
func (p *Path) fill(to []byte) error {
	if err := (filling{p, to}).all(); err != nil {
		return err
	}
	if p.movesEncoded() && p.o.Read != nil { // no stage looks at encoded bytes
		p.o.Read()
	}
	return nil
}

// filling is memory that a path fills from its source.
type filling struct {
	*Path
	to []byte
}

// all brings all spans.
func (f filling) all() error {
	if _, apart := f.source.(*objectSource); apart && len(f.spans) > 1 {
		var first atomic.Error // a disk that is lost fails all reads alike
		err := fanout.Do("span reader", spansAtOnce, len(f.spans), func(mine iter.Seq[int]) error {
			for i := range mine {
				if err := f.one(f.spans[i]); err != nil {
					first.CompareAndSwap(nil, err)
					return err
				}
			}
			return nil
		})
		return cmp.Or(first.Load(), err)
	}
	for _, span := range f.spans {
		if err := f.one(span); err != nil {
			return err
		}
	}
	return nil
}

// one brings a span.
func (f filling) one(span model.Span) error {
	arrived := func(int64, int64) {}
	if len(f.stages) > 0 {
		arrived = func(at, n int64) { f.arrived(span.Offset+at, n) }
	}
	return f.source.Read(span.Offset, f.to[span.Offset:span.Offset+span.Bytes], arrived)
}

// arrived tells the stages of bytes that have come to their place in the sink. Several goroutines may call it at once.
func (p *Path) arrived(at, n int64) {
	for _, s := range p.stages {
		s.arrived(at, n)
	}
}
