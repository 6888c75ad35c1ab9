package durable

import (
	"errors"
	"slices"
	"strings"

	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// Collected reports what Collect freed, or would free.
type Collected struct {
	Dropped      int      // checkpoints that the retention of their history does not keep
	DroppedBytes int64    // of the space, those of objects included that other checkpoints still need
	Removed      []Unused // data files without checkpoints
	Files        int64    // bytes of data files returned to the file system, including removed files
	Catalog      int64    // bytes by which the catalog shrank
}

// Collect frees unneeded room. It drops the checkpoints that the retention of their history does not keep, and removes data files without checkpoints. In
// other files it returns the gaps between checkpoints to the file system. Then it compacts the catalog. It fails with ErrLocked if the store is open for
// writing, and with ErrDamaged if it needs a repair. Interrupted at any moment, it has freed less, and has changed nothing else.
//
// With dry, it only reports what it would do, changes nothing and needs no lock.
func Collect(o Options, dry bool) (Collected, error) {
	if dry {
		return foresee(o)
	}
	k, err := keep(o, nil)
	if err != nil {
		return Collected{}, err
	}
	got, err := k.collect()
	return got, errors.Join(err, k.close())
}

func (k *keeper) collect() (got Collected, err error) {
	held, err := k.held()
	if err != nil {
		return got, err
	}
	unkept := k.unkept()
	if err := k.drop(unkept); err != nil {
		return got, err
	}
	got.drops(unkept)
	if err := k.catchUp(); err != nil {
		return got, err
	}
	return got, k.giveBack(&got, held)
}

// catchUp adds the index entries that a writer that died had deferred. The next writer would skip that, as it finds the catalog closed.
func (k *keeper) catchUp() error {
	if k.contents.log.Closed || !k.identity.index {
		return nil
	}
	data, err := k.space(false)
	if err != nil {
		return err
	}
	all := newIndexes(k.contents, data)
	all.catchUp()
	return data.Close()
}

func (c *Collected) drops(unkept []doomed) {
	c.Dropped = len(unkept)
	for _, u := range unkept {
		c.DroppedBytes += u.bytes
	}
}

// foresee reports what Collect would do.
func foresee(o Options) (got Collected, err error) {
	if err := o.hold(); err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, o.release()) }()
	c, err := read(o)
	if err == nil {
		err = errors.Join(c.damage(), c.writable(), c.foreign())
	}
	if err != nil {
		return got, err
	}
	held, err := c.held()
	if err != nil {
		return got, err
	}
	unkept := c.unkept()
	got.drops(unkept)
	gone := map[uint64]uint32{}
	for _, u := range unkept {
		gone[u.serial] = u.history
	}
	if err := c.forget(gone); err != nil {
		return got, err
	}
	if c.runs, err = c.survey(); err != nil {
		return got, err
	}
	data, err := c.space(true)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	for number, bytes := range held {
		name := segment.FileName(number)
		if !c.used(number) {
			got.Removed = append(got.Removed, Unused{name, bytes})
			got.Files += bytes
			continue
		}
		counts, err := c.counted(data, number)
		if err != nil {
			return got, err
		}
		got.Files += max(bytes-counts, 0)
	}
	slices.SortFunc(got.Removed, func(a, b Unused) int { return strings.Compare(a.File, b.File) })
	got.Catalog = max(0, c.log.Bytes-c.state.LiveBytes()-journal.SnapshotRoom)
	return got, nil
}

// counted is the number of bytes of a data file that the catalog refers to, including head and index.
func (c *contents) counted(data *segment.Space, number uint64) (bytes int64, err error) {
	halves, _, err := c.readIndex(data, number)
	if err != nil && !errors.Is(err, segment.ErrUnwritten) {
		return 0, err
	}
	bytes = c.identity.headBytes()
	for _, end := range c.identity.indexEnds(halves) {
		bytes += end
	}
	c.eachRun(number, func(from, end int64) { bytes += end - from })
	return bytes, nil
}

// eachRun calls f for the ranges of a data file that the catalog refers to, ascending.
func (c *contents) eachRun(number uint64, f func(from, end int64)) {
	start := int64(number-1) * c.identity.segment
	for i := c.firstRun(start); i < len(c.runs) && c.runs[i].from < start+c.identity.segment; i++ {
		f(max(c.runs[i].from-start, 0), min(c.runs[i].end-start, c.identity.segment))
	}
}

// giveBack frees unused room. held are the allocated bytes of the data files before that.
func (k *keeper) giveBack(got *Collected, held map[uint64]int64) (err error) {
	if k.runs, err = k.survey(); err != nil {
		return err
	}
	removed, err := k.sweep()
	for _, name := range removed {
		number, _ := segment.FileNumber(name)
		got.Removed = append(got.Removed, Unused{name, held[number]})
	}
	if err != nil {
		return err
	}
	for number := range held {
		if k.used(number) {
			if err := k.shrink(number); err != nil {
				return err
			}
		}
	}
	if err := k.o.FS.SyncDir(k.o.Dir); err != nil {
		return err
	}
	left, err := k.held()
	if err != nil {
		return err
	}
	for number, bytes := range held {
		got.Files += max(0, bytes-left[number])
	}
	before := k.log.Bytes()
	err = k.startAnew()
	got.Catalog = max(0, before-k.log.Bytes())
	return err
}

// shrink returns to the file system the gaps between the checkpoints of a data file, and the rest after the last one.
func (k *keeper) shrink(number uint64) (err error) {
	file, err := k.o.FS.Open(k.o.path(segment.FileName(number)), true, false)
	if err != nil {
		return err
	}
	if k.identity.heads {
		file = segment.Behind(file, k.identity.front())
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	at := int64(0)
	k.eachRun(number, func(from, end int64) {
		if err == nil && from > at && at < size {
			err = file.PunchHole(at, min(from, size)-at)
		}
		at = end
	})
	if err == nil && at < size {
		err = file.Truncate(at)
	}
	if n := k.identity.commitBytes(); err == nil && n > 0 {
		err = file.PunchHole(-n, n) // the catalog has the records that were there
	}
	if err != nil {
		return err
	}
	return file.Sync()
}
