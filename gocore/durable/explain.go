package durable

import (
	"errors"

	"golang.org/x/sys/unix"

	"velocpy/gocore/status"
)

// Explain gives an error of the store in a directory its status; nil for errors that are not of this package.
func Explain(err error, dir string) *status.Error {
	switch {
	case errors.Is(err, ErrLocked):
		return status.Wrap(status.Locked, err, "the store in %q is open for writing, here or in another process", dir)
	case errors.Is(err, ErrNoStore):
		return status.Wrap(status.NoStore, err, "there is no store in %q", dir)
	case errors.Is(err, ErrVersion):
		return status.Wrap(status.Later, err, "the store in %q was written by a later version of velocpy", dir)
	case errors.Is(err, ErrDamaged):
		return status.Wrap(status.Damaged, err, "the store in %q is damaged", dir)
	case errors.Is(err, ErrLost):
		return status.Wrap(status.Lost, err, "the store in %q is not this process's any more", dir)
	case errors.Is(err, unix.EROFS):
		return status.Wrap(status.ReadOnly, err, "the store in %q is open for reading only", dir)
	}
	return nil
}
