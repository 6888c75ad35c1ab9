package disk

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

// inFlightCommits are the versions of a key that are on their way into the catalog, in the order in which the catalog receives them.
type inFlightCommits []*inFlightCommit

// hasLive tells whether one of the versions is not gone, so that it will count once it has landed.
func (u inFlightCommits) hasLive() bool {
	return slices.ContainsFunc(u, func(f *inFlightCommit) bool { return !f.x.Rec.Gone() })
}

// hasExpected tells whether one of the versions is not gone and not yet the checkpoint of its key.
func (u inFlightCommits) hasExpected() bool {
	return slices.ContainsFunc(u, func(f *inFlightCommit) bool { return !f.x.Rec.Gone() && !f.x.Rec.Shown() })
}

// latest returns the serial of the last version; 0 when there is none.
func (u inFlightCommits) latest() uint64 {
	if len(u) == 0 {
		return 0
	}
	return u[len(u)-1].x.Rec.Version.Serial
}

// removeInFlight removes a version that has landed or failed.
func (v *versions) removeInFlight(at place, landed *inFlightCommit) {
	left := slices.DeleteFunc(v.inFlight[at], func(f *inFlightCommit) bool { return f == landed })
	if v.inFlight[at] = left; len(left) == 0 {
		delete(v.inFlight, at)
	}
}

// Show makes an in-flight version visible, after the in-flight versions before it: they reach the catalog in this order, and replace each other.
func (d *Tier) Show(r *engine.Record) {
	for _, f := range d.versions.inFlight[placeOf(r)] {
		//mutation:version-overtakes-earlier
		if f.x.Kind == engine.Spill {
			d.engine().Show(d.o.Now(), f.x.Capture)
		}
		if f.x.Rec == r {
			return
		}
	}
}
