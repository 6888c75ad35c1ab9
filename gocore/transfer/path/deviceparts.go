package path

import (
	"slices"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/devicememory"
)

// A device puts a de-duplicated checkpoint together from where its bytes lie: from the host's memory, which kernels reach over the link, and from another checkpoint that the
// device has, as far as both have the same bytes. So the link has what differs alone.

// Resident is another checkpoint of the same lineage whose plain bytes the device has.
type Resident struct {
	Map   *difference.Map
	At    int64 // offset in the tier
	Spans []model.Span
}

// isLike tells whether its regions have the names of those of another map, and lie at these spans.
func (r *Resident) isLike(m *difference.Map, spans []model.Span) bool {
	return r != nil && slices.Equal(r.Spans, spans) && slices.EqualFunc(r.Map.Regions, m.Regions, func(a, b difference.Located) bool { return a.Name == b.Name })
}

const (
	// partsGroup is how many bytes of the slot are queued at once, and partsPieces of how many pieces.
	partsGroup, partsPieces = 64 << 20, 1 << 14
	// copiedPart is the length from which on a piece of the host's memory goes by the copy engine, for which one copy takes as long as a kernel for many pieces.
	copiedPart = 256 << 10
	// leastPart is the average length of pieces below which the host puts the bytes together: a block of threads copies each piece.
	leastPart = 512
)

// deviceParts gathers the parts of a slot.
type deviceParts struct {
	s       *deviceSlot
	there   func(at int64) device.Address // address of an offset in the tier
	pieces  []device.Piece
	copies  []device.Piece // long ones of the host's memory
	repeats []repeat
	from    int64 // of the slot: where the group begins
	last    device.Event
	crossed int64 // bytes of the host's memory
	whole   bool  // the other checkpoint on the device has the same layout: all of it is copied, and what differs is written over it
}

// repeat is a part of the slot whose bytes repeat those at its beginning.
type repeat struct {
	at            int64 // in the slot
	period, bytes int64
}

// gatherOnDevice brings the bytes to the slot. false: it has done nothing, since the host can do so sooner, or since the device does not reach the bytes.
func (s *deviceSlot) gatherOnDevice() (bool, error) {
	ps, layout := s.p.o.Parts, s.p.version.Layout
	runs := 0
	for i := range ps.Of.Map.Regions {
		runs += len(ps.Of.Map.Regions[i].Runs)
	}
	if !ps.Pinned || s.lane == nil || int64(runs) > layout.End()/leastPart {
		return false, nil
	}
	g := &deviceParts{s: s, there: func(at int64) device.Address { return s.a.Address(at) }, whole: ps.Resident.isLike(ps.Of.Map, layout.Spans)}
	for i, span := range layout.Spans {
		if err := g.region(i, span); err != nil {
			return true, s.a.Finish(g.last, err)
		}
	}
	if err := g.queue(layout.End()); err != nil {
		return true, s.a.Finish(g.last, err)
	}
	s.p.result.Staged.Crossed = max(1, g.crossed)
	return true, s.verify(g.last)
}

// region adds the parts of a region.
func (g *deviceParts) region(i int, span model.Span) (err error) {
	ps := g.s.p.o.Parts
	located := &ps.Of.Map.Regions[i]
	located.Each(0, located.Size, func(r difference.Run, n uint64) bool {
		at, bytes := span.Offset+int64(r.At), int64(n)
		source := bytes
		if r.Period > 0 && int64(r.Period) < bytes {
			source = int64(r.Period)
			g.repeats = append(g.repeats, repeat{at, source, bytes})
		}
		if err = g.part(i, r, at, source); err == nil && (at+bytes-g.from >= partsGroup || len(g.pieces) >= partsPieces) {
			err = g.queue(at + bytes)
		}
		return err == nil
	})
	return err
}

