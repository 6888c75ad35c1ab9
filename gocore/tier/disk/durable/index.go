package durable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/dataindex"
	"velocpy/gocore/tier/disk/segment"
)

// The index of a data file repeats the catalog's records of the checkpoints in the file, so that the catalog can be rebuilt from the data files. Entries of
// a few small checkpoints are deferred, so that they share a write: see indexQueue. An index is written before a sync of its data file, and that sync makes
// it durable. An index does not record that a checkpoint was dropped or replaced. When the half in use is full, the index is rewritten into the other half
// with only the current checkpoints.
//
// The store works without indexes: a failure to write one is logged, and Check reports it.

// described is a checkpoint as an index records it.
type described struct {
	history string
	row     *catalog.Row
	change  *Change // the change that it comes from; nil: it is durable
}

// indexes are the indexes of the data files of a directory that is open for writing. One goroutine uses them.
type indexes struct {
	c    *contents
	data *segment.Space
	of   map[uint64]*index
}

func newIndexes(c *contents, data *segment.Space) indexes {
	return indexes{c: c, data: data, of: map[uint64]*index{}}
}

// index is the index of one data file.
type index struct {
	file       dataindex.File
	discards   int64 // discards of the segment's file when the index was read; -1: it could not be read
	half       int64 // the half that is written to
	generation uint64
	end        int64    // of its frames
	block      []byte   // bytes before end in the block that contains it
	ends       [2]int64 // end of the written part of each half, in whole pieces
	stale      bool     // it lacks entries
	failures   int      // failed writes since the index was last complete
	skips      int      // changes to skip before the next attempt
	told       bool
}

// frameBytes bounds the content of a frame, unless one checkpoint alone is larger: it is the loss that damage to one frame of an index causes.
const frameBytes = 16 << 10

// add appends entries for new checkpoints to the index of a data file.
func (x *indexes) add(number uint64, rows []described) error {
	i, err := x.open(number)
	if err == nil && i.skips > 0 {
		i.skips--
		return nil
	}
	if err == nil && i.stale {
		err = x.rewrite(i)
	}
	if err == nil {
		err = x.append(i, rows)
	}
	if err != nil {
		x.failed(i, err)
	}
	return err
}

// renew rewrites an index, and returns when it is synced.
func (x *indexes) renew(number uint64) error {
	i, err := x.open(number)
	if err == nil {
		err = x.rewrite(i)
	}
	if err == nil {
		err = x.data.Sync(int64(number) - 1)
	}
	if err != nil {
		x.failed(i, err)
	}
	return err
}

// renewStale retries, before the directory is closed, to rewrite the indexes that lack entries.
func (x *indexes) renewStale() {
	for _, number := range slices.Sorted(maps.Keys(x.of)) {
		if x.of[number].stale {
			_ = x.renew(number) // a failure is logged
		}
	}
}

// lateRows bounds the latest versions that indexes may lack after a writer died: more than a group plus the deferred ones before it.
const lateRows = 16 << 10

// catchUp finds indexes that lack the latest checkpoints, as a writer died before it wrote their deferred entries, and rewrites them. A failure is logged,
// and Check reports it.
func (x *indexes) catchUp() {
	if err := x.sayLate(); err != nil {
		logring.Add(logring.Warning, x.c.o.Dir+": nobody could see whether the indexes of data files say the latest checkpoints: "+err.Error())
	}
}

func (x *indexes) sayLate() error {
	if !x.c.identity.index || x.c.state.MaxSerial() == 0 {
		return nil
	}
	latest := map[int64]bool{}
	x.c.state.EachExtent(func(_ uint32, serial uint64, e catalog.Extent) bool {
		if serial+lateRows > x.c.state.MaxSerial() {
			latest[int64(e.File)-1] = true
		}
		return true
	})
	files, err := x.c.Lengths()
	if err != nil {
		return err
	}
	maps.DeleteFunc(files, func(number, _ int64) bool { return !latest[number] })
	lacking, err := x.c.incomplete(x.data, files, math.MaxUint64)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(lacking)) {
		_ = x.renew(number) // a failure is logged
	}
	return nil
}

// failed records that an index could not be written. Retries come at exponentially growing intervals.
func (x *indexes) failed(i *index, err error) {
	if i == nil {
		return
	}
	i.stale = true
	i.generation++ // a partly written next generation must not count
	i.failures = min(i.failures+1, mostFailures)
	i.skips = 1 << i.failures
	if !i.told {
		i.told = true
		logring.Add(logring.Warning, fmt.Sprintf("%s: the index of %s could not be written, and a catalog that is rebuilt would lack checkpoints in it: %v",
			x.c.o.Dir, segment.FileName(i.file.Number), err))
	}
}

