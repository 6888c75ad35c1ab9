package vfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func (osFS) Create(name string, direct bool) (File, error) {
	fd, direct, err := openNamed(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, direct)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return newOSFile(name, fd, direct), nil
}

func (osFS) Open(name string, write, direct bool) (File, error) {
	mode := unix.O_RDONLY
	if write {
		mode = unix.O_RDWR
	}
	// Not to wait for the other end of a pipe that somebody has put there.
	fd, direct, err := openNamed(name, mode|unix.O_NONBLOCK, direct)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		err = errors.Join(ErrNotFile, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	var st unix.Stat_t
	err = again(func() error { return unix.Fstat(fd, &st) })
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotFile
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return newOSFile(name, fd, direct), nil
}

// openNamed tries direct I/O first if asked for. Some file systems create a file before they refuse that.
func openNamed(name string, flags int, direct bool) (fd int, isDirect bool, err error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if direct {
		if fd, err = open(name, flags|unix.O_DIRECT); err == nil || !errors.Is(err, unix.EINVAL) {
			return fd, err == nil, err
		}
		if flags&unix.O_CREAT != 0 {
			_ = unix.Unlink(name)
		}
	}
	fd, err = open(name, flags)
	return fd, false, err
}

func (osFS) Remove(name string) error {
	if err := again(func() error { return unix.Unlink(name) }); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

func (osFS) SyncDir(dir string) error {
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open the directory %s: %w", dir, err)
	}
	err = again(func() error { return unix.Fsync(fd) })
	_ = unix.Close(fd) // nothing was written through it
	if err != nil && !unsupported(err) {
		return fmt.Errorf("sync of the directory %s: %w", dir, err)
	}
	return nil
}
