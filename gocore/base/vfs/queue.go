package vfs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Place is a place in the queue at a file. Processes, and stores in one process, that name the same file share one queue, in the order of arrival. A
// place is a lock on one byte of the file, which stays empty. The place ends with the process, also if the process is killed.
type Place struct {
	queue *queue
	at    int64 // the locked byte
}

// queue is shared by the places of this process at one file. The kernel separates only the locks of different processes, and closing any descriptor of a
// file releases all locks of the process on it.
type queue struct {
	file   string
	fd     int
	places []int64 // of this process, in order
}

var (
	queuesMu sync.Mutex
	queues   = map[string]*queue{}
)

// joining is the byte that a process locks while it finds the end of the queue. Places begin after it.
const joining = 0

// LineUp takes a place at the end of the queue. It never waits: it fails with ErrTaken while another process finds the end.
func LineUp(file string) (*Place, error) {
	queuesMu.Lock()
	defer queuesMu.Unlock()
	q, err := queueAt(file)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, notFile(err))
	}
	at, err := q.join()
	if err != nil {
		q.closeIfEmpty()
		return nil, err
	}
	return &Place{q, at}, nil
}

// Ahead is the number of places before this one; 0: it is this place's turn.
func (p *Place) Ahead() (n int64, err error) {
	queuesMu.Lock()
	defer queuesMu.Unlock()
	own, _ := slices.BinarySearch(p.queue.places, p.at)
	n = int64(own)
	for from := int64(joining + 1); ; {
		other, err := p.queue.lockedFrom(from, p.at)
		if other == nil || err != nil {
			return n, err
		}
		end := min(other.Start+other.Len, p.at) // adjacent places of one process look like one lock
		n += end - max(other.Start, from)
		from = end
	}
}

// Others is the number of other places in the queue.
func (p *Place) Others() (n int64, err error) {
	queuesMu.Lock()
	defer queuesMu.Unlock()
	n = int64(len(p.queue.places)) - 1
	for from := int64(joining + 1); ; {
		other, err := p.queue.lockedFrom(from, 0)
		if other == nil || err != nil {
			return n, err
		}
		if other.Len == 0 {
			return n, fmt.Errorf("%s is locked to its end by process %d: %w", p.queue.file, other.Pid, ErrTaken)
		}
		end := other.Start + other.Len
		n += end - max(other.Start, from)
		from = end
	}
}

// Leave gives up the place. It must be called once.
func (p *Place) Leave() error {
	queuesMu.Lock()
	defer queuesMu.Unlock()
	q := p.queue
	i, _ := slices.BinarySearch(q.places, p.at)
	q.places = slices.Delete(q.places, i, i+1)
	if q.closeIfEmpty() {
		return nil // the lock is gone with the descriptor
	}
	return q.set(unix.F_UNLCK, p.at)
}

// queueAt returns the process's queue at a file, and opens it at first use.
func queueAt(file string) (*queue, error) {
	if q := queues[file]; q != nil {
		return q, nil
	}
	fd, err := open(entry{unix.AT_FDCWD, file}, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if err := ordinary(fd); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	q := &queue{file: file, fd: fd}
	queues[file] = q
	return q, nil
}

func (q *queue) closeIfEmpty() bool {
	if len(q.places) > 0 {
		return false
	}
	delete(queues, q.file)
	_ = unix.Close(q.fd)
	return true
}

// join locks the byte after the last locked one.
func (q *queue) join() (at int64, err error) {
	if err := q.set(unix.F_WRLCK, joining); err != nil {
		return 0, err
	}
	at, err = q.end()
	if err == nil {
		err = q.set(unix.F_WRLCK, at)
	}
	err = errors.Join(err, q.set(unix.F_UNLCK, joining))
	if err == nil {
		q.places = append(q.places, at)
	}
	return at, err
}

// end is the byte after the last place of any process.
func (q *queue) end() (at int64, err error) {
	at = joining + 1
	if n := len(q.places); n > 0 {
		at = q.places[n-1] + 1
	}
	for {
		other, err := q.lockedFrom(at, 0)
		if other == nil || err != nil {
			return at, err
		}
		if other.Len == 0 {
			return 0, fmt.Errorf("%s is locked to its end by process %d: %w", q.file, other.Pid, ErrTaken)
		}
		at = other.Start + other.Len
	}
}

// lockedFrom returns a lock of another process on the bytes from one up to another, 0 for the end of the file; nil if there is none.
func (q *queue) lockedFrom(from, to int64) (*unix.Flock_t, error) {
	if from == to { // a length of 0 would mean the rest of the file
		return nil, nil
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: from, Len: max(to-from, 0)}
	if err := again(func() error { return unix.FcntlFlock(uintptr(q.fd), unix.F_GETLK, &l) }); err != nil {
		return nil, fmt.Errorf("look for locks on %s: %w", q.file, err)
	}
	if l.Type == unix.F_UNLCK {
		return nil, nil
	}
	return &l, nil
}

// set locks or unlocks a byte.
func (q *queue) set(kind int16, at int64) error {
	l := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: at, Len: 1}
	err := again(func() error { return unix.FcntlFlock(uintptr(q.fd), unix.F_SETLK, &l) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return ErrTaken
	}
	return fmt.Errorf("lock %s: %w", q.file, err)
}
