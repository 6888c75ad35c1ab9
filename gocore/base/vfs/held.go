package vfs

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// within splits the path from a directory to an entry into names, with both as given: none for the directory itself.
func within(dir, name string) ([]string, error) {
	dir, name = filepath.Clean(dir), filepath.Clean(name)
	switch {
	case name == dir:
		return nil, nil
	case filepath.Dir(name) == dir && filepath.Base(name) != "..":
		return []string{filepath.Base(name)}, nil
	}
	return nil, fmt.Errorf("%s does not lie in %s: %w", name, dir, unix.EXDEV)
}

// osDir is an open directory.
type osDir struct {
	name string // as given
	path string // absolute, when the directory was opened
	file fileID

	mu     sync.RWMutex // shared by every call, exclusive in Close: no call may use a reused descriptor
	fd     int
	closed bool
}

func (o osFS) HoldDir(dir string) (HeldDir, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the working directory is not known: %w", err)
	}
	held := &osDir{name: dir, path: path}
	err = o.at(dir, func(at entry) (err error) {
		held.fd, err = open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the directory %s: %w", dir, err)
	}
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(held.fd, &st) }); err != nil {
		_ = unix.Close(held.fd)
		return nil, fmt.Errorf("open the directory %s: %w", dir, err)
	}
	held.file = idOf(&st)
	return osHeld{osFS{held}}, nil
}

type osHeld struct{ osFS }

func (h osHeld) Whereabouts() Whereabouts { return h.dir.whereabouts() }
func (h osHeld) Close() error             { return h.dir.close() }

// at runs a system call on an entry of the directory.
func (d *osDir) at(name string, call func(at entry) error) error {
	names, err := within(d.name, name)
	if err != nil {
		return err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return fs.ErrClosed
	}
	return call(entry{d.fd, filepath.Join(append([]string{"."}, names...)...)})
}

func (d *osDir) whereabouts() Whereabouts {
	var st unix.Stat_t
	if err := again(func() error { return unix.Stat(d.path, &st) }); err == nil && idOf(&st) == d.file {
		return InPlace
	}
	removed := false
	err := d.at(d.name, func(at entry) error {
		err := again(func() error { return unix.Fstat(at.dir, &st) })
		removed = err == nil && st.Nlink == 0
		return err
	})
	if err == nil && removed {
		return Removed
	}
	return Moved
}

func (d *osDir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("close of the directory %s: %w", d.path, fs.ErrClosed)
	}
	d.closed = true
	if err := unix.Close(d.fd); err != nil && err != unix.EINTR {
		return fmt.Errorf("close of the directory %s: %w", d.path, err)
	}
	return nil
}

// ByName is a HeldDir that resolves names anew in each call to fs. It is for wrappers in tests, which must see every call.
func ByName(fs FS) HeldDir { return named{fs} }

type named struct{ FS }

func (named) Whereabouts() Whereabouts { return InPlace }
func (named) Close() error             { return nil }
