package durable

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// Backup copies a store into another directory, also while a process writes to it.
//
// The writer is not aware of the backup, and may drop or replace a checkpoint while its bytes are copied. It reuses the range of such a checkpoint only
// after the catalog, or a commit area, has recorded the drop on disk. So each round copies the new checkpoints and then reads the catalog again: those that
// it still lists were copied whole. The rounds end when nothing is new; the copy then has the state of the last read.
//
// A writer that is always ahead cannot prolong the rounds for ever. If a key was replaced since, the copy has its earlier version, provided that checksums
// prove it.
//
// The copy of a difference has its own object and its sources, and an object that several checkpoints need lies in the copy once. As long as the catalog has a
// row that refers to an object, the object is in its room, so what was read of it is right.
//
// Each copy is read back and verified against its checksums before it counts. So bytes that the writer put over a checkpoint never replace an older intact
// version.
type Backup struct {
	from   *View
	to     *Dir
	dest   Options
	source Options // for reading the catalog again
	names  Names

	stage  stage
	now    *contents         // the latest read of the source's catalog
	queue  []source          // checkpoints still to be copied, by offset
	copied map[uint64]source // by serial
	latest map[keyOf]uint64  // serials, of the keys of the copy
	next   int64             // offset in the space of the copy where free room begins
	rooms  map[claim]int64   // offset in the copy of the objects that are there, by their rooms in the source; none is its row's own
	bad    map[claim]int     // how often a copy of an object did not match its checksums
	rounds int
	wrong  map[uint64]int // by serial: how often a copy did not match its checksums
	done   BackedUp
	ended  bool

	guard  sync.Mutex
	landed chan error
}

// keyOf identifies a key of a history.
type keyOf struct {
	history string
	key     model.Key
}

// Names returns the name, in a copy, of a history of the source; false: the copy lacks the history.
type Names func(history string) (name string, ok bool)

// source is a checkpoint that is queued for copying, or was copied.
type source struct {
	history string // of the store that is copied
	name    string // of the history in the copy
	key     model.Key
	serial  uint64
	from    int64 // in the space of the source
	bytes   int64
	summed  bool
	damaged bool
	rooms   []run // in the space of the copy, those of sources included
}

// BackedUp reports the result of a backup.
type BackedUp struct {
	Checkpoints int   // in the copy
	Bytes       int64 // of the space that they take in the copy
	Rounds      int   // reads of the source's catalog
	Older       int   // checkpoints that the source had replaced or dropped by the last read
	Damaged     int   // checkpoints that do not match their checksums; as far as can be told, the source is damaged too
}

// Bounds for a store that changes faster than it is copied. After mostRounds rounds, only keys that the copy lacks are copied; after mostLooks, none.
const (
	mostRounds = 8
	mostLooks  = 200
)

// ErrNotEmpty: the destination directory has files.
var ErrNotEmpty = errors.New("the directory is not empty")

// NewBackup begins a backup into an empty directory, which it creates if needed. It fails with ErrDamaged if the source's catalog is damaged.
func NewBackup(from, to Options) (*Backup, error) { return newBackup(from, to, nil) }

// NewExcerpt begins a backup of some histories, under other names, into data files of the usual length.
func NewExcerpt(from, to Options, names Names) (*Backup, error) { return newBackup(from, to, names) }

func newBackup(from, to Options, names Names) (_ *Backup, err error) {
	b := &Backup{names: names, copied: map[uint64]source{}, latest: map[keyOf]uint64{}, wrong: map[uint64]int{}, rooms: map[claim]int64{}, bad: map[claim]int{}, landed: make(chan error)}
	if b.from, err = Read(from); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.from.Fit(); err != nil {
		return nil, err
	}
	if names, err := to.FS.List(to.Dir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("%s: %w", to.Dir, ErrNotEmpty)
	}
	to.Capacity = 0
	if b.names == nil {
		b.names = func(history string) (string, bool) { return history, true }
		to.SegmentBytes = b.from.identity.segment
	}
	to.Guard, to.Land = &b.guard, b.land
	b.stage.data = b.from.Space()
	if err := b.stage.open(from.AtOnce); err != nil {
		return nil, err
	}
	b.source, b.dest = b.from.o, to
	b.dest.Land, b.dest.Guard = nil, nil
	if b.to, err = Open(to); err != nil {
		return nil, err
	}
	b.look(b.from.contents)
	return b, nil
}

// look begins a round.
func (b *Backup) look(now *contents) {
	b.now, b.queue = now, nil
	b.rounds++
	for _, h := range now.state.Histories() {
		name, wanted := b.names(h.Name)
		if !wanted {
			continue
		}
		now.state.Each(h.ID, func(row catalog.Row) bool {
			if _, ok := b.copied[row.Serial]; !ok {
				r, _ := now.identity.place(row.Extents) // the survey has verified that the row has a place
				b.queue = append(b.queue, source{history: h.Name, name: name, key: row.Key, serial: row.Serial, from: r.from, bytes: r.end - r.from, summed: row.Sums != nil})
			}
			return true
		})
	}
	slices.SortFunc(b.queue, func(x, y source) int { return cmp.Compare(x.from, y.from) })
}

