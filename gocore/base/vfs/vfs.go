// Package vfs is the one file-system interface under all file I/O of the core.
//
// OS is the real thing, NewMem a disk in memory with a capacity that can lose its power, NewFaulty a
// wrapper that makes calls fail, stall or lie on demand. Every error keeps its errno:
// errors.Is(err, syscall.ENOSPC) works with all three.
//
// What survives a loss of power: the bytes of a file that were written before its last Sync, and the
// names of a directory that were there at its last SyncDir. Of everything later any part may be there,
// in any order; a name may be there without the bytes, and the other way round. A Sync that fails
// leaves bytes behind that no later Sync brings down: only what is written again is safe.
package vfs

import (
	"errors"
	"io"
)

// ErrNotFile: what the name stands for is no ordinary file: a directory, a pipe, a device, a link.
var ErrNotFile = errors.New("not an ordinary file")

// DefaultAlign is the alignment used for direct I/O when the file system does not tell its own.
const DefaultAlign = 4096

// Info is what Stat tells.
type Info struct {
	Dir  bool
	Size int64
	Held int64 // bytes that the file takes from the file system, holes left out
}

// FS opens files and answers questions about directories. Its methods may be called from any goroutine.
type FS interface {
	// MkdirAll creates the directory and its missing parents, readable by this user alone. An
	// existing directory is fine.
	MkdirAll(dir string) error
	// Stat tells what name is; the error wraps ENOENT when there is nothing.
	Stat(name string) (Info, error)
	// Free returns the bytes that an ordinary user may still write to dir's file system; a very large number where that does not say.
	Free(dir string) (int64, error)
	// OpenScratch creates an empty file in dir that nobody else can open and that vanishes with the
	// last descriptor, also when the process is killed. direct asks for I/O that passes the page
	// cache by; where that is refused the file is opened without, and File.Direct tells.
	OpenScratch(dir string, direct bool) (File, error)
	// Create makes an empty file, readable by this user alone; the error wraps EEXIST when there is something of that name, whatever it is.
	Create(name string, direct bool) (File, error)
	// Open opens an ordinary file for reading, or, if write says so, for both. It follows no link in the last part of the name, and never waits.
	Open(name string, write, direct bool) (File, error)
	// Remove takes the name of a file away. Who has the file open keeps it.
	Remove(name string) error
	// List returns the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Lock takes the lock that a file stands for, made when it is missing, and fails with ErrTaken when another process, or another caller in
	// this one, has it; it never waits. The lock ends with Close, or with the process.
	Lock(name string) (Lock, error)
	// SyncDir returns when the names in a directory are on the medium: what was created there, and what was removed. Where the file system knows
	// no such thing, nothing happens.
	SyncDir(dir string) error
	// HoldDir opens a directory and keeps it open.
	HoldDir(dir string) (HeldDir, error)
}

// HeldDir is a file system of one directory that is held open. Its calls take dir itself, as HoldDir was given it, and names directly in it: the
// directory that was opened is meant, also after it was renamed, or another one was put in its place, or the process has changed its
// working directory. Other names fail with EXDEV.
type HeldDir interface {
	FS
	// Whereabouts tells where the directory is now.
	Whereabouts() Whereabouts
	// Close waits for calls in flight. Later calls fail with os.ErrClosed. Files and locks stay open.
	Close() error
}

// Whereabouts is where a directory is that is held open.
type Whereabouts int

const (
	InPlace Whereabouts = iota // its name still stands for it
	Moved                      // its name stands for something else now, or for nothing
	Removed                    // it has no name: nothing can be created in it
)

// Lock is one that was taken.
type Lock interface {
	// Held returns nil as long as the file of the lock is still the one by that name, and ErrLockLost when it was removed or replaced:
	// another process may have taken the lock of the new one. The error wraps ENOENT where there is no file by that name.
	Held() error
	io.Closer
}

// ErrLockLost: the file of a lock is not there any more.
var ErrLockLost = errors.New("the lock file was removed or replaced")

// File is an open file. Its methods may be called from any goroutine; reads and writes of different
// ranges run in parallel. While Direct is true, offset, length and buffer address of reads and
// writes must be multiples of Align, else they fail with EINVAL.
type File interface {
	// ReadAt reads len(p) bytes, or returns an error: io.EOF when the file ends before.
	io.ReaderAt
	// WriteAt writes all of p, or returns an error and how much was written.
	io.WriterAt
	// Allocate reserves space for [off, off+n) and makes the file at least that long, so that later
	// writes there do not run out of space. Where the file system cannot reserve, the file only
	// gets longer. A failed call leaves the file as long as it was, but holes in it may have been filled;
	// it must not run beside writes behind the file's end.
	Allocate(off, n int64) error
	// PunchHole gives the space of [off, off+n) back; the range then reads as zeroes. Where the
	// file system cannot do it, nothing happens.
	PunchHole(off, n int64) error
	Size() (int64, error)
	// Truncate cuts the file, or makes it longer; what is new reads as zeroes.
	Truncate(size int64) error
	// Sync returns when everything written is on the medium.
	Sync() error
	// Close waits for calls in flight. Every later call, a second Close among them, fails with os.ErrClosed.
	Close() error
	// Direct says whether I/O passes the page cache by. It may turn false once, when the file
	// system refuses such I/O later than at opening.
	Direct() bool
	// Align is a power of two.
	Align() int
}
