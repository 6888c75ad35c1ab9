package path

import (
	"errors"
	"runtime"
	"time"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/regions"
)

// Planner decides for one transfer. No lock is held.
type Planner interface {
	// Next plans the transfer. slot is the checkpoint's memory, so that it may become a difference; nil: the host cannot address it.
	Next(slot []byte) encoding.Plan
	// Sampled takes what a sample says for which a plan asks, and returns what becomes of the plan.
	Sampled(plan encoding.Plan, c []regions.Choice, plain, encoded int64) encoding.Plan
	// Anchor returns a checkpoint of the device with which the checkpoint is encoded, until its Ended is called; nil if there is none after all.
	Anchor() *Anchor
	// Lineage returns the lineage to which the checkpoint is added, which no other transfer uses before Leave; nil if it is not de-duplicated.
	Lineage() Lineage
	// DeviceLineage is the same of the device that the checkpoint leaves.
	DeviceLineage() DeviceLineage
}

// Staged says what a transfer with a stage did.
type Staged struct {
	Way      encoding.Way
	Plain    int64            // bytes of the regions that moved, before the encoding
	Took     int64            // ns of the whole transfer
	Waited   int64            // ns of it that the link waited for the encoder
	Choices  []regions.Choice // with which the bytes were encoded
	Tried    bool             // no sample was taken: the checkpoint itself stands for one
	Follows  bool             // it moved together with one of which the planner learns what both cost
	GaveUp   bool             // the encoded bytes were too many, so the plain ones have moved, …
	Unlike   bool             // … of a checkpoint that has too little in common with an anchor
	Encoding *model.Encoding  // of the bytes that were written; nil: they are plain, or a difference
	Related  bool             // they were encoded with an anchor
	Together int              // checkpoints that a device encoded together, this one included; 0: the host encoded it
	Call     Call             // of the device's encoder, for the first group of what was encoded together; with one of these

	Difference *model.Difference // that was written; nil: none
	First      int64             // bytes of its first occurrences

	Deduplicated *checkpoint.Deduplicated // what a device has written to the host; nil: something else
	Meta         int64                    // bytes of metadata that came with it
	Crossed      int64                    // bytes that have crossed the link to bring such a checkpoint up; 0: the checkpoint was none

	// Of encoded bytes that moved as they are. Encoding is that of what was brought up, or written; nil: plain bytes were, or a difference.
	Forwarded bool
	Rewritten bool // they were encoded anew, without an anchor that is gone

	Mended []uint32 // numbers of damaged objects whose bytes were taken from checkpoints in memory
}

// Call is a call of a device's encoder.
type Call struct {
	Bytes int64 // plain
	Took  int64 // ns until the host knew the lengths; 0: it was not timed
}

// Bytes is how many bytes were written instead of the plain ones; 0: the plain ones were.
func (s *Staged) Bytes() int64 {
	switch {
	case s.Deduplicated != nil:
		return max(1, s.Deduplicated.Bytes)
	case s.Difference != nil:
		return s.Difference.Bytes()
	case s.Encoding != nil:
		return s.Encoding.Bytes()
	}
	return 0
}

// Written is how many bytes were written: those, or the plain ones.
func (s *Staged) Written() int64 {
	if n := s.Bytes(); n > 0 {
		return n
	}
	return s.Plain
}

// partBytes is the length of a container's plain bytes. A restore of a part of a region reads whole containers, and in smaller ones runs of the disk would be
// shorter than what it reads at once.
const partBytes = 1 << 20

// mostGoroutines bounds how many goroutines encode or decode one checkpoint.
const mostGoroutines = 4

// ErrRoom: the object has not the room that the bytes need. It got what was predicted, and nothing of it was committed.
var ErrRoom = errors.New("the encoded bytes need more room than was predicted")

