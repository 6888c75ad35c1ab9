package object

import (
	"fmt"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/regions"
)

// Write writes the object to a sink: in whole blocks of regions.BlockBytes, with zeros behind the end. sources describes exactly the objects of Sources, in a
// tier. There is a choice for each region; its first occurrences are encoded so. Write fails with regions.ErrLarge if the object has more than most bytes. It can
// be called again, for another sink. o.Reference gives the bytes of the draft's Reference, if it has one.
func (d *Draft) Write(sources []model.Source, choices []regions.Choice, most int64, to regions.Sink, o regions.Options) (*model.Difference, error) {
	if err := d.check(sources); err != nil {
		return nil, err
	}
	if d.refers != (o.Reference != nil) {
		return nil, fmt.Errorf("%w: the bytes of its reference", ErrSources)
	}
	if d.refers {
		choices = regions.WithReference(choices)
	}
	h := &head{number: d.number, lineage: d.lineage, firsts: d.firsts, refers: d.refers, reference: d.reference}
	g := gatherer{d: d}
	made, err := h.write(&d.body, model.PartGrain, d.firsts, choices, most, g.plain, to, o)
	if err != nil {
		return nil, err
	}
	made.Sources = sources
	return made, nil
}

// write encodes first occurrences, which lie at these spans of what from gives, in parts. It writes the object, and describes it without its sources.
func (h *head) write(b *body, part int64, spans []model.Span, choices []regions.Choice, most int64, from regions.Plain, to regions.Sink, o regions.Options) (*model.Difference, error) {
	if len(choices) != len(spans) {
		return nil, fmt.Errorf("%w: %d choices for %d regions", ErrOptions, len(choices), len(spans))
	}
	var meta int64
	behind := func(e *model.Encoding) ([]byte, error) {
		h.encoding = *e
		p := h.metadata(b)
		meta = int64(len(p))
		return p, nil
	}
	e, err := regions.EncodeBefore(behind, spans, choices, part, most, from, to, o)
	if err != nil {
		return nil, err
	}
	return &model.Difference{Lineage: h.lineage, Number: h.number, Data: e.Bytes(), Meta: meta, Sections: e.Sections, Refers: h.refers}, nil
}

func (d *Draft) check(sources []model.Source) error {
	same := len(sources) == len(d.sources)
	for i := 0; same && i < len(sources); i++ {
		same = sources[i].Number == d.sources[i]
	}
	if !same {
		return fmt.Errorf("%w: checkpoint %d has %d", ErrSources, d.number, d.sources)
	}
	return nil
}

// gatherer gives the first occurrences in their order.
type gatherer struct {
	d    *Draft
	next int // index of the stretch that has the next byte
}

// plain is a regions.Plain. Bytes of one stretch are given where they are.
func (g *gatherer) plain(at int64, room []byte) ([]byte, error) {
	for n := 0; n < len(room); {
		s := &g.d.stretches[g.next]
		skip := at + int64(n) - s.to
		part := g.d.regions[s.region].Bytes[s.at+skip : s.at+s.bytes]
		if n == 0 && len(part) >= len(room) {
			if len(part) == len(room) {
				g.next++
			}
			return part[:len(room):len(room)], nil
		}
		copied := copy(room[n:], part)
		if n += copied; copied == len(part) {
			g.next++
		}
	}
	return room, nil
}
