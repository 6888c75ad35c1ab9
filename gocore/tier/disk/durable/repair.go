package durable

import (
	"errors"
	"maps"
	"math"
	"slices"

	"velocpy/gocore/model"

	"golang.org/x/sys/unix"
)

// Victim is a checkpoint that is to be dropped as it is damaged.
type Victim struct {
	History string
	Key     model.Key
	Serial  uint64
}

// Mending is what a repair is to do beside putting the store in order.
type Mending struct {
	Drop     []Victim // if their bytes are missing or changed when they are read once more
	Rebuild  bool     // where identity or catalog are damaged or missing, what they said is taken from the data files
	Unproven bool     // … also of checkpoints without checksums
}

// Repaired is what a repair has done.
type Repaired struct {
	Identity bool // copies of the identity were written again
	Heads    int  // of data files that were written again
	Indexes  int  // of data files that were written again
	Rebuilt  Rebuilt
	Catalog  bool // the catalog was written anew from what is left of it
	Dropped  int  // victims whose bytes were missing or changed when they were read once more
	Spared   int  // … that stay: their bytes were right then, or could not be read, which may pass
}

// Repair puts a damaged store in order: the copies of the identity that are damaged are written again, and a damaged catalog is written anew from what is left
// of it. Only what is given as a victim is dropped, only the version with that serial, and only if its bytes are
// missing or changed when they are read once more. It fails with ErrLocked where the store is open for writing, and with
// ErrDamaged when all copies of the identity are, as nothing tells then whose the files are, unless it is to rebuild. Ended at any moment, it can be done again.
func Repair(o Options, m Mending) (Repaired, error) {
	k, err := keep(o, &m)
	if err != nil {
		return Repaired{}, err
	}
	done, err := k.repair(m.Drop)
	return done, errors.Join(err, k.close())
}

func (k *keeper) repair(victims []Victim) (done Repaired, err error) {
	done.Catalog, done.Rebuilt = k.faulty(), k.rebuilt
	done.Identity = k.rebuilt.Identity
	for _, b := range k.bad {
		if err := k.restoreIdentity(b); err != nil {
			return done, err
		}
		done.Identity = true
	}
	if done.Heads, err = k.restoreHeads(); err != nil {
		return done, err
	}
	rows := k.present(victims)
	damaged, err := k.damaged(rows)
	if err != nil {
		return done, err
	}
	if err := k.drop(damaged); err != nil {
		return done, err
	}
	done.Dropped, done.Spared = len(damaged), len(rows)-len(damaged)
	done.Indexes, err = k.restoreIndexes()
	return done, err
}

// restoreIndexes writes the indexes anew that lack rows, and returns how many.
func (k *keeper) restoreIndexes() (restored int, err error) {
	if !k.identity.index {
		return 0, nil
	}
	data, err := k.space(false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	files, err := k.lengths()
	if err != nil {
		return 0, err
	}
	lacking, err := k.incomplete(data, files, math.MaxUint64)
	if err != nil {
		return 0, err
	}
	all := newIndexes(k.contents, data)
	for _, number := range slices.Sorted(maps.Keys(lacking)) {
		if all.renew(number) == nil { // else the log tells, and the next check
			restored++
		}
	}
	return restored, nil
}

// damaged are the rows whose bytes are missing or changed, and those that are not described. The bytes are read for that.
func (k *keeper) damaged(rows []doomed) (all []doomed, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	data, err := k.space(true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	c := &Check{v: &View{contents: k.contents, data: data}}
	if err := c.listFiles(k.contents); err != nil {
		return nil, err
	}
	w, err := newWindow(data)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		//mutation:readable-on-retry-dropped
		if c.rowDamaged(w, r) {
			all = append(all, r)
		}
	}
	return all, w.close()
}

func (c *Check) rowDamaged(w *window, r doomed) bool {
	row, _ := c.v.state.Find(r.history, r.key)
	if described := describing(&c.v.o); described.wrong(&row) != nil {
		return true
	}
	lies, _ := c.v.identity.place(row.Extents) // the survey has seen to it that there is one
	return c.damaged(w, cutter{row: &row, place: lies.from, read: true})
}

// damaged tells whether bytes of a checkpoint are missing or changed. Those that cannot be read may be right.
func (c *Check) damaged(w *window, cut cutter) bool {
	for {
		p, ok := cut.next()
		if !ok {
			return false
		}
		w.begin(p.reaches())
		//mutation:unreadable-dropped
		if slices.ContainsFunc(c.examine(w, p), func(s suspicion) bool { return s.fault != Unreadable }) {
			return true
		}
	}
}

// restoreIdentity writes a damaged copy of the identity again. Another one is not touched, so that there is always one that is right.
func (k *keeper) restoreIdentity(b badCopy) (err error) {
	if b.file == copyName {
		return writeCopy(&k.o, &k.identity)
	}
	file, err := k.o.FS.Open(k.o.path(b.file), true, false)
	if errors.Is(err, unix.ENOENT) {
		return writeIdentity(&k.o, &k.identity)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteAt(k.identity.bytes(), b.at); err != nil {
		return err
	}
	return file.Sync()
}

// present are those victims that still count.
func (k *keeper) present(victims []Victim) (rows []doomed) {
	for _, v := range victims {
		id, ok := k.state.History(v.History)
		if !ok {
			continue
		}
		if serial, ok := k.state.Serial(id, v.Key); ok && serial == v.Serial {
			rows = append(rows, doomed{history: id, name: v.History, key: v.Key, serial: serial})
		}
	}
	return rows
}
