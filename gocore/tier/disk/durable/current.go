package durable

import "velocpy/gocore/model"

// Current tells whether the catalog, as it is now, still has that version of a checkpoint which the View has. A writer writes to the place of a version only
// after the batch, or the frame of a commit area, by which it goes: bytes that were read before Current has said yes are those of the version. The catalog is
// read again only when it has changed since the last call. Calls take turns.
func (v *View) Current(history string, key model.Key, serial uint64) (bool, error) {
	v.looking.Lock()
	defer v.looking.Unlock()
	same, err := v.latest.unchangedAhead()
	if err == nil && same {
		same, err = v.latest.log.Unchanged(v.journal())
	}
	if err != nil {
		return false, err
	}
	if !same {
		latest, err := read(v.o)
		if err != nil {
			return false, err
		}
		v.latest = latest
	}
	return v.latest.counts(history, key, serial), nil
}
