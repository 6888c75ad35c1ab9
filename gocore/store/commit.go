package store

import (
	"errors"
	"maps"
	"slices"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// A transfer to a disk tier that outlives the store goes through three steps. A worker writes the bytes. The catalog commits the transfer together
// with others. When the group has landed, the store tells the engine that the transfer has ended.

// inFlightCommit is a transfer whose bytes are on disk and whose catalog row has not landed.
type inFlightCommit struct {
	x      *engine.Transfer
	at     int64 // time at which the bytes were on disk, ns
	leaves []uint64
}

// commits tells whether a completed transfer has to be committed. A transfer of a version that is gone is not committed.
func (s *Store) commits(x *engine.Transfer, m *moved) bool {
	return s.durable != nil && (x.Kind == engine.Flush || x.Kind == engine.Spill) && x.To == len(s.tiers)-1 && m.err == nil && !x.Rec.Gone()
}

// commit hands a transfer to the catalog, or queues it until the in-flight version that it may replace has landed. The catalog receives the versions
// of a key in the order in which they replace each other. Whenever the process dies, the next one therefore finds the latest durable version. The
// lock is held.
func (s *Store) commit(f *inFlightCommit) {
	k, r := s.durable, f.x.Rec
	s.eng.PutAside(f.x)
	at := placeOf(r)
	s.watchdog.since[f.x] = f.at // its wait for the disk counts from the end of the write
	//mutation:replaced-version-committed-late
	if r.Shown() && k.inFlight[at].hasLive() {
		k.queued[at] = append(k.queued[at], f)
		s.users++
		return
	}
	s.sendCommit(at, f)
}

// sendCommit hands the catalog the row of a version: key, checksums, layout and offset on disk.
func (s *Store) sendCommit(at place, f *inFlightCommit) {
	k, r := s.durable, f.x.Rec
	b := r.Version
	b.Serial = s.serial(r)
	k.inFlight[at] = append(k.inFlight[at], f)
	s.users++
	k.dir.Commit(&durable.Change{History: r.Hist.Name, Off: f.x.ToOff, Tag: f, Put: &catalog.Row{
		Key: r.Key, Serial: b.Serial, Time: b.Time, Align: r.Align, Sums: b.Sums, Leaves: f.leaves, Meta: b.Meta,
		Layout: &catalog.Layout{Layout: b.Layout.Layout},
	}})
}

// serial returns the serial that a version gets in the catalog: the number of its capture. If the catalog was already told of a later serial for the
// key, the version gets a new number, and everywhere counts as captured at that point.
func (s *Store) serial(r *engine.Record) uint64 {
	k, at := s.durable, placeOf(r)
	before := max(k.inFlight[at].latest(), k.keyTombstones[at].serial, k.historyTombstones[at.history].serial)
	if id, ok := k.state.History(r.Hist.Name); ok {
		stored, _ := k.state.Serial(id, r.Key)
		before = max(before, stored)
	}
	if written := uint64(r.Written()); written > before {
		return written
	}
	return uint64(s.eng.Renumber(r))
}

// commitsEnded takes the results of a group of catalog changes. suspect lists segments of which a sync has failed.
func (s *Store) commitsEnded(group []*durable.Change, suspect []int64) {
	s.mu.Lock()
	defer s.leave()
	s.durable.commits++
	s.watchdog.lastAnswer[engine.Down] = s.now()
	s.retireSuspects(suspect)
	for _, c := range group {
		if f, ok := c.Tag.(*inFlightCommit); ok {
			s.putEnded(c, f)
		} else if c.Clarify {
			s.clarifyEnded(c)
		} else {
			s.dropEnded(c)
		}
		if c.Err == nil {
			s.releaseUncertain()
		}
	}
	s.retryAfterSuccess(group)
}

// putEnded ends the transfer of a committed version and resumes the versions that were queued behind it.
func (s *Store) putEnded(c *durable.Change, f *inFlightCommit) {
	k, r := s.durable, f.x.Rec
	before, replaces := k.find(c)
	k.dir.Apply(c)
	at := placeOf(r)
	k.removeInFlight(at, f)
	delete(s.watchdog.since, f.x)
	s.users--
	if replaces && c.Err == nil {
		s.releaseRow(s.now(), &before) // first, so that no capture waiting for room gives up the version that it is to replace
	}
	s.endPut(c, f)
	held := k.queued[at]
	delete(k.queued, at)
	for _, f := range held {
		s.users--
		s.resumeQueued(f)
	}
}

// resumeQueued commits a transfer that was queued. If its version was replaced meanwhile, the transfer ends without a commit.
func (s *Store) resumeQueued(f *inFlightCommit) {
	if !f.x.Rec.Gone() {
		s.commit(f)
		return
	}
	delete(s.watchdog.since, f.x)
	now := s.now()
	f.x.Rested(now - f.at)
	s.eng.Done(now, f.x, nil)
}

// endPut reports the result of a committed transfer to the engine.
func (s *Store) endPut(c *durable.Change, f *inFlightCommit) {
	k, x, now := s.durable, f.x, s.now()
	b := x.Rec.Version
	x.Rested(now - f.at)
	switch {
	case c.Err == nil:
		if at := placeOf(x.Rec); k.keyTombstones[at].changes == 0 && k.keyTombstones[at].serial < c.Put.Serial {
			delete(k.keyTombstones, at)
		}
		s.eng.Done(now, x, nil)
		s.countForRetention(x.Rec)
		return
	case c.Uncertain:
		k.uncertain[x.ToOff] = x
	}
	if errors.Is(c.Err, segment.ErrSuspect) && !c.Uncertain && x.Kind == engine.Flush && b.Redone < mostRedone {
		b.Redone++
		s.eng.Redo(now, x)
		return
	}
	s.eng.Done(now, x, s.diskError(c.Err))
}

// mostRedone bounds how often a flush is redone automatically.
const mostRedone = 3

// find returns the row that the catalog has for the key of a change.
func (k *durableTier) find(c *durable.Change) (catalog.Row, bool) {
	id, ok := k.state.History(c.History)
	if !ok {
		return catalog.Row{}, false
	}
	key := c.Key
	if c.Put != nil {
		key = c.Put.Key
	}
	return k.state.Find(id, key)
}

// releaseRow releases the disk space of a row that the catalog no longer references.
func (s *Store) releaseRow(now int64, row *catalog.Row) {
	off, n, err := s.durable.Place(row)
	if err != nil {
		return
	}
	s.eng.Release(now, len(s.tiers)-1, off, n)
}

// dropEnded releases the disk space of the rows that a drop or clear removed from the catalog. It queues a failed change for a retry.
func (s *Store) dropEnded(c *durable.Change) {
	k, now := s.durable, s.now()
	delete(s.watchdog.drops, c)
	if a, _ := c.Tag.(retryTag); c.Tag == forRoom || a.awaited {
		defer s.releaseOwed()
	}
	if c.Err != nil {
		k.dir.Apply(c)
		s.queueRetry(c)
		return
	}
	var gone []catalog.Row
	if c.Drop {
		if row, ok := k.find(c); ok && row.Serial <= c.Serial {
			gone = append(gone, row)
		}
	} else if id, ok := k.state.History(c.History); ok && c.Clear {
		k.state.Each(id, func(row catalog.Row) bool {
			if row.Serial <= c.Serial {
				gone = append(gone, row)
			}
			return true
		})
	}
	k.dir.Apply(c)
	switch {
	case c.Drop:
		acknowledgeTombstone(k.keyTombstones, place{c.History, c.Key}, c.Serial, changesOf(c))
	case c.Clear:
		acknowledgeTombstone(k.historyTombstones, c.History, c.Serial, changesOf(c))
	}
	for i := range gone {
		s.releaseRow(now, &gone[i])
	}
}

// clarifyEnded completes a change that clarify has committed. The directory also commits such changes by itself.
func (s *Store) clarifyEnded(c *durable.Change) {
	if c.Tag == forRoom {
		s.durable.clarifying = false
		delete(s.watchdog.drops, c)
		defer s.releaseOwed()
	}
	if c.Err == nil {
		s.releaseUncertain() // before the waiters for the space are told that the change has landed
	}
}

// releaseOwed tells the engine that a change has landed for whose space captures and flushes may wait. While segments are retired, trim does so
// later, once it has provided space elsewhere.
func (s *Store) releaseOwed() {
	if len(s.room.segments) > 0 {
		s.durable.relocating++
	} else {
		s.eng.ExpectReleases(s.now(), -1)
	}
}

// releaseUncertain releases the disk space of transfers of which it was unknown whether the catalog references them. The catalog does not.
func (s *Store) releaseUncertain() {
	k, now := s.durable, s.now()
	for _, off := range slices.Sorted(maps.Keys(k.uncertain)) {
		size := k.uncertain[off].Rec.Size
		delete(k.uncertain, off)
		s.eng.Release(now, len(s.tiers)-1, off, size)
	}
}

// writeToDisk writes a checkpoint of the host tier to the disk. For a disk tier that outlives the store, a second goroutine verifies the bytes
// meanwhile. They must not become durable unless they are still the captured bytes.
func (s *Store) writeToDisk(x *engine.Transfer, b *checkpoint.Version) (leaves []uint64, err error) {
	slot := s.host.Bytes(x.FromOff, x.Rec.Size)
	if s.durable == nil || !b.HasLeaves() {
		return nil, s.writeWanted(x.ToOff, slot, b)
	}
	var bad error
	hashed := make(chan struct{})
	safego.Go("leaves", func() {
		defer close(hashed)
		leaves, bad = b.Leaves(slot)
	})
	err = s.writeWanted(x.ToOff, slot, b)
	<-hashed
	if bad != nil {
		err = bad
	}
	return leaves, err
}

// writeWanted writes a checkpoint to the disk, and stops when the version is gone.
func (s *Store) writeWanted(at int64, slot []byte, b *checkpoint.Version) error {
	err := s.disk.WriteWhile(func() bool { return !b.Gone.Load() }, at, slot)
	if errors.Is(err, segment.ErrUnwanted) {
		return engine.ErrStopped
	}
	return s.diskError(err)
}
