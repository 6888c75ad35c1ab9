package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memChunk is the unit in which a Mem gives out its capacity.
const memChunk = 64 << 10

// Mem is a disk in memory, for tests: it runs out of space like a real one, and refuses direct I/O
// that is not aligned to DefaultAlign. Memory is used only for what was written.
type Mem struct {
	mu       sync.Mutex
	capacity int64
	used     int64
	open     int
	entries  map[string]Info
}

// NewMem returns an empty file system that holds capacity bytes, in units of 64 KiB. The root
// directory exists.
func NewMem(capacity int64) *Mem {
	return &Mem{capacity: capacity, entries: map[string]Info{"/": {Dir: true}, ".": {Dir: true}}}
}

// PutFile makes name an ordinary file, so that a test can meet one where it wants a directory.
func (m *Mem) PutFile(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[filepath.Clean(name)] = Info{}
}

// Open returns the number of files not closed yet: 0 when nothing leaks.
func (m *Mem) Open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if info, ok := m.entries[d]; ok && !info.Dir {
			return &fs.PathError{Op: "mkdir", Path: d, Err: unix.ENOTDIR}
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	for d := filepath.Clean(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		m.entries[d] = Info{Dir: true}
	}
	return nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	info, ok := m.entries[filepath.Clean(name)]
	if !ok {
		return Info{}, &fs.PathError{Op: "stat", Path: name, Err: unix.ENOENT}
	}
	return info, nil
}

// Free implements FS.
func (m *Mem) Free(dir string) (int64, error) {
	if _, err := m.Stat(dir); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.capacity - m.used, nil
}

// OpenScratch implements FS.
func (m *Mem) OpenScratch(dir string, direct bool) (File, error) {
	info, err := m.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.Dir {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	return &memFile{disk: m, direct: direct, chunks: map[int64]*[memChunk]byte{}}, nil
}

type memFile struct {
	disk   *Mem
	direct bool
	// All below is guarded by disk.mu. A chunk that is reserved but was never written maps to nil.
	chunks map[int64]*[memChunk]byte
	size   int64
	closed bool
}

func (f *memFile) check(p []byte, off int64) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case off < 0:
		return unix.EINVAL
	case f.direct:
		address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
		if (uint64(off)|uint64(len(p))|address)%DefaultAlign != 0 {
			return fmt.Errorf("direct i/o of %d bytes at %d, address %#x: %w", len(p), off, address, unix.EINVAL)
		}
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.check(p, off); err != nil {
		return 0, err
	}
	var err error
	if off+int64(len(p)) > f.size {
		p, err = p[:max(0, f.size-off)], io.EOF
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		in := at % memChunk
		part := p[done:min(len(p), done+int(memChunk-in))]
		if chunk := f.chunks[at/memChunk]; chunk != nil {
			copy(part, chunk[in:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return len(p), err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.check(p, off); err != nil {
		return 0, err
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		if err := f.reserve(at / memChunk); err != nil {
			return done, fmt.Errorf("write at %d: %w", at, err)
		}
		chunk := f.chunks[at/memChunk]
		if chunk == nil {
			chunk = new([memChunk]byte)
			f.chunks[at/memChunk] = chunk
		}
		done += copy(chunk[at%memChunk:], p[done:])
		f.size = max(f.size, off+int64(done))
	}
	return len(p), nil
}

func (f *memFile) reserve(index int64) error {
	if _, ok := f.chunks[index]; ok {
		return nil
	}
	if f.disk.used+memChunk > f.disk.capacity {
		return unix.ENOSPC
	}
	f.disk.used += memChunk
	f.chunks[index] = nil
	return nil
}

func (f *memFile) Allocate(off, n int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	if off < 0 || n < 0 {
		return unix.EINVAL
	}
	for at := off / memChunk; at*memChunk < off+n; at++ {
		if err := f.reserve(at); err != nil {
			return fmt.Errorf("allocate %d bytes at %d: %w", n, off, err)
		}
	}
	f.size = max(f.size, off+n)
	return nil
}

func (f *memFile) PunchHole(off, n int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	for at := off; at < off+n; {
		end := min(off+n, (at/memChunk+1)*memChunk)
		if chunk, ok := f.chunks[at/memChunk]; ok && end-at == memChunk {
			delete(f.chunks, at/memChunk)
			f.disk.used -= memChunk
		} else if chunk != nil {
			clear(chunk[at%memChunk : at%memChunk+end-at])
		}
		at = end
	}
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	return f.size, nil
}

func (f *memFile) Sync() error {
	_, err := f.Size()
	return err
}

func (f *memFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.disk.used -= int64(len(f.chunks)) * memChunk
	f.disk.open--
	f.chunks = nil
	return nil
}

func (f *memFile) Direct() bool { return f.direct }
func (f *memFile) Align() int   { return DefaultAlign }
