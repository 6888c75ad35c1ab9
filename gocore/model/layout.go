package model

// Span is a range of bytes. Of a region it is the place in the checkpoint's slot.
type Span struct{ Offset, Bytes int64 }

// End is the offset of the first byte behind the span.
func (s Span) End() int64 { return s.Offset + s.Bytes }

// Layout describes the regions of all checkpoints of one shape. It is immutable.
type Layout struct {
	Slot  int64  // bytes of a checkpoint, including the gaps between its regions
	Spans []Span // of the regions: ascending, without overlap
	Text  string // the caller's description of the regions: names, dtypes, shapes. The core does not read it, except package description
}
