// Package killpoint kills the process at a named point on the way of a checkpoint to the disk, like a SIGKILL from outside at that moment.
//
// It is for tests, which arm it before they open a store. When it is not armed, passing a point costs one atomic load.
package killpoint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// Place is a point at which the process may be killed. Its text is its name.
type Place string

// The places, in the order in which a new store reaches them.
const (
	DirectoryMade    Place = "directory made"    // empty, and its name not synced
	IdentityWritten  Place = "identity written"  // not synced
	DataWritten      Place = "data written"      // a piece of a checkpoint, maybe not the last one
	IndexWritten     Place = "index written"     // of the written data, not synced
	DataSynced       Place = "data synced"       // no batch refers to it yet
	CatalogBegun     Place = "catalog begun"     // a new file of it, not synced
	CommitWritten    Place = "commit written"    // to the area of a data file, not synced
	BatchWritten     Place = "batch written"     // not synced
	BatchSynced      Place = "batch synced"      // no caller has been told
	SnapshotHalf     Place = "snapshot half"     // a part of it is written, without the mark that it is complete
	SnapshotComplete Place = "snapshot complete" // the files before it still exist
	OldFileRemoved   Place = "old file removed"  // one of those, maybe not the last one
)

// Places are all of them.
func Places() []Place {
	return []Place{
		DirectoryMade, IdentityWritten, DataWritten, IndexWritten, DataSynced, CatalogBegun, CommitWritten, BatchWritten, BatchSynced, SnapshotHalf, SnapshotComplete, OldFileRemoved,
	}
}

// ErrUnknown: the argument of Arm has no valid place or number.
var ErrUnknown = errors.New("no such kill point")

type aim struct {
	place Place
	left  atomic.Int64
}

var armed atomic.Pointer[aim]

// kill ends the process.
var kill = func() { _ = unix.Kill(unix.Getpid(), unix.SIGKILL) }

// Arm makes the process die when it passes a place for the n-th time from now on; text is "place:n". An empty text disarms.
func Arm(text string) error {
	if text == "" {
		armed.Store(nil)
		return nil
	}
	name, count, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 || !slices.Contains(Places(), Place(name)) {
		return fmt.Errorf("%w: %q; it is place:n, the places are %q", ErrUnknown, text, Places())
	}
	a := &aim{place: Place(name)}
	a.left.Store(n)
	armed.Store(a)
	return nil
}

// Pass marks a place in the code.
func Pass(p Place) {
	if a := armed.Load(); a != nil && a.place == p && a.left.Dec() == 0 {
		kill()
	}
}
