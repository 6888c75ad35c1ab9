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

// committed is all that was committed: the records of the catalog, and those in frames of commit areas that continue it.
type committed struct {
	records
	ahead ahead
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

// readAhead applies the frames of a commit area that continue the catalog's last batch. A writer may move these records to the catalog meanwhile, and
// overwrite the area. So the area is read before the catalog: the catalog has the records that the area no longer has.
func (c *committed) readAhead() error {
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
func (c *committed) lookAhead(files []uint64) (found ahead, fits bool, err error) {
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

// areas returns the data files whose commit areas may continue the catalog: first the one that its last batch names. If the last batch may be damaged, all
// others follow.
func (c *committed) areas() (files []uint64, err error) {
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

// lacksBytes tells whether bytes of the last frame's checkpoints are missing, so that the frame was never acknowledged. Unreadable bytes prove nothing. The
// earlier frames have been applied to the state.
func (c *committed) lacksBytes(a *ahead) (lacks bool, err error) {
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
	check := &Check{v: &View{contents: &contents{committed: *c}}, files: map[int64]int64{int64(a.file) - 1: max(size-file.front, 0)}}
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
func (c *committed) counting(all []ahead) ahead {
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
func (c *committed) takeAhead(a *ahead) error {
	c.ahead = ahead{file: a.file, batch: a.batch}
	for _, frame := range slices.Concat(a.before, a.frames[:max(len(a.frames)-1, 0)]) {
		if err := c.apply(frame.Payload); err != nil {
			return err
		}
	}
	return nil
}

// takeLast applies the last frame to the state, if it counts.
func (c *committed) takeLast(a *ahead) error {
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
func (c *committed) numberBehind() error {
	if !c.identity.commits {
		return nil
	}
	files, err := c.Lengths()
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
func (c *committed) settleAhead(log *journal.Log) error {
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
func (c *committed) syncAhead() (err error) {
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
func (c *committed) unchangedAhead() (bool, error) {
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
