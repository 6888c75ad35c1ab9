package disk

import (
	"cmp"
	"iter"
	"slices"

	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
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
	notLoaded  map[string]int // by history: checkpoints of the catalog that can be restored and have no record
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
		tier: d, notLoaded: map[string]int{}, tombstones: newTombstones(), past: past{}, inFlight: map[place]inFlightCommits{}, queued: map[place][]*inFlightCommit{},
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
		v.notLoaded[info.Name] = info.Rows
		rows += info.Rows
		e.History(info.Name).ContinueKeys(v.nextAuto(info.ID))
	}
	if rows <= fewRows && !d.o.LazyRows {
		v.loadAll()
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

// loadAll makes records of all rows of the catalog, in the order of writing.
func (v *versions) loadAll() {
	type row struct {
		h      *engine.History
		key    model.Key
		serial uint64
	}
	var rows []row
	for _, info := range v.state.Histories() {
		h := v.tier.engine().History(info.Name)
		v.state.EachKey(info.ID, func(key model.Key, serial uint64) bool {
			rows = append(rows, row{h, key, serial})
			return true
		})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.serial, b.serial) })
	for _, r := range rows {
		if r.h.Get(r.key) != nil {
			r.h.Wrote(r.key)
		}
	}
}

// NotLoaded is the number of checkpoints of a history that can be restored and have no record.
func (d *Tier) NotLoaded(history string) int {
	if d.versions == nil {
		return 0
	}
	return d.versions.notLoaded[history]
}

// EachNotLoaded calls f for the checkpoints that have a row in the catalog and no record. serial orders them by the time of writing.
func (d *Tier) EachNotLoaded(h *engine.History, f func(key model.Key, serial uint64)) {
	v := d.versions
	if v == nil {
		return
	}
	id, ok := v.state.History(h.Name)
	if !ok || v.notLoaded[h.Name] == 0 {
		return
	}
	v.state.EachKey(id, func(key model.Key, serial uint64) bool {
		if !h.Has(key) && !v.tombstones.hide(place{h.Name, key}, serial) {
			f(key, serial)
		}
		return true
	})
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

// Meta returns the description and the annotation of a checkpoint that only the catalog has, without making a record.
func (d *Tier) Meta(history string, key model.Key) (text, meta string, ok bool) {
	id, _ := d.versions.state.History(history)
	l, meta, ok := d.versions.state.Meta(id, key)
	if !ok {
		return "", "", false
	}
	return l.Text, meta, true
}

// Lookup tells whether the catalog has a checkpoint without a record, and the size of its slot in the tiers.
func (d *Tier) Lookup(h *engine.History, key model.Key) (size int64, ok bool) {
	row, ok := d.Row(h, key)
	if !ok {
		return 0, false
	}
	size, _ = checkpoint.Room(row.Layout.Slot)
	return size, true
}

// Row returns the row of a checkpoint that can be restored and has no record.
func (d *Tier) Row(h *engine.History, key model.Key) (row catalog.Row, ok bool) {
	v := d.versions
	if v == nil || v.notLoaded[h.Name] == 0 {
		return row, false
	}
	row, ok = v.row(h.Name, key)
	return row, ok && row.Readable()
}

// Find makes a record of a checkpoint that only the catalog has; nil when there is none.
func (d *Tier) Find(h *engine.History, key model.Key) *engine.Record {
	row, ok := d.Row(h, key)
	if !ok {
		return nil
	}
	v := d.versions
	off, _, err := v.Place(&row)
	x, failed := v.Difference(&row)
	if err != nil || failed != nil {
		return nil // cannot happen: opening the store would have failed
	}
	v.notLoaded[h.Name]--
	b := &checkpoint.Version{
		Layout: d.o.Layouts.Adopt(&row.Layout.Layout), Meta: row.Meta, Time: row.Time, Encoding: row.Encoding, Difference: x, Serial: row.Serial,
	}
	b.Keep(row.Sums)
	size, align := checkpoint.Room(row.Layout.Slot)
	return d.engine().Adopt(h, key, engine.Stored{
		Tier: d.index, Size: size, Align: align, Offset: off, Top: d.o.Top, Written: int64(row.Serial), Version: b, Shape: d.shapeOf(b),
	})
}

// shapeOf says how a stored version is kept in the tiers; nil: as it is in all of them.
func (d *Tier) shapeOf(b *checkpoint.Version) *engine.Shape {
	s := &engine.Shape{}
	switch {
	case b.Difference != nil:
		s.Forms[d.index], s.Sizes[d.index] = engine.Difference, b.Difference.Bytes()
	case b.Encoding != nil:
		s.Forms[d.index], s.Sizes[d.index] = engine.Encoded, b.Encoding.Bytes()
	default:
		return nil
	}
	return s
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
