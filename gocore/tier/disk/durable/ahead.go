package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/dataindex"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"

	"golang.org/x/sys/unix"
)

// ahead is what commit areas say behind the last batch of the catalog.
type ahead struct {
	file   uint64            // data file; 0: none
	batch  uint64            // behind which the frames are
	before []dataindex.Frame // in areas of other files, behind earlier batches, the last of which the catalog has; all that follow are missing
	frames []dataindex.Frame
	holes  []run // in the area, where frames are damaged that had been acknowledged
	begun  bool  // behind the last frame another one was begun: the last one was acknowledged
	unread error // why the file or the medium does not give all of it; nil: it does
	torn   bool  // the last frame does not count: not all that it says came down with it
	last   []run // of the segment: the bytes of the checkpoints that the last frame says
}

// end is where in the area the next frame is to stand.
func (a *ahead) end() int64 {
	if len(a.frames) == 0 {
		return 0
	}
	return segment.Blocks(a.frames[len(a.frames)-1].End)
}

// same tells whether two looks at an area have found the same.
func (a *ahead) same(b *ahead) bool {
	return a.batch == b.batch && len(a.frames) == len(b.frames) && slices.Equal(a.holes, b.holes)
}

// commitArea is one, as package dataindex has it.
func (c *contents) commitArea(file uint64) dataindex.File {
	return dataindex.File{Area: dataindex.Commits, Store: c.identity.store, Number: file}
}

