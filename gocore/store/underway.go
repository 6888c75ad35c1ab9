package store

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// place is a key of a history.
type place struct {
	history string
	key     model.Key
}

func placeOf(r *engine.Record) place { return place{r.Hist.Name, r.Key} }

// underway are the versions of a key that are on their way into the catalog, in this order.
type underway []*flown

// live tells whether one of them counts when it has landed.
func (u underway) live() bool {
	return slices.ContainsFunc(u, func(f *flown) bool { return !f.x.Rec.Gone() })
}

// expected tells whether one of them counts when it has landed, and is not yet that of its key.
func (u underway) expected() bool {
	return slices.ContainsFunc(u, func(f *flown) bool { return !f.x.Rec.Gone() && !f.x.Rec.Shown() })
}

// latest is the serial of the last one; 0 when there is none.
func (u underway) latest() uint64 {
	if len(u) == 0 {
		return 0
	}
	return u[len(u)-1].x.Rec.Body.(*body).serial
}

// landed notes that a version is on its way no more.
func (k *kept) landed(at place, landed *flown) {
	left := slices.DeleteFunc(k.underway[at], func(f *flown) bool { return f == landed })
	if k.underway[at] = left; len(left) == 0 {
		delete(k.underway, at)
	}
}

// show makes a version visible that is on its way, and those before it: in this order they come into the catalog, and replace each other.
func (s *Store) show(r *engine.Record) {
	for _, f := range s.kept.underway[placeOf(r)] {
		if f.x.Kind == engine.Spill {
			s.eng.Show(s.now(), f.x.Capture)
		}
		if f.x.Rec == r {
			return
		}
	}
}
