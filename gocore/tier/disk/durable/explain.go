package durable

import (
	"errors"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
)

// Explain maps an error of this package to a status; nil for other errors. The text of the status names the directory and the problem, so its cause keeps
// only the reason.
func Explain(err error, dir string) *status.Error {
	why := func(said error) error { return status.Without(err, dir, said.Error()) }
	switch {
	case errors.Is(err, ErrLocked):
		return status.Wrap(status.Locked, why(ErrLocked), "the store in %q is open for writing, here or in another process", dir)
	case errors.Is(err, ErrNoStore):
		return status.Wrap(status.NoStore, why(ErrNoStore), "there is no store in %q", dir)
	case errors.Is(err, ErrVersion):
		return status.Wrap(status.Later, why(ErrVersion), "the store in %q was written by a later version of velocpy", dir)
	case errors.Is(err, ErrDamaged):
		return status.Wrap(status.Damaged, why(ErrDamaged), "the store in %q is damaged", dir)
	case errors.Is(err, ErrLost):
		return status.Wrap(status.Lost, why(ErrLost), "the store in %q is not this process's any more", dir)
	case errors.Is(err, unix.EROFS):
		return status.Wrap(status.ReadOnly, err, "the store in %q is open for reading only", dir)
	}
	return nil
}
