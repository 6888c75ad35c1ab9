package durable

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"velocpy/gocore/catalog"
	"velocpy/gocore/checksum"
	"velocpy/gocore/dataindex"
	"velocpy/gocore/journal"
	"velocpy/gocore/segment"
	"velocpy/gocore/vfs"

	"golang.org/x/sys/unix"
)

// ahead is what a commit area says behind the last batch of the catalog.
type ahead struct {
	file   uint64 // data file; 0: none
	batch  uint64 // behind which the frames are
	frames []dataindex.Frame
	holes  []run // in the area, where frames are damaged that had been acknowledged
	unread error // why the medium does not give all of it; nil: it does
	torn   bool  // the last frame does not count: not all that it says came down with it
	last   []run // of the segment: the bytes of the checkpoints that the last frame says
}

// end is where in the area the next frame is to stand.
func (a *ahead) end() int64 {
	if len(a.frames) == 0 {
		return 0
	}
	return wholeBlocks(a.frames[len(a.frames)-1].End)
}

// same tells whether two looks at an area have found the same.
func (a *ahead) same(b *ahead) bool {
	return a.batch == b.batch && len(a.frames) == len(b.frames) && slices.Equal(a.holes, b.holes)
}

func wholeBlocks(n int64) int64 { return (n + segment.Block - 1) &^ (segment.Block - 1) }

// commitArea is one, as package dataindex has it.
func (c *contents) commitArea(file uint64) dataindex.File {
	return dataindex.File{Area: dataindex.Commits, Store: c.identity.store, Number: file}
}

// goOn takes into the state what a commit area says behind the last batch of the catalog. A writer may give that to the catalog at the same time, and write over
// it. So the area is read before the catalog: what it has not any more, the catalog has.
func (c *contents) goOn() error {
	for tries := 0; ; tries++ {
		files, err := c.areas()
		if err != nil || len(files) == 0 {
			return err
		}
		found, fits, err := c.lookAhead(files)
		if err != nil {
			return err
		}
		if fits || tries == mostAgain {
			return c.takeAhead(found)
		}
	}
}

// mostAgain is how often an area is read again that a writer writes to meanwhile.
const mostAgain = 100

// lookAhead reads the areas of data files, and then the catalog again if it has changed. It tells whether both fit each other.
func (c *contents) lookAhead(files []uint64) (found ahead, fits bool, err error) {
	for _, file := range files {
		area, err := c.readArea(file)
		if err != nil {
			return found, false, err
		}
		if found.file == 0 || area.batch > found.batch {
			found = area
		}
	}
	same, err := c.log.Unchanged(c.journal())
	if err == nil && !same {
		if err = c.readLog(); err == nil {
			now, failed := c.areas()
			same, err = slices.Equal(now, files), failed
		}
	}
	if err != nil || !same || len(found.frames) == 0 || found.batch < c.log.Last {
		return found, same, err
	}
	if found.torn, err = c.unproven(&found); err != nil || !found.torn && len(found.holes) == 0 {
		return found, true, err
	}
	// The writer may have written to the area while it was read, or what the last frame says was dropped since, and its place written over.
	again, err := c.readArea(found.file)
	return found, again.same(&found), err
}

// areas are the data files in whose commit areas the catalog may go on: that which its last batch names; and all, where its last batch may be damaged.
func (c *contents) areas() (files []uint64, err error) {
	if !c.identity.commits {
		return nil, nil
	}
	if c.log.Torn > 0 && !c.log.Closed {
		names, err := c.o.FS.List(c.o.Dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if number, ok := segment.FileNumber(name); ok {
				files = append(files, number)
			}
		}
	}
	if named := c.state.Commits(); named > 0 && !slices.Contains(files, named) {
		files = append(files, named)
	}
	most := uint64(math.MaxInt64 / 2 / c.identity.segment)
	return slices.DeleteFunc(files, func(number uint64) bool { return number-1 > most }), nil
}

