package durable

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
)

// keeper has a directory open for maintenance: it holds the lock, and writes no checkpoints.
type keeper struct {
	*contents
	lock    vfs.Lock
	log     *journal.Log
	writer  *catalog.Writer
	rebuilt Rebuilt
}

// keep opens an existing directory for maintenance. It refuses a damaged one, unless mending is given.
func keep(o Options, mending *Mending) (*keeper, error) {
	if err := o.hold(); err != nil {
		return nil, err
	}
	k, err := keepHeld(o, mending)
	if err != nil {
		return nil, errors.Join(err, o.release())
	}
	return k, nil
}

func keepHeld(o Options, mending *Mending) (*keeper, error) {
	o.rebuilds = mending != nil && mending.Rebuild
	if others, err := stored(&o); !o.rebuilds || err != nil || !others {
		if _, err := readIdentity(&o); err != nil {
			return nil, err
		}
	}
	lock, err := o.lock()
	if err != nil {
		return nil, err
	}
	k, err := keepLocked(o, mending)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	k.lock = lock
	at := k.journal()
	at.Owns = k.owns
	k.log = journal.Open(at, k.contents.log)
	if err := o.withBallast(k.settle); err != nil {
		return nil, errors.Join(err, k.log.Close(), k.lock.Close())
	}
	return k, nil
}

// keepLocked reads the metadata, and rebuilds the parts that mending asks for.
func keepLocked(o Options, mending *Mending) (k *keeper, err error) {
	k = &keeper{}
	if o.rebuilds {
		if k.rebuilt.Identity, err = o.identityFromHeads(); err != nil {
			return nil, err
		}
	}
	c, err := read(o)
	if err == nil {
		err = c.writable()
	}
	if err == nil && mending == nil {
		err = errors.Join(c.damage(), c.foreign())
	}
	k.contents = c
	if err == nil && o.rebuilds && k.faulty() {
		identity := k.rebuilt.Identity
		k.rebuilt, err = c.rebuild(mending.Unproven)
		k.rebuilt.Identity = identity
	}
	if err == nil && k.faulty() {
		err = k.numberBehind()
	}
	if err != nil {
		return nil, err
	}
	k.writer = catalog.NewWriter(c.state)
	return k, nil
}

// settle makes the recovered state durable.
func (k *keeper) settle() error {
	if err := k.syncAhead(); err != nil {
		return err
	}
	if k.faulty() || k.contents.log.Shadowed {
		return k.startAnew()
	}
	if err := k.log.Resume(); err != nil {
		return err
	}
	return k.settleAhead(k.log)
}

// faulty tells whether any part of the catalog is damaged, even a frame without records.
func (k *keeper) faulty() bool { return len(k.contents.log.Damage) > 0 || len(k.lost) > 0 }

func (k *keeper) close() error {
	err := k.log.Close()
	if n := len(k.runs); n > 0 {
		k.o.makeBallast(k.runs[n-1].end)
	}
	return errors.Join(err, k.lock.Close(), k.o.release())
}

// owns fails with ErrLost when another process may have taken over the store.
func (k *keeper) owns() error {
	if err := k.lock.Held(); err != nil {
		return fmt.Errorf("%s: %w: %w", k.o.Dir, ErrLost, err)
	}
	return nil
}

// doomed is a row that is to be dropped.
type doomed struct {
	history uint32
	name    string
	key     model.Key
	serial  uint64
	bytes   int64 // of the space
}

// dropsAtOnce keeps batches far below the limit of a frame.
const dropsAtOnce = 512

// drop drops rows, and returns when the drops are durable.
func (k *keeper) drop(rows []doomed) error {
	for len(rows) > 0 {
		if err := k.owns(); err != nil {
			return err
		}
		some := rows[:min(len(rows), dropsAtOnce)]
		rows = rows[len(some):]
		record := k.writer.Record()
		for _, r := range some {
			if err := record.Drop(r.name, r.key, r.serial); err != nil {
				k.writer.Abandoned(record)
				return err
			}
		}
		if err := k.o.withBallast(func() error { return k.log.Append(record.Bytes(), nil) }); err != nil {
			k.writer.Abandoned(record)
			return err
		}
		if err := k.writer.Acknowledged(record); err != nil {
			return err
		}
	}
	return nil
}

// startAnew compacts the catalog.
func (k *keeper) startAnew() error {
	if err := k.owns(); err != nil {
		return err
	}
	return k.o.withBallast(func() error { return k.log.Compact(k.state.Snapshot) })
}
