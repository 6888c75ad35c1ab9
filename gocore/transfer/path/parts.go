package path

import (
	"errors"
	"fmt"
	"runtime"
	"sort"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/transfer/slots"
)

// Parts are where the bytes lie of a checkpoint whose copy on the host has what is new in it. The engine keeps all these copies where they are while the transfer runs.
type Parts struct {
	Of     *checkpoint.Deduplicated
	Firsts map[uint32][]byte // first occurrences by the number of their checkpoint, its own included

	Pinned   bool      // kernels can read these
	Resident *Resident // what the device of the sink has, to take from there; nil: nothing
	Ended    func()    // called once, when the transfer does not need Resident any more; nil: there is none
}

// errPart is the error of a map that names bytes which no copy has.
var errPart = errors.New("no copy on the host has these bytes")

// read gives bytes of the first occurrences of a checkpoint.
func (ps *Parts) read(number uint32, offset uint64, to []byte) error {
	firsts := ps.Firsts[number]
	if offset > uint64(len(firsts)) || uint64(len(to)) > uint64(len(firsts))-offset {
		return fmt.Errorf("%w: %s at %d of %s", errPart, quantity.Exact(int64(len(to))), offset, quantity.Exact(int64(len(firsts))))
	}
	copy(to, firsts[offset:])
	return nil
}

// gathered is how many bytes one goroutine puts together at once.
const gathered = 4 << 20

// gatherParts puts parts of regions together, at their places in a slot. They lie each in one region.
func (p *Path) gatherParts(wanted []model.Span, slot []byte, arrived func(at, n int64)) error {
	var pieces []model.Span
	for _, w := range wanted {
		for at := w.Offset; at < w.End(); at += gathered {
			pieces = append(pieces, model.Span{Offset: at, Bytes: min(gathered, w.End()-at)})
		}
	}
	spans := p.version.Layout.Spans
	err := regions.EachGroup(min(mostGoroutines, runtime.GOMAXPROCS(0)), len(pieces), func(_, i int) error {
		piece := pieces[i]
		region := sort.Search(len(spans), func(i int) bool { return spans[i].End() > piece.Offset })
		from := uint64(piece.Offset - spans[region].Offset)
		if err := p.o.Parts.Of.Map.Regions[region].Read(from, slot[piece.Offset:piece.End()], p.o.Parts.read); err != nil {
			return status.Wrap(status.Corrupt, err, "the bytes read are not those that were captured").AtTier(p.c.Tiers[p.x.From]).AtRegion(region)
		}
		arrived(piece.Offset, piece.Bytes)
		return nil
	})
	return err
}

// gatheredSlot is the plain bytes of such a checkpoint, beside the cache.
type gatheredSlot struct {
	hostMemory
	memory *memory.Mapping
}

// gather makes a source of the plain bytes. They are verified: they go to a tier below, where nobody can tell any more what was wrong.
func (p *Path) gather() (*gatheredSlot, error) {
	m, err := slots.Beside(p.version.Layout, p.version.Layout.Slot)
	if err != nil {
		return nil, err
	}
	s := &gatheredSlot{memory: m}
	s.bytes = m.Bytes(0, m.Size())
	var all []model.Span
	for _, span := range p.version.Layout.Spans {
		if span.Bytes > 0 {
			all = append(all, span)
		}
	}
	if err = p.gatherParts(all, s.bytes, func(int64, int64) {}); err == nil {
		err = checkpoint.Damaged(p.version.Mismatch(s.bytes, p.version.Layout.All()), p.c.Tiers[p.x.From])
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *gatheredSlot) close() { _ = s.memory.Unmap() } // mapped for one path; no other goroutine uses it
