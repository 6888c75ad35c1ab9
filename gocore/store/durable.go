package store

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

// durableTier is the state of a disk tier that outlives the store: the directory, and bookkeeping that the catalog does not hold. The store's lock
// guards it and the directory's State.
type durableTier struct {
	directory
	dir               *durable.Dir // nil: open for reading only
	state             *catalog.State
	notLoaded         map[string]int              // by history: checkpoints of the catalog that can be restored and have no record
	keyTombstones     map[place]tombstone         // keys with versions that are dropped here although the catalog may still list them
	historyTombstones map[string]tombstone        // … and whole histories
	inFlight          map[place]inFlightCommits   // keys with versions on their way into the catalog
	queued            map[place][]*inFlightCommit // … and versions queued behind those; each is skipped if a later one replaces it
	uncertain         map[int64]*engine.Transfer  // by offset on disk: transfers of which it is unknown whether the catalog references them
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
	Occupied() iter.Seq2[int64, int64]
	Close() error
}

// fewRows is the most rows for which records are made when the store opens. With more, a record is made when its checkpoint is first accessed.
const fewRows = 4096

// openDurable opens the directory of a disk tier that outlives the store.
func (s *Store) openDurable() error {
	o := durable.Options{FS: s.set.FS, Dir: s.set.Path, SegmentBytes: s.set.SegmentBytes, Direct: s.set.Direct, Land: s.commitsEnded, Landed: s.trim, Guard: &s.mu, Slack: s.set.CatalogSlack}
	if s.set.Disk != nil {
		o.Capacity = *s.set.Disk / diskGrain * diskGrain
	}
	k := &durableTier{
		notLoaded: map[string]int{}, keyTombstones: map[place]tombstone{}, historyTombstones: map[string]tombstone{}, inFlight: map[place]inFlightCommits{}, queued: map[place][]*inFlightCommit{},
		uncertain: map[int64]*engine.Transfer{},
	}
	if s.set.ReadOnly {
		view, err := durable.Read(o)
		if err != nil {
			return s.diskError(err)
		}
		k.directory = view
	} else {
		dir, err := durable.Open(o)
		if err != nil {
			return s.diskError(err)
		}
		k.dir, k.directory = dir, dir
	}
	k.state, s.disk, s.durable = k.State(), k.Space(), k
	return nil
}

// recover restores the state of a new engine from the catalog.
func (s *Store) recover() {
	s.mu.Lock() // retain may drop a checkpoint, which commits a change to the catalog
	defer s.mu.Unlock()
	k := s.durable
	s.eng.Reserve(len(s.tiers)-1, k.Occupied())
	if k.dir != nil {
		s.fit(*s.set.Disk / diskGrain * diskGrain)
	}
	s.eng.Continue(int64(k.state.MaxSerial()))
	rows := 0
	for _, info := range k.state.Histories() {
		h := s.named(info.Name).h
		k.notLoaded[info.Name] = info.Rows
		rows += info.Rows
		auto := int64(0)
		k.state.EachKey(info.ID, func(key model.Key, _ uint64) bool {
			if !key.IsText && key.Number >= auto && key.Number < 1<<62 {
				auto = key.Number + 1
			}
			return true
		})
		h.ContinueKeys(auto)
	}
	if rows <= fewRows && !s.set.LazyRows {
		s.loadAll()
	}
	for _, info := range k.state.Histories() {
		if r := info.Retention; r != nil && k.dir != nil {
			s.named(info.Name).retain(r)
		}
	}
}

