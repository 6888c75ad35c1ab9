package object

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
)

// anchor is the checkpoint with which those after it are encoded, until that saves less than a new one would. It has no reference itself, so a restore reads
// two objects at the most.
type anchor struct {
	use     bool // there is one that a later checkpoint may refer to
	number  uint32
	regions []shape
	objects int64 // written since, its own included
	bytes   int64 // of these
	own     int64 // of these, its own

	latest  []shape // of the last draft
	resting int     // checkpoints until one refers to an anchor again
	rest    int     // length of the latest rest
}

// shape is what a region must have in common with that of its reference.
type shape struct {
	name  string
	bytes int
}

func shapesOf(all []dedup.Region) []shape {
	list := make([]shape, len(all))
	for i := range all {
		list[i] = shape{all[i].Name, len(all[i].Bytes)}
	}
	return list
}

// refer makes the anchor the reference of a draft, if it can be.
func (w *Writer) refer(d *Draft) {
	if !w.options.References {
		return
	}
	w.anchor.latest = shapesOf(d.regions)
	if w.anchor.resting > 0 {
		w.anchor.resting--
		return
	}
	if w.anchor.use && slices.Equal(w.anchor.latest, w.anchor.regions) {
		d.refers, d.reference, d.sources = true, w.anchor.number, []uint32{w.anchor.number}
	}
}

// A checkpoint that takes nearly as much as its anchor has been encoded with it in vain, and nothing is tried for some checkpoints, each time for longer.
const (
	inVain    = 0.9
	firstRest = 8
	mostRest  = 256
)

// Wrote tells how the object of the last draft was written. A checkpoint without a reference is the next anchor. One that has more bytes than all since the
// anchor have on average is the last that refers to it: the further the bytes have moved away, the less is gained.
func (w *Writer) Wrote(x *model.Difference) {
	a := &w.anchor
	switch bytes := x.Bytes(); {
	case !w.options.References:
	case !x.Refers:
		a.use, a.number, a.regions, a.objects, a.bytes, a.own = true, x.Number, a.latest, 1, bytes, bytes
	case float64(bytes) > inVain*float64(a.own):
		a.rest = min(max(2*a.rest, firstRest), mostRest)
		a.use, a.resting = false, a.rest
	default:
		a.objects, a.bytes, a.rest = a.objects+1, a.bytes+bytes, 0
		a.use = a.use && bytes*a.objects <= a.bytes
	}
}

// Reference describes the checkpoint whose bytes Write needs, and which has the draft's regions; nil: it needs none. sources are those that Write gets.
func (d *Draft) Reference(sources []model.Source) *model.Difference {
	if !d.refers || len(sources) != 1 {
		return nil
	}
	s := &sources[0]
	return &model.Difference{Lineage: d.lineage, Number: s.Number, Data: s.Data, Meta: s.Meta}
}