// mostFailures bounds the exponent: between two attempts there are at most 2^mostFailures changes.
const mostFailures = 12

// halfBytes is the length of half an index.
func (x *indexes) halfBytes() int64 { return x.c.identity.indexBytes() / 2 }

// open returns the index of a data file; it reads it at first use.
func (x *indexes) open(number uint64) (*index, error) {
	discards := x.data.Discards(int64(number) - 1)
	if i := x.of[number]; i != nil && i.discards == discards {
		return i, nil
	}
	i := &index{file: dataindex.File{Area: dataindex.Index, Store: x.c.identity.store, Number: number}, discards: discards, generation: 1}
	x.of[number] = i
	blank, err := x.data.BlankIndex(int64(number) - 1)
	if blank && err == nil {
		return i, nil
	}
	var halves [2][]byte
	unread := false
	if err == nil {
		halves, unread, err = x.c.readIndex(x.data, number)
	}
	if err != nil {
		i.discards = -1 // the next call reads it again
		return i, err
	}
	i.ends = x.c.identity.indexEnds(halves)
	i.resume(halves, x.halfBytes())
	if unread { // an unreadable block may have a later generation
		i.stale = true
		i.generation += unreadGenerations
	}
	x.data.IndexEnds(int64(number)-1, i.ends)
	return i, nil
}

// unreadGenerations exceeds the number of generations in the life of an index.
const unreadGenerations = 1 << 40

// resume continues the latest generation that the halves have. If its frames are not contiguous from the beginning of their half, some are damaged, and the
// index is marked for a rewrite.
func (i *index) resume(halves [2][]byte, half int64) {
	var latest []dataindex.Frame
	for h, p := range halves {
		for f := range i.file.Frames(p, int64(h)*half) {
			switch {
			case len(latest) > 0 && f.Generation < latest[0].Generation:
				continue
			case len(latest) > 0 && f.Generation > latest[0].Generation:
				latest = latest[:0]
			}
			latest = append(latest, f)
		}
	}
	if len(latest) == 0 {
		i.stale = len(halves[0])+len(halves[1]) > 0
		return
	}
	i.half, i.generation = latest[0].From/half, latest[0].Generation
	i.end = i.half * half
	for _, f := range latest {
		i.stale = i.stale || f.From != i.end
		i.end = f.End
	}
	p := halves[i.half]
	i.end -= i.half * half
	i.block = slices.Clone(p[i.end/segment.Block*segment.Block : i.end])
}

// frames encodes rows as frames that begin at an offset in the index. A frame has at most one version of a key, as a second one in the same record would
// replace the first.
func (i *index) frames(rows []described, at, half int64) (all []byte) {
	for len(rows) > 0 {
		most := 1
		record := catalog.NewWriter(catalog.New()).Record()
		n, keys := 0, map[keyOf]bool{}
		for ; n < len(rows) && len(record.Bytes()) < most && !keys[keyOf{rows[n].history, rows[n].row.Key}]; n++ {
			keys[keyOf{rows[n].history, rows[n].row.Key}] = true
			_ = record.Put(rows[n].history, rows[n].row) // the catalog refuses rows that cannot be encoded, too
			if n == 0 {                                  // a long layout is shared by several rows
				most = int(min(max(frameBytes, 8*int64(len(record.Bytes()))), half/4))
			}
		}
		all = i.file.Append(all, i.generation, at+int64(len(all)), record.Bytes())
		rows = rows[n:]
	}
	return all
}

// append writes frames after the existing ones.
func (x *indexes) append(i *index, rows []described) error {
	half := x.halfBytes()
	frames := i.frames(rows, i.half*half+i.end, half)
	if i.end+int64(len(frames)) > half {
		if err := x.rewrite(i); err != nil {
			return err
		}
		frames = i.frames(rows, i.half*half+i.end, half)
		if i.end+int64(len(frames)) > half {
			return fmt.Errorf("it has no room for %d bytes more", len(frames))
		}
	}
	at := i.end / segment.Block * segment.Block
	p := i.padded(append(i.block, frames...), at, half)
	if err := x.data.WriteIndex(int64(i.file.Number)-1, i.half*half+at, p); err != nil {
		return err
	}
	i.wrote(at, int64(len(p)))
	i.end += int64(len(frames))
	i.block = slices.Clone(p[i.end/segment.Block*segment.Block-at : i.end-at])
	return nil
}

