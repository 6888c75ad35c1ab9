package durable

import (
	"fmt"
	"maps"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	reduced "velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/disk/catalog"
)

// drafts makes the differences of one lineage.
type drafts struct {
	writer      *reduced.Writer
	known       map[uint32]model.Source // objects that later ones may need
	compression codec.Compression
	written     map[uint32][]byte // objects, if some are encoded with others; nil: none is
	part        int64             // not 0: each checkpoint is a whole one in parts of so many bytes, and all but the first are encoded with the first
	wholes      []*reduced.Whole
}

// referring stands for the method Full with references.
const referring difference.Method = 100

// compressions are those that checkpoints of tests get by turns, and most of them none.
var compressions = [6]codec.Compression{codec.NoCompression, codec.Zstd, codec.NoCompression, codec.S2, codec.NoCompression, codec.Huff0}

// newDrafts makes a lineage whose number says by which compressor its objects are made.
func newDrafts(lineage uint64, method difference.Method, record int64) *drafts {
	o := reduced.Options{
		Method: method, Chunk: 64, Lineage: lineage, Record: record, MaxSources: 8, MaxChain: 3,
		Parallel: func(n int, work func(i int)) {
			for i := range n {
				work(i)
			}
		},
	}
	d := &drafts{known: map[uint32]model.Source{}, compression: compressions[lineage%6]}
	if method == referring {
		o.Method, o.References, d.compression, d.written = difference.Full, true, codec.NoCompression, map[uint32][]byte{}
	}
	var err error
	if d.writer, err = reduced.NewWriter(o); err != nil {
		panic(err)
	}
	return d
}

// object de-duplicates a checkpoint, and returns its difference with its own object, in whole blocks.
func (d *drafts) object(l *catalog.Layout, slot []byte) (*model.Difference, []byte) {
	if d.part > 0 {
		return d.whole(l, slot)
	}
	names := description.Names(&l.Layout)
	var all []dedup.Region
	for i, s := range l.Spans {
		all = append(all, dedup.Region{Name: names[i], Bytes: slices.Clone(slot[s.Offset:s.End()])})
	}
	draft, err := d.writer.Draft(all)
	if err != nil {
		panic(err)
	}
	var sources []model.Source
	for _, n := range draft.Sources() {
		sources = append(sources, d.known[n])
	}
	choices := slices.Repeat([]regions.Choice{{Kind: codec.Int8, Modes: codec.AllModes}}, len(all))
	var stored []byte
	sink := func(p []byte) error {
		stored = append(stored, p...)
		return nil
	}
	room := new(regions.Room)
	defer room.Free()
	options := regions.Options{Goroutines: 1, Room: room, Compression: d.compression}
	if of := draft.Reference(sources); of != nil {
		options.Reference = d.reference(l, of)
	}
	made, err := draft.Write(sources, choices, 1<<40, sink, options)
	if err != nil {
		panic(err)
	}
	if d.writer.Wrote(made); d.written != nil {
		d.written[made.Number] = stored
	}
	return made, stored
}

// reference gives the containers of an object that was written.
func (d *drafts) reference(l *catalog.Layout, of *model.Difference) regions.Reference {
	r, err := reduced.Open(of, description.Names(&l.Layout), l.Spans, func(_ int, at int64, p []byte) error {
		copy(p, d.written[of.Number][at:])
		return nil
	})
	if err != nil {
		panic(err)
	}
	return r.Reference
}

// whole returns the difference of a whole checkpoint with its object, in whole blocks.
func (d *drafts) whole(l *catalog.Layout, slot []byte) (*model.Difference, []byte) {
	w := &reduced.Whole{Lineage: 77, Number: uint32(len(d.wholes) + 1), Names: description.Names(&l.Layout), Spans: l.Spans}
	room := new(regions.Room)
	defer room.Free()
	o := regions.Options{Goroutines: 1, Room: room}
	choices := slices.Repeat([]regions.Choice{{Kind: codec.Int8, Modes: codec.AllModes}}, len(l.Spans))
	if len(d.wholes) > 0 {
		first := d.known[1]
		w.Reference, choices = &first, regions.WithReference(choices)
		o.Reference = d.reference(l, d.wholes[0].Difference(first.Meta))
	}
	var stored []byte
	from := func(at int64, room []byte) ([]byte, error) { return slot[at:][:len(room)], nil }
	sink := func(p []byte) error {
		stored = append(stored, p...)
		return nil
	}
	var meta []byte
	var err error
	if w.Encoding, err = regions.Encode(l.Spans, choices, d.part, 1<<40, from, sink, o); err == nil {
		meta, err = w.Metadata()
	}
	if err != nil {
		panic(err)
	}
	stored = append(stored[:w.Encoding.Bytes()], meta...)
	stored = append(stored, make([]byte, -len(stored)&4095)...)
	made := w.Difference(int64(len(meta)))
	d.wholes, d.written[made.Number] = append(d.wholes, w), stored
	return made, stored
}

// put writes a checkpoint of one region as a difference, and waits until its outcome is known.
func (d *drafts) put(to *Dir, landed chan *Change, key int64, serial uint64, off int64, p []byte) error {
	l := &catalog.Layout{Layout: model.Layout{Slot: int64(len(p)), Spans: []model.Span{{Bytes: int64(len(p))}}, Text: fmt.Sprint(len(p))}}
	row := &catalog.Row{Key: model.NumberKey(key), Serial: serial, Layout: l, Align: 64, Sums: []uint64{checksum.Sum(p)}}
	var stored []byte
	row.Difference, stored = d.object(l, p)
	row.Content = catalog.ContentOf(nil, row.Difference)
	d.lies(row.Difference, off)
	if err := to.Space().Write(off, stored); err != nil {
		return err
	}
	to.Commit(&Change{History: "h", Put: row, Off: off})
	return (<-landed).Err
}

// lies makes an object known, from its place on.
func (d *drafts) lies(of *model.Difference, at int64) {
	d.known[of.Number] = model.Source{Number: of.Number, Data: of.Data, Meta: of.Meta, Offset: at}
}

// forget keeps later objects from needing some.
func (d *drafts) forget(gone func(s model.Source) bool) {
	for _, n := range slices.Collect(maps.Keys(d.known)) {
		if gone(d.known[n]) {
			d.writer.Forget(n)
			delete(d.known, n)
		}
	}
}

// slotOf returns the slot of a row. read reads bytes of the space.
func slotOf(c *contents, row *catalog.Row, read func(off int64, p []byte) error) ([]byte, error) {
	if row.Difference != nil {
		return slotOfDifference(c, row, read)
	}
	off, n, err := c.Place(row)
	if err != nil {
		return nil, err
	}
	p := aligned(n)
	if err := read(off, p); err != nil {
		return nil, err
	}
	return plainOf(row, p)
}

func slotOfDifference(c *contents, row *catalog.Row, read func(off int64, p []byte) error) ([]byte, error) {
	d, err := c.Difference(row)
	if err != nil {
		return nil, err
	}
	own, _, err := c.Place(row)
	if err != nil {
		return nil, err
	}
	r, err := reduced.Open(d, description.Names(&row.Layout.Layout), row.Layout.Spans, func(source int, at int64, p []byte) error {
		if source == reduced.Own {
			return read(own+at, p)
		}
		return read(d.Sources[source].Offset+at, p)
	})
	slot := make([]byte, row.Layout.Slot)
	for i, s := range row.Layout.Spans {
		if err == nil {
			err = r.Read(i, 0, slot[s.Offset:s.End()])
		}
	}
	return slot, err
}
