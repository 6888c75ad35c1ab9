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
// The writer knows nothing of it, and may drop or replace a checkpoint while its bytes are copied. The place of such a checkpoint is written to again
// only when the catalog, or a commit area, says on disk that it is gone. So each round copies the checkpoints that are new, and reads the catalog again behind them: what that
// still lists was copied whole. Rounds end when nothing is new, and then the copy is the store of the moment of the last look. A
// writer that is always ahead ends them too: of a key that was replaced since, the copy has the version before, if its checksums prove it.
//
// Each copy is read and compared with its checksums before it counts, so that bytes which the writer put over those of a checkpoint never take the place of
// an older version of it.
type Backup struct {
	from   *View
	to     *Dir
	dest   Options
	source Options // for reading the catalog again

	now    *contents         // the latest look at the source
	queue  []source          // to be copied, by place
	copied map[uint64]source // by serial
	latest map[keyOf]uint64  // serials, of the keys of the copy
	next   int64             // where in the space of the copy there is room
	rounds int
	wrong  map[uint64]int // by serial: how often a copy was not what its checksums say
	done   BackedUp
	ended  bool

	guard  sync.Mutex
	landed chan error
}

// keyOf is a key of a history.
type keyOf struct {
	history string
	key     model.Key
}

// source is a checkpoint that is to be copied, or was.
type source struct {
	history string
	key     model.Key
	serial  uint64
	from    int64 // in the space of the source
	bytes   int64
	summed  bool
	damaged bool
}

// BackedUp is what a backup has done.
type BackedUp struct {
	Checkpoints int   // in the copy
	Bytes       int64 // of the space that they take there
	Rounds      int   // looks at the source
	Older       int   // of which the source had a newer version, or none any more, at the last look
	Damaged     int   // whose bytes are not those that were captured: in the source too, as far as that can be told
}

// A store that changes faster than it is copied is copied so often; then only keys of which the copy has no version yet.
const (
	mostRounds = 8
	mostLooks  = 200
)

// ErrNotEmpty: there is something in the directory for a backup.
var ErrNotEmpty = errors.New("the directory is not empty")

// NewBackup begins one into an empty directory, which is made if there is none. It fails with ErrDamaged where the source's catalog is damaged.
func NewBackup(from, to Options) (_ *Backup, err error) {
	b := &Backup{copied: map[uint64]source{}, latest: map[keyOf]uint64{}, wrong: map[uint64]int{}, landed: make(chan error)}
	if b.from, err = Read(from); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := errors.Join(b.from.damage(), b.from.writable()); err != nil {
		return nil, err
	}
	if names, err := to.FS.List(to.Dir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("%s: %w", to.Dir, ErrNotEmpty)
	}
	to.Capacity, to.SegmentBytes = 0, b.from.identity.segment
	to.Guard, to.Land = &b.guard, b.land
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
		now.state.Each(h.ID, func(row catalog.Row) bool {
			if _, ok := b.copied[row.Serial]; !ok {
				r, _ := now.identity.place(row.Extents) // the survey has seen to it that there is one
				b.queue = append(b.queue, source{h.Name, row.Key, row.Serial, r.from, r.end - r.from, row.Sums != nil, false})
			}
			return true
		})
	}
	slices.SortFunc(b.queue, func(x, y source) int { return cmp.Compare(x.from, y.from) })
}

// Step goes on until enough says so, or all is done. One call at a time.
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

// A batch of a backup has so many bytes or checkpoints, about.
const (
	backupBytes = 64 << 20
	backupRows  = 1024
)

// copySome copies the next checkpoints, and makes them durable.
func (b *Backup) copySome() (err error) {
	m, err := memory.Map("backup buffer", windowBytes)
	if err != nil {
		return err
	}
	w, err := newWindow(b.to.Space())
	if err != nil {
		return errors.Join(err, m.Unmap())
	}
	defer func() { err = errors.Join(err, m.Unmap(), w.close()) }()
	var changes []*Change
	for bytes := int64(0); len(b.queue) > 0 && bytes < backupBytes && len(changes) < backupRows; {
		x := b.queue[0]
		b.queue = b.queue[1:]
		c, err := b.copyOne(x, m.Bytes(0, windowBytes), w)
		if err != nil {
			return err
		}
		if c != nil {
			changes = append(changes, c)
			bytes += x.bytes
		}
	}
	return b.commit(changes...)
}

