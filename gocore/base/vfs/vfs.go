// Package vfs is the one file-system interface under all file I/O of the core.
//
// OS is the operating system's, NewMem an in-memory disk with a capacity that can lose power, NewFaulty a wrapper that makes calls fail, stall or corrupt
// bytes on demand. Every error keeps its errno: errors.Is(err, syscall.ENOSPC) works with all three.
//
// A loss of power keeps the bytes of a file that were written before its last Sync, and the names of a directory at its last SyncDir. Of later changes
// any part may survive, in any order; a name may survive without the bytes, and the bytes without the name. After a failed Sync, no later Sync makes the
// earlier writes durable: only bytes that are written again are safe.
package vfs

import (
	"errors"
	"io"
)

// ErrNotFile: the name is not an ordinary file but a directory, a pipe, a device or a link.
var ErrNotFile = errors.New("not an ordinary file")

// DefaultAlign is the alignment for direct I/O if the file system does not report its own.
const DefaultAlign = 4096

// Info is the result of Stat.
type Info struct {
	Dir  bool
	Size int64
	Held int64 // bytes that the file takes from the file system, without holes
}

// FS opens files and queries directories. Its methods are safe for concurrent use.
type FS interface {
	// MkdirAll creates the directory and its missing parents, readable by this user alone. It succeeds if the directory exists.
	MkdirAll(dir string) error
	// Stat describes name; the error wraps ENOENT if it does not exist.
	Stat(name string) (Info, error)
	// Free returns the bytes that an ordinary user may still write to dir's file system; a very large number if the file system does not report it.
	Free(dir string) (int64, error)
	// OpenScratch creates an empty file in dir that no other process can open, and that vanishes with its last descriptor, also when the process is
	// killed. direct requests I/O that bypasses the page cache; if that is refused the file is opened without, and File.Direct tells.
	OpenScratch(dir string, direct bool) (File, error)
	// Create creates an empty file, readable by this user alone; the error wraps EEXIST if the name exists, whatever it is.
	Create(name string, direct bool) (File, error)
	// Open opens an ordinary file for reading and, if write is set, for writing. It follows no link in the last part of the name, and never waits.
	Open(name string, write, direct bool) (File, error)
	// Remove removes the name of a file. Processes that have the file open keep it.
	Remove(name string) error
	// List returns the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Lock locks a file, which it creates if it is missing. It fails with ErrTaken if another process, or another caller in this one, holds the lock; it
	// never waits. The lock ends with Close, or with the process.
	Lock(name string) (Lock, error)
	// SyncDir returns when the names in a directory, created and removed ones, are on the medium. It does nothing if the file system does not support it.
	SyncDir(dir string) error
	// HoldDir opens a directory and keeps it open.
	HoldDir(dir string) (HeldDir, error)
}

// HeldDir is a file system of one open directory. Its calls take dir itself, as given to HoldDir, and names directly in it. They apply to the directory
// that was opened, even if it was renamed, if another directory has its name, or if the process has changed its working directory. Other names fail with
// EXDEV.
type HeldDir interface {
	FS
	// Whereabouts tells where the directory is now.
	Whereabouts() Whereabouts
	// Close waits for calls in flight. Later calls fail with os.ErrClosed. Files and locks stay open.
	Close() error
}

// Whereabouts is the state of a held directory's name.
type Whereabouts int

const (
	InPlace Whereabouts = iota // its name still refers to it
	Moved                      // its name refers to another entry, or to none
	Removed                    // it has no name: nothing can be created in it
)

// Lock is a held lock.
type Lock interface {
	// Held returns nil while the lock's file still has its name. It returns ErrLockLost if the file was removed or replaced: another process may have
	// locked the new file. The error wraps ENOENT if there is no file of that name.
	Held() error
	io.Closer
}

// ErrLockLost: the file of a lock was removed or replaced.
var ErrLockLost = errors.New("the lock file was removed or replaced")

// File is an open file. Its methods are safe for concurrent use; reads and writes of different ranges run in parallel. While Direct is true, offset,
// length and buffer address of reads and writes must be multiples of Align, or they fail with EINVAL.
type File interface {
	// ReadAt reads len(p) bytes, or returns an error: io.EOF if the file ends before.
	io.ReaderAt
	// WriteAt writes all of p, or returns an error and the number of written bytes.
	io.WriterAt
	// Allocate reserves space for [off, off+n) and makes the file at least that long, so that later writes there do not run out of space. If the file
	// system cannot reserve, the file only gets longer. A failed call leaves the file's length as it was, but may have filled holes. It must not run
	// concurrently with writes beyond the file's end.
	Allocate(off, n int64) error
	// PunchHole frees the space of [off, off+n); the range then reads as zeros. It does nothing if the file system does not support it.
	PunchHole(off, n int64) error
	Size() (int64, error)
	// Truncate sets the length of the file; new bytes read as zeros.
	Truncate(size int64) error
	// Sync returns when all written bytes are on the medium.
	Sync() error
	// Close waits for calls in flight. Every later call, including a second Close, fails with os.ErrClosed.
	Close() error
	// Direct tells whether I/O bypasses the page cache. It may turn false once, if the file system refuses such I/O after the open.
	Direct() bool
	// Align is a power of two.
	Align() int
}
