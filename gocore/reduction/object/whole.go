package object

import (
	"fmt"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// Whole describes a checkpoint all of whose bytes are in its own containers, which were made elsewhere: by a device.
type Whole struct {
	Lineage uint64
	Number  uint32
	Names   []string     // of the regions
	Spans   []model.Span // of the regions, in a slot. Offsets matter to Write alone
	// Encoding is that of the containers: their part is at most MostPart, and they have no sections. Write uses the part alone; without one it is model.PartGrain.
	Encoding *model.Encoding
	// Reference is the object with whose containers these were encoded, number by number; nil: with none. It has the same part, regions of the same lengths, and no
	// reference itself. Write does not use it.
	Reference *model.Source
}

// wholeChunk is the chunk length in the metadata of a whole checkpoint. Any would do: each region is one run.
const wholeChunk = difference.MaxChunk

// Metadata returns what a writer puts directly behind the containers. The bytes depend on nothing but w, without its offsets.
func (w *Whole) Metadata() ([]byte, error) {
	firsts, b, err := w.describe()
	if err != nil {
		return nil, err
	}
	e := w.Encoding
	if e == nil || e.Sections || e.Part > MostPart {
		return nil, fmt.Errorf("%w: containers %+v of checkpoint %d", ErrOptions, e, w.Number)
	}
	if err := e.Check(firsts); err != nil {
		return nil, err
	}
	h := &head{number: w.Number, lineage: w.Lineage, firsts: firsts, encoding: *e}
	if of := w.Reference; of != nil {
		if of.Number >= w.Number {
			return nil, fmt.Errorf("%w: the reference of checkpoint %d is number %d", ErrSources, w.Number, of.Number)
		}
		h.refers, h.reference = true, of.Number
	}
	p := h.metadata(&b)
	if len(p) > model.MostMeta {
		return nil, fmt.Errorf("%w: %s of metadata of checkpoint %d", difference.ErrLimit, quantity.Exact(int64(len(p))), w.Number)
	}
	return p, nil
}

// describe returns the first occurrences, which are all bytes of the regions, and the body of the metadata.
func (w *Whole) describe() (firsts []model.Span, b body, err error) {
	if len(w.Names) != len(w.Spans) {
		return nil, b, fmt.Errorf("%w: %d names for %d regions", ErrOptions, len(w.Names), len(w.Spans))
	}
	firsts = make([]model.Span, len(w.Spans))
	located := make([]difference.Located, len(w.Spans))
	at := int64(0)
	for i, s := range w.Spans {
		if s.Bytes < 0 || s.Bytes > difference.MaxBytes-at {
			return nil, b, fmt.Errorf("%w: the size of all regions", difference.ErrLimit)
		}
		located[i] = difference.Located{Name: w.Names[i], Size: uint64(s.Bytes)}
		if s.Bytes > 0 {
			located[i].Runs = []difference.Run{{Offset: uint64(at), Checkpoint: w.Number}}
		}
		firsts[i] = model.Span{Offset: at, Bytes: s.Bytes}
		at += s.Bytes
	}
	m, err := difference.NewMap(w.Number, located)
	if err != nil {
		return nil, b, err
	}
	b, err = newBody(w.Number, formMap, appendMap(nil, m, wholeChunk))
	return firsts, b, err
}

// Difference describes the object, with so many bytes of metadata, from outside.
func (w *Whole) Difference(meta int64) *model.Difference {
	d := &model.Difference{Lineage: w.Lineage, Number: w.Number, Data: w.Encoding.Bytes(), Meta: meta}
	if w.Reference != nil {
		d.Refers, d.Sources = true, []model.Source{*w.Reference}
	}
	return d
}

// Write writes the checkpoint to a sink as an object without a reference, and encodes it in parts of the length that Encoding has: for when the reference is gone, or there
// are no containers yet. from gives the bytes of the slot. All else is as with Draft.Write.
func (w *Whole) Write(from regions.Plain, choices []regions.Choice, most int64, to regions.Sink, o regions.Options) (*model.Difference, error) {
	if o.Reference != nil {
		return nil, fmt.Errorf("%w: checkpoint %d is written without a reference", ErrSources, w.Number)
	}
	firsts, b, err := w.describe()
	if err != nil {
		return nil, err
	}
	h := &head{number: w.Number, lineage: w.Lineage, firsts: firsts}
	part := int64(model.PartGrain)
	if w.Encoding != nil {
		part = w.Encoding.Part
	}
	if part <= 0 || part%model.PartGrain != 0 || part > MostPart {
		return nil, fmt.Errorf("%w: parts of %d B of checkpoint %d", ErrOptions, part, w.Number)
	}
	return h.write(&b, part, w.Spans, choices, most, from, to, o)
}

// Whole returns the encoding of the checkpoint's own containers, if they have all of its bytes, and no others, in the order of the regions: so a caller can take the
// containers as they are. They may need the reference. false: some bytes lie elsewhere, repeat, or are in another order.
func (r *Reader) Whole() (*model.Encoding, bool) {
	h := r.heads[len(r.heads)-1]
	for i := range r.locations.Regions {
		l, first := &r.locations.Regions[i], h.firsts[i]
		if l.Size != uint64(first.Bytes) || len(l.Runs) > 1 {
			return nil, false
		}
		if len(l.Runs) == 1 {
			if run := l.Runs[0]; run.Checkpoint != h.number || run.Period != 0 || run.Offset != uint64(first.Offset) {
				return nil, false
			}
		}
	}
	return &model.Encoding{Part: h.encoding.Part, Lengths: h.encoding.Lengths, Sections: r.described.Sections}, true
}
