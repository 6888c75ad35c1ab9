// Package killpoint kills the process at a named place in the way of a checkpoint to the disk, as SIGKILL from outside would if it came just then.
//
// It is for tests, which arm it before they open a store. Unarmed, passing a place costs one atomic load.
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

// Place is where a process may be killed. Its text is its name.
type Place string

// The places, in the order in which a new store comes to them.
const (
	DirectoryMade    Place = "directory made"    // and nothing in it, nor its name synced
	IdentityWritten  Place = "identity written"  // and not synced
	DataWritten      Place = "data written"      // a piece of a checkpoint, maybe not the last
	IndexWritten     Place = "index written"     // of what has been written, and not synced
	DataSynced       Place = "data synced"       // and no batch says where it lies
	CatalogBegun     Place = "catalog begun"     // a new file of it, not synced
	CommitWritten    Place = "commit written"    // to the area of a data file, and not synced
	BatchWritten     Place = "batch written"     // and not synced
	BatchSynced      Place = "batch synced"      // and nobody was told
	SnapshotHalf     Place = "snapshot half"     // a part of it is written; that it is complete is not
	SnapshotComplete Place = "snapshot complete" // and the files before it are still there
	OldFileRemoved   Place = "old file removed"  // one of those, maybe not the last
)

// Places are all of them.
func Places() []Place {
	return []Place{
		DirectoryMade, IdentityWritten, DataWritten, IndexWritten, DataSynced, CatalogBegun, CommitWritten, BatchWritten, BatchSynced, SnapshotHalf, SnapshotComplete, OldFileRemoved,
	}
}

// ErrUnknown: what was given to Arm names no place or no number.
var ErrUnknown = errors.New("no such kill point")

type aim struct {
	place Place
	left  atomic.Int64
}

var armed atomic.Pointer[aim]

// kill is how the process ends.
var kill = func() { _ = unix.Kill(unix.Getpid(), unix.SIGKILL) }

// Arm makes the process die when it passes a place for the n-th time from now on; text is "place:n". An empty one disarms.
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

// Pass is called at a place.
func Pass(p Place) {
	if a := armed.Load(); a != nil && a.place == p && a.left.Dec() == 0 {
		kill()
	}
}
