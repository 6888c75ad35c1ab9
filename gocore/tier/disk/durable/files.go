package durable

import (
	"fmt"
	"math"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// files are the files of a directory, as far as the identity of the store tells how to read them: all that needs no catalog.
type files struct {
	o        Options
	identity identity
	bad      []badCopy // damaged copies of the identity
}

func (f *files) journal() journal.Options {
	return journal.Options{FS: f.o.FS, Dir: f.o.Dir, Store: f.identity.store}
}

// Place returns the range of the space that a row's bytes take, without those of its sources.
func (f *files) Place(row *catalog.Row) (off, n int64, err error) {
	r, ok := f.identity.place(row.Extents)
	if !ok {
		return 0, 0, fmt.Errorf("%w: checkpoint %s lies nowhere", ErrDamaged, row.Key)
	}
	return r.from, r.end - r.from, nil
}

// Difference returns the difference of a row, with the offsets of its sources in the space; nil if it has none.
func (f *files) Difference(row *catalog.Row) (*model.Difference, error) {
	if row.Difference == nil {
		return nil, nil
	}
	d := *row.Difference
	d.Sources = slices.Clone(d.Sources)
	for i, extents := range row.Sources {
		r, ok := f.identity.place(extents)
		if !ok {
			return nil, fmt.Errorf("%w: source %d of checkpoint %s lies nowhere", ErrDamaged, d.Sources[i].Number, row.Key)
		}
		d.Sources[i].Offset = r.from
	}
	return &d, nil
}

// SegmentBytes is the length of the segment in a data file.
func (f *files) SegmentBytes() int64 { return f.identity.segment }

// InFile returns the offset in its data file at which an extent begins. Extent.Offset counts from the segment, which follows the head, index and commit
// area.
func (f *files) InFile(x catalog.Extent) int64 { return f.identity.front() + x.Offset }

// Lengths returns the segment lengths of the data files: file lengths without head, index and commit area.
func (f *files) Lengths() (map[int64]int64, error) {
	names, err := f.o.FS.List(f.o.Dir)
	if err != nil {
		return nil, err
	}
	all := map[int64]int64{}
	for _, name := range names {
		number, ok := segment.FileNumber(name)
		if !ok || number-1 > uint64(math.MaxInt64/2/f.identity.segment) {
			continue
		}
		if info, err := f.o.FS.Stat(f.o.path(name)); err == nil && !info.Dir { // a file that was removed meanwhile is left out
			all[int64(number)-1] = max(info.Size-f.identity.front(), 0)
		}
	}
	return all, nil
}

// held returns the allocated bytes of every data file.
func (f *files) held() (map[uint64]int64, error) {
	names, err := f.o.FS.List(f.o.Dir)
	if err != nil {
		return nil, err
	}
	all := map[uint64]int64{}
	for _, name := range names {
		if number, ok := segment.FileNumber(name); ok {
			info, err := f.o.FS.Stat(f.o.path(name))
			if err != nil {
				return nil, err
			}
			all[number] = info.Held
		}
	}
	return all, nil
}
