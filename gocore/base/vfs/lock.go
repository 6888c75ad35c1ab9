package vfs

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// osLock is a lock on a file, and one on the directory that contains it.
//
// Both belong to open file descriptions, not to the process. So other code of the process cannot release them by opening and closing the file. A
// second caller in the process does not get them either. The lock on the file is a record lock (F_OFD_SETLK), which also excludes those of F_SETLK.
// The lock on the directory (flock) excludes a second caller if the file was removed or replaced; some network file systems do not have it.
type osLock struct {
	o    osFS
	name string
	file fileID
	fd   int
	dir  int // -1: the file system does not lock directories
}

// OpenLocked opens a descriptor for a lock, CloseLocked closes it. A forked child has a copy of the descriptor, and would hold the lock as long as it
// lives. Package cabi installs functions here that close it in a forked child, in which no Go code can run.
var (
	OpenLocked = func(dir int, name string, flags int) (fd int, err error) {
		return open(entry{dir, name}, flags)
	}
	CloseLocked = unix.Close
)

func (o osFS) Lock(name string) (lock Lock, err error) {
	err = o.at(name, func(at entry) error {
		lock, err = o.lock(name, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (o osFS) lock(name string, at entry) (_ Lock, err error) {
	l := &osLock{o: o, name: name, fd: -1, dir: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	// The directory first: a caller that does not get it makes no lock file beside that of the owner, whose own one may have been removed.
	if err := l.lockDir(entry{at.dir, filepath.Dir(at.name)}); err != nil {
		return nil, err
	}
	return l, l.lockFile(at)
}

// lockFile opens the lock file, makes it if there is none, and locks it. After an error the lock is as before.
func (l *osLock) lockFile(at entry) (err error) {
	fd, err := openLocked(at, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.name, notFile(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, CloseLocked(fd))
		}
	}()
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return fmt.Errorf("open %s: %w", l.name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("open %s: %w", l.name, ErrNotFile)
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = again(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &whole) })
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrTaken
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.name, err)
	}
	l.fd, l.file = fd, idOf(&st)
	return nil
}

// Renew implements Lock.
func (l *osLock) Renew() error {
	before := l.fd
	if err := l.o.at(l.name, l.lockFile); err != nil {
		return err
	}
	return CloseLocked(before)
}

// lockDir locks the directory, if that is possible.
func (l *osLock) lockDir(at entry) (err error) {
	if l.dir, err = openLocked(at, unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return fmt.Errorf("open the directory of %s: %w", l.name, err)
	}
	err = again(func() error { return unix.Flock(l.dir, unix.LOCK_EX|unix.LOCK_NB) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrTaken
	}
	err = CloseLocked(l.dir)
	l.dir = -1
	return err
}

func openLocked(at entry, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = OpenLocked(at.dir, at.name, flags|unix.O_CLOEXEC)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// Held implements Lock.
func (l *osLock) Held() error {
	var st unix.Stat_t
	err := l.o.at(l.name, func(at entry) error {
		return again(func() error { return unix.Fstatat(at.dir, at.name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: %w: %w", l.name, ErrLockLost, err)
	case err == nil && idOf(&st) != l.file:
		return fmt.Errorf("%s: %w", l.name, ErrLockLost)
	}
	return err
}

// Close releases the lock. It is called once.
func (l *osLock) Close() error {
	var errs []error
	for _, fd := range []int{l.dir, l.fd} {
		if fd >= 0 {
			errs = append(errs, CloseLocked(fd))
		}
	}
	return errors.Join(errs...)
}
