package path

import (
	"errors"
	"time"

	"go.uber.org/atomic"

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

// forwards tells whether the bytes move between two tiers that both keep them encoded, in different forms.
func (p *Path) forwards() bool {
	return p.x.Stage != engine.Verbatim && p.x.Upper != engine.Raw && p.x.Lower != engine.Raw
}

// forward is run for such a transfer.
func (p *Path) forward() error {
	if err := p.source.prepare(); err != nil {
		return p.end(err)
	}
	p.result.Staged.Forwarded, p.result.Staged.Plain = true, p.version.Layout.End()
	if p.x.Stage == engine.Decoding {
		return p.end(p.unwrap())
	}
	return p.forwardDown()
}

func (p *Path) forwardDown() (err error) {
	f, err := p.o.Forwarder.Forward()
	if err != nil {
		return p.end(err)
	}
	s, e := &p.result.Staged, p.version.Encoding
	switch {
	case !f.Wrapped && e == nil:
		return p.end(p.writeBytes(p.version.Layout.End()))
	case !f.Wrapped:
		s.Encoding = e
		return p.end(p.writeBytes(e.Bytes()))
	}
	err = errUnfinished
	defer func() {
		if err != nil {
			s.Difference = nil
		}
		p.o.Forwarder.Leave(s.Difference)
	}()
	w := p.whole(&f, e)
	switch {
	case e == nil:
		w.Encoding = &model.Encoding{Part: f.Part}
		s.Difference, err = p.encodeWhole(w, p.source.Bytes(), p.plainChoices())
	case f.Lost == nil:
		s.Difference, err = p.wrap(w)
	default:
		s.Rewritten = true
		s.Difference, err = p.rewrite(w, f.Lost)
	}
	if errors.Is(err, ErrRoom) && f.Most {
		err = status.New(status.IO, "the encoded checkpoint needs more room than there can be")
	}
	err = p.end(err)
	return err
}

// whole describes the checkpoint as an object.
func (p *Path) whole(f *Forward, e *model.Encoding) *object.Whole {
	l := p.version.Layout
	return &object.Whole{Lineage: f.Lineage, Number: f.Number, Names: description.Names(&l.Layout), Spans: l.Spans, Encoding: e, Reference: f.Reference}
}

// writeBytes writes bytes as they are.
func (p *Path) writeBytes(n int64) error {
	if n > p.x.Writes() {
		return ErrRoom
	}
	return p.sink.Write(0, p.source.Bytes()[:n])
}

// wrap writes the containers, with metadata behind them.
func (p *Path) wrap(w *object.Whole) (*model.Difference, error) {
	meta, err := w.Metadata()
	if err != nil {
		return nil, err
	}
	d := w.Difference(int64(len(meta)))
	if d.Bytes() > p.x.Writes() {
		return nil, ErrRoom
	}
	whole := d.Data / regions.BlockBytes * regions.BlockBytes
	if whole > 0 {
		if err := p.sink.Write(0, p.source.Bytes()[:whole]); err != nil {
			return nil, err
		}
	}
	rest := d.Data - whole
	room, err := p.o.Room.Cut(rest + d.Meta)
	if err != nil {
		return nil, err
	}
	last := room[0] // in whole blocks
	copy(last, p.source.Bytes()[whole:d.Data])
	clear(last[rest+int64(copy(last[rest:], meta)):])
	return d, p.sink.Write(whole, last)
}

// rewrite encodes the checkpoint without its anchor, which the tier will not get.
func (p *Path) rewrite(w *object.Whole, anchor *Anchor) (*model.Difference, error) {
	l, began := p.version.Layout, time.Now()
	m, err := slots.Beside(l, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Unmap() }() // mapped here; no other goroutine uses it
	slot, containers := m.Bytes(0, m.Size()), p.source.Bytes()
	from := func(at int64, room []byte) error {
		copy(room, containers[at:])
		return nil
	}
	o := p.options()
	o.Reference = anchor.reference(l.Spans, w.Encoding)
	if err = regions.Decode(l.Spans, w.Encoding, l.Spans, from, slot, func(int64, int64) {}, o); err != nil {
		return nil, p.explained(err)
	}
	if bad := p.version.Mismatch(slot, l.All()); bad >= 0 {
		return nil, checkpoint.Damaged(bad, p.c.Tiers[p.x.From])
	}
	p.result.Staged.Waited = time.Since(began).Nanoseconds()
	w.Encoding = nil
	return p.encodeWhole(w, slot, p.anyModes())
}

// encodeWhole writes the plain bytes of a slot as an object.
func (p *Path) encodeWhole(w *object.Whole, slot []byte, choices []regions.Choice) (*model.Difference, error) {
	out, began := timedWriter{sink: p.sink}, time.Now()
	plain := func(at int64, room []byte) ([]byte, error) { return slot[at : at+int64(len(room))], nil }
	d, err := w.Write(plain, choices, p.x.Writes(), out.write, p.options())
	p.result.Staged.Waited += out.waited(began)
	if errors.Is(err, regions.ErrLarge) {
		err = ErrRoom
	}
	return d, err
}

// unwrap brings containers up as they are, or the plain bytes, if memory had these, or has not more room.
func (p *Path) unwrap() error {
	n, to, s := p.version.Layout.End(), p.sink.Bytes(), &p.result.Staged
	d, e := p.difference(), p.version.Encoding
	if d != nil && e == nil {
		return p.decodeUp(to)
	}
	if d != nil {
		r, err := object.Open(d, description.Names(&p.version.Layout.Layout), p.version.Layout.Spans, p.objectsOf(d, p.readOwn, new(atomic.Int64)).read)
		if damage := new(object.Damage); errors.As(err, &damage) {
			return p.damaged(damage)
		}
		if err != nil {
			return err
		}
		var ok bool
		if e, ok = r.Whole(); !ok {
			return status.New(status.Corrupt, "the object is not one that a device has encoded").AtTier(p.c.Tiers[p.x.From])
		}
	}
	if e != nil {
		n = e.Bytes()
	}
	if n > int64(len(to)) {
		return p.decodeUp(to)
	}
	s.Encoding = e
	err := p.readOwn(0, to[:n])
	if err == nil && p.o.Read != nil {
		p.o.Read()
	}
	return err
}

// readOwn reads the bytes of the source.
func (p *Path) readOwn(at int64, room []byte) error {
	return p.source.Read(at, room, func(int64, int64) {})
}

// decodeUp brings up the plain bytes of an object.
func (p *Path) decodeUp(to []byte) error {
	err := p.decodeDifference(p.readOwn, new(atomic.Int64), to)
	if err == nil && p.o.Read != nil {
		p.o.Read()
	}
	return err
}
