package path

import (
	"errors"
	"time"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/transfer/slots"
)

// Memory keeps what a device has encoded in containers. The disk below keeps these containers: as objects of a lineage, with metadata behind them, of checkpoints that
// were encoded with others and of those others, and else as they are. So nothing is decoded on the way down or up.

// Forwarder plans one transfer of encoded bytes to such a tier. No lock is held.
type Forwarder interface {
	// Forward says how the checkpoint goes down. What it needs in the tier is held until Leave is called. It fails with ErrAnchor if its anchor is to go first.
	Forward() (Forward, error)
	// Leave ends that. x is the object that has been written; nil: none.
	Leave(x *model.Difference)
}

// Forward is how encoded bytes go down.
type Forward struct {
	Wrapped   bool   // they become an object …
	Lineage   uint64 // … of this lineage …
	Number    uint32 // … with this number
	Part      int64  // … and, if memory has the plain bytes, containers of so many of them
	Reference *model.Source
	Lost      *Anchor // the tier lacks the anchor and will not get it: this is its copy in memory, with which the checkpoint is decoded; nil: the tier has it, or there is none
	Most      bool    // no more room can be had than there is
}

// ErrAnchor: the checkpoint with which this one was encoded has to go to the tier before it.
var ErrAnchor = errors.New("the anchor goes to the tier first")

// forwards tells whether the bytes move between two tiers that both keep them encoded, in different forms. What memory has of a de-duplicated checkpoint is no use for another
// tier: plain bytes go down and come up.
func (p *Path) forwards() bool {
	return p.x.Stage != engine.Verbatim && p.x.Upper != engine.Raw && p.x.Upper != engine.Deduplicated && p.x.Lower != engine.Raw
}

// forwarding is the run of such a transfer.
type forwarding struct {
	*Path

	plan Forward // of the way down
}

func (fw *forwarding) run() error {
	if err := fw.source.prepare(); err != nil {
		return fw.end(err)
	}
	fw.result.Staged.Forwarded, fw.result.Staged.Plain = true, fw.version.Layout.End()
	if fw.x.Stage == engine.Decoding {
		return fw.end(fw.up())
	}
	return fw.down()
}

func (fw *forwarding) down() (err error) {
	if fw.plan, err = fw.o.Forwarder.Forward(); err != nil {
		return fw.end(err)
	}
	f, s, e := &fw.plan, &fw.result.Staged, fw.version.Encoding
	switch {
	case !f.Wrapped && e == nil:
		return fw.end(fw.writeBytes(fw.version.Layout.End()))
	case !f.Wrapped:
		s.Encoding = e
		return fw.end(fw.writeBytes(e.Bytes()))
	}
	err = errUnfinished
	defer func() {
		if err != nil {
			s.Difference = nil
		}
		fw.o.Forwarder.Leave(s.Difference)
	}()
	w := fw.whole(e)
	switch {
	case e == nil:
		w.Encoding = &model.Encoding{Part: f.Part}
		s.Difference, err = fw.encodeWhole(w, fw.source.Bytes(), plainChoices(fw.version.Layout))
	case f.Lost == nil:
		s.Difference, err = fw.wrap(w)
	default:
		s.Rewritten = true
		s.Difference, err = fw.rewrite(w, f.Lost)
	}
	if errors.Is(err, ErrRoom) && f.Most {
		err = status.New(status.IO, "the encoded checkpoint needs more room than there can be")
	}
	err = fw.end(err)
	return err
}

// whole describes the checkpoint as an object.
func (fw *forwarding) whole(e *model.Encoding) *object.Whole {
	f, l := &fw.plan, fw.version.Layout
	return &object.Whole{Lineage: f.Lineage, Number: f.Number, Names: description.Names(&l.Layout), Spans: l.Spans, Encoding: e, Reference: f.Reference}
}

// writeBytes writes bytes as they are.
func (fw *forwarding) writeBytes(n int64) error {
	if n > fw.x.Writes() {
		return ErrRoom
	}
	return fw.sink.Write(0, fw.source.Bytes()[:n])
}

