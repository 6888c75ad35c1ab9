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

// A data file says in its index of the checkpoints that lie in it what the catalog says of them, so that the catalog can be made anew from the data files.
// What is to be said of a few small checkpoints is put off, so that not each of them takes a write of its own: see indexQueue. It is written before a sync of
// their data files, and comes down with that. That a checkpoint was dropped or replaced the index does not say: it is written anew, in its other half, when the
// half in use is full, and then says only what counts.
//
// The store works without: what cannot be written there is told in the log, and by Check.

// described is a checkpoint as an index says it.
type described struct {
	history string
	row     *catalog.Row
	change  *Change // that it comes from; nil: it is durable
}

// indexes are those of the data files of a directory that is open for writing. One goroutine has them.
type indexes struct {
	c    *contents
	data *segment.Space
	of   map[uint64]*index
}

func newIndexes(c *contents, data *segment.Space) indexes {
	return indexes{c: c, data: data, of: map[uint64]*index{}}
}

// index is that of a data file.
type index struct {
	file       dataindex.File
	discards   int64 // of the segment's file, when the index was read; -1: it could not be read
	half       int64 // that is written to
	generation uint64
	end        int64    // of its frames
	block      []byte   // what stands before the end in its block
	ends       [2]int64 // of what was written in the halves, in whole pieces
	stale      bool     // it does not say all that it should
	failures   int      // to write it, since it was not stale
	skips      int      // changes for which it is not tried
	told       bool
}

// frameBytes bounds what a frame says, unless one checkpoint alone says more: it is what damage to an index costs.
const frameBytes = 16 << 10

// add says in the index of a data file what lies in it from now on.
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

// renew writes an index anew, and returns when it is on the medium.
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

// renewStale tries once more to write the indexes anew that lack something, before the directory is closed.
func (x *indexes) renewStale() {
	for _, number := range slices.Sorted(maps.Keys(x.of)) {
		if x.of[number].stale {
			_ = x.renew(number) // the log has told
		}
	}
}

// lateRows is how many of the latest versions may be missing in indexes when a writer has died: more than a group and those before it that were put off.
const lateRows = 16 << 10

// catchUp looks whether the indexes of the data files in which the latest checkpoints lie say all of them. A writer that died has put some off; such indexes are
// written anew. Should that fail, the log tells, and a check.
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
	files, err := x.c.lengths()
	if err != nil {
		return err
	}
	maps.DeleteFunc(files, func(number, _ int64) bool { return !latest[number] })
	lacking, err := x.c.incomplete(x.data, files, math.MaxUint64)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(lacking)) {
		_ = x.renew(number) // the log tells
	}
	return nil
}

// failed notes that an index could not be written: it is tried again later, at longer and longer intervals.
func (x *indexes) failed(i *index, err error) {
	if i == nil {
		return
	}
	i.stale = true
	i.generation++ // what was written of the next one is none
	i.failures = min(i.failures+1, mostFailures)
	i.skips = 1 << i.failures
	if !i.told {
		i.told = true
		logring.Add(logring.Warning, fmt.Sprintf("%s: the index of %s could not be written, and a catalog that is rebuilt would lack checkpoints in it: %v",
			x.c.o.Dir, segment.FileName(i.file.Number), err))
	}
}

// mostFailures bounds the exponent: between two trials there are at most 2^mostFailures changes.
const mostFailures = 12

// halfBytes is how long half an index is.
func (x *indexes) halfBytes() int64 { return x.c.identity.indexBytes() / 2 }

// open gives the index of a data file, which is read when it is first asked for.
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
		i.discards = -1 // it is read again the next time
		return i, err
	}
	i.ends = x.c.identity.indexEnds(halves)
	i.resume(halves, x.halfBytes())
	if unread { // there may be a later generation
		i.stale = true
		i.generation += unreadGenerations
	}
	x.data.IndexEnds(int64(number)-1, i.ends)
	return i, nil
}

// unreadGenerations is more than an index goes through in its life.
const unreadGenerations = 1 << 40

// resume goes on with what was found in the halves of an index: behind the frames of the latest generation, if these follow each other from the beginning of
// their half on. Otherwise some of them are damaged, and the index is to be written anew.
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

// frames are the frames of rows, from an offset in the index on. A frame has one version of a key: as a record, it would be one that takes the other's place.
func (i *index) frames(rows []described, at, half int64) (all []byte) {
	for len(rows) > 0 {
		most := 1
		record := catalog.NewWriter(catalog.New()).Record()
		n, keys := 0, map[keyOf]bool{}
		for ; n < len(rows) && len(record.Bytes()) < most && !keys[keyOf{rows[n].history, rows[n].row.Key}]; n++ {
			keys[keyOf{rows[n].history, rows[n].row.Key}] = true
			_ = record.Put(rows[n].history, rows[n].row) // what cannot be said is refused by the catalog too
			if n == 0 {                                  // a long layout is said for several
				most = int(min(max(frameBytes, 8*int64(len(record.Bytes()))), half/4))
			}
		}
		all = i.file.Append(all, i.generation, at+int64(len(all)), record.Bytes())
		rows = rows[n:]
	}
	return all
}

// append writes frames behind those that there are.
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

// padded fills what is to be written at an offset of a half up, to a whole block, and to a whole piece where that is new.
func (i *index) padded(p []byte, at, half int64) []byte {
	end := at + int64(len(p))
	to := segment.Blocks(end)
	if to > i.ends[i.half] {
		to = min((end+segment.IndexPiece-1)/segment.IndexPiece*segment.IndexPiece, half)
	}
	return append(p, make([]byte, to-end)...)
}

