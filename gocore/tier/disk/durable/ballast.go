package durable

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// A catalog needs a few kilobytes to record drops, and opening a store that was not closed begins a new file of the catalog. If other programs have filled
// the disk, neither is possible, and no room could ever be freed. So a store that is open for writing keeps a file of unused room, the ballast. It removes
// the ballast when the catalog needs room for a change that frees some, and recreates it when there is room again.

const ballastName = "ballast"

// The ballast has this share of the data's capacity, as a divisor, within limits in bytes.
const (
	ballastShare = 64
	leastBallast = 16 << 10
	mostBallast  = 1 << 20
)

// ballastRest is the shortest interval between two attempts to create the ballast.
const ballastRest = time.Second

// noSpace tells whether the disk or the quota was full.
func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// withBallast calls f. If the disk is full, it removes the ballast and calls f again.
func (o *Options) withBallast(f func() error) error {
	err := f()
	if noSpace(err) && o.FS.Remove(o.path(ballastName)) == nil {
		err = f()
	}
	return err
}

// makeBallast creates the ballast, and leaves at least half of the disk's free room; true: the ballast has its full size. A failure is not an error.
func (o *Options) makeBallast(capacity int64) (whole bool) {
	bytes := min(max(capacity/ballastShare, leastBallast), mostBallast) / 4096 * 4096
	name := o.path(ballastName)
	there, err := o.FS.Stat(name)
	if err == nil && there.Held >= bytes || err != nil && !errors.Is(err, unix.ENOENT) {
		return err == nil
	}
	free, failed := o.FS.Free(o.Dir)
	possible := min(bytes, (there.Held+free)/2/4096*4096)
	if failed != nil || possible < leastBallast || possible <= there.Held || err == nil && o.FS.Remove(name) != nil {
		return false
	}
	file, err := o.FS.Create(name, false)
	if err != nil {
		return false
	}
	if err = errors.Join(load(file, possible), file.Close()); err != nil {
		_ = o.FS.Remove(name) // its room is worth more than the file
	}
	return err == nil && possible == bytes
}

// load allocates room for a file by writing zeros, as not every file system can allocate without writing.
func load(file vfs.File, bytes int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(int64(len(zeros)), bytes-at)], at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// keepBallast recreates a removed ballast as soon as there is room.
func (d *Dir) keepBallast() {
	if d.ballast || time.Since(d.ballasted) < ballastRest {
		return
	}
	d.ballast, d.ballasted = d.o.makeBallast(d.data.Capacity()), time.Now()
}

// appendWith writes records to the catalog. If changes free room, they may use the room of the ballast.
func (d *Dir) appendWith(records [][]byte, changes []*Change) error {
	write := func() error { return d.appendBatch(records) }
	if !makesRoom(changes) {
		return write()
	}
	return d.o.withBallast(func() error {
		err := write()
		d.ballast = d.ballast && !noSpace(err)
		return err
	})
}

// makesRoom tells whether changes free room once they are durable.
func makesRoom(changes []*Change) bool {
	for _, c := range changes {
		if c.Drop || c.Clear {
			return true
		}
	}
	return false
}
