package store

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/durable"
)

// bygone is what of a key, or of a history, does not count any more: versions up to a serial. The catalog learns it from changes; until all of those have landed
// whatever is written there gets a larger serial, so that none of them, however late, takes it along.
type bygone struct {
	serial  uint64
	changes int
}

// condemn notes that versions up to a serial do not count, and how many changes are to say so.
func condemn[K comparable](all map[K]bygone, at K, serial uint64, changes int) {
	b := all[at]
	all[at] = bygone{max(b.serial, serial), b.changes + changes}
}

// executed notes that a change has landed, which stands for so many.
func executed[K comparable](all map[K]bygone, at K, serial uint64, changes int) {
	b := all[at]
	b.changes -= changes
	if all[at] = b; b.changes <= 0 && b.serial <= serial {
		delete(all, at)
	}
}

// stands tells whether a version that the catalog has counts here.
func (k *kept) stands(at place, serial uint64) bool {
	return serial > k.doomed[at].serial && serial > k.cleared[at.history].serial
}

// removed sees to it that the rule of a history, and the catalog, learn of a checkpoint that is no more. One that is replaced stays there until the new one
// is durable.
func (s *Store) removed(r, by *engine.Record) {
	r.Body.(*body).gone.Store(true)
	if h := s.histories[r.Hist.Name]; by == nil && h != nil && h.retention != nil {
		h.retention.remove(r.Key)
	}
	k := s.kept
	if k == nil || k.clearing || k.dir == nil || by != nil && k.asleep[r.Hist.Name] == 0 {
		return
	}
	at := placeOf(r)
	serial := k.told(at, r)
	switch {
	case serial == 0:
	case by != nil:
		condemn(k.doomed, at, serial, 0) // nobody finds it there before the new one is that of the key
	case !r.Captured() && r.Failed() != nil:
		condemn(k.doomed, at, serial, 0) // it was to replace another, and could not be taken: here the key has nothing, and whoever opens the store next finds the other
	default:
		s.forgo(at, serial)
	}
}

// told is the latest serial of a key that the catalog was told of, up to a version that goes; 0: none. One that is on its way and is not the key's yet comes
// after it, and stays.
func (k *kept) told(at place, going *engine.Record) (serial uint64) {
	if id, ok := k.state.History(at.history); ok {
		serial, _ = k.state.Serial(id, at.key)
	}
	for _, f := range k.underway[at] {
		if r := f.x.Rec; r == going || r.Gone() {
			serial = max(serial, r.Body.(*body).serial)
		}
	}
	return serial
}

// forgo drops from the catalog what it has of a key, up to a serial.
func (s *Store) forgo(at place, serial uint64) {
	condemn(s.kept.doomed, at, serial, 1)
	s.owe(&durable.Change{History: at.history, Key: at.key, Serial: serial, Drop: true})
}

// owe commits what makes room on disk: who needs some waits for it.
func (s *Store) owe(c *durable.Change) {
	c.Tag = owes
	s.stall.drops[c] = s.now()
	s.eng.Owe(0, 1)
	s.kept.dir.Commit(c)
}

// owes is the tag of changes for whose room somebody may wait. When one is said once more, the tag again tells.
const owes = "owes"

// clear drops everything that the catalog has of a history. The engine's part of it has to be cleared meanwhile, by f.
func (s *Store) clear(h *engine.History, f func()) {
	k := s.kept
	if k == nil {
		f()
		return
	}
	k.clearing = true
	f()
	k.clearing = false
	k.asleep[h.Name] = 0
	if x := s.histories[h.Name].retention; x != nil {
		x.clear() // of what only the catalog knew, too
	}
	if k.expects(h.Name) {
		s.forgoEach(h)
		return
	}
	serial := uint64(s.eng.Written())
	condemn(k.cleared, h.Name, serial, 1)
	s.owe(&durable.Change{History: h.Name, Serial: serial, Clear: true})
}

// expects tells whether a version is on its way that will count, whatever is cleared of its history before it has landed.
func (k *kept) expects(history string) bool {
	for at, u := range k.underway {
		if at.history == history && u.expected() {
			return true
		}
	}
	return false
}

// forgoEach drops all that the catalog has of a history, or is about to have, one by one: there is something that has to stay.
func (s *Store) forgoEach(h *engine.History) {
	k := s.kept
	places := map[place]bool{}
	if id, ok := k.state.History(h.Name); ok {
		k.state.EachKey(id, func(key model.Key, _ uint64) bool {
			places[place{h.Name, key}] = true
			return true
		})
	}
	for at := range k.underway {
		if at.history == h.Name {
			places[at] = true
		}
	}
	for at := range places {
		if serial := k.told(at, nil); serial > 0 {
			s.forgo(at, serial)
		}
	}
}
