package disk

import (
	"iter"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// versions are those of a disk tier that outlives the store: the directory, and what the catalog does not hold about versions on their way there. The
// store's lock guards them and the directory's State.
type versions struct {
	directory
	tier       *Tier
	dir        *durable.Dir // nil: open for reading only
	state      *catalog.State
	tombstones tombstones
	past       past
	inFlight   map[place]inFlightCommits   // keys with versions on their way into the catalog
	queued     map[place][]*inFlightCommit // … and versions queued behind those; each is skipped if a later one replaces it
	uncertain  map[int64]*uncertain        // by offset on disk: transfers of which it is unknown whether the catalog references them
	// relocating counts releases owed to the engine that wait until trim has made space available elsewhere.
	relocating int
	retries    retryQueue
	// clarifying: a Clarify change is in flight, which ends the uncertainty.
	clarifying bool
	commits    int64 // groups of changes that shared their syncs
	clearing   bool  // a history is being cleared as a whole: Removed commits no drop for each checkpoint
}

// directory is the common interface of durable.Dir, for writing, and durable.View, for reading.
type directory interface {
	State() *catalog.State
	Space() *segment.Space
	Place(row *catalog.Row) (off, n int64, err error)
	Difference(row *catalog.Row) (*model.Difference, error)
	Occupied() iter.Seq2[int64, int64]
	Close() error
}

// fewRows is the most rows for which records are made when the store opens. With more, a record is made when its checkpoint is first accessed.
const fewRows = 4096

// openDurable opens the directory of a tier that outlives the store.
func (d *Tier) openDurable() error {
	v := &versions{
		tier: d, tombstones: newTombstones(), past: past{}, inFlight: map[place]inFlightCommits{}, queued: map[place][]*inFlightCommit{},
		uncertain: map[int64]*uncertain{},
	}
	v.retries = retryQueue{versions: v, first: d.o.RetryAfter}
	if v.retries.first == 0 {
		v.retries.first = firstPause
	}
	o := durable.Options{
		FS: d.o.FS, Dir: d.o.Path, Capacity: d.o.Capacity, SegmentBytes: d.o.SegmentBytes, Direct: d.o.Direct, Slack: d.o.CatalogSlack,
		Land: v.commitsEnded, Landed: d.room.trim, Guard: d.cache,
	}
	if d.o.ReadOnly {
		view, err := durable.Read(o)
		if err != nil {
			return d.Error(err)
		}
		v.directory = view
	} else {
		dir, err := durable.Open(o)
		if err != nil {
			return d.Error(err)
		}
		v.dir, v.directory = dir, dir
	}
	v.state, d.Space, d.versions = v.State(), v.Space(), v
	return nil
}

// Recover restores the state of a new engine from the catalog. It returns the rules of retention that the catalog has, by history. The lock is held.
func (d *Tier) Recover() map[string]*model.Retention {
	v, e := d.versions, d.engine()
	if v == nil {
		return nil
	}
	e.Reserve(d.index, v.Occupied())
	v.recoverLineages()
	if v.dir != nil {
		d.room.fit(d.o.Capacity)
	}
	e.Continue(int64(v.state.MaxSerial()))
	rows := 0
	for _, info := range v.state.Histories() {
		d.unloaded.count[info.Name] = info.Rows
		rows += info.Rows
		e.History(info.Name).ContinueKeys(v.nextAuto(info.ID))
	}
	if rows <= fewRows && !d.o.LazyRows {
		d.loadAll()
	}
	rules := map[string]*model.Retention{}
	for _, info := range v.state.Histories() {
		if info.Retention != nil && v.dir != nil {
			rules[info.Name] = info.Retention
		}
	}
	return rules
}

// nextAuto returns the first automatic key of a history that no checkpoint has.
func (v *versions) nextAuto(history uint32) (auto int64) {
	v.state.EachKey(history, func(key model.Key, _ uint64) bool {
		if !key.IsText && key.Number >= auto && key.Number < 1<<62 {
			auto = key.Number + 1
		}
		return true
	})
	return auto
}

// row returns the catalog's row of a key, unless it is dropped.
func (v *versions) row(history string, key model.Key) (row catalog.Row, ok bool) {
	id, ok := v.state.History(history)
	if !ok {
		return row, false
	}
	row, ok = v.state.Find(id, key)
	if !ok || v.tombstones.hide(place{history, key}, row.Serial) {
		return row, false
	}
	return row, true
}

// AdoptLeaves takes over the hashes of the leaves of a version that the catalog has, unless they are known. The lock is held.
func (d *Tier) AdoptLeaves(r *engine.Record) {
	v, b := d.versions, r.Version
	if v == nil || b.Sums == nil || b.AllLeaves() != nil || !b.HasLeaves() {
		return
	}
	id, ok := v.state.History(r.Hist.Name)
	if !ok {
		return
	}
	if row, ok := v.state.Find(id, r.Key); ok && row.Serial == b.Serial {
		b.AdoptLeaves(row.Leaves)
	}
}

// Keeps tells whether the disk space that a record releases at an offset must stay reserved, because the catalog references it or may do so, or because other
// copies on the disk need its bytes.
func (d *Tier) Keeps(r *engine.Record, off int64) bool {
	if d.versions != nil && d.versions.keeps(r, off) {
		return true
	}
	d.lineages.giveUp(r.Version)
	return d.lineages.keeps(off)
}

// keeps tells whether the catalog references the disk space of a record at an offset, or may do so.
func (v *versions) keeps(r *engine.Record, off int64) bool {
	//mutation:uncertain-room-not-reused
	if v.uncertain[off] != nil {
		return true
	}
	id, ok := v.state.History(r.Hist.Name)
	if !ok {
		return false
	}
	if serial, ok := v.state.Serial(id, r.Key); !ok || serial != r.Version.Serial {
		return false
	}
	row, _ := v.state.Find(id, r.Key)
	at, _, err := v.Place(&row)
	return err != nil || at == off
}

// Reconsider returns the error of a transfer. In a store open for reading, it returns Dropped if the writing process has dropped or replaced the
// checkpoint. The bytes are not damaged then. Their file may be gone, and without a verified checksum they may be those of another checkpoint.
func (d *Tier) Reconsider(x *engine.Transfer, err error) error {
	if !d.o.ReadOnly || x.From != d.index {
		return err
	}
	b := x.Rec.Version
	code := status.CodeOf(err)
	if err == nil && d.o.Verified && b.Sums != nil || err != nil && code != status.Corrupt && code != status.IO {
		return err
	}
	current, failed := d.versions.directory.(*durable.View).Current(x.Rec.Hist.Name, x.Rec.Key, b.Serial)
	switch {
	case failed != nil && err == nil:
		return d.Error(failed)
	case failed != nil || current:
		return err
	}
	return status.New(status.Dropped, "the process that writes to the store has dropped or replaced the checkpoint since this one opened it")
}

// SetRule makes the rule of retention of a history durable.
func (d *Tier) SetRule(history string, r *model.Retention) {
	if d.versions != nil {
		d.versions.dir.Commit(&durable.Change{History: history, Retention: r})
	}
}
