package path

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// Anchor is a checkpoint with whose bytes others of the same layout are encoded on a device: with what they have in common, they become smaller. It has no anchor itself.
type Anchor struct {
	Device   bool            // its plain bytes are on the device
	At       int64           // offset of these, then
	Encoding *model.Encoding // of its copy on the host; nil: that has the plain bytes. …
	Bytes    []byte          // … This is the copy, while the other is decoded
	// Ended is called once, when the transfer does not need the anchor any more.
	Ended func(Outcome)
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