// readAhead takes into the state what a commit area says behind the last batch of the catalog. A writer may give that to the catalog at the same time, and write
// over it. So the area is read before the catalog: what it has not any more, the catalog has.
func (c *contents) readAhead() error {
	for range mostAgain {
		files, err := c.areas()
		if err != nil || len(files) == 0 {
			return err
		}
		found, fits, err := c.lookAhead(files)
		if err != nil {
			return err
		}
		if fits {
			return c.takeLast(&found)
		}
		if err := c.readLog(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: its writer has changed the commit area at each of %d looks: %w", c.o.Dir, mostAgain, unix.EBUSY)
}

// mostAgain is how often an area is read again that a writer writes to meanwhile.
const mostAgain = 100

// lookAhead reads the areas of data files, and then the catalog again if it has changed. What counts is taken into the state, but for the last frame. It tells
// whether areas and catalog fit each other: else the catalog has to be read again.
func (c *contents) lookAhead(files []uint64) (found ahead, fits bool, err error) {
	all := make([]ahead, len(files))
	for i, file := range files {
		if all[i], err = c.readArea(file); err != nil {
			return found, false, err
		}
		all[i].keep(c.log.Last)
	}
	if same, err := c.unchangedLog(); err != nil || !same {
		now, failed := c.areas()
		if err = errors.Join(err, failed); err != nil || !slices.Equal(now, files) {
			return found, false, err
		}
	}
	found = c.counting(all)
	if err := c.takeAhead(&found); err != nil || len(found.frames) == 0 {
		return found, true, err
	}
	if !found.begun {
		found.torn, err = c.lacksBytes(&found)
	}
	if err != nil || !found.torn && len(found.holes) == 0 {
		return found, true, err
	}
	// The writer may have written to the area while it was read, or have dropped what the last frame says and written to its place since.
	again, err := c.readArea(found.file)
	if err != nil || !again.same(&found) {
		return found, false, err
	}
	fits, err = c.stillSays()
	return found, fits, err
}

// keep leaves out what is behind an earlier batch than the catalog's last, and lets go of the bytes of the area that are no frame's.
func (a *ahead) keep(last uint64) {
	if a.batch < last {
		a.frames, a.holes = nil, nil
	}
	for i := range a.frames {
		a.frames[i].Payload = slices.Clone(a.frames[i].Payload)
	}
}

// stillSays tells whether the catalog says what it said when it was read.
func (c *contents) stillSays() (bool, error) {
	if same, err := c.log.Unchanged(c.journal()); err != nil || same {
		return same, err
	}
	now := &contents{o: c.o, identity: c.identity} // what is torn at the end does not let the log tell
	err := now.readLog()
	return err == nil && now.log.Last == c.log.Last && now.log.Bytes == c.log.Bytes && now.log.Torn == c.log.Torn, err
}

// unchangedLog tells whether the catalog is as it was when it was read. If not, it is read again.
func (c *contents) unchangedLog() (bool, error) {
	same, err := c.log.Unchanged(c.journal())
	if err != nil || same {
		return same, err
	}
	return false, c.readLog()
}

// areas are the data files in whose commit areas the catalog may go on: first that which its last batch names; and all, where its last batch may be damaged.
func (c *contents) areas() (files []uint64, err error) {
	if !c.identity.commits {
		return nil, nil
	}
	named := c.state.Commits()
	if named > 0 {
		files = append(files, named)
	}
	if c.log.Torn > 0 && !c.log.Closed {
		names, err := c.o.FS.List(c.o.Dir)
		if err != nil {
			return nil, err
		}
		slices.Sort(names)
		for _, name := range names {
			if number, ok := segment.FileNumber(name); ok && number != named {
				files = append(files, number)
			}
		}
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

// openArea opens a data file; nil where there is none.
func (c *contents) openArea(number uint64) (*areaFile, error) {
	err := c.look(number)
	if err == nil || errors.Is(err, segment.ErrHead) {
		var file vfs.File
		if file, err = c.o.FS.Open(c.o.path(segment.FileName(number)), false, false); err == nil {
			return &areaFile{file, int64(number-1) * c.identity.segment, c.identity.front()}, nil
		}
	}
	if errors.Is(err, unix.ENOENT) {
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

// areaBytes reads a range of a commit area; nothing where there is no such file. It tells why the file or the medium does not give all of it, too.
func (c *contents) areaBytes(number uint64, r run) (p []byte, unread, err error) {
	file, err := c.openArea(number)
	if errors.Is(err, segment.ErrForeign) || err != nil && unopened(err) {
		return nil, err, nil
	}
	if err != nil || file == nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p = make([]byte, r.end-r.from)
	unread, err = blockwise(p, func(at int64, some []byte) error {
		n, err := file.ReadAt(some, file.front-c.identity.commitBytes()+r.from+at)
		clear(some[n:])
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	return p, unread, err
}

// framesOf are the whole frames in a part of a commit area that begins at an offset.
func (c *contents) framesOf(number uint64, p []byte, from int64) (all []dataindex.Frame) {
	for frame := range c.commitArea(number).Frames(p, from) {
		if frame.From%segment.Block == 0 && frame.Generation <= mostBatch { // else no writer makes one
			all = append(all, frame)
		}
	}
	return all
}

// readArea reads a commit area.
func (c *contents) readArea(number uint64) (a ahead, err error) {
	a.file = number
	p, unread, err := c.areaBytes(number, run{0, c.identity.commitBytes()})
	a.unread = unread
	for _, frame := range c.framesOf(number, p, 0) {
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
	if end := a.end(); end < int64(len(p)) {
		a.begun = c.commitArea(number).Begun(p[end:], a.batch)
	}
	return a, err
}

// lacksBytes tells whether bytes of the checkpoints that the last frame says are not there, so that it was never acknowledged. Bytes that the medium does not give
// prove nothing. What the frames before say is in the state.
func (c *contents) lacksBytes(a *ahead) (lacks bool, err error) {
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
	left := int64(mostAheadBytes)
	// What is malformed is told when it is taken.
	_ = c.state.Preview(a.frames[len(a.frames)-1].Payload, func(row catalog.Row) {
		place, ok := c.identity.place(row.Extents)
		inside := ok && place.from >= file.start && place.end-file.start <= c.identity.segment
		if left -= place.end - place.from; !inside || left < 0 || row.Sums == nil {
			lacks = true // no writer makes one
		}
		//mutation:commit-without-bytes
		if lacks = lacks || check.damaged(w, cutter{row: &row, place: place.from, ends: file.start + check.files[int64(a.file)-1], read: true}); !lacks {
			a.last = append(a.last, run{place.from - file.start, place.end - file.start})
		}
	})
	return lacks, w.close()
}

// counting is what counts of what areas say. What is behind the last batch of the catalog counts in the area that this names. What is behind a later batch tells that
// the catalog has lost that.
func (c *contents) counting(all []ahead) ahead {
	found := ahead{file: c.state.Commits(), batch: c.log.Last}
	slices.SortStableFunc(all, func(a, b ahead) int { return cmp.Compare(a.batch, b.batch) })
	for _, a := range all {
		name := segment.FileName(a.file)
		if a.unread != nil && !c.log.Closed {
			c.lose(fmt.Errorf("%s: its commit area cannot be read, and may say something behind batch %d of the catalog: %w", name, c.log.Last, a.unread))
		}
		if a.batch < c.log.Last || a.batch == c.log.Last && a.file != c.state.Commits() || len(a.frames) == 0 {
			continue
		}
		for _, hole := range a.holes {
			c.lose(fmt.Errorf("%s, bytes %d to %d of its commit area: what was committed behind batch %d of the catalog is damaged", name, hole.from, hole.end, a.batch))
		}
		a.before = append(found.before, found.frames...)
		found = a
	}
	if found.batch > c.log.Last {
		c.lose(fmt.Errorf("batches %d to %d of the catalog are missing: %s goes on behind them", c.log.Last+1, found.batch, segment.FileName(found.file)))
	}
	return found
}

// takeAhead takes into the state what areas say, but for the last frame.
func (c *contents) takeAhead(a *ahead) error {
	c.ahead = ahead{file: a.file, batch: a.batch}
	for _, frame := range slices.Concat(a.before, a.frames[:max(len(a.frames)-1, 0)]) {
		if err := c.apply(frame.Payload); err != nil {
			return err
		}
	}
	return nil
}

// takeLast takes the last frame into the state, if it counts.
func (c *contents) takeLast(a *ahead) error {
	if len(a.frames) == 0 {
		return nil
	}
	c.ahead = *a
	c.log.Last = max(c.log.Last, a.batch) // no other batch gets its number
	last := a.frames[len(a.frames)-1]
	if a.torn {
		c.log.Torn += last.End - last.From
		return nil
	}
	if a.begun {
		c.log.Torn += segment.Block // at least
	}
	return c.apply(last.Payload)
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
		c.log.Last = max(c.log.Last, area.batch)
	}
	return nil
}

// settleAhead makes what a commit area says a part of the catalog: whoever wrote it may have died before it was synced. Resume or Compact have to come before it.
func (c *contents) settleAhead(log *journal.Log) error {
	if len(c.ahead.frames) == 0 {
		return nil
	}
	var records [][]byte
	for _, frame := range slices.Concat(c.ahead.before, c.ahead.frames) {
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
	//mutation:torn-bytes-not-rewritten
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
		if err := writeAgain(inside, r, againBytes); err != nil {
			return err
		}
	}
	return file.Sync()
}

// writeAgain reads a range of a file in pieces, and writes them to where they are. Blocks that cannot be read stay.
func writeAgain(file vfs.File, r run, piece int64) error {
	for at := r.from; at < r.end; at += piece {
		end := min(at+piece, r.end)
		p := make([]byte, end-at)
		n, err := file.ReadAt(p, at)
		switch {
		case vfs.Unreadable(err) && piece > segment.Block:
			err = writeAgain(file, run{at, end}, segment.Block)
		case vfs.Unreadable(err):
			err = nil
		case err == nil || errors.Is(err, io.EOF):
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

// unchangedAhead tells whether nothing was said in the commit area since it was read, for a View, which looks at the catalog afterwards: a change of that is seen
// there. So only the next frame behind the same batch is looked for, where it would stand.
func (c *contents) unchangedAhead() (bool, error) {
	if c.ahead.file == 0 || c.log.Closed { // the next frame is behind another batch
		return true, nil
	}
	from := c.ahead.end()
	p, unread, err := c.areaBytes(c.ahead.file, run{from, min(from+mostFrame, c.identity.commitBytes())})
	later := func(frame dataindex.Frame) bool { return frame.Generation >= c.ahead.batch }
	return !slices.ContainsFunc(c.framesOf(c.ahead.file, p, from), later), cmp.Or(err, unread)
}

// mostFrame is how long a frame of a commit area may be: what it says is part of a batch, and its head takes less than a block.
const mostFrame = batchBytes + segment.Block