// Step continues until enough returns true or the backup is complete. Calls must not overlap.
func (b *Backup) Step(enough func() bool) (done bool, err error) {
	for !b.ended && !enough() {
		if len(b.queue) > 0 {
			err = b.copySome()
		} else {
			err = b.turn()
		}
		if err != nil {
			return false, err
		}
	}
	return b.ended, nil
}

// A batch of a backup has about this many bytes or checkpoints.
const (
	backupBytes = 64 << 20
	backupRows  = 1024
)

// copySome copies the next checkpoints and makes them durable.
func (b *Backup) copySome() (err error) {
	m, err := memory.Map("backup buffer", max(windowBytes, b.source.AtOnce))
	if err != nil {
		return err
	}
	w, err := newWindow(b.to.Space())
	if err != nil {
		return errors.Join(err, m.Unmap())
	}
	defer func() { err = errors.Join(err, m.Unmap(), w.close()) }()
	var changes []*Change
	for from := b.next; len(b.queue) > 0 && b.next-from < backupBytes && len(changes) < backupRows; {
		b.stage.reach(b.queue)
		x := b.queue[0]
		b.queue = b.queue[1:]
		c, err := b.copyOne(x, m.Bytes(0, m.Size()), w)
		if err != nil {
			return err
		}
		if c != nil {
			changes = append(changes, c)
		}
	}
	return b.commit(changes...)
}

// copyOne copies the bytes of a checkpoint. It returns nil when the source has dropped the checkpoint, or when the copy is to be repeated.
func (b *Backup) copyOne(x source, buffer []byte, w *window) (*Change, error) {
	id, _ := b.now.state.History(x.history)
	row, ok := b.now.state.Find(id, x.key)
	if !ok || row.Serial != x.serial {
		return nil, nil
	}
	claims, _ := b.now.identity.claims(&row) // the survey has verified that the row has rooms
	put := row
	off, err := b.copyRooms(&put, claims, buffer)
	if err == nil && row.Sums == nil {
		err = b.namesStore(claims)
	}
	if bad := (SourceError{}); errors.As(err, &bad) {
		return nil, b.unread(x, bad.Err)
	} else if err != nil {
		return nil, err
	}
	b.to.identity.locate(&put, off)
	copies, _ := b.to.identity.claims(&put)
	wrong := disproved(b.to.contents, b.to.Space(), &put, copies, w)
	if x.damaged = len(wrong) > 0; x.damaged {
		b.forget(claims, copies, wrong)
		if b.wrong[x.serial]++; b.wrong[x.serial] < mostTries {
			return nil, nil // the next read of the catalog tells whether the writer has overwritten it
		}
	}
	for _, c := range copies {
		x.rooms = append(x.rooms, c.run)
	}
	at := keyOf{x.history, x.key}
	delete(b.copied, b.latest[at]) // the copy has one version of a key
	b.copied[x.serial], b.latest[at] = x, x.serial
	return &Change{History: x.name, Put: &put, Off: off}, nil
}

// copyRooms copies the rooms of a row that the copy lacks. It sets the offsets of the sources in the copy, and returns that of the row's own bytes.
func (b *Backup) copyRooms(put *catalog.Row, claims []claim, buffer []byte) (off int64, err error) {
	var difference *model.Difference
	if put.Difference != nil {
		of := *put.Difference
		of.Sources = slices.Clone(of.Sources)
		difference, put.Difference = &of, &of
	}
	for i, c := range claims {
		c.own = false
		at, there := b.rooms[c]
		if !there || difference == nil {
			if at, err = b.copyRoom(c.run, buffer); err != nil {
				return 0, err
			}
		}
		if difference != nil {
			b.rooms[c] = at
		}
		if i == 0 {
			off = at
		} else {
			difference.Sources[i-1].Offset = at
		}
	}
	return off, nil
}

// copyRoom copies a range of the source's space to the next free range of the copy.
func (b *Backup) copyRoom(r run, buffer []byte) (at int64, err error) {
	at = b.next
	b.from.Space().Grow(r.end)
	b.to.Space().Grow(at + r.end - r.from)
	if err := CopyRange(&b.stage, r.from, r.end, b.to.Space(), at, buffer, nil); err != nil {
		return 0, err
	}
	b.next += r.end - r.from
	return at, nil
}

// namesStore returns an error unless the data files of rooms name the source for their store.
func (b *Backup) namesStore(claims []claim) error {
	rooms := make([]Room, len(claims))
	for i, c := range claims {
		rooms[i] = Room{From: c.from, End: c.end}
	}
	return b.from.NamesStore(rooms)
}

