package durable

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/segment"

	"golang.org/x/sys/unix"
)

// headBytes is the length of a data file's head; 0: files have none.
func (i *identity) headBytes() int64 {
	if i.heads {
		return segment.HeadBytes
	}
	return 0
}

// front is the number of bytes before the segment in a data file.
func (i *identity) front() int64 { return i.headBytes() + i.indexBytes() + i.commitBytes() }

// Half an index has this part of a segment, as a divisor, within these limits in bytes. That is enough for the records of checkpoints of one block each. A
// reader holds the whole half in memory.
const (
	indexShare = 32
	leastIndex = segment.IndexPiece
	mostIndex  = 64 << 20
)

// indexBytes is the length of both halves of a data file's index; 0: files have none.
func (i *identity) indexBytes() int64 {
	if !i.index {
		return 0
	}
	return 2 * min(max(segment.Blocks(i.segment/indexShare), leastIndex), mostIndex)
}

// A commit area has this part of a segment, as a divisor, within these limits in bytes.
const (
	commitShare = 1024
	leastCommit = 4 * segment.Block
	mostCommit  = 64 * segment.Block
)

// commitBytes is the length of a data file's commit area; 0: files have none.
func (i *identity) commitBytes() int64 {
	if !i.commits {
		return 0
	}
	return min(max(segment.Blocks(i.segment/commitShare), leastCommit), mostCommit)
}

// owner is the store id in the heads of data files; nil: they have no heads.
func (i *identity) owner() *[16]byte {
	if i.heads {
		return &i.store
	}
	return nil
}

// head returns the expected head of a data file.
func (i *identity) head(number uint64) *segment.Head {
	return &segment.Head{Store: i.store, Number: number, SegmentBytes: i.segment, Index: i.indexBytes() + i.commitBytes()}
}

// look verifies the head of a data file. The error wraps segment.ErrForeign or segment.ErrHead, or is an error of opening or reading; a missing file gives
// none.
func (f *files) look(number uint64) error {
	if !f.identity.heads {
		return nil
	}
	err := f.identity.head(number).Look(f.o.FS, f.o.path(segment.FileName(number)))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// own tells whether this store may remove a data file: its head names this store, or is damaged, or files have no heads.
func (f *files) own(number uint64) bool {
	err := f.look(number)
	return err == nil || errors.Is(err, segment.ErrHead)
}

// heads returns the data files with wrong heads, by number, with the error. It opens and reads every data file once.
func (f *files) heads() (map[uint64]error, error) {
	if !f.identity.heads {
		return nil, nil
	}
	names, err := f.o.FS.List(f.o.Dir)
	if err != nil {
		return nil, err
	}
	wrong := map[uint64]error{}
	for _, name := range names {
		number, ok := segment.FileNumber(name)
		if !ok {
			continue
		}
		switch err := f.look(number); {
		case errors.Is(err, segment.ErrForeign), errors.Is(err, segment.ErrHead):
			wrong[number] = err
		case err != nil && !unopened(err):
			return nil, err
		}
	}
	return wrong, nil
}

// unopened tells whether the file itself is why it cannot be opened. A read of its segment reports the error.
func unopened(err error) bool {
	return errors.Is(err, vfs.ErrNotFile) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || vfs.Unreadable(err)
}

// foreign fails with ErrDamaged if a data file belongs to another store or number: a writer may neither remove nor overwrite it.
func (f *files) foreign() error {
	wrong, err := f.heads()
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(wrong)) {
		if errors.Is(wrong[number], segment.ErrForeign) {
			name := segment.FileName(number)
			return fmt.Errorf("%s: %w: %s: %w; move %s out of this directory, to where its head says that it belongs", f.o.Dir, ErrDamaged, name, wrong[number], name)
		}
	}
	return nil
}

// restoreHeads rewrites damaged heads of data files that have checkpoints, and returns the number of rewritten heads.
func (c *contents) restoreHeads() (restored int, err error) {
	wrong, err := c.heads()
	if err != nil {
		return 0, err
	}
	for number, why := range wrong {
		if !errors.Is(why, segment.ErrHead) || !c.used(number) {
			continue
		}
		if err := c.identity.head(number).Restore(c.o.FS, c.o.path(segment.FileName(number))); err != nil {
			return restored, err
		}
		restored++
	}
	return restored, nil
}