func (i *index) wrote(at, n int64) { i.ends[i.half] = max(i.ends[i.half], at+n) }

// rewrite writes the index anew, in its other half, with what counts. Its first block comes last, behind a sync of the others: until then the half
// that there was is the one that a reader goes by.
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

// image are the frames of all that counts in a data file, the latest as far as they fit.
func (x *indexes) image(i *index, half int64) []byte {
	rows := x.c.rowsIn(i.file.Number)
	slices.SortFunc(rows, func(a, b described) int { return int(int64(b.row.Serial) - int64(a.row.Serial)) })
	room := half - half/8 // for what comes next
	for {
		frames := i.frames(rows, i.half*half, half)
		switch {
		case len(rows) == 0: // its generation has to stand somewhere
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
			rows = rows[1:] // one alone has no room
		}
	}
}

// rowsIn are the rows that lie in a data file, with a part at least.
func (c *contents) rowsIn(number uint64) (all []described) {
	if c.o.Guard != nil {
		c.o.Guard.Lock()
		defer c.o.Guard.Unlock()
	}
	c.state.EachIn(number, func(history string, row catalog.Row) bool {
		all = append(all, describe(history, &row, number))
		return true
	})
	return all
}

// describe is what the index of a data file says of a row that lies there. The hashes of its leaves, which may be long, stand where it begins.
func describe(history string, row *catalog.Row, number uint64) described {
	if row.Extents[0].File != number {
		other := *row
		other.Leaves = nil
		row = &other
	}
	return described{history: history, row: row}
}

// indexStep is how much of an index is read at once.
const indexStep = 1 << 20

// readIndex reads the halves of a data file's index, up to where a step has nothing but zeroes: nothing was written there. Blocks that cannot be read are zero.
func (c *contents) readIndex(data *segment.Space, number uint64) (halves [2][]byte, unread bool, err error) {
	half := c.identity.indexBytes() / 2
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

// indexEnds are where what was written in the halves of an index ends, in whole pieces.
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

// blockwise fills p with what read gives for offsets in it: at once, or block by block where the medium refuses some of it. What it refuses is zero.
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

// indexed calls f for everything that a data file's index says, also for what does not count any more: frame by frame, with a State of each, in the order in
// which it was said, but that a rewritten index says everything in no order.
func (c *contents) indexed(data *segment.Space, number uint64, f func(*catalog.State)) error {
	halves, _, err := c.readIndex(data, number)
	if errors.Is(err, segment.ErrUnwritten) || errors.Is(err, segment.ErrForeign) || errors.Is(err, io.ErrUnexpectedEOF) || unopened(err) {
		return nil // a read of what lies in it says so
	}
	if err != nil {
		return err
	}
	file := dataindex.File{Area: dataindex.Index, Store: c.identity.store, Number: number}
	var frames []dataindex.Frame
	for h, p := range halves {
		frames = slices.AppendSeq(frames, file.Frames(p, int64(h)*c.identity.indexBytes()/2))
	}
	slices.SortStableFunc(frames, func(a, b dataindex.Frame) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, frame := range frames {
		if s := catalog.New(); s.Apply(frame.Payload) == nil { // else it was made by somebody else
			f(s)
		}
	}
	return nil
}

// versions are those of the rows that lie in each data file, with serials up to a largest one.
func (c *contents) versions(most uint64) map[uint64][]lying {
	all := map[uint64][]lying{}
	var row lying
	before := uint64(math.MaxUint64) // the serial of the row that the last extent was of; none has this one
	c.state.EachExtent(func(_ uint32, serial uint64, x catalog.Extent) bool {
		if serial != before {
			row, before = lying{serial, int64(x.File-1)*c.identity.segment + x.Offset}, serial
		}
		if serial <= most {
			all[x.File] = append(all[x.File], row)
		}
		return true
	})
	return all
}

// settled is the largest serial of which the indexes have to say everything: a writer that has the store open, or died, may have put off what came later.
func (c *contents) settled() uint64 {
	if c.log.Closed {
		return math.MaxUint64
	}
	return max(c.state.MaxSerial(), lateRows) - lateRows
}

// unindexed is how many of these versions the index of their data file does not say.
func (c *contents) unindexed(data *segment.Space, number uint64, versions []lying) (lacking int, err error) {
	said := map[lying]bool{}
	err = c.indexed(data, number, func(s *catalog.State) {
		s.EachIn(number, func(_ string, row catalog.Row) bool {
			if r, ok := c.identity.place(row.Extents); ok {
				said[lying{row.Serial, r.from}] = true
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

// incomplete are the data files with indexes that lack rows which lie in them, with serials up to a largest one, and how many. Those of files that are not there,
// or belong elsewhere, are left out.
func (c *contents) incomplete(data *segment.Space, files map[int64]int64, most uint64) (map[uint64]int, error) {
	if !c.identity.index {
		return nil, nil
	}
	all := map[uint64]int{}
	versions := c.versions(most)
	for number := range files {
		file := uint64(number) + 1
		if len(versions[file]) == 0 || !c.own(file) {
			continue
		}
		lacking, err := c.unindexed(data, file, versions[file])
		if err != nil {
			return nil, err
		}
		if lacking > 0 {
			all[file] = lacking
		}
	}
	return all, nil
}