// runStaged is run for transfers with and without a stage.
func (p *Path) runStaged() error {
	switch {
	case p.x.Stage == engine.Verbatim:
		return p.run()
	case p.forwards():
		return (&forwarding{Path: p}).run()
	}
	if err := p.begin(); err != nil {
		return err
	}
	err := p.runDifference()
	return p.staged(err, time.Since(p.began))
}

// begin plans a transfer with a stage.
func (p *Path) begin() error {
	p.began = time.Now()
	if p.x.Stage != engine.Encoding {
		if err := p.readAnchor(); err != nil {
			return p.end(err)
		}
		return nil
	}
	if p.o.Planner != nil {
		p.encoder.plan = p.encoder.planned()
	}
	if p.encoder.hasLess() && p.encoder.plan.Way == encoding.Plain && p.encoder.lineage == nil {
		return p.end(ErrRoom)
	}
	return nil
}

// staged ends a transfer with a stage that took so long. If encoding does not pay after all, the plain bytes move.
func (p *Path) staged(err error, took time.Duration) error {
	s := &p.result.Staged
	if errors.Is(err, regions.ErrLarge) {
		if p.encoder.hasLess() {
			return ErrRoom
		}
		s.GaveUp = true
		if err = p.reopen(); err == nil {
			err = p.run()
		}
		took = time.Since(p.began)
	}
	for _, moved := range p.wanted() {
		s.Plain += moved.Bytes
	}
	s.Took, s.Follows = took.Nanoseconds(), p.encoder.plan.Follows
	switch {
	case s.Deduplicated != nil, p.decodes() && p.o.Parts != nil:
		s.Way = encoding.Deduplicated
	case s.Difference != nil, p.decodes() && p.difference() != nil:
		s.Way = encoding.Difference
	case p.anchor != nil && (s.Encoding != nil || p.decodes()):
		s.Way = encoding.Difference
	case s.Encoding != nil, p.decodes():
		s.Way = encoding.Encoded
	}
	return err
}

// encoder encodes the bytes of a path, or leaves out those that earlier objects of a lineage have.
type encoder struct {
	*Path

	plan    encoding.Plan // of a transfer with an encoding stage
	lineage Lineage       // to which the checkpoint is added; nil: none

	onDevice DeviceLineage // to which the device adds the checkpoint; nil: none
}

// planned returns the plan of the transfer, after a sample where it asks for one.
func (enc *encoder) planned() encoding.Plan {
	removes := enc.x.Lower == engine.Deduplicated // then the host keeps no containers
	if !enc.canEncode() || removes && !enc.o.Deduplicates {
		return encoding.Plan{}
	}
	from := enc.source.Bytes()
	plan := enc.o.Planner.Next(from) // a lineage compares a checkpoint as a whole with those before
	if plan.Sample {
		if from == nil { // they are read once, or lie on a device, so a sample would be in the way
			enc.result.Staged.Tried = plan.Way == encoding.Encoded
			plan.Sample, plan.Choices = false, anyModes(enc.version.Layout)
		} else {
			choices, plain, encoded := sample(enc.version.Layout, from)
			plan = enc.o.Planner.Sampled(plan, choices, plain, encoded)
		}
	}
	switch {
	case plan.Way == encoding.Deduplicated:
		return enc.deduplicated(plan)
	case plan.Way == encoding.Difference:
		return enc.related(plan)
	case removes:
		return encoding.Plan{}
	}
	return plan
}

// related goes on with the plan of a difference: in a lineage, or, of a device, with another checkpoint of the device.
func (enc *encoder) related(plan encoding.Plan) encoding.Plan {
	if !isDeviceSlot(enc.source) {
		if enc.lineage = enc.o.Planner.Lineage(); enc.lineage == nil {
			plan.Way = encoding.Plain
		}
		return plan
	}
	if plan.Choices == nil {
		plan.Choices = anyModes(enc.version.Layout)
	}
	if enc.anchor = enc.o.Planner.Anchor(); enc.anchor != nil {
		plan.Choices = regions.WithReference(plan.Choices)
	} else {
		plan.Way = encoding.Encoded
	}
	return plan
}