// copyOne copies the bytes of a checkpoint; nil when it is gone, or when the copy is to be made again.
func (b *Backup) copyOne(x source, buffer []byte, w *window) (*Change, error) {
	id, _ := b.now.state.History(x.history)
	row, ok := b.now.state.Find(id, x.key)
	if !ok || row.Serial != x.serial {
		return nil, nil
	}
	b.from.Space().Grow(x.from + x.bytes)
	b.to.Space().Grow(b.next + x.bytes)
	for done := int64(0); done < x.bytes; {
		p := buffer[:min(x.bytes-done, windowBytes)]
		if err := b.from.Space().Read(x.from+done, p); err != nil {
			return nil, b.unread(x, err)
		}
		if err := b.to.Space().Write(b.next+done, p); err != nil {
			return nil, err
		}
		done += int64(len(p))
	}
	if row.Sums == nil {
		if err := b.from.Space().Proves(x.from, x.bytes); err != nil {
			return nil, b.unread(x, err)
		}
	}
	if x.damaged = !b.proves(&row, x.bytes, w); x.damaged {
		if b.wrong[x.serial]++; b.wrong[x.serial] < mostTries {
			return nil, nil // the next look at the catalog tells whether it was written over
		}
	}
	at := keyOf{x.history, x.key}
	delete(b.copied, b.latest[at]) // the copy has one version of a key
	b.copied[x.serial], b.latest[at] = x, x.serial
	put := row
	put.Extents = nil
	c := &Change{History: x.history, Put: &put, Off: b.next}
	b.next += x.bytes
	return c, nil
}

// unread tells why bytes could not be read, unless their checkpoint is gone by now.
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

// has tells whether a checkpoint is still the one of its key.
func (c *contents) has(x source) bool {
	return c.counts(x.history, x.key, x.serial)
}

// turn looks at the source again, and ends the rounds when it has nothing new.
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

// finish drops from the copy what the source has not any more, and closes it. A version of which the newer one was not copied stays.
func (b *Backup) finish() error {
	var changes []*Change
	for _, x := range b.copied {
		if !b.now.has(x) && !b.stands(x) {
			changes = append(changes, &Change{History: x.history, Key: x.key, Serial: x.serial, Drop: true})
			delete(b.copied, x.serial)
		}
	}
	for _, h := range b.now.state.Histories() {
		if h.Retention != nil {
			changes = append(changes, &Change{History: h.Name, Retention: h.Retention})
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
	_, err = Collect(b.dest, false) // gives back the room that the copy does not need
	return err
}

func (b *Backup) count() {
	b.done = BackedUp{Checkpoints: len(b.copied), Rounds: b.rounds}
	for _, x := range b.copied {
		b.done.Bytes += x.bytes
		if x.damaged {
			b.done.Damaged++
		}
		if !b.now.has(x) {
			b.done.Older++
		}
	}
}

// stands tells whether a version that the source has not any more stands for a newer one that was not copied.
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

// mostTries is how often a checkpoint is copied that the catalog still lists, and whose copy is not what its checksums say: then it is damaged.
const mostTries = 2

// proves tells whether what was copied is what the checksums of a row say; those without have nothing to say.
func (b *Backup) proves(row *catalog.Row, bytes int64, w *window) bool {
	files := map[int64]int64{}
	first, end := b.to.Space().Segments(b.next, bytes)
	for ; first < end; first++ {
		files[first] = b.to.identity.segment // what was written a moment ago is there
	}
	c := &Check{v: &View{contents: b.to.contents, data: b.to.Space()}, files: files}
	cut := cutter{row: row, place: b.next, read: row.Sums != nil}
	for p, ok := cut.next(); ok; p, ok = cut.next() {
		w.begin(p.reaches())
		if len(c.examine(w, p)) > 0 {
			return false
		}
	}
	return true
}

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
	case <-b.to.ended: // the goroutine that commits has panicked
		return safego.ErrPoisoned
	}
}

// order is that of writing: of two versions of a key the newer one comes later.
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

// Done is what was done, when Step has said that all is.
func (b *Backup) Done() BackedUp { return b.done }

// Close gives everything back. A copy that is not done is not to be used.
func (b *Backup) Close() error {
	var errs []error
	if b.to != nil {
		errs = append(errs, b.to.Close())
	}
	return errors.Join(append(errs, b.from.Close())...)
}
