package store

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/durable"
)

// tombstone is what of a key, or of a history, does not count any more: versions up to a serial. The catalog learns it from changes; until all of those have landed
// whatever is written there gets a larger serial, so that none of them, however late, takes it along.
type tombstone struct {
	serial  uint64
	changes int
}

// addTombstone notes that versions up to a serial do not count, and how many changes are to say so.
func addTombstone[K comparable](all map[K]tombstone, at K, serial uint64, changes int) {
	b := all[at]
	all[at] = tombstone{max(b.serial, serial), b.changes + changes}
}

// acknowledgeTombstone notes that a change has landed, which stands for so many.
func acknowledgeTombstone[K comparable](all map[K]tombstone, at K, serial uint64, changes int) {
	b := all[at]
	b.changes -= changes
	//mutation:late-clear-takes-new
	if all[at] = b; b.changes <= 0 && b.serial <= serial {
		delete(all, at)
	}
}

// isLive tells whether a version that the catalog has counts here.
func (k *durableTier) isLive(at place, serial uint64) bool {
	return serial > k.keyTombstones[at].serial && serial > k.historyTombstones[at.history].serial
}

// recordRemoved sees to it that the rule of a history, and the catalog, learn of a checkpoint that is no more. One that is replaced stays there until the new one
// is durable.
func (s *Store) recordRemoved(r, by *engine.Record) {
	r.Body.(*body).gone.Store(true)
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
		addTombstone(k.keyTombstones, at, serial, 0) // nobody finds it there before the new one is that of the key
	case !r.Captured() && r.Failed() != nil:
		addTombstone(k.keyTombstones, at, serial, 0) // it was to replace another, and could not be taken: here the key has nothing, and whoever opens the store next finds the other
	default:
		s.dropFromCatalog(at, serial)
	}
}

// latestSerial is the latest serial of a key that the catalog was told of, up to a version that goes; 0: none. One that is on its way and is not the key's yet comes
// after it, and stays.
func (k *durableTier) latestSerial(at place, going *engine.Record) (serial uint64) {
	if id, ok := k.state.History(at.history); ok {
		serial, _ = k.state.Serial(id, at.key)
	}
	for _, f := range k.inFlight[at] {
		//mutation:drop-takes-later-version
		if r := f.x.Rec; r == going || r.Gone() {
			serial = max(serial, r.Body.(*body).serial)
		}
	}
	return serial
}

// dropFromCatalog drops from the catalog what it has of a key, up to a serial.
func (s *Store) dropFromCatalog(at place, serial uint64) {
	addTombstone(s.durable.keyTombstones, at, serial, 1)
	s.commitForRoom(&durable.Change{History: at.history, Key: at.key, Serial: serial, Drop: true})
}

// commitForRoom commits what makes room on disk: who needs some waits for it.
func (s *Store) commitForRoom(c *durable.Change) {
	c.Tag = forRoom
	s.watchdog.drops[c] = s.now()
	s.eng.Owe(0, 1)
	s.durable.dir.Commit(c)
}

// forRoom is the tag of changes for whose room somebody may wait. When one is said once more, the tag again tells.
const forRoom = "owes"

// clear drops everything that the catalog has of a history. The engine's part of it has to be cleared meanwhile, by f.
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
		x.clear() // of what only the catalog knew, too
	}
	if k.expectsVersion(h.Name) {
		s.dropEachFromCatalog(h)
		return
	}
	serial := uint64(s.eng.Written())
	addTombstone(k.historyTombstones, h.Name, serial, 1)
	s.commitForRoom(&durable.Change{History: h.Name, Serial: serial, Clear: true})
}

// expectsVersion tells whether a version is on its way that will count, whatever is cleared of its history before it has landed.
func (k *durableTier) expectsVersion(history string) bool {
	for at, u := range k.inFlight {
		if at.history == history && u.hasExpected() {
			return true
		}
	}
	return false
}

// dropEachFromCatalog drops all that the catalog has of a history, or is about to have, one by one: there is something that has to stay.
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
