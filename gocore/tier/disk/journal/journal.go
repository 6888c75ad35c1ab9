// Package journal is a log of records on disk. It loses no acknowledged record, whenever the process dies or the power fails.
//
// Records are opaque. Append adds one to the next batch, which is written and synced as a whole; concurrent callers share a sync. The log is a sequence of
// numbered files. Each is created under its final name and never renamed. A file is a sequence of frames (frame.go). The checksum of a frame covers its
// kind, its position and its store. These rules make the log correct:
//
//   - A batch is one frame: it is there as a whole or not at all.
//   - A batch is written only after the one before it was synced. So a later frame after a missing one reveals damage to acknowledged records; without
//     one, the end is torn and was not acknowledged.
//   - Only preallocated room (ahead.go) is overwritten, and no frame is written after a possibly torn one. So an opener for writing begins a new file.
//     A writer whose sync has failed does too, as the page cache may show bytes that are not on the medium. The first frame of a file names the last
//     batch that counts in older files.
//   - Before a batch in a file is acknowledged, the file is synced with its first frame, and the directory with its name.
//   - A file may begin with a snapshot of all records. A complete frame marks it as complete, and is written only after a sync of its parts. Older files
//     are removed only after that frame and the file's name have been synced. There are two complete frames: one in reserved room before the parts, one
//     after them. Either one is enough, as neither is written before the parts are on the medium. So a crash leaves the older files or a snapshot that counts.
//
// Damage costs the frame that it hits. A snapshot has parts of 8 KiB, and no two of them share a block of the medium. An unreadable frame counts as
// damaged, and never as the torn end.
package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"velocpy/gocore/base/vfs"
)

// ErrNowhere: the records were not written, and no crash brings them back.
var ErrNowhere = errors.New("the records were not written")

// ErrClosed: the log is closed.
var ErrClosed = errors.New("the log is closed")

// ErrVersion: a later version wrote the log, with content that this version does not understand.
var ErrVersion = errors.New("the log is of a later version")

// ErrTaken: another process has begun a file of the log.
var ErrTaken = errors.New("another process has written to the log")

// ErrTooLarge: a record does not fit a frame.
var ErrTooLarge = errors.New("the record is too large for the log")

// ErrExhausted: no number is left for a batch or a file. Only a forged log gets there.
var ErrExhausted = errors.New("no number is left in the log")

// Options configure where a log is and which store owns it.
type Options struct {
	FS    vfs.FS
	Dir   string
	Store [16]byte // frames of other stores do not count
	// Owns fails when another process may write to the log. It is called before files are removed. nil: no other process does.
	Owns func() error
}

func (o *Options) owns() error {
	if o.Owns == nil {
		return nil
	}
	return o.Owns()
}

func (o *Options) path(number uint64) string { return filepath.Join(o.Dir, fileName(number)) }

// files lists the log's files, oldest first.
func (o *Options) files() ([]uint64, error) {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if number, ok := fileNumber(name); ok {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Damage describes missing acknowledged records.
type Damage struct {
	File     string
	Offset   int64
	From, To uint64 // batches; 0, 0: a part of a snapshot. To may be Unknown
	Harmless bool   // no record is lost
	Why      string
}

// Unknown is the last batch of Damage if the number of missing batches is unknown and may be zero.
const Unknown = 1<<64 - 1

func (d Damage) String() string {
	what := "a part of the snapshot is"
	switch {
	case d.Harmless:
		what = "no record is"
	case d.To == Unknown:
		what = fmt.Sprintf("batch %d and those behind it, if there were any, are", d.From)
	case d.From > 0:
		what = fmt.Sprintf("batches %d to %d are", d.From, d.To)
	}
	return fmt.Sprintf("%s, byte %d: %s missing: %s", d.File, d.Offset, what, d.Why)
}
