package path

import (
	"go.uber.org/atomic"

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
func (p *Path) mend(lost *object.Losses, read *atomic.Int64) {
	var numbers []uint32
	for _, source := range lost.Objects() {
		numbers = append(numbers, p.doubt(source))
	}
	p.o.Copies.Each(lost.Needs, func(c *Copy) bool {
		p.fillFrom(c, lost, read)
		return lost.Some()
	})
	if !lost.Some() {
		p.result.Staged.Mended = numbers
	}
}

// doubt tells that an object of the version's difference is damaged, and returns its number in the lineage.
func (p *Path) doubt(source int) (number uint32) {
	d := p.version.Difference
	number, off := d.Number, p.x.FromOff
	if source != object.Own {
		number, off = d.Sources[source].Number, d.Sources[source].Offset
	}
	if p.o.Copies != nil {
		p.o.Copies.Damaged(off)
	}
	return number
}

// fillFrom takes what a checkpoint in memory has of the lost bytes. One whose metadata are damaged, or some of whose regions, may have less.
func (p *Path) fillFrom(c *Copy, lost *object.Losses, read *atomic.Int64) {
	own, err := p.openObject(c.At, c.Difference.Bytes())
	if err != nil {
		return
	}
	objects := p.objectsOf(c.Difference, func(at int64, room []byte) error {
		read.Add(int64(len(room)))
		return own.Read(at, room, func(int64, int64) {})
	}, read)
	l := c.Version.Layout
	r, err := object.Open(c.Difference, description.Names(&l.Layout), l.Spans, objects.read)
	if err != nil {
		return
	}
	lost.Fill(r, c.Plain, func(region int) bool { return c.Version.Mismatch(c.Plain, []int32{int32(region)}) < 0 })
}