// padded pads p, to be written at an offset of a half, to a whole block, or to a whole piece where it extends the written part.
func (i *index) padded(p []byte, at, half int64) []byte {
	end := at + int64(len(p))
	to := segment.Blocks(end)
	if to > i.ends[i.half] {
		to = min((end+segment.IndexPiece-1)/segment.IndexPiece*segment.IndexPiece, half)
	}
	return append(p, make([]byte, to-end)...)
}

func (i *index) wrote(at, n int64) { i.ends[i.half] = max(i.ends[i.half], at+n) }

// rewrite writes the current checkpoints into the other half of the index. Its first block is written last, after a sync of the others: until then a reader
// uses the old half.
func (x *indexes) rewrite(i *index) error {
	half := x.halfBytes()
	next := *i
	next.half, next.generation, next.end, next.block = 1-i.half, i.generation+1, 0, nil
	image := x.image(&next, half)
	number, base := int64(i.file.Number)-1, next.half*half
	p := next.padded(slices.Clone(image), 0, half)
	if len(p) > segment.Block {
		if err := x.data.WriteIndex(number, base+segment.Block, p[segment.Block:]); err != nil {
			return err
		}
		if err := x.data.Sync(number); err != nil {
			return err
		}
	}
	if err := x.data.WriteIndex(number, base, p[:segment.Block]); err != nil {
		return err
	}
	next.wrote(0, int64(len(p)))
	next.end = int64(len(image))
	next.block = slices.Clone(p[next.end/segment.Block*segment.Block : next.end])
	next.stale, next.failures = false, 0
	*i = next
	return nil
}

// image returns the frames of all current checkpoints in a data file, or of the latest that fit.
func (x *indexes) image(i *index, half int64) []byte {
	rows := x.c.rowsIn(i.file.Number)
	slices.SortFunc(rows, func(a, b described) int { return int(int64(b.row.Serial) - int64(a.row.Serial)) })
	room := half - half/8 // leaves room for later entries
	for {
		frames := i.frames(rows, i.half*half, half)
		switch {
		case len(rows) == 0: // an empty frame, which records the generation
			return i.file.Append(nil, i.generation, i.half*half, []byte{})
		case int64(len(frames)) <= room:
			return frames
		}
		if !i.told {
			i.told = true
			logring.Add(logring.Warning, fmt.Sprintf("%s: the index of %s has no room for all of its %d checkpoints: a catalog that is rebuilt would lack the oldest",
				x.c.o.Dir, segment.FileName(i.file.Number), len(rows)))
		}
		if fit := int(float64(len(rows)) * float64(room) / float64(len(frames)+1)); fit > 0 {
			rows = rows[:fit]
		} else {
			rows = rows[1:] // a single row exceeds the room
		}
	}
}

// rowsIn returns the rows that have at least a part in a data file.
func (r *records) rowsIn(number uint64) (all []described) {
	if r.o.Guard != nil {
		r.o.Guard.Lock()
		defer r.o.Guard.Unlock()
	}
	r.state.EachIn(number, func(history string, row catalog.Row) bool {
		all = append(all, describe(history, &row, number))
		return true
	})
	return all
}

// describe returns the index entry of a row for a data file. Only the file where the row begins gets the hashes of its leaves, as they may be long.
func describe(history string, row *catalog.Row, number uint64) described {
	if row.Extents[0].File != number {
		other := *row
		other.Leaves = nil
		row = &other
	}
	return described{history: history, row: row}
}

// indexStep is the size of a read of an index.
const indexStep = 1 << 20

// readIndex reads the halves of a data file's index. It stops at a step that is all zero, as nothing was written from there on. Unreadable blocks read as
// zero.
func (f *files) readIndex(data *segment.Space, number uint64) (halves [2][]byte, unread bool, err error) {
	half := f.identity.indexBytes() / 2
	for h := range halves {
		for at, step := int64(0), int64(segment.IndexPiece); at < half; step = indexStep {
			p := make([]byte, min(step, half-at))
			bad, err := readBlocks(data, number, int64(h)*half+at, p)
			if err != nil {
				return halves, unread, err
			}
			unread = unread || bad
			if !bad && len(bytes.TrimLeft(p, "\x00")) == 0 {
				break
			}
			halves[h] = append(halves[h], p...)
			at += int64(len(p))
		}
	}
	return halves, unread, nil
}

