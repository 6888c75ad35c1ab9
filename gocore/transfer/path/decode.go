package path

import (
	"errors"

	"go.uber.org/atomic"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/regions"
)

// decodes tells whether the source has an encoding or a difference. A transfer with a decoding stage may also find the plain bytes.
func (p *Path) decodes() bool {
	if p.x.Lower == engine.Deduplicated {
		return p.o.Parts != nil && p.x.Stage == engine.Decoding
	}
	return p.x.Stage == engine.Decoding && (p.difference() != nil || p.version.Encoding != nil) // a load of a difference may change the encoding meanwhile
}

// difference is that of the copy which a transfer brings up; nil: it has none. Meanwhile the copy in a tier below may get one.
func (p *Path) difference() *model.Difference {
	if p.x.Lower != engine.Difference {
		return nil
	}
	return p.version.Difference
}

// stored are the spans of the source that the path reads, or the whole of it where these depend on the encoding.
func (p *Path) stored() []model.Span {
	switch {
	case !p.decodes():
		return p.spans
	case p.o.Parts != nil:
		return []model.Span{{Bytes: p.o.Parts.Of.Bytes}}
	case p.difference() != nil:
		return []model.Span{{Bytes: p.difference().Bytes()}}
	}
	return []model.Span{{Bytes: p.version.Encoding.Bytes()}}
}

// wanted are the parts of the path's spans that lie in regions which are wanted. One read of a disk covers what lies between them too, but it need not be
// decoded, and damage there is none of this transfer's.
func (p *Path) wanted() (all []model.Span) {
	rest := p.spans
	for _, i := range p.regions {
		region := p.version.Layout.Spans[i]
		for len(rest) > 0 && rest[0].End() <= region.Offset {
			rest = rest[1:]
		}
		for _, s := range rest {
			from, end := max(s.Offset, region.Offset), min(s.End(), region.End())
			if from >= end {
				break
			}
			all = append(all, model.Span{Offset: from, Bytes: end - from})
		}
	}
	return all
}

// decoder decodes the bytes of one path on their way.
type decoder struct {
	*Path

	read atomic.Int64 // bytes that were read: of the source, and of the other objects that it needs
}

// decode brings the plain bytes to their place in the sink's memory, or in memory that stands for it.
func (dec *decoder) decode(to []byte) error {
	if to == nil {
		return status.New(status.Unavailable, "encoded bytes are decoded only to memory that the host can address")
	}
	var err error
	switch {
	case dec.o.Parts != nil:
		err = dec.gatherParts(dec.wanted(), to, dec.arrived)
		for _, w := range dec.wanted() {
			dec.read.Add(w.Bytes)
		}
	case dec.difference() != nil:
		err = dec.decodeDifference(to)
	default:
		err = regions.Decode(dec.version.Layout.Spans, dec.version.Encoding, dec.wanted(), dec.readOwn, to, dec.arrived, dec.options())
	}
	if dec.x.To < 0 {
		dec.x.Fetched = dec.read.Load()
	}
	if err = dec.explained(err); err == nil && dec.o.Read != nil { // bytes between regions do not arrive, so no stage knows that all have been read
		dec.o.Read()
	}
	return err
}

// decodeUp brings up the plain bytes of an object.
func (dec *decoder) decodeUp(to []byte) error {
	err := dec.decodeDifference(to)
	if err == nil && dec.o.Read != nil {
		dec.o.Read()
	}
	return err
}

// readOwn reads bytes of the source.
func (dec *decoder) readOwn(at int64, room []byte) error {
	dec.read.Add(int64(len(room)))
	return dec.source.Read(at, room, func(int64, int64) {})
}

// explained says of damaged containers that they are.
func (p *Path) explained(err error) error {
	if damage := new(regions.Damage); errors.As(err, &damage) {
		return status.Wrap(status.Corrupt, err, "the bytes read are not those that were captured").AtTier(p.c.Tiers[p.x.From]).AtRegion(damage.Region)
	}
	return err
}
