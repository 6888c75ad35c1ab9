package disk

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

// tombstones are those of a store.
type tombstones struct {
	keys      map[place]tombstone  // keys with versions that are dropped here although the catalog may still list them
	histories map[string]tombstone // … and whole histories
}

func newTombstones() tombstones {
	return tombstones{keys: map[place]tombstone{}, histories: map[string]tombstone{}}
}

// hide tells whether a tombstone hides a version of the catalog.
func (b *tombstones) hide(at place, serial uint64) bool { return serial <= b.highest(at) }

// highest returns the serial up to which the versions of a key are hidden.
func (b *tombstones) highest(at place) uint64 {
	return max(b.keys[at].serial, b.histories[at.history].serial)
}

// landed records that a drop or clear has landed. changes is the number of changes that it stands for.
func (b *tombstones) landed(c *durable.Change, changes int) {
	if c.Drop {
		acknowledgeTombstone(b.keys, place{c.History, c.Key}, c.Serial, changes)
	} else {
		acknowledgeTombstone(b.histories, c.History, c.Serial, changes)
	}
}

// replaced removes the tombstone of a key that only hid the versions before one that is in the catalog now.
func (b *tombstones) replaced(at place, serial uint64) {
	if k := b.keys[at]; k.changes == 0 && k.serial < serial {
		delete(b.keys, at)
	}
}

// Removed tells the catalog that a checkpoint is gone. A checkpoint that is replaced (by is not nil) stays in the catalog until the new version is
// durable.
func (d *Tier) Removed(r, by *engine.Record) {
	v := d.versions
	if v == nil || v.clearing || v.dir == nil || by != nil && d.NotLoaded(r.Hist.Name) == 0 {
		return
	}
	at := placeOf(r)
	serial := v.latestSerial(at, r)
	switch {
	case serial == 0:
	case by != nil:
		addTombstone(v.tombstones.keys, at, serial, 0) // hides the row until the new version is the checkpoint of the key
	case !r.Captured() && r.Failed() != nil:
		// The capture of a replacement failed. The key has no checkpoint in this store. A later open of the store finds the replaced version.
		addTombstone(v.tombstones.keys, at, serial, 0)
	default:
		v.dropFromCatalog(at, serial)
	}
}

// latestSerial returns the latest serial of a key that the catalog was told of, up to the version that goes; 0: none. A version in flight that is not
// yet the checkpoint of its key comes later, and stays.
func (v *versions) latestSerial(at place, going *engine.Record) (serial uint64) {
	if id, ok := v.state.History(at.history); ok {
		serial, _ = v.state.Serial(id, at.key)
	}
	for _, f := range v.inFlight[at] {
		//mutation:drop-takes-later-version
		if r := f.x.Rec; r == going || r.Gone() {
			serial = max(serial, r.Version.Serial)
		}
	}
	return serial
}

// dropFromCatalog drops the catalog's rows of a key up to a serial.
func (v *versions) dropFromCatalog(at place, serial uint64) {
	addTombstone(v.tombstones.keys, at, serial, 1)
	v.commitForRoom(&durable.Change{History: at.history, Key: at.key, Serial: serial, Drop: true})
}

// commitForRoom commits a change that releases disk space. Waiters for space wait for it.
func (v *versions) commitForRoom(c *durable.Change) {
	c.Tag = forRoom
	v.tier.watch.drops[c] = v.tier.o.Now()
	v.tier.engine().ExpectReleases(0, 1)
	v.dir.Commit(c)
}

// forRoom is the tag of changes for whose space captures or flushes may wait. A change that is committed again has a retryTag instead.
const forRoom = "for room"

// Clear drops all that the catalog has of a history. f clears the engine's part meanwhile.
func (d *Tier) Clear(h *engine.History, f func()) {
	v := d.versions
	if v == nil {
		f()
		return
	}
	v.clearing = true
	f()
	v.clearing = false
	d.unloaded.count[h.Name] = 0
	if v.expectsVersion(h.Name) {
		v.dropEachFromCatalog(h)
		return
	}
	serial := uint64(d.engine().Written())
	addTombstone(v.tombstones.histories, h.Name, serial, 1)
	v.commitForRoom(&durable.Change{History: h.Name, Serial: serial, Clear: true})
}

// expectsVersion tells whether a version is in flight that must stay although its history is cleared before it has landed.
func (v *versions) expectsVersion(history string) bool {
	for at, u := range v.inFlight {
		if at.history == history && u.hasExpected() {
			return true
		}
	}
	return false
}

// dropEachFromCatalog drops all rows that the catalog has of a history, or is about to have, one by one, because one version has to stay.
func (v *versions) dropEachFromCatalog(h *engine.History) {
	places := map[place]bool{}
	if id, ok := v.state.History(h.Name); ok {
		v.state.EachKey(id, func(key model.Key, _ uint64) bool {
			places[place{h.Name, key}] = true
			return true
		})
	}
	for at := range v.inFlight {
		if at.history == h.Name {
			places[at] = true
		}
	}
	for at := range places {
		if serial := v.latestSerial(at, nil); serial > 0 {
			v.dropFromCatalog(at, serial)
		}
	}
}
