package durable

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// owner tells whether this process still owns a directory that it has opened for writing. Only the committing goroutine uses it.
type owner struct {
	o     *Options
	log   *journal.Log
	data  *segment.Space
	lock  vfs.Lock
	moved bool  // the log has a warning that the directory was renamed
	lost  error // why this process has lost the directory; nil: it has not
}

func (o *Options) lock() (vfs.Lock, error) {
	lock, err := o.FS.Lock(o.path(lockName))
	if errors.Is(err, vfs.ErrTaken) {
		//mutation:taken-lock-accepted
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrLocked)
	}
	return lock, err
}

// owns fails with ErrLost when this process has lost the directory: it was removed, or another process may have written to it. The committing goroutine
// calls it before each group. A directory that was renamed still belongs to this process.
func (w *owner) owns() error {
	if w.lost != nil {
		return w.lost
	}
	if err := w.whereabouts(); err != nil {
		return w.lose(err)
	}
	err := w.lock.Held()
	if errors.Is(err, vfs.ErrLockLost) && errors.Is(err, unix.ENOENT) {
		err = w.lockAgain()
	}
	if errors.Is(err, vfs.ErrLockLost) || errors.Is(err, ErrLocked) || errors.Is(err, journal.ErrTaken) {
		return w.lose(err)
	}
	return err
}

func (w *owner) whereabouts() error {
	switch w.o.held.Whereabouts() {
	case vfs.Removed:
		return errors.New("the directory was removed")
	case vfs.Moved:
		if !w.moved {
			w.moved = true
			logring.Add(logring.Warning, "the directory of the store in "+w.o.Dir+
				" has another name now, or lies below another mount; the store goes on there, and is found by its new name alone")
		}
	default:
		w.moved = false
	}
	return nil
}

// lockAgain creates a new lock file in place of a removed one. Where directories are not locked, another process may have opened the store since: it has a lock file of
// its own, so locking fails. If that process has closed the store and its lock file is gone, the catalog's newest file reveals its writes.
func (w *owner) lockAgain() error {
	err := w.lock.Renew()
	if errors.Is(err, vfs.ErrTaken) {
		return fmt.Errorf("%s: %w", w.o.Dir, ErrLocked)
	}
	if err == nil {
		err = w.log.Newest()
	}
	if err == nil {
		logring.Add(logring.Warning, "the lock file of the store in "+w.o.Dir+" was removed; there is a new one, and no other process had written to the store")
	}
	return err
}

// lose bars all further writes to the directory.
func (w *owner) lose(why error) error {
	w.lost = fmt.Errorf("%s: %w: %w", w.o.Dir, ErrLost, why)
	w.data.Bar(w.lost)
	return w.lost
}
