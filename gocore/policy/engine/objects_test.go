package engine

import (
	"errors"
	"slices"

	"pgregory.net/rapid"
)

// of is what a checkpoint consists of: an object of its own, if it was not made of others.
func (w *world) of(r *Record) []*Object {
	if parts := w.parts[r]; parts != nil {
		return parts
	}
	return []*Object{&r.own}
}

// live are the objects that a new checkpoint may refer to, in the order of their capture.
func (w *world) live() (all []*Object) {
	for _, r := range w.born {
		if o := &r.own; r.own.home != nil && !o.gone && o.captured {
			all = append(all, o)
		}
	}
	return all
}

// someNeeds draws what a difference is against: the objects of another checkpoint, which may be differences themselves.
func (w *world) someNeeds(t *rapid.T) []*Object {
	if rapid.IntRange(0, 3).Draw(t, "difference") > 0 {
		return nil
	}
	all := w.live()
	if len(all) == 0 {
		return nil
	}
	o := rapid.SampledFrom(all).Draw(t, "against")
	r := o.Rec()
	if !r.Captured() {
		return nil
	}
	return slices.Clone(w.of(r))
}

// refer makes a checkpoint of objects that there are.
func (w *world) refer(t *rapid.T) {
	all := w.live()
	if len(all) == 0 {
		t.Skip("nothing to refer to")
	}
	hi, k := w.hist(t), someKey(t)
	var parts []*Object
	for range rapid.IntRange(1, 4).Draw(t, "objects") {
		if o := rapid.SampledFrom(all).Draw(t, "object"); !slices.Contains(parts, o) {
			parts = append(parts, o)
		}
	}
	apart := slices.ContainsFunc(parts, func(o *Object) bool { return o.top != parts[0].top })
	w.content++
	r, err := w.e.Refer(w.now, w.hists[hi], k, 1, content(w.content), append(parts, parts[0]))
	if apart != errors.Is(err, ErrApart) {
		w.fatalf("objects of several devices: %v; and the answer is %v", apart, err)
	}
	if err != nil {
		return
	}
	w.born = append(w.born, r)
	w.parts[r] = parts
	w.truth[hi][k] = r
}

// below tells whether an object of r has no copy above tier t.
func (w *world) below(r *Record, t int) bool {
	return slices.ContainsFunc(w.of(r), func(o *Object) bool { return w.e.fastest(o) >= t })
}

// checkObjects compares what the engine knows of the references with the checkpoints that there are.
func (w *world) checkObjects() {
	refs := map[*Object][]*Record{}
	for _, r := range w.born {
		if r.gone {
			continue
		}
		if !slices.Equal(r.Objects(), w.of(r)) {
			w.fatalf("%v consists of other objects than it was made of", r.Key)
		}
		for _, o := range w.of(r) {
			refs[o] = append(refs[o], r)
			if o.gone || o.captured && w.e.fastest(o) < 0 {
				w.fatalf("%v needs an object that was freed%s", r.Key, w.state())
			}
		}
	}
	for _, r := range w.born {
		o := &r.own
		if o.home == nil {
			continue
		}
		if len(refs[o]) != len(o.Refs()) || o.gone != (len(refs[o]) == 0) {
			w.fatalf("%d checkpoints refer to %v, counted %d, gone %v", len(refs[o]), name(o), len(o.Refs()), o.gone)
		}
		for _, of := range refs[o] {
			if !slices.Contains(o.Refs(), of) {
				w.fatalf("%v does not know that %v refers to it", name(o), of.Key)
			}
			if first := o.first(); of.Hist == first.Hist && of.seq < first.seq || first.gone {
				w.fatalf("%v is expected at %d, and %v at %d", name(o), first.seq, of.Key, of.seq)
			}
		}
		if o.gone && o.more != nil && len(o.more.refs) > 0 {
			w.fatalf("%v is gone, and referred to", name(o))
		}
	}
}
