package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"velocpy/gocore/base/vfs"

	"github.com/zeebo/xxh3"
)

// The head of a named file names the store that the file belongs to, and its number there. Files get mixed up when directories are copied or renamed while
// a store is in use: without heads, a reader would take the bytes of one store for those of another.

// HeadBytes is the length of a head. The byte at offset x of a segment is at HeadBytes + x of its file, plus the lengths of index and commit area if there
// are any.
const HeadBytes = Block

// Heads of version 2 have the length of the index after the fields of version 1.
const (
	headMagic  = "VELOCDAT"
	headSummed = 48 // bytes of a head of version 1 that its checksum covers
	headIndex  = 56 // … of version 2
)

var (
	// ErrForeign: a file has the intact head of another store, or of another file of this store. It is neither read nor written.
	ErrForeign = errors.New("a data file of another store, or of another number")
	// ErrHead: the head of a file is damaged or was never written, so that the store of the file is unknown.
	ErrHead = errors.New("the data file does not say which store it belongs to")
)

// Head is the content of a file's head.
type Head struct {
	Store        [16]byte
	Number       uint64 // of the file, from 1
	SegmentBytes int64
	Index        int64 // bytes of the index and of the commit area after it; 0: neither exists
}

// version returns the version of the head, and the number of bytes that its checksum covers.
func (h *Head) version() (version uint32, summed int) {
	if h.Index == 0 {
		return 1, headSummed
	}
	return 2, headIndex
}

func (h *Head) fill(p []byte) {
	clear(p)
	version, summed := h.version()
	copy(p, headMagic)
	binary.LittleEndian.PutUint32(p[8:], version)
	copy(p[16:], h.Store[:])
	binary.LittleEndian.PutUint64(p[32:], h.Number)
	binary.LittleEndian.PutUint64(p[40:], uint64(h.SegmentBytes))
	if h.Index > 0 {
		binary.LittleEndian.PutUint64(p[headSummed:], uint64(h.Index))
	}
	binary.LittleEndian.PutUint64(p[summed:], xxh3.Hash(p[:summed]))
}

// ParseHead decodes the head of any store; false if p is not an intact head.
func ParseHead(p []byte) (h Head, version uint32, ok bool) {
	version = binary.LittleEndian.Uint32(p[8:])
	summed := headSummed
	if version >= 2 {
		summed = headIndex
	}
	if string(p[:8]) != headMagic || binary.LittleEndian.Uint64(p[summed:]) != xxh3.Hash(p[:summed]) {
		return h, version, false
	}
	copy(h.Store[:], p[16:])
	h.Number, h.SegmentBytes = binary.LittleEndian.Uint64(p[32:]), int64(binary.LittleEndian.Uint64(p[40:]))
	if version >= 2 {
		h.Index = int64(binary.LittleEndian.Uint64(p[headSummed:]))
	}
	return h, version, true
}

// compare returns nil if p is this head, ErrForeign if it is another intact one, and ErrHead otherwise.
func (h *Head) compare(p []byte) error {
	if !slices.ContainsFunc(p, func(b byte) bool { return b != 0 }) {
		return fmt.Errorf("%w: its head was never written", ErrHead)
	}
	is, version, ok := ParseHead(p)
	if !ok {
		return fmt.Errorf("%w: its head is damaged", ErrHead)
	}
	known, summed := h.version()
	//mutation:head-of-another-store
	if version != known || is != *h {
		return fmt.Errorf("%w: its head (version %d) says %s of the store %x, this is %s of the store %x",
			ErrForeign, version, FileName(is.Number), is.Store, FileName(h.Number), h.Store)
	}
	if filled := slices.Concat(p[12:16], p[summed+8:]); slices.ContainsFunc(filled, func(b byte) bool { return b != 0 }) {
		return fmt.Errorf("%w: its head is damaged", ErrHead)
	}
	return nil
}

