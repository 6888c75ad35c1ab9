// Package vfs is the one file-system interface under all file I/O of the core.
//
// OS is the real thing, NewMem a disk in memory with a capacity, NewFaulty a wrapper that makes
// calls fail, stall or lie on demand. Every error keeps its errno: errors.Is(err, syscall.ENOSPC)
// works with all three.
package vfs

import "io"

// DefaultAlign is the alignment used for direct I/O when the file system does not tell its own.
const DefaultAlign = 4096

// Info is what Stat tells.
type Info struct {
	Dir  bool
	Size int64
}

// FS opens files and answers questions about directories. Its methods may be called from any goroutine.
type FS interface {
	// MkdirAll creates the directory and its missing parents, readable by this user alone. An
	// existing directory is fine.
	MkdirAll(dir string) error
	// Stat tells what name is; the error wraps ENOENT when there is nothing.
	Stat(name string) (Info, error)
	// Free returns the bytes that an ordinary user may still write to dir's file system.
	Free(dir string) (int64, error)
	// OpenScratch creates an empty file in dir that nobody else can open and that vanishes with the
	// last descriptor, also when the process is killed. direct asks for I/O that passes the page
	// cache by; where that is refused the file is opened without, and File.Direct tells.
	OpenScratch(dir string, direct bool) (File, error)
}

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
	// gets longer. A failed call leaves the file as it was; it must not run beside writes behind the
	// file's end.
	Allocate(off, n int64) error
	// PunchHole gives the space of [off, off+n) back; the range then reads as zeroes. Where the
	// file system cannot do it, nothing happens.
	PunchHole(off, n int64) error
	Size() (int64, error)
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