// areaFile is a data file with a commit area, by its name alone: much less than a space.
type areaFile struct {
	vfs.File
	start int64 // of its segment in the space
	front int64
}

// openArea opens a data file; nil where there is none, or that of another store, or what is no file. Whoever reads the bytes of its checkpoints says why.
func (c *contents) openArea(number uint64) (*areaFile, error) {
	err := c.look(number)
	if err == nil || errors.Is(err, segment.ErrHead) {
		var file vfs.File
		if file, err = c.o.FS.Open(c.o.path(segment.FileName(number)), false, false); err == nil {
			return &areaFile{file, int64(number-1) * c.identity.segment, c.identity.front()}, nil
		}
	}
	if errors.Is(err, segment.ErrForeign) || errors.Is(err, unix.ENOENT) || unopened(err) {
		err = nil
	}
	return nil, err
}

// Read reads bytes of the space, all of which lie in the segment.
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

// readArea reads a commit area.
func (c *contents) readArea(number uint64) (a ahead, err error) {
	a.file = number
	file, err := c.openArea(number)
	if err != nil || file == nil {
		return a, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := make([]byte, c.identity.commitBytes())
	a.unread, err = blockwise(p, func(at int64, some []byte) error {
		n, err := file.ReadAt(some, file.front-int64(len(p))+at)
		clear(some[n:])
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	if err != nil {
		return a, err
	}
	for frame := range c.commitArea(number).Frames(p, 0) {
		if frame.Generation > a.batch {
			a.batch, a.frames, a.holes = frame.Generation, nil, nil
		}
		if frame.Generation < a.batch {
			continue // it is out of date
		}
		if end := a.end(); frame.From > end {
			a.holes = append(a.holes, run{end, frame.From})
		}
		a.frames = append(a.frames, frame)
	}
	return a, nil
}

// unproven tells whether bytes of the checkpoints that the last frame says are not there, so that it was never acknowledged. Bytes that the medium does not give
// prove nothing.
func (c *contents) unproven(a *ahead) (wrong bool, err error) {
	file, err := c.openArea(a.file)
	if err != nil || file == nil {
		return true, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return false, err
	}
	w, err := newWindowOf(file, 2*checksum.LeafBytes)
	if err != nil {
		return false, err
	}
	check := &Check{v: &View{contents: c}, files: map[int64]int64{int64(a.file) - 1: max(size-file.front, 0)}}
	var before []byte
	for _, frame := range a.frames[:len(a.frames)-1] {
		before = append(before, frame.Payload...)
	}
	// What is malformed is told when it is taken.
	_ = c.state.Preview(before, a.frames[len(a.frames)-1].Payload, func(row catalog.Row) {
		wrong = wrong || row.Readable() && check.differs(w, &row)
		for _, x := range row.Extents {
			if x.File == a.file {
				a.last = append(a.last, run{x.Offset, x.Offset + x.Bytes})
			}
		}
	})
	return wrong, w.close()
}

// differs tells whether bytes of a checkpoint are missing or changed, or lie in a file of which nothing is known.
func (c *Check) differs(w *window, row *catalog.Row) bool {
	place, ok := c.v.identity.place(row.Extents)
	if !ok {
		return false // the survey tells
	}
	for cut := (cutter{row: row, place: place.from, ends: math.MaxInt64, read: true}); ; {
		p, ok := cut.next()
		if !ok {
			return false
		}
		w.begin(p.reaches())
		if slices.ContainsFunc(c.examine(w, p), func(s suspicion) bool { return s.fault != Unreadable }) {
			return true
		}
	}
}

// takeAhead takes into the state what an area says, if it is behind the last batch of the catalog. If it is behind a later one, the catalog has lost that.
func (c *contents) takeAhead(a ahead) error {
	c.ahead = ahead{file: a.file, batch: c.log.Last}
	name := segment.FileName(a.file)
	if a.unread != nil && !c.log.Closed {
		c.lose(fmt.Errorf("%s: its commit area cannot be read, and may say something behind batch %d of the catalog: %w", name, c.log.Last, a.unread))
	}
	if len(a.frames) == 0 || a.batch < c.log.Last || a.batch > mostBatch {
		return nil
	}
	if a.batch > c.log.Last {
		c.lose(fmt.Errorf("batches %d to %d of the catalog are missing: %s goes on behind them", c.log.Last+1, a.batch, name))
		c.log.Last = a.batch // no other batch gets its number
	}
	for _, hole := range a.holes {
		c.lose(fmt.Errorf("%s, bytes %d to %d of its commit area: what was committed behind batch %d of the catalog is damaged", name, hole.from, hole.end, a.batch))
	}
	c.ahead = a
	frames := a.frames
	if a.torn {
		last := frames[len(frames)-1]
		c.log.Torn += last.End - last.From
		frames = frames[:len(frames)-1]
	}
	for _, frame := range frames {
		if err := c.apply(frame.Payload); err != nil {
			return err
		}
	}
	return nil
}

// mostBatch is the largest number of a batch.
const mostBatch = 1 << 62

// numberBehind gives the next batch of a damaged catalog a number that no commit area is behind: what stands there was said of batches that are lost.
func (c *contents) numberBehind() error {
	if !c.identity.commits {
		return nil
	}
	files, err := c.lengths()
	if err != nil {
		return err
	}
	for number := range files {
		area, err := c.readArea(uint64(number) + 1)
		if err != nil {
			return err
		}
		if area.batch <= mostBatch {
			c.log.Last = max(c.log.Last, area.batch)
		}
	}
	return nil
}

// settleAhead makes what a commit area says a part of the catalog: whoever wrote it may have died before it was synced. Resume or Compact have to come before it.
func (c *contents) settleAhead(log *journal.Log) error {
	if len(c.ahead.frames) == 0 {
		return nil
	}
	var records [][]byte
	for _, frame := range c.ahead.frames {
		records = append(records, frame.Payload)
	}
	if c.ahead.torn {
		records[len(records)-1] = nil
	}
	return log.AppendAll(records, nil)
}

// syncAhead brings down the bytes of the checkpoints that the last frame says. Its writer may have died before it had synced them, or that has failed, so that the
// system shows what is not on the medium, and no other sync brings it there: so they are written again. Those of the frames before were acknowledged.
func (c *contents) syncAhead() (err error) {
	if c.ahead.torn || len(c.ahead.last) == 0 {
		return nil
	}
	file, err := c.o.FS.Open(c.o.path(segment.FileName(c.ahead.file)), true, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	inside := segment.Behind(file, c.identity.front())
	for _, r := range c.ahead.last {
		if err := writeAgain(inside, r); err != nil {
			return err
		}
	}
	return file.Sync()
}

// writeAgain reads a range of a file and writes it to where it is. What cannot be read stays.
func writeAgain(file vfs.File, r run) error {
	p := make([]byte, min(r.end-r.from, againBytes))
	for at := r.from; at < r.end; at += int64(len(p)) {
		p = p[:min(int64(len(p)), r.end-at)]
		n, err := file.ReadAt(p, at)
		if vfs.Unreadable(err) || errors.Is(err, io.EOF) {
			err = nil
		}
		if err == nil {
			_, err = file.WriteAt(p[:n], at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// againBytes is how much is written again at once.
const againBytes = 1 << 20

// unchangedAhead tells whether nothing was said in the commit area since it was read, for a View: whoever asks looks at the catalog afterwards.
func (c *contents) unchangedAhead() (bool, error) {
	if c.ahead.file == 0 {
		return true, nil
	}
	now, err := c.readArea(c.ahead.file)
	return now.batch < c.ahead.batch || now.same(&c.ahead), err
}
