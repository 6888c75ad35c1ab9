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

// owned are the owners of objects without a checkpoint.
func (w *world) owned(t *rapid.T) *Record {
	m := w.truth[len(w.hists)]
	if len(m) == 0 {
		t.Skip("none")
	}
	list := keys(m)
	return m[rapid.SampledFrom(list).Draw(t, "owner")]
}

// own begins an object without a checkpoint.
func (w *world) own(t *rapid.T) {
	size := rapid.Int64Range(1, 8).Draw(t, "size")
	o := CaptureOptions{SourceStays: rapid.IntRange(0, 3).Draw(t, "stays") == 0, Patient: rapid.Bool().Draw(t, "patient"), Shape: w.someShape(t, size),
		Top: rapid.IntRange(0, w.privates()).Draw(t, "top")}
	w.content++
	c, err := w.e.BeginObject(w.now, size, 1, o)
	if err != nil {
		if !errors.Is(err, ErrFull) {
			w.fatalf("an object of %d bytes: %v", size, err)
		}
		return
	}
	c.Notify, c.Rec.Version = c, content(w.content)
	w.born = append(w.born, c.Rec)
	if c.Phase == Ended {
		w.denied("object", c.Rec, c.Err)
		return
	}
	if c.early {
		w.truth[len(w.hists)][c.Rec.Key] = c.Rec
	}
	w.captures = append(w.captures, &taken{Capture: c, content: w.content, phase: c.Phase, patient: o.Patient})
}

// disown gives up an object without a checkpoint.
func (w *world) disown(r *Record) {
	w.e.Disown(w.now, r)
	delete(w.truth[len(w.hists)], r.Key)
	for _, o := range w.of(r) {
		if !r.gone || o.gone != (len(o.Refs()) == 0) {
			w.fatalf("%v was given up, and is still owned", name(o))
		}
	}
}

// use begins to read an object without a checkpoint.
func (w *world) use(t *rapid.T) {
	owner := w.owned(t)
	o := RestoreOptions{Into: rapid.Bool().Draw(t, "into"), Patient: rapid.Bool().Draw(t, "patient"), Last: rapid.Bool().Draw(t, "last")}
	r, err := w.e.BeginUse(w.now, owner, o)
	if r == nil {
		w.fatalf("the object of %v cannot be used: %v", owner.Key, err)
	}
	r.Notify = r
	if r.Phase == Ended {
		w.denied("use", owner, r.Err)
		return
	}
	w.restores = append(w.restores, &given{Restore: r, content: contentOf(owner), phase: r.Phase, into: o.Into, patient: o.Patient})
}

// relocate begins to move a copy inside its tier.
func (w *world) relocate(t *rapid.T) {
	all := w.live()
	if len(all) == 0 {
		t.Skip("none")
	}
	o, tier := rapid.SampledFrom(all).Draw(t, "object"), rapid.IntRange(0, w.e.Tiers()-1).Draw(t, "tier")
	if was := w.e.Complete(o.home, tier); w.e.Relocate(w.now, o, tier) && (w.catalogued(tier) || o.home.isWhole() && !was) {
		w.fatalf("%v is moved in tier %d", name(o), tier)
	}
}

// recode begins to change the form of a copy in its tier.
func (w *world) recode(t *rapid.T) {
	all := w.live()
	if len(all) == 0 {
		t.Skip("none")
	}
	o, tier := rapid.SampledFrom(all).Draw(t, "object"), rapid.IntRange(0, w.e.Tiers()-1).Draw(t, "tier")
	if form := rapid.SampledFrom([]Form{Raw, Encoded, Difference}).Draw(t, "form"); w.e.Recode(w.now, o, tier, form, rapid.Int64Range(1, 9).Draw(t, "bound")) && w.catalogued(tier) {
		w.fatalf("%v is recoded in tier %d", name(o), tier)
	}
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
