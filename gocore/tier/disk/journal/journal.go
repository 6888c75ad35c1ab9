// Package journal is a log of records on disk that loses nothing it has acknowledged, whatever moment the process dies or the power goes.
//
// Records are opaque. Append gives one to the next batch, which is written and synced as a whole; many callers share a sync. The log is a row of
// files, numbered, each created under its name and never renamed; a file is a row of frames (frame.go), each of which says what it is, where it
// stands and whose it is, and vouches for that with a checksum. What makes it right:
//
//   - A batch is one frame: it is there as a whole or not at all.
//   - A batch is written only after the one before it was synced. So, where a frame is missing, a later one behind it tells damage to what was
//     acknowledged from the torn end of what was not.
//   - Nothing is written over but room that was made ahead (ahead.go), and nothing behind a place that may be torn: whoever opens the log to write begins a
//     new file, and so does a writer whose sync has failed, as what the system believes to have written then is not there. The first frame of a file says up
//     to which batch older files count.
//   - A file is synced with its first frame, and its name with the directory, before a batch in it is acknowledged.
//   - A file may start from a snapshot of everything. That it is complete is said only after its parts have been synced, and older files are removed only
//     after that, and the file's name, have been. It is said twice, before the parts, in room that was left for it, and behind them. Neither is written
//     before the parts are on the medium, so either one is enough, and a crash leaves the older files or a snapshot that counts.
//
// Damage costs the frame that it hits. A snapshot has parts of 8 KiB, and no two of them share a block of the medium. What cannot be read counts as damaged,
// and never as the torn end.
package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"velocpy/gocore/base/vfs"
)

// ErrNowhere: the records could not be written, and are nowhere: no crash brings them back.
var ErrNowhere = errors.New("the records were not written")

// ErrClosed: the log is closed.
var ErrClosed = errors.New("the log is closed")

// ErrVersion: the log was written by a version that says more than this one understands.
var ErrVersion = errors.New("the log is of a later version")

// ErrTaken: another process has begun a file of the log.
var ErrTaken = errors.New("another process has written to the log")

// ErrTooLarge: a record does not fit a frame.
var ErrTooLarge = errors.New("the record is too large for the log")

// ErrExhausted: no number is left for a batch or a file. No writer gets there; whoever forges a log may.
var ErrExhausted = errors.New("no number is left in the log")

// Options say where a log lies and whose it is.
type Options struct {
	FS    vfs.FS
	Dir   string
	Store [16]byte // frames of other stores do not count
	// Owns fails when another process may write to the log. It is asked before files are removed. nil: none does.
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

// Damage is what is missing of what was acknowledged.
type Damage struct {
	File     string
	Offset   int64
	From, To uint64 // batches; 0, 0: a part of a snapshot. To may be Unknown
	Harmless bool   // no record was in it
	Why      string
}

// Unknown is the last batch of Damage where nothing tells how many there were, if any.
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