// look reads the head of a file into buf and compares it. The error wraps ErrForeign or ErrHead; other errors are failed reads that are not the medium's.
// If the file uses direct I/O, buf has a suitable address.
func (h *Head) look(file vfs.File, buf []byte) error {
	p := buf[:HeadBytes]
	n, err := file.ReadAt(p, 0)
	switch {
	case vfs.Unreadable(err):
		return fmt.Errorf("%w: its head cannot be read: %w", ErrHead, err)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	clear(p[n:])
	return h.compare(p)
}

// put writes the head. buf is as in look.
func (h *Head) put(file vfs.File, buf []byte) error {
	p := buf[:HeadBytes]
	h.fill(p)
	n, err := file.WriteAt(p, 0)
	return whole(n, len(p), err)
}

// Look verifies the head of a file. The error wraps ErrForeign or ErrHead, or is an error of opening or reading.
func (h *Head) Look(fs vfs.FS, name string) (err error) {
	file, err := fs.Open(name, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	return h.look(file, make([]byte, HeadBytes))
}

// Restore rewrites the head of a file and syncs it. It fails with ErrForeign if the file has the intact head of another file.
func (h *Head) Restore(fs vfs.FS, name string) (err error) {
	file, err := fs.Open(name, true, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buf := make([]byte, HeadBytes)
	if err := h.look(file, buf); err == nil || !errors.Is(err, ErrHead) {
		return err
	}
	if err := h.put(file, buf); err != nil {
		return err
	}
	return file.Sync()
}

// head returns the expected head of a segment's file.
func (o *Options) head(number int64) *Head {
	return &Head{Store: *o.Store, Number: uint64(number) + 1, SegmentBytes: o.SegmentBytes, Index: o.Index + o.Commits}
}

// own adopts an opened named file for the segment, unless the file is foreign. The caller holds g.mu.
func (g *segment) own(s *Space, file vfs.File) error {
	if s.opt.Store != nil {
		buf := s.bounce.take()
		defer s.bounce.give(buf)
		err := s.opt.head(g.number).look(file, buf)
		if err != nil && !errors.Is(err, ErrHead) {
			return errors.Join(err, file.Close())
		}
		g.bare, g.unproven = g.bare && err != nil, err
	}
	g.file = s.opt.behindFront(file)
	return nil
}

// behindFront returns a named file as seen from its segment: without head, index and commit area.
func (o *Options) behindFront(file vfs.File) vfs.File {
	if o.Store == nil {
		return file
	}
	return Behind(file, HeadBytes+o.Index+o.Commits)
}

// writeHead writes the head of a file that this space has created, before the first bytes of the segment. One sync makes both durable. The caller holds
// g.mu.
func (g *segment) writeHead(s *Space) error {
	//mutation:head-not-written
	if !g.bare {
		return nil
	}
	g.writes++ // keeps the file open until the next sync
	buf := s.bounce.take()
	defer s.bounce.give(buf)
	if err := s.opt.head(g.number).put(g.file.(headed).File, buf); err != nil {
		return fmt.Errorf("write the head of the file: %w", err)
	}
	g.bare, g.unproven = false, nil
	return nil
}

// Proves returns nil if the heads of a range's files name this store, or files have no heads. The error wraps ErrHead if a head is damaged or missing. An
// unreadable head counts as proof, as files that were mixed up are readable. Bytes without a checksum must not be used unless Proves returns nil.
func (s *Space) Proves(off, n int64) error {
	if s.opt.Store == nil || n == 0 { // an empty range needs no proof, and its file need not exist
		return nil
	}
	for first, end := s.Segments(off, n); first < end; first++ {
		if err := s.proves(first); err != nil {
			return err
		}
	}
	return nil
}

func (s *Space) proves(number int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	g := s.lookUp(number)
	if _, err := g.open(s, read, 0, 0, 0); err != nil {
		return err
	}
	defer g.release(read)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unproven == nil || vfs.Unreadable(g.unproven) {
		return nil
	}
	return fmt.Errorf("%s in %s: %w", FileName(uint64(number)+1), s.opt.Dir, g.unproven)
}

// Behind returns a view of a file without the first front bytes: offsets and sizes are those of the segment.
func Behind(file vfs.File, front int64) vfs.File { return headed{file, front} }

type headed struct {
	vfs.File
	front int64
}

func (f headed) ReadAt(p []byte, off int64) (int, error)  { return f.File.ReadAt(p, off+f.front) }
func (f headed) WriteAt(p []byte, off int64) (int, error) { return f.File.WriteAt(p, off+f.front) }
func (f headed) PunchHole(off, n int64) error             { return f.File.PunchHole(off+f.front, n) }
func (f headed) Truncate(size int64) error                { return f.File.Truncate(size + f.front) }

// Allocate allocates the head together with the beginning of the segment. Without an index between them, the file is contiguous.
func (f headed) Allocate(off, n int64) error {
	switch {
	case off > 0:
		return f.File.Allocate(off+f.front, n)
	case f.front == HeadBytes:
		return f.File.Allocate(0, n+HeadBytes)
	}
	if err := f.File.Allocate(0, HeadBytes); err != nil {
		return err
	}
	return f.File.Allocate(f.front, n)
}

// Size is 0 for a file that ends before its segment.
func (f headed) Size() (int64, error) {
	size, err := f.File.Size()
	return max(size-f.front, 0), err
}
