package path

import (
	"errors"
	"slices"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier"
)

// Anchor is a checkpoint with whose bytes others of the same layout are encoded on a device: with what they have in common, they become smaller. It has no anchor itself.
type Anchor struct {
	Device   bool            // its plain bytes are on the device
	At       int64           // offset of these, then
	Encoding *model.Encoding // of its copy on the host; nil: that has the plain bytes. …
	Bytes    []byte          // … This is the copy, while the other is decoded
	Stored   *StoredAnchor   // where it is, if the host does not have it; nil: the host or the device does
	// Ended is called once, when the transfer does not need the anchor any more.
	Ended func(Outcome)
}

// StoredAnchor is the object of an anchor in a tier that the host cannot address.
type StoredAnchor struct {
	Tier    int
	Lineage uint64
	Source  model.Source
	memory  *memory.Mapping // its containers, once they have been read
}

// Outcome is what an encoder came to with an anchor.
type Outcome uint8

// The outcomes.
const (
	Unused Outcome = iota // an error, or a transfer that has decoded
	Used                  // the checkpoint was encoded with the anchor
	Unlike                // it has too little in common with it
)

// endAnchor tells who has lent the anchor what came of it. The path has no anchor then.
func (p *Path) endAnchor(did Outcome) {
	if p.anchor != nil {
		p.result.Staged.Related = did == Used
		p.anchor.Ended(did)
		p.anchor.Stored.free()
	}
	p.anchor = nil
}

// fits tells whether the containers of an encoding have the plain bytes that those of the anchor have. Without an anchor there is nothing to fit.
func (a *Anchor) fits(e *model.Encoding) bool {
	return a == nil || a.Device || a.Encoding == nil || a.Encoding.Part == e.Part && !a.Encoding.Sections && len(a.Encoding.Lengths) == len(e.Lengths)
}

// containers are what the bytes of the anchor consist of, for another checkpoint with these containers: those of its own encoding, or its plain bytes.
func (a *Anchor) containers(spans []model.Span, others []model.Container) []model.Container {
	if a.Encoding != nil {
		return a.Encoding.Containers(spans)
	}
	all := slices.Clone(others)
	for i := range all {
		all[i].At = all[i].Plain
	}
	return all
}

// reference is that of an encoding with the anchor. The host decodes it container by container.
func (a *Anchor) reference(spans []model.Span, e *model.Encoding) regions.Reference {
	all := a.containers(spans, e.Containers(spans))
	return func(container int, plain, _ []byte) error {
		at := all[container].At
		bytes := a.Bytes[at.Offset:at.End()]
		if a.Encoding == nil {
			copy(plain, bytes)
			return nil
		}
		c, err := codec.Open(bytes, len(plain))
		if err == nil {
			err = c.Decode(plain, nil, 1)
		}
		return err
	}
}

// readAnchor brings the containers of an anchor that is stored to memory beside the cache: those with plain bytes that are wanted.
func (p *Path) readAnchor() error {
	if p.anchor == nil || p.anchor.Stored == nil {
		return nil
	}
	a, s, l := p.anchor, p.anchor.Stored, p.version.Layout
	opened, err := p.c.Objects(s.Tier).Open(tier.Object{Offset: s.Source.Offset, Bytes: s.Source.Bytes()})
	if err != nil {
		return err
	}
	read := func(_ int, at int64, room []byte) error { return opened.Read(at, room, func(int64, int64) {}) }
	of := &model.Difference{Lineage: s.Lineage, Number: s.Source.Number, Data: s.Source.Data, Meta: s.Source.Meta}
	r, err := object.Open(of, description.Names(&l.Layout), l.Spans, read)
	if damage := new(object.Damage); errors.As(err, &damage) {
		p.o.Copies.Damaged(s.Source.Offset)
		return status.Wrap(status.Corrupt, damage, "the bytes read are not those that were captured").AtTier(p.c.Tiers[s.Tier])
	}
	if err != nil {
		return err
	}
	e, whole := r.Whole()
	if !whole { // cannot happen: it has no sources
		return status.New(status.Corrupt, "an anchor has bytes of others").AtTier(p.c.Tiers[s.Tier])
	}
	if s.memory, err = memory.Map("anchor", max(s.Source.Data, 1)); err != nil {
		return status.Wrap(status.IO, err, "cannot map memory beside the cache")
	}
	a.Encoding, a.Bytes = e, s.memory.Bytes(0, s.Source.Data)
	for _, needed := range neededOf(e.Containers(l.Spans), p.wanted()) {
		if err := read(object.Own, needed.Offset, a.Bytes[needed.Offset:needed.End()]); err != nil {
			return err
		}
	}
	return nil
}

// neededOf are the bytes of the containers that have some of the wanted plain bytes. Both lists ascend; neighbours are one span.
func neededOf(all []model.Container, wanted []model.Span) (needed []model.Span) {
	for _, c := range all {
		for len(wanted) > 0 && wanted[0].End() <= c.Plain.Offset {
			wanted = wanted[1:]
		}
		switch last := len(needed) - 1; {
		case len(wanted) == 0 || wanted[0].Offset >= c.Plain.End():
		case last >= 0 && needed[last].End() == c.At.Offset:
			needed[last].Bytes += c.At.Bytes
		default:
			needed = append(needed, c.At)
		}
	}
	return needed
}

// free gives back the memory of a stored anchor, if there is any.
func (s *StoredAnchor) free() {
	if s != nil && s.memory != nil {
		_ = s.memory.Unmap() // no other goroutine uses it
		s.memory = nil
	}
}
