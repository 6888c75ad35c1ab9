package durable

import "velocpy/gocore/model"

// Current tells whether the catalog on disk still has the version of a checkpoint that the View has. A writer reuses the range of a version only after the
// batch, or the commit-area frame, that drops it. So bytes that a caller read before Current returned true are the bytes of that version. The catalog is
// read again only if it has changed since the last call. Concurrent calls are serialized.
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