// deduplicated goes on with the plan of a checkpoint that its device de-duplicates.
func (enc *encoder) deduplicated(plan encoding.Plan) encoding.Plan {
	if enc.onDevice = enc.o.Planner.DeviceLineage(); enc.onDevice == nil {
		plan.Way = encoding.Plain
	} else {
		enc.result.Ended = enc.onDevice.Leave
	}
	return plan
}

// encodes tells whether the plan asks for an encoder, and not for a lineage.
func (enc *encoder) encodes() bool {
	return enc.plan.Way == encoding.Encoded || enc.plan.Way == encoding.Difference && enc.lineage == nil
}

// canEncode tells whether there is an encoder for source and sink. What comes straight from a caller to memory is not encoded.
func (enc *encoder) canEncode() bool {
	s, device := enc.source.(*deviceSlot)
	if device {
		return s.lane != nil && (enc.o.Staging != nil || enc.o.Deduplicates) && enc.sink.Bytes() != nil
	}
	return enc.sink.Bytes() == nil && !isDeviceSlot(enc.sink)
}

// options are those of encoders and decoders.
func (p *Path) options() regions.Options {
	o := regions.Options{Goroutines: min(mostGoroutines, runtime.GOMAXPROCS(0)), Room: p.o.Room, Compression: p.encoder.plan.Compression}
	if p.decodes() && p.anchor != nil {
		o.Reference = p.anchor.reference(p.version.Layout.Spans, p.version.Encoding)
	}
	return o
}

// hasLess tells whether the sink has less room than the plain bytes need.
func (enc *encoder) hasLess() bool { return enc.x.Writes() < enc.version.Layout.End() }

// most is how many bytes the encoded checkpoint may have: no more than its plain bytes, nor than it has room for.
func (enc *encoder) most() int64 { return min(enc.x.Writes(), enc.version.Layout.End()) }

// encode writes the containers of all regions.
func (enc *encoder) encode() error {
	l := enc.version.Layout
	slot := enc.source.Bytes()
	from := func(at int64, room []byte) ([]byte, error) {
		if slot != nil {
			return slot[at : at+int64(len(room))], nil
		}
		return room, enc.source.Read(at, room, func(int64, int64) {})
	}
	w, began := timedWriter{sink: enc.sink}, time.Now()
	made, err := regions.Encode(l.Spans, enc.plan.Choices, partBytes, enc.most(), from, w.write, enc.options())
	if err == nil {
		s := &enc.result.Staged
		s.Encoding, s.Choices, s.Waited = made, enc.plan.Choices, w.waited(began)
	}
	return err
}

// timedWriter writes to a sink what an encoder gives it, block behind block, and adds up how long that takes.
type timedWriter struct {
	sink    sink
	at      int64
	writing int64 // ns
}

func (w *timedWriter) write(p []byte) error {
	asked := time.Now()
	err := w.sink.Write(w.at, p)
	w.at += int64(len(p))
	w.writing += time.Since(asked).Nanoseconds()
	return err
}

// waited is for how many ns since then the sink has had nothing to write.
func (w *timedWriter) waited(began time.Time) int64 {
	return max(0, time.Since(began).Nanoseconds()-w.writing)
}

// reopen prepares the path to move the plain bytes after all.
func (p *Path) reopen() (err error) {
	p.result.Staged.Unlike = p.anchor != nil
	p.endAnchor(Unlike)
	p.encoder.plan, p.encoder.lineage, p.encoder.onDevice, p.began = encoding.Plan{}, nil, nil, time.Now() // what was in vain is no cost of the plain bytes
	p.source.close()
	if p.source, err = p.sourceOf(p.x.From); err != nil {
		return err
	}
	if p.sink, err = p.sinkOf(p.x.To); err == nil {
		p.stages = p.stagesFor(p.regions)
	}
	return err
}