// wrap writes the containers, with metadata behind them.
func (fw *forwarding) wrap(w *object.Whole) (*model.Difference, error) {
	meta, err := w.Metadata()
	if err != nil {
		return nil, err
	}
	d := w.Difference(int64(len(meta)))
	if d.Bytes() > fw.x.Writes() {
		return nil, ErrRoom
	}
	whole := d.Data / regions.BlockBytes * regions.BlockBytes
	if whole > 0 {
		if err := fw.sink.Write(0, fw.source.Bytes()[:whole]); err != nil {
			return nil, err
		}
	}
	rest := d.Data - whole
	room, err := fw.o.Room.Cut(rest + d.Meta)
	if err != nil {
		return nil, err
	}
	last := room[0] // in whole blocks
	copy(last, fw.source.Bytes()[whole:d.Data])
	clear(last[rest+int64(copy(last[rest:], meta)):])
	return d, fw.sink.Write(whole, last)
}

// rewrite encodes the checkpoint without its anchor, which the tier will not get.
func (fw *forwarding) rewrite(w *object.Whole, anchor *Anchor) (*model.Difference, error) {
	l, began := fw.version.Layout, time.Now()
	m, err := slots.Beside(l, l.Slot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Unmap() }() // mapped here; no other goroutine uses it
	slot, containers := m.Bytes(0, m.Size()), fw.source.Bytes()
	from := func(at int64, room []byte) error {
		copy(room, containers[at:])
		return nil
	}
	o := fw.options()
	o.Reference = anchor.reference(l.Spans, w.Encoding)
	if err = regions.Decode(l.Spans, w.Encoding, l.Spans, from, slot, func(int64, int64) {}, o); err != nil {
		return nil, fw.explained(err)
	}
	if bad := fw.version.Mismatch(slot, l.All()); bad >= 0 {
		return nil, checkpoint.Damaged(bad, fw.c.Tiers[fw.x.From])
	}
	fw.result.Staged.Waited = time.Since(began).Nanoseconds()
	w.Encoding = nil
	return fw.encodeWhole(w, slot, anyModes(fw.version.Layout))
}

// encodeWhole writes the plain bytes of a slot as an object.
func (fw *forwarding) encodeWhole(w *object.Whole, slot []byte, choices []regions.Choice) (*model.Difference, error) {
	out, began := timedWriter{sink: fw.sink}, time.Now()
	plain := func(at int64, room []byte) ([]byte, error) { return slot[at : at+int64(len(room))], nil }
	d, err := w.Write(plain, choices, fw.x.Writes(), out.write, fw.options())
	fw.result.Staged.Waited += out.waited(began)
	if errors.Is(err, regions.ErrLarge) {
		err = ErrRoom
	}
	return d, err
}

// up brings containers up as they are, or the plain bytes, if memory had these, or has not more room.
func (fw *forwarding) up() error {
	n, to, s := fw.version.Layout.End(), fw.sink.Bytes(), &fw.result.Staged
	d, e, dec := fw.difference(), fw.version.Encoding, &decoder{Path: fw.Path}
	if d != nil && e == nil {
		return dec.decodeUp(to)
	}
	if d != nil {
		r, err := object.Open(d, description.Names(&fw.version.Layout.Layout), fw.version.Layout.Spans, dec.objectsOf(d, dec.readOwn).read)
		if damage := new(object.Damage); errors.As(err, &damage) {
			return dec.damaged(damage)
		}
		if err != nil {
			return err
		}
		var ok bool
		if e, ok = r.Whole(); !ok {
			return status.New(status.Corrupt, "the object is not one that a device has encoded").AtTier(fw.c.Tiers[fw.x.From])
		}
	}
	if e != nil {
		n = e.Bytes()
	}
	if n > int64(len(to)) {
		return dec.decodeUp(to)
	}
	s.Encoding = e
	err := dec.readOwn(0, to[:n])
	if err == nil && fw.o.Read != nil {
		fw.o.Read()
	}
	return err
}
