package catalog

import (
	"encoding/binary"
	"slices"

	"velocpy/gocore/model"
)

// difference is the part of a put that says of which objects its checkpoint consists.
type difference struct {
	lineage    uint64
	number     uint32
	data, meta uint64
	count      uint32
	sources    []byte // one behind the other, each with its extents
}

// difference decodes lineage, number, lengths, and the sources.
func (f *fields) difference() difference {
	d := difference{lineage: f.u64(), number: f.u32(), data: f.u64(), meta: f.u64(), count: f.u32()}
	from := f.p
	for n := d.count; n > 0 && !f.short; n-- {
		f.source()
	}
	d.sources = from[:len(from)-len(f.p)]
	return d
}

// source decodes a source without its Offset, and its extents.
func (f *fields) source() (s model.Source, extents []byte) {
	s = model.Source{Number: f.u32(), Data: int64(f.u64()), Meta: int64(f.u64())}
	return s, f.many(uint64(f.u32()), extentBytes)
}

// each calls f for the sources and their extents, until f returns an error.
func (d *difference) each(f func(s model.Source, extents []byte) error) error {
	left := fields{p: d.sources}
	for len(left.p) > 0 {
		if err := f(left.source()); err != nil {
			return err
		}
	}
	return nil
}

// decoded returns the difference of a row with this content, without the Offsets of its sources.
func (d *difference) decoded(c Content) *model.Difference {
	decoded := &model.Difference{
		Lineage: d.lineage, Number: d.number, Data: int64(d.data), Meta: int64(d.meta), Sections: c == DifferenceSections, Refers: c == Referring,
	}
	decoded.Sources = slices.Grow(decoded.Sources, int(d.count))
	_ = d.each(func(s model.Source, _ []byte) error {
		decoded.Sources = append(decoded.Sources, s)
		return nil
	})
	return decoded
}

// places returns the extents of every source.
func (d *difference) places() (all [][]Extent) {
	all = slices.Grow(all, int(d.count))
	_ = d.each(func(_ model.Source, extents []byte) error {
		all = append(all, readExtents(extents))
		return nil
	})
	return all
}

// sourceBytes returns the bytes of the extents of all sources.
func (d *difference) sourceBytes() (bytes int64) {
	_ = d.each(func(s model.Source, _ []byte) error {
		bytes += int64(extentsBytes(s.Bytes()))
		return nil
	})
	return bytes
}

// check returns an error unless the difference is possible, and each source has extents of exactly its whole blocks.
func (d *difference) check(c Content) error {
	if d.count > model.MostSources {
		return malformed("a put has %d sources", d.count)
	}
	if err := d.decoded(c).Check(); err != nil {
		return malformed("%v", err)
	}
	return d.each(func(s model.Source, extents []byte) error {
		return checkExtents(extents, extentsBytes(s.Bytes()))
	})
}

func readExtents(p []byte) []Extent {
	all := make([]Extent, 0, len(p)/extentBytes)
	for at := 0; at < len(p); at += extentBytes {
		all = append(all, extentAt(p[at:]))
	}
	return all
}

// appendDifference appends what a difference row has behind its leaves. There are as many lists of extents as sources.
func appendDifference(to []byte, d *model.Difference, places [][]Extent) []byte {
	to = binary.LittleEndian.AppendUint32(appendNumbers(to, d.Lineage), d.Number)
	to = appendNumbers(to, d.Data, d.Meta)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(d.Sources)))
	for i := range d.Sources {
		s := &d.Sources[i]
		to = appendNumbers(binary.LittleEndian.AppendUint32(to, s.Number), s.Data, s.Meta)
		to = appendExtents(to, places[i])
	}
	return to
}

func appendExtents(to []byte, extents []Extent) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(len(extents)))
	for _, e := range extents {
		to = appendNumbers(to, e.File, uint64(e.Offset), uint64(e.Bytes))
	}
	return to
}

// EachDifference calls f for the rows with a difference, in the order of their puts, until f returns false. Only History, Key, Serial, Layout, Content,
// Extents, Difference and Sources of the row are set.
func (s *State) EachDifference(f func(row Row) bool) {
	s.rows.each(func(i item) bool {
		if !Content(i[putContent]).isDifference() {
			return true
		}
		p, _ := parsePut(i)
		l := s.layout(p.layout)
		r, _ := p.split(l)
		return f(Row{
			History: p.history, Key: p.key.key(), Serial: p.serial, Layout: &l.Layout, Content: p.content,
			Extents: readExtents(r.extents), Difference: r.difference.decoded(p.content), Sources: r.difference.places(),
		})
	})
}
