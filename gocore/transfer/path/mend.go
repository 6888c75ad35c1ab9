package path

import (
	"velocpy/gocore/base/description"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/object"
)

// Copies are what memory has of the lineage whose object a transfer reads. No lock is held. They are asked for nothing unless an object is damaged.
type Copies interface {
	// Each calls use for checkpoints of the lineage whose plain bytes the host can address, and whose difference needed accepts, until use returns false. The
	// checkpoint's copies in memory and in the tier that the transfer reads stay where they are meanwhile.
	Each(needed func(*model.Difference) bool, use func(*Copy) (more bool))
	// Damaged tells of the offset of a damaged object: nothing new is to need it.
	Damaged(off int64)
}

// Copy is a checkpoint in memory.
type Copy struct {
	Version    *checkpoint.Version
	Difference *model.Difference // of its copy in the tier that the transfer reads
	At         int64             // offset of its object there
	Plain      []byte            // its slot
}

// verifies tells whether the bytes are compared with the checksums of their capture when they have arrived.
func (p *Path) verifies() bool { return p.c.Set.Verifies != config.VerifyOff && p.version.Sums != nil }

// mend takes the bytes of damaged containers from checkpoints in memory.
func (dec *decoder) mend(lost *object.Losses) {
	var numbers []uint32
	for _, source := range lost.Objects() {
		numbers = append(numbers, dec.doubt(source))
	}
	dec.o.Copies.Each(lost.Needs, func(c *Copy) bool {
		dec.fillFrom(c, lost)
		return lost.Some()
	})
	if !lost.Some() {
		dec.result.Staged.Mended = numbers
	}
}

// doubt tells that an object of the version's difference is damaged, and returns its number in the lineage.
func (dec *decoder) doubt(source int) (number uint32) {
	d := dec.version.Difference
	number, off := d.Number, dec.x.FromOff
	if source != object.Own {
		number, off = d.Sources[source].Number, d.Sources[source].Offset
	}
	if dec.o.Copies != nil {
		dec.o.Copies.Damaged(off)
	}
	return number
}

// fillFrom takes what a checkpoint in memory has of the lost bytes. One whose metadata are damaged, or some of whose regions, may have less.
func (dec *decoder) fillFrom(c *Copy, lost *object.Losses) {
	own, err := dec.openObject(c.At, c.Difference.Bytes())
	if err != nil {
		return
	}
	objects := dec.objectsOf(c.Difference, func(at int64, room []byte) error {
		dec.read.Add(int64(len(room)))
		return own.Read(at, room, func(int64, int64) {})
	})
	l := c.Version.Layout
	r, err := object.Open(c.Difference, description.Names(&l.Layout), l.Spans, objects.read)
	if err != nil {
		return
	}
	lost.Fill(r, c.Plain, func(region int) bool { return c.Version.Mismatch(c.Plain, []int32{int32(region)}) < 0 })
}
