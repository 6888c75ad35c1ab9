package durable

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/dataindex"
	"velocpy/gocore/tier/disk/segment"
)

// commitArea describes a commit area for package dataindex.
func (f *files) commitArea(file uint64) dataindex.File {
	return dataindex.File{Area: dataindex.Commits, Store: f.identity.store, Number: file}
}

// areaFile is a data file with a commit area, opened by name: far cheaper than a segment.Space.
type areaFile struct {
	vfs.File
	start int64 // of its segment in the space
	front int64
}

// openArea opens a data file; nil if it is missing.
func (f *files) openArea(number uint64) (*areaFile, error) {
	err := f.look(number)
	if err == nil || errors.Is(err, segment.ErrHead) {
		var file vfs.File
		if file, err = f.o.FS.Open(f.o.path(segment.FileName(number)), false, false); err == nil {
			return &areaFile{file, int64(number-1) * f.identity.segment, f.identity.front()}, nil
		}
	}
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return nil, err
}

// Read reads bytes of the space, all of which are in the file's segment.
func (f *areaFile) Read(off int64, p []byte) error {
	n, err := f.ReadAt(p, off-f.start+f.front)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// areaBytes reads a range of a commit area; nil if the file is missing. unread is the reason why a part of the range could not be read.
func (f *files) areaBytes(number uint64, r run) (p []byte, unread, err error) {
	file, err := f.openArea(number)
	if errors.Is(err, segment.ErrForeign) || err != nil && unopened(err) {
		return nil, err, nil
	}
	if err != nil || file == nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p = make([]byte, r.end-r.from)
	unread, err = blockwise(p, func(at int64, some []byte) error {
		n, err := file.ReadAt(some, file.front-f.identity.commitBytes()+r.from+at)
		clear(some[n:])
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	return p, unread, err
}

// framesOf returns the complete frames in p, a part of a commit area that begins at offset from.
func (f *files) framesOf(number uint64, p []byte, from int64) (all []dataindex.Frame) {
	for frame := range f.commitArea(number).Frames(p, from) {
		if frame.From%segment.Block == 0 && frame.Generation <= mostBatch { // no writer makes others
			all = append(all, frame)
		}
	}
	return all
}

// readArea reads a commit area.
func (f *files) readArea(number uint64) (a ahead, err error) {
	a.file = number
	p, unread, err := f.areaBytes(number, run{0, f.identity.commitBytes()})
	a.unread = unread
	for _, frame := range f.framesOf(number, p, 0) {
		if frame.Generation > a.batch {
			a.batch, a.frames, a.holes = frame.Generation, nil, nil
		}
		if frame.Generation < a.batch {
			continue // obsolete
		}
		if end := a.end(); frame.From > end {
			a.holes = append(a.holes, run{end, frame.From})
		}
		a.frames = append(a.frames, frame)
	}
	if end := a.end(); end < int64(len(p)) {
		a.begun = f.commitArea(number).Begun(p[end:], a.batch)
	}
	return a, err
}
