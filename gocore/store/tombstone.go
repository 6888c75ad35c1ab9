package store

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/durable"
)

// tombstone hides the versions of a key, or of a history, up to a serial. The catalog learns it from changes. Until all of these have landed, each
// new version there gets a larger serial, so that no late change removes it.
type tombstone struct {
	serial  uint64
	changes int
}

// addTombstone hides versions up to a serial. changes is the number of changes that tell the catalog.
func addTombstone[K comparable](all map[K]tombstone, at K, serial uint64, changes int) {
	b := all[at]
	all[at] = tombstone{max(b.serial, serial), b.changes + changes}
}

// acknowledgeTombstone records that a change has landed. changes is the number of changes that it stands for.
func acknowledgeTombstone[K comparable](all map[K]tombstone, at K, serial uint64, changes int) {
	b := all[at]
	b.changes -= changes
	//mutation:late-clear-takes-new
	if all[at] = b; b.changes <= 0 && b.serial <= serial {
		delete(all, at)
	}
}

// isLive tells whether no tombstone hides a version of the catalog.
func (k *durableTier) isLive(at place, serial uint64) bool {
	return serial > k.keyTombstones[at].serial && serial > k.historyTombstones[at.history].serial
}

// Removed tells the rule of a history, and the catalog, that a checkpoint is gone. A checkpoint that is replaced (by is not nil) stays in the
// catalog until the new version is durable.
func (s catalogRows) Removed(r, by *engine.Record) {
	r.Version.Gone.Store(true)
	if h := s.histories[r.Hist.Name]; by == nil && h != nil && h.retention != nil {
		h.retention.remove(r.Key)
	}
	k := s.durable
	if k == nil || k.clearing || k.dir == nil || by != nil && k.notLoaded[r.Hist.Name] == 0 {
		return
	}
	at := placeOf(r)
	serial := k.latestSerial(at, r)
	switch {
	case serial == 0:
	case by != nil:
		addTombstone(k.keyTombstones, at, serial, 0) // hides the row until the new version is the checkpoint of the key
	case !r.Captured() && r.Failed() != nil:
		// The capture of a replacement failed. The key has no checkpoint in this store. A later open of the store finds the replaced version.
		addTombstone(k.keyTombstones, at, serial, 0)
	default:
		s.dropFromCatalog(at, serial)
	}
}

// latestSerial returns the latest serial of a key that the catalog was told of, up to the version that goes; 0: none. A version in flight that is not
// yet the checkpoint of its key comes later, and stays.
func (k *durableTier) latestSerial(at place, going *engine.Record) (serial uint64) {
	if id, ok := k.state.History(at.history); ok {
		serial, _ = k.state.Serial(id, at.key)
	}
	for _, f := range k.inFlight[at] {
		//mutation:drop-takes-later-version
		if r := f.x.Rec; r == going || r.Gone() {
			serial = max(serial, r.Version.Serial)
		}
	}
	return serial
}

// dropFromCatalog drops the catalog's rows of a key up to a serial.
func (s *Store) dropFromCatalog(at place, serial uint64) {
	addTombstone(s.durable.keyTombstones, at, serial, 1)
	s.commitForRoom(&durable.Change{History: at.history, Key: at.key, Serial: serial, Drop: true})
}

// commitForRoom commits a change that releases disk space. Waiters for space wait for it.
func (s *Store) commitForRoom(c *durable.Change) {
	c.Tag = forRoom
	s.watchdog.drops[c] = s.now()
	s.eng.ExpectReleases(0, 1)
	s.durable.dir.Commit(c)
}

// forRoom is the tag of changes for whose space captures or flushes may wait. A change that is committed again has a retryTag instead.
const forRoom = "owes"

// clear drops all that the catalog has of a history. f clears the engine's part meanwhile.
func (s *Store) clear(h *engine.History, f func()) {
	k := s.durable
	if k == nil {
		f()
		return
	}
	k.clearing = true
	f()
	k.clearing = false
	k.notLoaded[h.Name] = 0
	if x := s.histories[h.Name].retention; x != nil {
		x.clear() // also of checkpoints that only the catalog had
	}
	if k.expectsVersion(h.Name) {
		s.dropEachFromCatalog(h)
		return
	}
	serial := uint64(s.eng.Written())
	addTombstone(k.historyTombstones, h.Name, serial, 1)
	s.commitForRoom(&durable.Change{History: h.Name, Serial: serial, Clear: true})
}

// expectsVersion tells whether a version is in flight that must stay although its history is cleared before it has landed.
func (k *durableTier) expectsVersion(history string) bool {
	for at, u := range k.inFlight {
		if at.history == history && u.hasExpected() {
			return true
		}
	}
	return false
}

// dropEachFromCatalog drops all rows that the catalog has of a history, or is about to have, one by one, because one version has to stay.
func (s *Store) dropEachFromCatalog(h *engine.History) {
	k := s.durable
	places := map[place]bool{}
	if id, ok := k.state.History(h.Name); ok {
		k.state.EachKey(id, func(key model.Key, _ uint64) bool {
			places[place{h.Name, key}] = true
			return true
		})
	}
	for at := range k.inFlight {
		if at.history == h.Name {
			places[at] = true
		}
	}
	for at := range places {
		if serial := k.latestSerial(at, nil); serial > 0 {
			s.dropFromCatalog(at, serial)
		}
	}
}