// indexEnds returns the end of the written part of each half of an index, in whole pieces.
func (i *identity) indexEnds(halves [2][]byte) (ends [2]int64) {
	for h, p := range halves {
		written := int64(len(bytes.TrimRight(p, "\x00")))
		ends[h] = min((written+segment.IndexPiece-1)/segment.IndexPiece*segment.IndexPiece, i.indexBytes()/2)
	}
	return ends
}

// readBlocks reads a part of an index.
func readBlocks(data *segment.Space, number uint64, off int64, p []byte) (unread bool, err error) {
	why, err := blockwise(p, func(at int64, some []byte) error { return data.ReadIndex(int64(number)-1, off+at, some) })
	return why != nil, err
}

// blockwise fills p by calls of read with offsets in it: one call, or one per block if the medium refuses a part. Refused blocks are zero.
func blockwise(p []byte, read func(at int64, some []byte) error) (unread, err error) {
	if err = read(0, p); !vfs.Unreadable(err) {
		return nil, err
	}
	for at := int64(0); at < int64(len(p)); at += segment.Block {
		block := p[at : at+segment.Block]
		err := read(at, block)
		if vfs.Unreadable(err) {
			clear(block)
			unread = err
		} else if err != nil {
			return unread, err
		}
	}
	return unread, nil
}

// indexed calls each with a State of each frame in a data file's index, including entries of dropped checkpoints. Frames come in the order of writing, but
// within a rewritten index the entries have no order.
func (f *files) indexed(data *segment.Space, number uint64, each func(*catalog.State)) error {
	halves, _, err := f.readIndex(data, number)
	if errors.Is(err, segment.ErrUnwritten) || errors.Is(err, segment.ErrForeign) || errors.Is(err, io.ErrUnexpectedEOF) || unopened(err) {
		return nil // a read of the segment reports the error
	}
	if err != nil {
		return err
	}
	file := dataindex.File{Area: dataindex.Index, Store: f.identity.store, Number: number}
	var frames []dataindex.Frame
	for h, p := range halves {
		frames = slices.AppendSeq(frames, file.Frames(p, int64(h)*f.identity.indexBytes()/2))
	}
	slices.SortStableFunc(frames, func(a, b dataindex.Frame) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, frame := range frames {
		if s := catalog.New(); s.Apply(frame.Payload) == nil { // otherwise no velocpy writer made it
			each(s)
		}
	}
	return nil
}

// versions returns the rows with a part in each data file, with serials up to most.
func (r *records) versions(most uint64) map[uint64][]lying {
	all := map[uint64][]lying{}
	var row lying
	before := uint64(math.MaxUint64) // serial of the previous extent's row; no row has this initial value
	r.state.EachExtent(func(_ uint32, serial uint64, x catalog.Extent) bool {
		if serial != before {
			row, before = lying{serial, int64(x.File-1)*r.identity.segment + x.Offset}, serial
		}
		if serial <= most {
			all[x.File] = append(all[x.File], row)
		}
		return true
	})
	return all
}

// settled is the largest serial up to which indexes must be complete. A writer that has the store open, or died, may have deferred the entries of later
// ones.
func (r *records) settled() uint64 {
	if r.log.Closed {
		return math.MaxUint64
	}
	return max(r.state.MaxSerial(), lateRows) - lateRows
}

// unindexed returns how many of the versions the index of their data file lacks.
func (r *records) unindexed(data *segment.Space, number uint64, versions []lying) (lacking int, err error) {
	said := map[lying]bool{}
	err = r.indexed(data, number, func(s *catalog.State) {
		s.EachIn(number, func(_ string, row catalog.Row) bool {
			if lies, ok := r.identity.place(row.Extents); ok {
				said[lying{row.Serial, lies.from}] = true
			}
			return true
		})
	})
	for _, v := range versions {
		if !said[v] {
			lacking++
		}
	}
	return lacking, err
}

// incomplete returns the data files whose indexes lack rows with serials up to most, with the number of rows. It skips files that are missing or belong to
// another store.
func (r *records) incomplete(data *segment.Space, files map[int64]int64, most uint64) (map[uint64]int, error) {
	if !r.identity.index {
		return nil, nil
	}
	all := map[uint64]int{}
	versions := r.versions(most)
	for number := range files {
		file := uint64(number) + 1
		if len(versions[file]) == 0 || !r.own(file) {
			continue
		}
		lacking, err := r.unindexed(data, file, versions[file])
		if err != nil {
			return nil, err
		}
		if lacking > 0 {
			all[file] = lacking
		}
	}
	return all, nil
}
