package vfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func (o osFS) Create(name string, direct bool) (file File, err error) {
	err = o.at(name, func(at entry) error {
		fd, direct, err := openNamed(at, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, direct)
		if err == nil {
			file = newOSFile(name, fd, direct)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return file, nil
}

func (o osFS) Open(name string, write, direct bool) (file File, err error) {
	mode := unix.O_RDONLY
	if write {
		mode = unix.O_RDWR
	}
	err = o.at(name, func(at entry) error {
		fd, direct, err := openNamed(at, mode|unix.O_NONBLOCK, direct) // O_NONBLOCK: the open of a pipe does not wait for the other end
		if err == nil {
			err = ordinary(fd)
		}
		if err == nil {
			file = newOSFile(name, fd, direct)
		}
		return notFile(err)
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return file, nil
}

// ordinary closes the descriptor of anything but an ordinary file.
func ordinary(fd int) error {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &st) })
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotFile
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}

// notFile adds ErrNotFile to the errors of an open that mean that the name is not an ordinary file.
func notFile(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return errors.Join(ErrNotFile, err)
	}
	return err
}

// openNamed tries direct I/O first if requested. Some file systems create a file before they refuse that.
func openNamed(at entry, flags int, direct bool) (fd int, isDirect bool, err error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if direct {
		if fd, err = open(at, flags|unix.O_DIRECT); err == nil || !errors.Is(err, unix.EINVAL) {
			return fd, err == nil, err
		}
		if flags&unix.O_CREAT != 0 {
			_ = at.unlink()
		}
	}
	fd, err = open(at, flags)
	return fd, false, err
}

func (o osFS) Remove(name string) error {
	if err := o.at(name, entry.unlink); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

func (o osFS) List(dir string) (names []string, err error) {
	err = o.at(dir, func(at entry) error {
		names, err = at.list()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return names, nil
}

func (o osFS) SyncDir(dir string) error {
	err := o.at(dir, func(at entry) error {
		return at.open(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, func(fd int) error {
			err := again(func() error { return unix.Fsync(fd) })
			if err != nil && unsupported(err) {
				return nil
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("sync of the directory %s: %w", dir, err)
	}
	return nil
}