// loadAll makes records of all rows of the catalog, in the order of writing.
func (s *Store) loadAll() {
	type row struct {
		h      *engine.History
		key    model.Key
		serial uint64
	}
	var rows []row
	for _, info := range s.durable.state.Histories() {
		h := s.histories[info.Name].h
		s.durable.state.EachKey(info.ID, func(key model.Key, serial uint64) bool {
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

// eachNotLoaded calls f for the checkpoints that have a row in the catalog and no record.
func (k *durableTier) eachNotLoaded(h *engine.History, f func(key model.Key, serial uint64)) {
	id, ok := k.state.History(h.Name)
	if !ok || k.notLoaded[h.Name] == 0 {
		return
	}
	k.state.EachKey(id, func(key model.Key, serial uint64) bool {
		if !h.Has(key) && k.isLive(place{h.Name, key}, serial) {
			f(key, serial)
		}
		return true
	})
}

// row returns the catalog's row of a key, unless it is dropped.
func (k *durableTier) row(history string, key model.Key) (row catalog.Row, ok bool) {
	id, ok := k.state.History(history)
	if !ok {
		return row, false
	}
	row, ok = k.state.Find(id, key)
	if !ok || !k.isLive(place{history, key}, row.Serial) {
		return row, false
	}
	return row, true
}

// lookupRow describes a checkpoint that only the catalog has; ok is false for any other, and for one whose layout nothing else uses.
func (h *History) lookupRow(key model.Key) (i Info, ok bool) {
	s, k := h.s, h.s.durable
	if k == nil || k.notLoaded[h.h.Name] == 0 || h.h.Has(key) {
		return i, false
	}
	row, ok := k.row(h.h.Name, key)
	if !ok || !row.Readable() {
		return i, false
	}
	l := s.layouts.Find(&row.Layout.Layout)
	if l == nil {
		return i, false
	}
	disk := len(s.tiers) - 1
	return Info{
		Layout: l.ID, Slot: l.Slot, Payload: l.Payload, Meta: int64(len(row.Meta)), Time: row.Time,
		Tiers: 1 << s.tiers[disk], Ready: disk == len(s.deviceTiers),
	}, true
}

// catalogRows is the catalog as the engine uses it. The lock is held.
type catalogRows struct{ *Store }

var _ engine.Catalog = catalogRows{}

// Lookup tells whether the catalog has a checkpoint without a record, and the size of its slot in the tiers.
func (s catalogRows) Lookup(h *engine.History, key model.Key) (size int64, ok bool) {
	k := s.durable
	if k == nil || k.notLoaded[h.Name] == 0 {
		return 0, false
	}
	row, ok := k.row(h.Name, key)
	if !ok || !row.Readable() {
		return 0, false
	}
	size, _ = slotRoom(row.Layout.Slot)
	return size, true
}

// Find makes a record of a checkpoint that only the catalog has; nil when there is none.
func (s catalogRows) Find(h *engine.History, key model.Key) *engine.Record {
	k := s.durable
	if k == nil || k.notLoaded[h.Name] == 0 {
		return nil
	}
	row, ok := k.row(h.Name, key)
	if !ok || !row.Readable() {
		return nil
	}
	off, _, err := k.Place(&row)
	if err != nil {
		return nil // cannot happen: opening the store would have failed
	}
	k.notLoaded[h.Name]--
	b := &checkpoint.Version{Layout: s.layouts.Adopt(&row.Layout.Layout), Meta: row.Meta, Time: row.Time, Serial: row.Serial}
	b.Keep(row.Sums)
	size, align := slotRoom(row.Layout.Slot)
	return s.eng.Adopt(h, key, engine.Stored{
		Tier: len(s.tiers) - 1, Size: size, Align: align, Offset: off, Top: len(s.deviceTiers), Written: int64(row.Serial), Version: b,
	})
}

// Keeps tells whether the disk space that a record releases at an offset must stay reserved, because the catalog references it or may do so.
func (s catalogRows) Keeps(r *engine.Record, _ int, off int64) bool {
	k := s.durable
	//mutation:uncertain-room-not-reused
	if k.uncertain[off] != nil {
		return true
	}
	id, ok := k.state.History(r.Hist.Name)
	if !ok {
		return false
	}
	if serial, ok := k.state.Serial(id, r.Key); !ok || serial != r.Version.Serial {
		return false
	}
	row, _ := k.state.Find(id, r.Key)
	at, _, err := k.Place(&row)
	return err != nil || at == off
}

// reconsider returns the error of a transfer. In a store open for reading, it returns Dropped if the writing process has dropped or replaced the
// checkpoint. The bytes are not damaged then. Their file may be gone, and without a verified checksum they may be those of another checkpoint.
func (s *Store) reconsider(x *engine.Transfer, err error) error {
	if !s.set.ReadOnly || s.tiers[x.From] != status.TierDisk {
		return err
	}
	b := x.Rec.Version
	code := codeOf(err)
	if err == nil && s.set.verify != verifyOff && b.Sums != nil || err != nil && code != status.Corrupt && code != status.IO {
		return err
	}
	current, failed := s.durable.directory.(*durable.View).Current(x.Rec.Hist.Name, x.Rec.Key, b.Serial)
	switch {
	case failed != nil && err == nil:
		return s.diskError(failed)
	case failed != nil || current:
		return err
	}
	return status.New(status.Dropped, "the process that writes to the store has dropped or replaced the checkpoint since this one opened it")
}

// slotRoom returns the size and alignment of a slot in the tiers. Direct I/O and huge pages need whole pages; for small slots that would waste more
// than it gains.
func slotRoom(slot int64) (size, align int64) {
	if slot < wholePages {
		return slot, hostGrain
	}
	return (slot + diskGrain - 1) / diskGrain * diskGrain, diskGrain
}
