package disk

import (
	"errors"
	"maps"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// A transfer to a disk tier that outlives the store goes through three steps. A worker writes the bytes. The directory commits the transfer together
// with others. When the group has landed, the tier tells the engine that the transfer has ended.

// inFlightCommit is a transfer whose bytes are on disk and whose catalog row has not landed.
type inFlightCommit struct {
	x      *engine.Transfer
	at     int64 // time at which the bytes were on disk, ns
	leaves []uint64
}

// Commits tells whether a completed transfer has to be committed. A transfer of a version that is gone is not committed.
func (d *Tier) Commits(x *engine.Transfer, err error) bool {
	return d.versions != nil && (x.Kind == engine.Flush || x.Kind == engine.Spill) && x.To == d.index && err == nil && !x.Rec.Gone()
}

// Commit hands a transfer to the catalog once its bytes are on disk. leaves are the hashes of its regions' leaves. The transfer ends when the catalog has
// answered.
func (d *Tier) Commit(x *engine.Transfer, leaves []uint64) {
	d.versions.commit(&inFlightCommit{x: x, at: d.o.Now(), leaves: leaves})
}

// commit hands a transfer to the catalog, or queues it until the in-flight version that it may replace has landed. The catalog receives the versions
// of a key in the order in which they replace each other. Whenever the process dies, the next one therefore finds the latest durable version. The
// lock is held.
func (v *versions) commit(f *inFlightCommit) {
	r := f.x.Rec
	v.tier.engine().PutAside(f.x)
	at := placeOf(r)
	v.tier.watch.since[f.x] = f.at // its wait for the disk counts from the end of the write
	//mutation:replaced-version-committed-late
	if r.Shown() && v.inFlight[at].hasLive() {
		v.queued[at] = append(v.queued[at], f)
		v.tier.cache.Hold()
		return
	}
	v.sendCommit(at, f)
}

// sendCommit hands the catalog the row of a version: key, checksums, layout and offset on disk.
func (v *versions) sendCommit(at place, f *inFlightCommit) {
	r := f.x.Rec
	b := r.Version
	b.Serial = v.serial(r)
	v.inFlight[at] = append(v.inFlight[at], f)
	v.tier.cache.Hold()
	encoded := b.Encoding
	if b.Difference != nil { // that is of the host's copy
		encoded = nil
	}
	v.dir.Commit(&durable.Change{History: r.Hist.Name, Off: f.x.ToOff, Tag: f, Put: &catalog.Row{
		Key: r.Key, Serial: b.Serial, Time: b.Time, Align: r.Align, Sums: b.Sums, Leaves: f.leaves, Meta: b.Meta, Content: catalog.ContentOf(encoded, b.Difference), Encoding: encoded,
		Difference: b.Difference, Layout: &catalog.Layout{Layout: b.Layout.Layout},
	}})
}

// serial returns the serial that a version gets in the catalog: the number of its capture. If the catalog was already told of a later serial for the
// key, the version gets a new number, and everywhere counts as captured at that point.
func (v *versions) serial(r *engine.Record) uint64 {
	at := placeOf(r)
	before := max(v.inFlight[at].latest(), v.tombstones.highest(at))
	if id, ok := v.state.History(r.Hist.Name); ok {
		stored, _ := v.state.Serial(id, r.Key)
		before = max(before, stored)
	}
	if written := uint64(r.Written()); written > before {
		return written
	}
	return uint64(v.tier.engine().Renumber(r))
}

// commitsEnded takes the results of a group of catalog changes. suspect lists segments of which a sync has failed.
func (v *versions) commitsEnded(group []*durable.Change, suspect []int64) {
	v.tier.cache.Lock()
	defer v.tier.cache.Leave()
	v.commits++
	v.tier.watch.lastAnswer[engine.Down] = v.tier.o.Now()
	v.tier.room.retireSuspects(suspect)
	for _, c := range group {
		if f, ok := c.Tag.(*inFlightCommit); ok {
			v.putEnded(c, f)
		} else if c.Clarify {
			v.clarifyEnded(c)
		} else {
			v.dropEnded(c)
		}
		if c.Err == nil {
			v.releaseUncertain()
		}
	}
	v.retries.afterSuccess(group)
}

// putEnded ends the transfer of a committed version and resumes the versions that were queued behind it.
func (v *versions) putEnded(c *durable.Change, f *inFlightCommit) {
	r := f.x.Rec
	before, replaces := v.find(c)
	v.dir.Apply(c)
	at := placeOf(r)
	v.removeInFlight(at, f)
	delete(v.tier.watch.since, f.x)
	v.tier.cache.Release()
	if replaces && c.Err == nil {
		v.releaseRow(v.tier.o.Now(), &before) // first, so that no capture waiting for room gives up the version that it is to replace
	}
	v.endPut(c, f)
	held := v.queued[at]
	delete(v.queued, at)
	for _, f := range held {
		v.tier.cache.Release()
		v.resumeQueued(f)
	}
}

// resumeQueued commits a transfer that was queued. If its version was replaced meanwhile, the transfer ends without a commit.
func (v *versions) resumeQueued(f *inFlightCommit) {
	if !f.x.Rec.Gone() {
		v.commit(f)
		return
	}
	delete(v.tier.watch.since, f.x)
	now := v.tier.o.Now()
	f.x.Rested(now - f.at)
	v.tier.engine().Done(now, f.x, nil)
}

// endPut reports the result of a committed transfer to the engine.
func (v *versions) endPut(c *durable.Change, f *inFlightCommit) {
	x, now := f.x, v.tier.o.Now()
	b := x.Rec.Version
	x.Rested(now - f.at)
	switch {
	case c.Err == nil:
		v.tombstones.replaced(placeOf(x.Rec), c.Put.Serial)
		v.tier.engine().Done(now, x, nil)
		v.tier.cache.Landed(x.Rec)
		return
	case c.Uncertain:
		v.uncertain[x.ToOff] = setAside(x)
	}
	if errors.Is(c.Err, segment.ErrSuspect) && !c.Uncertain && x.Kind == engine.Flush && b.Redone < mostRedone {
		b.Redone++
		v.tier.engine().Redo(now, x)
		return
	}
	v.tier.engine().Done(now, x, v.tier.Error(c.Err))
}

// mostRedone bounds how often a flush is redone automatically.
const mostRedone = 3

// find returns the row that the catalog has for the key of a change.
func (v *versions) find(c *durable.Change) (catalog.Row, bool) {
	id, ok := v.state.History(c.History)
	if !ok {
		return catalog.Row{}, false
	}
	key := c.Key
	if c.Put != nil {
		key = c.Put.Key
	}
	return v.state.Find(id, key)
}

// releaseRow releases the disk space of a row that the catalog no longer references.
func (v *versions) releaseRow(now int64, row *catalog.Row) {
	off, n, err := v.Place(row)
	if err != nil {
		return
	}
	if !v.tier.engine().IsReserved(v.tier.index, off) {
		return // a record has it, and gives it back
	}
	if x, err := v.Difference(row); x != nil && err == nil {
		v.tier.lineages.letGo(x.Sources)
	}
	v.tier.releaseRoom(now, off, n)
}

// dropEnded releases the disk space of the rows that a drop or clear removed from the catalog. It queues a failed change for a retry.
func (v *versions) dropEnded(c *durable.Change) {
	now := v.tier.o.Now()
	delete(v.tier.watch.drops, c)
	if a, _ := c.Tag.(retryTag); c.Tag == forRoom || a.awaited {
		defer v.releaseOwed()
	}
	if c.Err != nil {
		v.dir.Apply(c)
		v.retries.queue(c)
		return
	}
	var gone []catalog.Row
	if c.Drop {
		if row, ok := v.find(c); ok && row.Serial <= c.Serial {
			gone = append(gone, row)
		}
	} else if id, ok := v.state.History(c.History); ok && c.Clear {
		v.state.Each(id, func(row catalog.Row) bool {
			if row.Serial <= c.Serial {
				gone = append(gone, row)
			}
			return true
		})
	}
	v.dir.Apply(c)
	if c.Drop || c.Clear {
		v.tombstones.landed(c, changesOf(c))
	}
	for i := range gone {
		v.releaseRow(now, &gone[i])
	}
}

// clarifyEnded completes a change that clarify has committed. The directory also commits such changes by itself.
func (v *versions) clarifyEnded(c *durable.Change) {
	if c.Tag == forRoom {
		v.clarifying = false
		delete(v.tier.watch.drops, c)
		defer v.releaseOwed()
	}
	if c.Err == nil {
		v.releaseUncertain() // before the waiters for the space are told that the change has landed
	}
}

// releaseOwed tells the engine that a change has landed for whose space captures and flushes may wait. While segments are retired, trim does so
// later, once it has provided space elsewhere.
func (v *versions) releaseOwed() {
	if len(v.tier.room.segments) > 0 {
		v.relocating++
	} else {
		v.tier.engine().ExpectReleases(v.tier.o.Now(), -1)
	}
}

// uncertain is a transfer of which it is unknown whether the catalog references it. It holds the sources of its difference: the version may get another one, when its flush
// is repeated.
type uncertain struct {
	x       *engine.Transfer
	sources []model.Source
}

// setAside takes the difference of an uncertain transfer from its version.
func setAside(x *engine.Transfer) *uncertain {
	u := &uncertain{x: x}
	if b := x.Rec.Version; b.Difference != nil {
		u.sources, b.Difference = b.Difference.Sources, nil
	}
	return u
}

// releaseUncertain releases the disk space of transfers of which it was unknown whether the catalog references them. The catalog does not.
func (v *versions) releaseUncertain() {
	now := v.tier.o.Now()
	for _, off := range slices.Sorted(maps.Keys(v.uncertain)) {
		u := v.uncertain[off]
		delete(v.uncertain, off)
		v.tier.lineages.letGo(u.sources)
		v.tier.releaseRoom(now, off, u.x.Writes()) // all of the room, as the engine gave back no part of it
	}
}
