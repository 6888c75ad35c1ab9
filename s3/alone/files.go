package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// readBytes is the length of one read of a file, as a push reads stores.
const readBytes = 4 << 20

// source reads the bytes of an object from its files. It is safe for concurrent use.
type source struct {
	object *object
	files  map[string]*os.File
}

// open opens the files of an object: with O_DIRECT, or else with nothing of them in the page cache.
func open(o *object, direct bool) (*source, error) {
	s := &source{o, map[string]*os.File{}}
	for _, p := range o.Pieces {
		if s.files[p.File] != nil {
			continue
		}
		f, err := os.OpenFile(p.File, os.O_RDONLY|flag(direct), 0)
		if errors.Is(err, unix.EINVAL) {
			f, err = os.Open(p.File) // the file system has no O_DIRECT
		}
		if err == nil && !direct {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.files[p.File] = f
	}
	return s, nil
}

func flag(direct bool) int {
	if direct {
		return unix.O_DIRECT
	}
	return 0
}

func (s *source) close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// ReadAt implements io.ReaderAt.
func (s *source) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		x, at, ok := s.object.locate(off + int64(n))
		if !ok {
			return n, io.EOF
		}
		k, err := s.files[x.File].ReadAt(p[n:min(int64(len(p)), int64(n)+x.Bytes-at, int64(n)+readBytes)], x.From+at)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// locate returns the piece that has the byte at an offset of an object, and the offset in the piece.
func (o *object) locate(off int64) (x piece, at int64, ok bool) {
	for _, x := range o.Pieces {
		if off < x.Bytes {
			return x, off, true
		}
		off -= x.Bytes
	}
	return x, 0, false
}

// mapped returns memory that begins at a page, as O_DIRECT needs it. It is never given back.
func mapped(bytes int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
}

// buffers are those of the threads, of one length.
var buffers = struct {
	sync.Mutex
	free map[int64][][]byte
}{free: map[int64][][]byte{}}

func take(bytes int64) ([]byte, error) {
	buffers.Lock()
	defer buffers.Unlock()
	if free := buffers.free[bytes]; len(free) > 0 {
		buffers.free[bytes] = free[1:]
		return free[0], nil
	}
	return mapped(bytes)
}

func giveBack(p []byte) {
	buffers.Lock()
	defer buffers.Unlock()
	buffers.free[int64(cap(p))] = append(buffers.free[int64(cap(p))], p[:cap(p)])
}

// differing counts the bytes of p that are not those of an object's files.
func differing(o *object, p []byte) (wrong int64, err error) {
	s, err := open(o, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	buffer, err := take(readBytes)
	if err != nil {
		return 0, err
	}
	defer giveBack(buffer)
	for off := int64(0); off < o.Bytes; off += readBytes {
		some := buffer[:min(readBytes, o.Bytes-off)]
		if _, err := s.ReadAt(some, off); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if there := p[off:][:len(some)]; !bytes.Equal(some, there) {
			for i, b := range some {
				if there[i] != b {
					wrong++
				}
			}
		}
	}
	return wrong, nil
}
