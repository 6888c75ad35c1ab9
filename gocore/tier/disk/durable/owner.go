package durable

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/journal"

	"golang.org/x/sys/unix"
)

// owns fails with ErrLost when this process has lost the directory: it was removed, or another process may have written to it. The committing goroutine
// calls it before each group. A directory that was renamed still belongs to this process.
func (d *Dir) owns() error {
	if d.lost != nil {
		return d.lost
	}
	if err := d.whereabouts(); err != nil {
		return d.lose(err)
	}
	err := d.lock.Held()
	if errors.Is(err, vfs.ErrLockLost) && errors.Is(err, unix.ENOENT) {
		err = d.lockAgain()
	}
	if errors.Is(err, vfs.ErrLockLost) || errors.Is(err, ErrLocked) || errors.Is(err, journal.ErrTaken) {
		return d.lose(err)
	}
	return err
}

func (d *Dir) whereabouts() error {
	switch d.o.held.Whereabouts() {
	case vfs.Removed:
		return errors.New("the directory was removed")
	case vfs.Moved:
		if !d.moved {
			d.moved = true
			logring.Add(logring.Warning, "the directory of the store in "+d.o.Dir+
				" has another name now, or lies below another mount; the store goes on there, and is found by its new name alone")
		}
	default:
		d.moved = false
	}
	return nil
}

// lockAgain creates a new lock file in place of a removed one. A process that has opened the store since has a lock file of its own, so locking fails. If
// that process has closed the store and its lock file is gone, the catalog's newest file reveals its writes.
func (d *Dir) lockAgain() error {
	err := d.lock.Close()
	d.lock = released{}
	lock, lockErr := d.o.lock()
	if lockErr == nil {
		d.lock = lock
		lockErr = d.log.Newest()
	}
	if lockErr == nil {
		logring.Add(logring.Warning, "the lock file of the store in "+d.o.Dir+" was removed; there is a new one, and no other process had written to the store")
	}
	return errors.Join(err, lockErr)
}

// released stands for a lock that was closed.
type released struct{}

func (released) Held() error  { return vfs.ErrLockLost }
func (released) Close() error { return nil }

// lose bars all further writes to the directory.
func (d *Dir) lose(why error) error {
	d.lost = fmt.Errorf("%s: %w: %w", d.o.Dir, ErrLost, why)
	d.data.Bar(d.lost)
	return d.lost
}
