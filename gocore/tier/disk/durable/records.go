package durable

import (
	"errors"
	"fmt"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// records are those of the catalog, as they were read from the directory, and the state that they add up to.
type records struct {
	files
	state *catalog.State
	log   *journal.State
	lost  []error // acknowledged content that contradicts the rest, for example as an earlier record is missing
}

// State returns the committed state.
func (r *records) State() *catalog.State { return r.state }

// readLog reads the catalog.
func (r *records) readLog() (err error) {
	r.state, r.lost = catalog.New(), nil
	r.log, err = journal.Read(r.journal(), r.apply)
	//mutation:late-definitions-ignored
	if err == nil && len(r.log.Damage) > 0 && len(r.lost) > 0 {
		err = r.readTwice()
	}
	if err == nil && r.log.Files == 0 {
		err = r.withoutCatalog()
	}
	return err
}

// readTwice reads a damaged catalog again, definitions first. A row whose own definition is damaged then finds the copy that another batch repeats.
func (r *records) readTwice() (err error) {
	r.state, r.lost = catalog.New(), nil
	define := func(record []byte) error {
		r.state.Define(record)
		return nil
	}
	if _, err := journal.Read(r.journal(), define); err != nil {
		return err
	}
	r.log, err = journal.Read(r.journal(), r.apply)
	return err
}

// withoutCatalog decides whether a missing catalog is a loss. A writer begins the catalog before it creates data files.
func (r *records) withoutCatalog() error {
	names, err := r.o.FS.List(r.o.Dir)
	if err != nil || !slices.ContainsFunc(names, isData) {
		return err
	}
	r.log, err = journal.Read(r.journal(), r.apply) // the store's writer may have begun it since
	if err == nil && r.log.Files == 0 {
		err = fmt.Errorf("%s: %w: there are data files, and no catalog that says what is in them; `velocpy check --repair --rebuild` takes that from the data files", r.o.Dir, ErrDamaged)
		if r.o.rebuilds {
			r.lose(err)
			return nil
		}
	}
	return err
}

func isData(name string) bool {
	_, ok := segment.FileNumber(name)
	return ok
}

// apply applies a record, and skips records that depend on missing ones.
func (r *records) apply(record []byte) error {
	err := r.state.Apply(record)
	if errors.Is(err, catalog.ErrMalformed) {
		r.lose(err)
		return nil
	}
	return err
}

// mostLost bounds the number of losses that are listed individually.
const mostLost = 100

func (r *records) lose(err error) {
	if len(r.lost) < mostLost {
		r.lost = append(r.lost, err)
	}
}

// damage returns an error that lists the acknowledged parts of the catalog that are missing; nil: none are.
func (r *records) damage() error {
	var errs []error
	for _, d := range r.log.Damage {
		if !d.Harmless {
			errs = append(errs, errors.New(d.String()))
		}
	}
	errs = append(errs, r.lost...)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrDamaged, errors.Join(errs...))
}

// writable refuses a store with checkpoints whose storage form, and so their location, this version cannot decode.
func (r *records) writable() error {
	if n := r.state.Unreadable(); n > 0 {
		return fmt.Errorf("%s: %w: %d of its checkpoints are stored in a way that this one does not know", r.o.Dir, ErrVersion, n)
	}
	return nil
}

// counts tells whether a version is still the current one of its key.
func (r *records) counts(history string, key model.Key, serial uint64) bool {
	id, ok := r.state.History(history)
	if !ok {
		return false
	}
	now, ok := r.state.Serial(id, key)
	return ok && now == serial
}

// unchangedLog tells whether the catalog is unchanged since it was read. If not, it reads it again.
func (r *records) unchangedLog() (bool, error) {
	same, err := r.log.Unchanged(r.journal())
	if err != nil || same {
		return same, err
	}
	return false, r.readLog()
}

// stillSays tells whether the catalog is unchanged since it was read.
func (r *records) stillSays() (bool, error) {
	if same, err := r.log.Unchanged(r.journal()); err != nil || same {
		return same, err
	}
	now := &records{files: r.files} // with a torn end, Unchanged cannot tell
	err := now.readLog()
	return err == nil && now.log.Last == r.log.Last && now.log.Bytes == r.log.Bytes && now.log.Torn == r.log.Torn, err
}
