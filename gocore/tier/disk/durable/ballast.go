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

// ballast is that of a directory which is open for writing.
type ballast struct {
	o     *Options
	whole bool // it exists at its full size
	tried time.Time
}

// keep recreates a removed ballast as soon as there is room.
func (b *ballast) keep(capacity int64) {
	if b.whole || time.Since(b.tried) < ballastRest {
		return
	}
	b.whole, b.tried = b.o.makeBallast(capacity), time.Now()
}

// spend calls f, which may use the room of the ballast.
func (b *ballast) spend(f func() error) error {
	return b.o.withBallast(func() error {
		err := f()
		b.whole = b.whole && !noSpace(err)
		return err
	})
}