// forget gives up the copies of objects that have wrong ranges, so that the next row that needs the objects copies them again. An object that was wrong
// mostTries times stays as it is: its damage is in the source, and each of the rows that need it would take more room.
func (b *Backup) forget(claims, copies []claim, wrong []run) {
	for i, c := range claims {
		if slices.ContainsFunc(wrong, func(r run) bool { return r.from < copies[i].end && copies[i].from < r.end }) {
			c.own = false
			if b.bad[c]++; b.bad[c] < mostTries {
				delete(b.rooms, c)
			}
		}
	}
}

// unread returns the error of a failed read, or nil if the checkpoint is gone by now.
func (b *Backup) unread(x source, why error) error {
	fresh, err := read(b.source)
	if err != nil {
		return err
	}
	if !fresh.has(x) {
		return nil
	}
	return fmt.Errorf("checkpoint %s of history %.80q cannot be copied: %w", x.key, x.history, why)
}

// has tells whether a checkpoint is still the current version of its key.
func (r *records) has(x source) bool {
	return r.counts(x.history, x.key, x.serial)
}

// turn reads the source's catalog again, and finishes the backup when it lists nothing new.
func (b *Backup) turn() error {
	fresh, err := read(b.source)
	if err == nil {
		err = errors.Join(fresh.damage(), fresh.writable())
	}
	if err != nil {
		return err
	}
	if b.look(fresh); b.rounds >= mostRounds {
		b.queue = slices.DeleteFunc(b.queue, func(x source) bool {
			_, some := b.latest[keyOf{x.history, x.key}]
			return some || b.rounds >= mostLooks
		})
	}
	if len(b.queue) > 0 {
		return nil
	}
	return b.finish()
}

// finish drops checkpoints from the copy that the source no longer has, and closes the copy. A version stays if its newer version was not copied.
func (b *Backup) finish() error {
	var changes []*Change
	for _, x := range b.copied {
		if !b.now.has(x) && !b.stands(x) {
			changes = append(changes, &Change{History: x.name, Key: x.key, Serial: x.serial, Drop: true})
			delete(b.copied, x.serial)
		}
	}
	for _, h := range b.now.state.Histories() {
		if name, wanted := b.names(h.Name); wanted && h.Retention != nil {
			changes = append(changes, &Change{History: name, Retention: h.Retention})
		}
	}
	err := b.commit(changes...)
	err = errors.Join(err, b.to.Close())
	b.to = nil
	if err != nil {
		return err
	}
	b.count()
	b.ended = true
	_, err = Collect(b.dest, false) // frees the room that the copy does not need
	return err
}

func (b *Backup) count() {
	b.done = BackedUp{Checkpoints: len(b.copied), Rounds: b.rounds}
	counted := map[int64]bool{} // rooms, by where they begin
	for _, x := range b.copied {
		for _, r := range x.rooms {
			if !counted[r.from] {
				counted[r.from] = true
				b.done.Bytes += r.end - r.from
			}
		}
		if x.damaged {
			b.done.Damaged++
		}
		if !b.now.has(x) {
			b.done.Older++
		}
	}
}

// stands tells whether a version that the source no longer has stands in for a newer one that was not copied.
func (b *Backup) stands(x source) bool {
	if !x.summed || x.damaged {
		return false
	}
	id, ok := b.now.state.History(x.history)
	if !ok {
		return false
	}
	serial, ok := b.now.state.Serial(id, x.key)
	_, copied := b.copied[serial]
	return ok && !copied
}

// mostTries is the number of copies of a checkpoint, or of an object, that must fail verification, while the catalog still lists the checkpoint, before it counts
// as damaged.
const mostTries = 2

// commit makes changes durable.
func (b *Backup) commit(changes ...*Change) error {
	if len(changes) == 0 {
		return nil
	}
	slices.SortFunc(changes, func(x, y *Change) int { return cmp.Compare(x.order(), y.order()) })
	b.to.Commit(changes...)
	select {
	case err := <-b.landed:
		return err
	case <-b.to.ended: // the committing goroutine has panicked
		return safego.ErrPoisoned
	}
}

// order sorts changes by serial: of two versions of a key the newer one comes later.
func (c *Change) order() uint64 {
	if c.Put != nil {
		return c.Put.Serial
	}
	return c.Serial
}

func (b *Backup) land(group []*Change, _ []int64) {
	var errs []error
	b.guard.Lock()
	for _, c := range group {
		b.to.Apply(c)
		errs = append(errs, c.Err)
	}
	b.guard.Unlock()
	b.landed <- errors.Join(errs...)
}

// Done returns the result, once Step has reported completion.
func (b *Backup) Done() BackedUp { return b.done }

// Close closes source and copy. An incomplete copy must not be used.
func (b *Backup) Close() error {
	var errs []error
	if b.to != nil {
		errs = append(errs, b.to.Close())
	}
	return errors.Join(append(errs, b.stage.close(), b.from.Close())...)
}
