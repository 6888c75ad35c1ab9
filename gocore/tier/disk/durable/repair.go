package durable

import (
	"errors"
	"maps"
	"math"
	"slices"

	"velocpy/gocore/model"

	"golang.org/x/sys/unix"
)

// Victim is a damaged checkpoint that a repair is to drop.
type Victim struct {
	History string
	Key     model.Key
	Serial  uint64
}

// Mending selects the optional steps of a repair.
type Mending struct {
	Drop     []Victim // dropped if their bytes are missing or changed when Repair reads them again
	Rebuild  bool     // restores a damaged or missing identity or catalog from the data files
	Unproven bool     // … including checkpoints without checksums
}

// Repaired reports the result of a repair.
type Repaired struct {
	Identity bool // copies of the identity were written again
	Heads    int  // data files whose heads were written again
	Indexes  int  // data files whose indexes were written again
	Rebuilt  Rebuilt
	Catalog  bool // the catalog was written anew from its remaining records
	Dropped  int  // victims whose bytes were missing or changed at the second read
	Spared   int  // victims that stay: their bytes were right at the second read, or unreadable, which may be temporary
}

// Repair mends a damaged store: it rewrites damaged copies of the identity, and writes a damaged catalog anew from its remaining records. It drops only the
// given victims, only at the given serial, and only if their bytes are missing or changed when it reads them again.
//
// It fails with ErrLocked if the store is open for writing. It fails with ErrDamaged if all copies of the identity are damaged, as nothing then names the
// owner of the files, unless Rebuild is set. An interrupted repair can be run again.
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

// restoreIndexes rewrites indexes that lack rows, and returns the number of rewritten indexes.
func (k *keeper) restoreIndexes() (restored int, err error) {
	if !k.identity.index {
		return 0, nil
	}
	data, err := k.space(false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	files, err := k.Lengths()
	if err != nil {
		return 0, err
	}
	lacking, err := k.incomplete(data, files, math.MaxUint64)
	if err != nil {
		return 0, err
	}
	all := newIndexes(k.contents, data)
	for _, number := range slices.Sorted(maps.Keys(lacking)) {
		if all.renew(number) == nil { // otherwise the log has the error, and the next check reports it
			restored++
		}
	}
	return restored, nil
}

// damaged returns the rows whose bytes are missing or changed, or whose description is invalid. It reads the bytes.
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
	lies, _ := c.v.identity.place(row.Extents) // the survey has verified that the row has a place
	return c.damaged(w, cutter{row: &row, lies: lies, read: true})
}

// damaged tells whether bytes of a checkpoint are missing or changed. Unreadable bytes do not count, as they may be right.
func (c *Check) damaged(w *window, cut cutter) bool {
	for {
		p, ok := cut.next()
		if !ok {
			return false
		}
		w.begin(p.lies.end)
		//mutation:unreadable-dropped
		if slices.ContainsFunc(c.examine(w, p), func(s suspicion) bool { return s.fault != Unreadable }) {
			return true
		}
	}
}

// restoreIdentity rewrites a damaged copy of the identity. It leaves the other copies alone, so that one is always intact.
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

// present returns those victims that are still current.
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
