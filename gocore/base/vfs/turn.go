package vfs

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrTaken: another process, or another store in this one, has the turn.
var ErrTaken = errors.New("somebody else's turn")

// Turn is a lock among all processes of a node, and stores in one process, that name the same file. It ends with its process, also if the process is
// killed, and whatever children of it live on. The file stays, empty.
type Turn struct {
	file fileID
	fd   int
}

// fileID identifies a file independently of its names.
type fileID struct{ device, inode uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// The kernel separates only processes; this map separates the turns within this process. A file whose turn is taken is not even opened: closing any
// descriptor of a file releases the process's lock on it.
var (
	turnsMu sync.Mutex
	turns   = map[fileID]bool{}
)

// TurnFile is the file by which this user's processes take turns for a purpose.
func TurnFile(purpose string) string {
	return filepath.Join("/dev/shm", fmt.Sprintf("velocpy-%s-%d", purpose, unix.Getuid()))
}

// TryTurn takes the turn, or fails with ErrTaken; it never waits.
func TryTurn(file string) (*Turn, error) {
	turnsMu.Lock()
	defer turnsMu.Unlock()
	var st unix.Stat_t
	if err := again(func() error { return unix.Lstat(file, &st) }); err == nil && turns[idOf(&st)] {
		return nil, ErrTaken
	}
	fd, err := open(entry{unix.AT_FDCWD, file}, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err == nil {
		err = ordinary(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, notFile(err))
	}
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	// Not flock: a child that was forked meanwhile would inherit the turn, and keep it when this process is killed.
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = again(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &whole) })
	if err == nil {
		turns[idOf(&st)] = true
		return &Turn{idOf(&st), fd}, nil
	}
	_ = unix.Close(fd)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, ErrTaken
	}
	return nil, fmt.Errorf("lock %s: %w", file, err)
}

// End gives up the turn. It must be called once.
func (t *Turn) End() error {
	turnsMu.Lock()
	defer turnsMu.Unlock()
	delete(turns, t.file)
	return unix.Close(t.fd)
}
