package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// OS returns the operating system's file systems. It repeats system calls that a signal interrupts (the Go runtime sends SIGURG to its own threads).
func OS() FS { return osFS{} }

// osFS resolves names as paths or, with dir, through the descriptor of that directory.
type osFS struct{ dir *osDir }

// entry is a name as the kernel's *at calls take it: relative to an open directory.
type entry struct {
	dir  int
	name string
}

// at runs a system call on the entry of a name, while its directory stays open.
func (o osFS) at(name string, call func(at entry) error) error {
	if o.dir == nil {
		return call(entry{unix.AT_FDCWD, name})
	}
	return o.dir.at(name, call)
}

func (o osFS) MkdirAll(dir string) error {
	if o.dir == nil {
		return os.MkdirAll(dir, 0o700)
	}
	_, err := o.Stat(dir)
	return err
}

func (o osFS) Stat(name string) (Info, error) {
	var st unix.Stat_t
	err := o.at(name, func(at entry) error {
		return again(func() error { return unix.Fstatat(at.dir, at.name, &st, 0) })
	})
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return Info{Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Size: st.Size, Held: st.Blocks * 512}, nil
}

func (o osFS) Free(dir string) (int64, error) {
	var st unix.Statfs_t
	err := o.at(dir, func(at entry) error {
		return at.open(unix.O_PATH|unix.O_CLOEXEC, func(fd int) error {
			return again(func() error { return unix.Fstatfs(fd, &st) })
		})
	})
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	if st.Blocks == 0 { // the file system does not report it
		return math.MaxInt64, nil
	}
	return freeBytes(&st), nil
}

func (o osFS) OpenScratch(dir string, direct bool) (file File, err error) {
	err = o.at(dir, func(at entry) error {
		fd, direct, err := openScratch(at, direct, openUnnamed, openUnlinked)
		if err == nil {
			file = newOSFile("a scratch file in "+dir, fd, direct)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create a scratch file in %s: %w", dir, err)
	}
	return file, nil
}

func newOSFile(what string, fd int, direct bool) *osFile {
	f := &osFile{what: what, fd: fd, align: alignOf(fd)}
	f.direct.Store(direct)
	return f
}

// opener creates a file in a directory with extra flags and returns its descriptor.
type opener func(dir entry, flags int) (int, error)

// openScratch tries the ways in order, first with direct I/O if requested.
func openScratch(dir entry, direct bool, ways ...opener) (fd int, isDirect bool, err error) {
	flags := []int{0}
	if direct {
		flags = []int{unix.O_DIRECT, 0}
	}
	for _, extra := range flags {
		for _, way := range ways {
			fd, err = way(dir, extra|unix.O_RDWR|unix.O_CLOEXEC)
			if err == nil {
				return fd, extra == unix.O_DIRECT, nil
			}
			if !unsupported(err) {
				return -1, false, err
			}
		}
	}
	return -1, false, err
}

// openUnnamed creates a file that never has a name: no crash leaves anything behind.
func openUnnamed(dir entry, flags int) (int, error) {
	return open(dir, flags|unix.O_TMPFILE|unix.O_EXCL)
}

// openUnlinked is for file systems without O_TMPFILE. A kill between the two calls leaves an empty file; a later process removes it.
func openUnlinked(dir entry, flags int) (int, error) {
	tag, err := scratchName()
	if err != nil {
		return -1, err
	}
	at := entry{dir.dir, filepath.Join(dir.name, tag)}
	fd, err := open(at, flags|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		_ = at.unlink() // some file systems create the file before they refuse O_DIRECT
		return -1, err
	}
	if err := at.unlink(); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	removeStrays(dir)
	return fd, nil
}

func open(at entry, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(at.dir, at.name, flags, 0o600)
		return err
	})
	return fd, err
}

// open opens an entry for one call.
func (at entry) open(flags int, call func(fd int) error) error {
	fd, err := open(at, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written through it
	return call(fd)
}

func (at entry) unlink() error {
	return again(func() error { return unix.Unlinkat(at.dir, at.name, 0) })
}

// list returns the names in a directory, sorted.
func (at entry) list() (names []string, err error) {
	fd, err := open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), at.name)
	defer func() { _ = dir.Close() }() // nothing was written through it
	names, err = dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// unsupported tells errors that another way may avoid from those that any way would get.
func unsupported(err error) bool {
	// Kernels without O_TMPFILE answer EISDIR.
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR)
}

// again repeats an interrupted system call.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func alignOf(fd int) int {
	var st unix.Statx_t
	err := again(func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st) })
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return DefaultAlign
	}
	align := int(max(st.Dio_mem_align, st.Dio_offset_align))
	if align == 0 || align&(align-1) != 0 {
		return DefaultAlign
	}
	return align
}

