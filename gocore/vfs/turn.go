package vfs

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrTaken means that somebody else has the turn.
var ErrTaken = errors.New("somebody else's turn")

// Turn is a lock that everybody of a node shares who names the same file: processes, and stores in one process. It ends with the process that
// has it, however that ends. The file stays, empty.
type Turn struct{ fd int }

// TurnFile is where this user's processes meet for a purpose.
func TurnFile(purpose string) string {
	return filepath.Join("/dev/shm", fmt.Sprintf("velocpy-%s-%d", purpose, unix.Getuid()))
}

// TryTurn takes the turn, or fails with ErrTaken; it never waits.
func TryTurn(file string) (*Turn, error) {
	fd, err := open(file, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	err = again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return &Turn{fd}, nil
	}
	_ = unix.Close(fd)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrTaken
	}
	return nil, fmt.Errorf("lock %s: %w", file, err)
}

// End gives the turn up, also where a child of the process has inherited the descriptor.
func (t *Turn) End() error {
	return errors.Join(again(func() error { return unix.Flock(t.fd, unix.LOCK_UN) }), unix.Close(t.fd))
}
