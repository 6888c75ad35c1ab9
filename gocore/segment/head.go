package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"velocpy/gocore/vfs"

	"github.com/zeebo/xxh3"
)

// The head of a named file says which store the file belongs to, and which number it has there. Files get mixed up where directories are copied or renamed while a
// store is in use: without heads, the bytes of one store are read as those of another.

// HeadBytes is how long a head is. The byte at offset x of a segment lies at HeadBytes + x of its file.
const HeadBytes = Block

const (
	headMagic   = "VELOCDAT"
	headVersion = 1
	headSummed  = 48 // bytes of a head that its checksum covers
)

var (
	// ErrForeign: a file has the whole head of another store, or of another file of this store. Nothing in it is read or written.
	ErrForeign = errors.New("a data file of another store, or of another number")
	// ErrHead: the head of a file is damaged or was never written, so that it does not say which store the file belongs to.
	ErrHead = errors.New("the data file does not say which store it belongs to")
)

// Head is what the head of a file says.
type Head struct {
	Store        [16]byte
	Number       uint64 // of the file, from 1 on
	SegmentBytes int64
}

func (h *Head) fill(p []byte) {
	clear(p)
	copy(p, headMagic)
	binary.LittleEndian.PutUint32(p[8:], headVersion)
	copy(p[16:], h.Store[:])
	binary.LittleEndian.PutUint64(p[32:], h.Number)
	binary.LittleEndian.PutUint64(p[40:], uint64(h.SegmentBytes))
	binary.LittleEndian.PutUint64(p[headSummed:], xxh3.Hash(p[:headSummed]))
}

// compare returns nil for the bytes of this head, ErrForeign for those of another whole one, and ErrHead for others.
func (h *Head) compare(p []byte) error {
	if !slices.ContainsFunc(p, func(b byte) bool { return b != 0 }) {
		return fmt.Errorf("%w: its head was never written", ErrHead)
	}
	if string(p[:8]) != headMagic || binary.LittleEndian.Uint64(p[headSummed:]) != xxh3.Hash(p[:headSummed]) {
		return fmt.Errorf("%w: its head is damaged", ErrHead)
	}
	var is Head
	copy(is.Store[:], p[16:])
	is.Number, is.SegmentBytes = binary.LittleEndian.Uint64(p[32:]), int64(binary.LittleEndian.Uint64(p[40:]))
	if version := binary.LittleEndian.Uint32(p[8:]); version != headVersion || is != *h {
		return fmt.Errorf("%w: its head (version %d) says %s of the store %x, this is %s of the store %x",
			ErrForeign, version, FileName(is.Number), is.Store, FileName(h.Number), h.Store)
	}
	if filled := slices.Concat(p[12:16], p[headSummed+8:]); slices.ContainsFunc(filled, func(b byte) bool { return b != 0 }) {
		return fmt.Errorf("%w: its head is damaged", ErrHead)
	}
	return nil
}

// look reads the head of a file into buf and compares it. The error wraps ErrForeign or ErrHead unless the head is this one or the read failed otherwise than by
// the medium. The address of buf suits direct I/O where the file has that.
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

// Look compares the head of a file. The error wraps ErrForeign or ErrHead, or is that of opening or reading.
func (h *Head) Look(fs vfs.FS, name string) (err error) {
	file, err := fs.Open(name, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	return h.look(file, make([]byte, HeadBytes))
}

// Restore writes the head of a file again and syncs it. It fails with ErrForeign where there is the whole head of another file.
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

// head is that of a segment's file.
func (s *Space) head(g *segment) *Head {
	return &Head{Store: *s.opt.Store, Number: uint64(g.number) + 1, SegmentBytes: s.opt.SegmentBytes}
}

// own makes a named file that was opened the segment's, unless it is a foreign one. The segment's lock is held.
func (g *segment) own(s *Space, file vfs.File) error {
	if s.opt.Store != nil {
		buf := s.bounce.take()
		defer s.bounce.give(buf)
		err := s.head(g).look(file, buf)
		if err != nil && !errors.Is(err, ErrHead) {
			return errors.Join(err, file.Close())
		}
		g.bare, g.unproven = g.bare && err != nil, err
	}
	g.file = s.behindHead(file)
	return nil
}

// behindHead is a named file without its head, if it has one.
func (s *Space) behindHead(file vfs.File) vfs.File {
	if s.opt.Store == nil {
		return file
	}
	return BehindHead(file)
}

// writeHead writes the head of a file that this space has made, before the first bytes of the segment. The sync that brings those down brings the head down. The
// segment's lock is held.
func (g *segment) writeHead(s *Space) error {
	if !g.bare {
		return nil
	}
	g.writes++ // the file stays open until a sync has followed
	buf := s.bounce.take()
	defer s.bounce.give(buf)
	if err := s.head(g).put(g.file.(headed).File, buf); err != nil {
		return fmt.Errorf("write the head of the file: %w", err)
	}
	g.bare, g.unproven = false, nil
	return nil
}

// Proves returns nil if the files of a range say that they are this store's, or have no heads, and an error that wraps ErrHead if one has a head that is damaged
// or missing. A medium that does not give the head counts as proof: files that were mixed up are readable. Bytes that no checksum proves are not to be used without.
func (s *Space) Proves(off, n int64) error {
	if s.opt.Store == nil || n == 0 { // of nothing there is nothing to prove, and the file need not be there
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
	if _, err := g.open(s, read, 0, 0); err != nil {
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

// BehindHead is a file without its head: offsets and sizes are those of the segment in it.
func BehindHead(file vfs.File) vfs.File { return headed{file} }

type headed struct{ vfs.File }

func (f headed) ReadAt(p []byte, off int64) (int, error)  { return f.File.ReadAt(p, off+HeadBytes) }
func (f headed) WriteAt(p []byte, off int64) (int, error) { return f.File.WriteAt(p, off+HeadBytes) }
func (f headed) PunchHole(off, n int64) error             { return f.File.PunchHole(off+HeadBytes, n) }
func (f headed) Truncate(size int64) error                { return f.File.Truncate(size + HeadBytes) }

// Allocate gives the head its room together with the beginning of the segment, so that the file lies in one piece.
func (f headed) Allocate(off, n int64) error {
	if off == 0 {
		return f.File.Allocate(0, n+HeadBytes)
	}
	return f.File.Allocate(off+HeadBytes, n)
}

// Size is 0 for a file that ends within its head.
func (f headed) Size() (int64, error) {
	size, err := f.File.Size()
	return max(size-HeadBytes, 0), err
}