type osFile struct {
	what   string // for messages
	align  int
	direct atomic.Bool
	mu     sync.RWMutex // shared by every call, exclusive in Close: no call may use a reused descriptor
	fd     int
	closed bool
}

// use runs a call on the open descriptor.
func (f *osFile) use(what string, call func(fd int) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return fmt.Errorf("%s of %s: %w", what, f.what, fs.ErrClosed)
	}
	if err := call(f.fd); err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("%s of %s: %w", what, f.what, err)
	}
	return nil
}

func (f *osFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read at %d: %w", off, unix.EINVAL)
	}
	err = f.use("read", func(fd int) error {
		n, err = f.transfer(fd, unix.Pread, p, off)
		if err == errNoProgress || n > 0 && n < len(p) && err == unix.EINVAL && f.atEnd(fd, off+int64(n)) {
			return io.EOF // direct reads end at an unaligned offset only at the end of the file
		}
		return err
	})
	return n, err
}

func (f *osFile) WriteAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("write at %d: %w", off, unix.EINVAL)
	}
	err = f.use("write", func(fd int) error {
		n, err = f.transfer(fd, unix.Pwrite, p, off)
		if err == errNoProgress {
			return io.ErrShortWrite
		}
		return err
	})
	return n, err
}

// errNoProgress: the kernel transferred nothing and gave no error.
var errNoProgress = errors.New("no progress")

func (f *osFile) transfer(fd int, call func(int, []byte, int64) (int, error), p []byte, off int64) (done int, err error) {
	for done < len(p) {
		n, err := call(fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err == unix.EINVAL && f.aligned(p[done:], off+int64(done)) && f.refused(fd):
		case err != nil:
			return done, err
		case n == 0:
			return done, errNoProgress
		default:
			done += n
		}
	}
	return done, nil
}

func (f *osFile) aligned(p []byte, off int64) bool {
	mask := uint64(f.align - 1)
	return (uint64(off)|uint64(len(p))|uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))))&mask == 0
}

// refused handles file systems that accept O_DIRECT in open and refuse the I/O: it clears the flag, and tells whether the call can be repeated.
func (f *osFile) refused(fd int) bool {
	if !f.direct.Load() {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^unix.O_DIRECT); err != nil {
		return false
	}
	f.direct.Store(false)
	return true
}

func (f *osFile) atEnd(fd int, off int64) bool {
	size, err := sizeOf(fd)
	return err == nil && off >= size
}

func (f *osFile) Allocate(off, n int64) error {
	return f.use("allocation", func(fd int) error {
		if n == 0 {
			return nil
		}
		var before unix.Stat_t
		if err := again(func() error { return unix.Fstat(fd, &before) }); err != nil {
			return err
		}
		if !roomFor(fd, n-before.Blocks*512) {
			return unix.ENOSPC
		}
		err := again(func() error { return unix.Fallocate(fd, 0, off, n) })
		if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
			if before.Size >= off+n {
				return nil
			}
			return again(func() error { return unix.Ftruncate(fd, off+n) })
		}
		if err != nil {
			// Frees blocks that were allocated before the disk was full.
			_ = again(func() error { return unix.Ftruncate(fd, before.Size) })
		}
		return err
	})
}

// roomFor tells whether the file system has room, so that a doomed allocation does not fill it first.
func roomFor(fd int, n int64) bool {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil || st.Blocks == 0 {
		return true // the file system does not report it
	}
	return n <= freeBytes(&st)
}

func freeBytes(st *unix.Statfs_t) int64 {
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return int64(st.Bavail) * unit
}

func (f *osFile) PunchHole(off, n int64) error {
	return f.use("hole", func(fd int) error {
		if n == 0 {
			return nil
		}
		err := again(func() error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
		})
		if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
			return nil
		}
		return err
	})
}

func (f *osFile) Size() (size int64, err error) {
	err = f.use("size", func(fd int) error {
		size, err = sizeOf(fd)
		return err
	})
	return size, err
}

func sizeOf(fd int) (int64, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &st) })
	return st.Size, err
}

func (f *osFile) Truncate(size int64) error {
	return f.use("truncation", func(fd int) error { return again(func() error { return unix.Ftruncate(fd, size) }) })
}

func (f *osFile) Sync() error {
	return f.use("sync", func(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) })
}

func (f *osFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("close of %s: %w", f.what, fs.ErrClosed)
	}
	f.closed = true
	// Not repeated after an interrupt: Linux has released the descriptor by then.
	if err := unix.Close(f.fd); err != nil && err != unix.EINTR {
		return fmt.Errorf("close of %s: %w", f.what, err)
	}
	return nil
}

func (f *osFile) Direct() bool { return f.direct.Load() }
func (f *osFile) Align() int   { return f.align }

// ReadFile reads a whole file that was installed with the library, or that the kernel generates (sysfs).
func ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }
