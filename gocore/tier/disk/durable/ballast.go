package durable

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// A catalog needs a few kilobytes to say what is dropped, and whoever opens a store that was not closed begins a new file of it. Where others have filled the disk
// there would be no way back. So a store that is open for writing keeps a file whose room nothing uses, the ballast, and removes it when the catalog finds no room
// to give some back with. It is made again when there is room.

const ballastName = "ballast"

// The ballast has this share of what the data may take, as a divisor, within limits.
const (
	ballastShare = 64
	leastBallast = 16 << 10
	mostBallast  = 1 << 20
)

// ballastRest is how long it takes at least from one attempt to make the ballast to the next.
const ballastRest = time.Second

// noSpace tells whether a disk had no room.
func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// withBallast calls f, and once more with the room of the ballast if the disk has none.
func (o *Options) withBallast(f func() error) error {
	err := f()
	if noSpace(err) && o.FS.Remove(o.path(ballastName)) == nil {
		err = f()
	}
	return err
}

// makeBallast sees to it that there is a ballast, of what a disk has at least half is left; true: it has its full size. That there is none is no error.
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
		_ = o.FS.Remove(name) // the room that it may have is worth more than the file
	}
	return err == nil && possible == bytes
}

// load gives a file so many bytes of room for good, also where that cannot be asked for without writing.
func load(file vfs.File, bytes int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < bytes; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(int64(len(zeros)), bytes-at)], at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// keepBallast makes the ballast again when it was removed, as soon as there is room.
func (d *Dir) keepBallast() {
	if d.ballast || time.Since(d.ballasted) < ballastRest {
		return
	}
	d.ballast, d.ballasted = d.o.makeBallast(d.data.Capacity()), time.Now()
}

// appendWith writes records to the catalog, with the room of the ballast if they make room.
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

// makesRoom tells whether room can be used again when changes are durable.
func makesRoom(changes []*Change) bool {
	for _, c := range changes {
		if c.Drop || c.Clear {
			return true
		}
	}
	return false
}