// part adds the parts of a run: of the checkpoint that the device has, where its map says the same, and else of the host's memory.
func (g *deviceParts) part(i int, r difference.Run, at, bytes int64) error {
	ps := g.s.p.o.Parts
	firsts := ps.Firsts[r.Checkpoint]
	if r.Offset+uint64(bytes) > uint64(len(firsts)) {
		return ps.read(r.Checkpoint, r.Offset, make([]byte, bytes)) // says what is wrong
	}
	source := device.AddressOf(firsts) + device.Address(r.Offset)
	g.eachSame(i, r, bytes, func(from, n int64, there device.Address) {
		to := g.s.a.Address(g.s.at + at + from)
		switch {
		case there != 0 && g.whole:
		case there != 0:
			g.pieces = append(g.pieces, pieceOf(to, there, n))
		case n >= copiedPart:
			g.copies, g.crossed = append(g.copies, pieceOf(to, source+device.Address(from), n)), g.crossed+n
		default:
			g.crossed += n
			g.pieces = append(g.pieces, pieceOf(to, source+device.Address(from), n))
		}
	})
	return nil
}

func pieceOf(to, from device.Address, bytes int64) device.Piece {
	return device.Piece{Slot: to, Bytes: bytes, Mem: model.Strided{Base: devicememory.Pointer(from)}}
}

// eachSame cuts the first bytes of a run into those that the other checkpoint on the device has at the same place of the region, whose address it tells, and others.
func (g *deviceParts) eachSame(i int, r difference.Run, bytes int64, use func(from, n int64, there device.Address)) {
	other := g.s.p.o.Parts.Resident
	if other == nil || i >= len(other.Map.Regions) || other.Map.Regions[i].Name != g.s.p.o.Parts.Of.Map.Regions[i].Name {
		use(0, bytes, 0)
		return
	}
	theirs, done := &other.Map.Regions[i], int64(0)
	end := min(r.At+uint64(bytes), theirs.Size)
	if r.At < end {
		theirs.Each(r.At, end, func(o difference.Run, n uint64) bool {
			from := int64(o.At - r.At)
			if o.Period != 0 || o.Checkpoint != r.Checkpoint || o.Offset != r.Offset+uint64(from) {
				return true
			}
			if from > done {
				use(done, from-done, 0)
			}
			use(from, int64(n), g.there(other.At+other.Spans[i].Offset+int64(o.At)))
			done = from + int64(n)
			return true
		})
	}
	if done < bytes {
		use(done, bytes-done, 0)
	}
}

// queue queues what has been added, of the slot up to an offset.
func (g *deviceParts) queue(end int64) error {
	if len(g.pieces)+len(g.copies) == 0 && !g.whole || end == g.from {
		return nil
	}
	s := g.s
	x, err := s.a.QueueWrite(s.lane, devicememory.Loads, s.at+g.from, end-g.from, func() error {
		if g.whole {
			if err := s.lane.Copy(s.a.Address(s.at+g.from), g.there(s.p.o.Parts.Resident.At+g.from), end-g.from); err != nil {
				return err
			}
		}
		for _, c := range g.copies {
			if err := s.lane.Copy(c.Slot, device.Address(c.Mem.Base), c.Bytes); err != nil {
				return err
			}
		}
		if _, err := s.lane.Gather(g.pieces, false); err != nil {
			return err
		}
		return g.repeat()
	})
	g.last = behind(x, g.last)
	g.pieces, g.copies, g.repeats, g.from = g.pieces[:0], g.copies[:0], g.repeats[:0], end
	return err
}

// repeat queues the copies of what repeats. Each launch doubles what is there.
func (g *deviceParts) repeat() error {
	s := g.s
	for factor := int64(1); ; factor *= 2 {
		var pieces []device.Piece
		for _, r := range g.repeats {
			if done := r.period * factor; done < r.bytes {
				at := s.a.Address(s.at + r.at)
				pieces = append(pieces, pieceOf(at+device.Address(done), at, min(done, r.bytes-done)))
			}
		}
		if len(pieces) == 0 {
			return nil
		}
		if _, err := s.lane.Gather(pieces, false); err != nil {
			return err
		}
	}
}
