package catalog

import (
	"encoding/binary"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

const spanBytes = 16

// layout is a layout in the State.
type layout struct {
	Layout
	leaves uint64       // leaf hashes of a checkpoint
	filled []model.Span // regions that are not empty
	pins   int          // pending records that rely on it
	used   bool         // during a snapshot: a row uses it
}

// leavesOf is the number of leaf hashes of a region. A single leaf has none, as its hash is the region's checksum.
func leavesOf(bytes int64) uint64 {
	if n := checksum.Leaves(bytes); n > 1 {
		return uint64(n)
	}
	return 0
}

// equal tells whether two layouts are equal, except for their ids.
func (l *Layout) equal(other *Layout) bool {
	return l.Slot == other.Slot && l.Text == other.Text && slices.Equal(l.Spans, other.Spans)
}

// fill sets filled. A check of a row visits these regions alone: otherwise short rows of a layout with many empty regions would take long to apply.
func (l *layout) fill() {
	empty := func(s model.Span) bool { return s.Bytes == 0 }
	if l.filled = l.Spans; slices.ContainsFunc(l.Spans, empty) {
		l.filled = slices.DeleteFunc(slices.Clone(l.Spans), empty)
	}
}

// parseLayout decodes a layout's body.
func parseLayout(body []byte) (*layout, error) {
	f := fields{p: body}
	l := &layout{Layout: Layout{ID: f.u32()}}
	reserved := f.u32()
	slot := f.u64()
	count := f.u32()
	reserved |= f.u32()
	spans := f.many(uint64(count), spanBytes)
	switch {
	case f.short:
		return nil, malformed("the body is too short for %d regions", count)
	case reserved != 0:
		return nil, malformed("a reserved field is %#x", reserved)
	case slot > MostSlot:
		return nil, malformed("a slot has %d bytes", slot)
	case len(f.p) > MostText:
		return nil, malformed("the text has %d bytes", len(f.p))
	}
	l.Slot, l.Spans = int64(slot), make([]model.Span, count)
	end := uint64(0)
	for i := range l.Spans {
		offset, bytes := le64(spans[i*spanBytes:]), le64(spans[i*spanBytes+8:])
		switch {
		case offset < end:
			return nil, malformed("region %d begins at %d, before %d", i, offset, end)
		case offset > slot || bytes > slot-offset:
			return nil, malformed("region %d, %d bytes from %d on, is beyond the slot's %d", i, bytes, offset, slot)
		}
		end = offset + bytes
		l.Spans[i] = model.Span{Offset: int64(offset), Bytes: int64(bytes)}
		l.leaves += leavesOf(int64(bytes))
	}
	l.fill()
	l.Text = string(f.p)
	return l, nil
}

// appendContents appends a layout's body without the id.
func appendContents(to []byte, l *Layout) []byte {
	to = binary.LittleEndian.AppendUint32(to, 0)
	to = appendNumbers(to, l.Slot)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(l.Spans)))
	to = binary.LittleEndian.AppendUint32(to, 0)
	for _, s := range l.Spans {
		to = appendNumbers(to, s.Offset, s.Bytes)
	}
	return append(to, l.Text...)
}
