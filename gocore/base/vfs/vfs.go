// Package vfs is the one file-system interface under all file I/O of the core.
//
// OS is the real one. NewMem is a disk in memory with a limited capacity that can lose its power. NewFaulty is a wrapper that makes calls fail, stall
// or return wrong data. Every error keeps its errno: errors.Is(err, syscall.ENOSPC) works with all three.
//
// A power loss keeps the bytes of a file that were written before its last Sync, and the names of a directory at its last SyncDir. Of all later
// changes any part may survive, in any order: a name without its bytes, or bytes without their name. If a Sync fails, no later Sync makes the earlier
// writes durable: only bytes that are written again are safe.
package vfs

import (
	"errors"
	"io"
)

// ErrNotFile: the name refers to something other than an ordinary file: a directory, a pipe, a device, a link.
var ErrNotFile = errors.New("not an ordinary file")

// DefaultAlign is the alignment for direct I/O if the file system does not report its own.
const DefaultAlign = 4096

// Info is the result of Stat.
type Info struct {
	Dir  bool
	Size int64
	Held int64 // bytes that the file occupies in the file system, without holes
}

// FS opens files and reads directories. Its methods may be called from any goroutine.
type FS interface {
	// MkdirAll creates the directory and its missing parents, readable by this user only. An existing directory is fine.
	MkdirAll(dir string) error
	// Stat describes the file of that name; the error wraps ENOENT if there is none.
	Stat(name string) (Info, error)
	// Free returns the bytes that an ordinary user may still write to dir's file system; a very large number if the file system does not report it.
	Free(dir string) (int64, error)
	// OpenScratch creates an empty file in dir that no other process can open. It vanishes with its last descriptor, even if the process is killed.
	// direct requests I/O that bypasses the page cache. If that is refused the file is opened without it, and File.Direct tells.
	OpenScratch(dir string, direct bool) (File, error)
	// Create makes an empty file, readable by this user only; the error wraps EEXIST if the name exists, for any kind of file.
	Create(name string, direct bool) (File, error)
	// Open opens an ordinary file for reading, or, with write, for both. It does not follow a link in the last part of the name, and never waits.
	Open(name string, write, direct bool) (File, error)
	// Remove removes the name of a file. Processes that have the file open keep it.
	Remove(name string) error
	// List returns the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Lock takes the lock of a file, which it creates if it is missing. It fails with ErrTaken if another process, or another caller in this one, has
	// the lock; it never waits. The lock ends with Close, or with the process.
	Lock(name string) (Lock, error)
	// SyncDir returns when the names in a directory are on the medium: created ones, and removals. If the file system does not support that, it does
	// nothing.
	SyncDir(dir string) error
	// HoldDir opens a directory and keeps it open.
	HoldDir(dir string) (HeldDir, error)
}

// Distant is an FS each of whose reads is a request to a server. It says how long a piece of a large read should be.
type Distant interface{ PieceBytes() int64 }

// HeldDir is a file system of one directory that is held open. Its calls take dir itself, as HoldDir was given it, and names directly in it. They
// refer to the opened directory, even after it was renamed, another one took its place, or the process changed its working directory. Other names
// fail with EXDEV.
type HeldDir interface {
	FS
	// Whereabouts tells where the directory is now.
	Whereabouts() Whereabouts
	// Close waits for calls in flight. Later calls fail with os.ErrClosed. Files and locks stay open.
	Close() error
}

// Whereabouts is the location of a directory that is held open.
type Whereabouts int

const (
	InPlace Whereabouts = iota // its name still refers to it
	Moved                      // its name refers to another file now, or does not exist
	Removed                    // it has no name: no file can be created in it
)

// Lock is a lock that was taken.
type Lock interface {
	// Held returns nil as long as the name still refers to the file of the lock, and ErrLockLost if the file was removed or replaced: another process
	// may have the lock of the new one. The error wraps ENOENT if there is no file of that name.
	Held() error
	// Renew makes a new lock file, and locks it, in place of one that was removed. It fails with ErrTaken if another process has made and locked one. The lock on the
	// directory, where there is one, is kept meanwhile, so that no other process gets it.
	Renew() error
	io.Closer
}

// ErrLockLost: the name does not refer to the file of the lock any more.
var ErrLockLost = errors.New("the lock file was removed or replaced")

// File is an open file. Its methods may be called from any goroutine; reads and writes of different ranges run in parallel. While Direct is true,
// offset, length and buffer address of reads and writes must be multiples of Align; otherwise they fail with EINVAL.
type File interface {
	// ReadAt reads len(p) bytes, or returns an error: io.EOF if the file ends before.
	io.ReaderAt
	// WriteAt writes all of p, or returns an error and the number of bytes written.
	io.WriterAt
	// Allocate reserves space for [off, off+n) and makes the file at least that long, so that later writes there do not run out of space. If the file
	// system cannot reserve space, the file only gets longer. A failed call leaves the length of the file, but holes in it may have been filled. It
	// must not run concurrently with writes beyond the file's end.
	Allocate(off, n int64) error
	// PunchHole frees the space of [off, off+n); the range then reads as zeroes. If the file system cannot do it, nothing happens.
	PunchHole(off, n int64) error
	Size() (int64, error)
	// Truncate cuts the file, or extends it with zeroes.
	Truncate(size int64) error
	// Sync returns when all written data is on the medium.
	Sync() error
	// Close waits for calls in flight. Every later call, including a second Close, fails with os.ErrClosed.
	Close() error
	// Direct tells whether I/O bypasses the page cache. It may turn false once, if the file system refuses such I/O after opening.
	Direct() bool
	// Align is a power of two.
	Align() int
}
