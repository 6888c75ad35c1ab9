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

// ahead is the content of commit areas that continues the last batch of the catalog.
type ahead struct {
	file   uint64            // data file; 0: none
	batch  uint64            // number of the batch that the frames continue
	before []dataindex.Frame // frames in areas of other files that continue earlier batches; the catalog has at most the first of these batches
	frames []dataindex.Frame
	holes  []run // damaged ranges of the area that had acknowledged frames
	begun  bool  // a further frame was begun after the last one, so the last one was acknowledged
	unread error // why a part of the area could not be read; nil: all was read
	torn   bool  // the last frame does not count: bytes of its checkpoints are missing
	last   []run // ranges of the segment: the checkpoints of the last frame
}

// end is the offset in the area of the next frame.
func (a *ahead) end() int64 {
	if len(a.frames) == 0 {
		return 0
	}
	return segment.Blocks(a.frames[len(a.frames)-1].End)
}

// same tells whether two reads of an area have found the same.
func (a *ahead) same(b *ahead) bool {
	return a.batch == b.batch && len(a.frames) == len(b.frames) && slices.Equal(a.holes, b.holes)
}

// commitArea describes a commit area for package dataindex.
func (c *contents) commitArea(file uint64) dataindex.File {
	return dataindex.File{Area: dataindex.Commits, Store: c.identity.store, Number: file}
}

// readAhead applies the frames of a commit area that continue the catalog's last batch. A writer may move these records to the catalog meanwhile, and
// overwrite the area. So the area is read before the catalog: the catalog has the records that the area no longer has.
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

// mostAgain bounds the repeated reads of an area that a writer changes meanwhile.
const mostAgain = 100

// lookAhead reads the areas of data files, and then the catalog again if it has changed. It applies the frames that count, except the last one. fits is
// false if areas and catalog do not match: the caller reads the catalog again.
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
	// The writer may have written to the area during the read. It may also have dropped a checkpoint of the last frame and reused its range since.
	again, err := c.readArea(found.file)
	if err != nil || !again.same(&found) {
		return found, false, err
	}
	fits, err = c.stillSays()
	return found, fits, err
}

// keep drops frames that continue a batch before the catalog's last one, and copies the payloads of the others so that the area's buffer can be freed.
func (a *ahead) keep(last uint64) {
	if a.batch < last {
		a.frames, a.holes = nil, nil
	}
	for i := range a.frames {
		a.frames[i].Payload = slices.Clone(a.frames[i].Payload)
	}
}

// stillSays tells whether the catalog is unchanged since it was read.
func (c *contents) stillSays() (bool, error) {
	if same, err := c.log.Unchanged(c.journal()); err != nil || same {
		return same, err
	}
	now := &contents{o: c.o, identity: c.identity} // with a torn end, Unchanged cannot tell
	err := now.readLog()
	return err == nil && now.log.Last == c.log.Last && now.log.Bytes == c.log.Bytes && now.log.Torn == c.log.Torn, err
}

// unchangedLog tells whether the catalog is unchanged since it was read. If not, it reads it again.
func (c *contents) unchangedLog() (bool, error) {
	same, err := c.log.Unchanged(c.journal())
	if err != nil || same {
		return same, err
	}
	return false, c.readLog()
}

// areas returns the data files whose commit areas may continue the catalog: first the one that its last batch names. If the last batch may be damaged, all
// others follow.
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

// areaFile is a data file with a commit area, opened by name: far cheaper than a segment.Space.
type areaFile struct {
	vfs.File
	start int64 // of its segment in the space
	front int64
}

// openArea opens a data file; nil if it is missing.
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

// framesOf returns the complete frames in p, a part of a commit area that begins at offset from.
func (c *contents) framesOf(number uint64, p []byte, from int64) (all []dataindex.Frame) {
	for frame := range c.commitArea(number).Frames(p, from) {
		if frame.From%segment.Block == 0 && frame.Generation <= mostBatch { // no writer makes others
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
			continue // obsolete
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

// lacksBytes tells whether bytes of the last frame's checkpoints are missing, so that the frame was never acknowledged. Unreadable bytes prove nothing. The
// earlier frames have been applied to the state.
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
	// Applying the frame reports a malformed one.
	_ = c.state.Preview(a.frames[len(a.frames)-1].Payload, func(row catalog.Row) {
		//mutation:later-contents-torn
		if !row.Readable() {
			return // its bytes prove nothing: the frame counts, so that a writer refuses the store
		}
		place, ok := c.identity.place(row.Extents)
		inside := ok && place.from >= file.start && place.end-file.start <= c.identity.segment
		if left -= checkedBytes(&row); !inside || left < 0 || row.Sums == nil || row.Difference != nil {
			lacks = true // no writer makes such a frame
		}
		//mutation:commit-without-bytes
		if lacks = lacks || check.damaged(w, cutter{row: &row, lies: place, ends: file.start + check.files[int64(a.file)-1], read: true}); !lacks {
			a.last = append(a.last, run{place.from - file.start, place.end - file.start})
		}
	})
	return lacks, w.close()
}

// counting selects from areas the frames that count. Frames that continue the catalog's last batch count in the area that this batch names. Frames that
// continue a later batch prove that the catalog has lost that batch.
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

// takeAhead applies the frames of areas to the state, except the last one.
func (c *contents) takeAhead(a *ahead) error {
	c.ahead = ahead{file: a.file, batch: a.batch}
	for _, frame := range slices.Concat(a.before, a.frames[:max(len(a.frames)-1, 0)]) {
		if err := c.apply(frame.Payload); err != nil {
			return err
		}
	}
	return nil
}

// takeLast applies the last frame to the state, if it counts.
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

// mostBatch is the largest batch number.
const mostBatch = 1 << 62

// numberBehind gives the next batch of a damaged catalog a number above all that commit areas refer to: their frames continue batches that are lost.
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

// settleAhead writes the records of a commit area to the catalog, as their writer may have died before it synced them. Resume or Compact must come first.
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

// syncAhead makes the bytes of the last frame's checkpoints durable. Their writer may have died before the sync, or its sync may have failed. The page
// cache may then hold bytes that are not on the medium, and no further sync writes them. So they are written again. The checkpoints of earlier frames were
// acknowledged.
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

// writeAgain reads a range of a file in pieces and writes them back in place. It skips unreadable blocks.
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

// againBytes is the size of a piece that is written again.
const againBytes = 1 << 20

// unchangedAhead tells whether no frame was added to the commit area since it was read. A View calls it, and looks at the catalog afterwards, which reveals
// any newer batch. So it only looks for the next frame of the same batch, at its expected offset.
func (c *contents) unchangedAhead() (bool, error) {
	if c.ahead.file == 0 || c.log.Closed { // the next frame continues another batch
		return true, nil
	}
	from := c.ahead.end()
	p, unread, err := c.areaBytes(c.ahead.file, run{from, min(from+mostFrame, c.identity.commitBytes())})
	later := func(frame dataindex.Frame) bool { return frame.Generation >= c.ahead.batch }
	return !slices.ContainsFunc(c.framesOf(c.ahead.file, p, from), later), cmp.Or(err, unread)
}

// mostFrame bounds the length of a frame in a commit area: its payload is part of a batch, and its head takes less than a block.
const mostFrame = batchBytes + segment.Block
