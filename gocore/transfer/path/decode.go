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

// decode brings the plain bytes to their place in the sink's memory, or in memory that stands for it.
func (p *Path) decode(to []byte) error {
	if to == nil {
		return status.New(status.Unavailable, "encoded bytes are decoded only to memory that the host can address")
	}
	var read atomic.Int64
	from := func(at int64, room []byte) error {
		read.Add(int64(len(room)))
		return p.readOwn(at, room)
	}
	var err error
	if p.difference() != nil {
		err = p.decodeDifference(from, &read, to)
	} else {
		err = regions.Decode(p.version.Layout.Spans, p.version.Encoding, p.wanted(), from, to, p.arrived, p.options())
	}
	if p.x.To < 0 {
		p.x.Fetched = read.Load()
	}
	if err = p.explained(err); err == nil && p.o.Read != nil { // bytes between regions do not arrive, so no stage knows that all have been read
		p.o.Read()
	}
	return err
}

// explained says of damaged containers that they are.
func (p *Path) explained(err error) error {
	if damage := new(regions.Damage); errors.As(err, &damage) {
		return status.Wrap(status.Corrupt, err, "the bytes read are not those that were captured").AtTier(p.c.Tiers[p.x.From]).AtRegion(damage.Region)
	}
	return err
}
