package durable

import (
	"errors"
	"fmt"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

var (
	// ErrObject marks an object of which metadata are missing, or are not those that were written.
	ErrObject = errors.New("metadata are damaged")
	// ErrUnreadable marks an object whose metadata cannot be read.
	ErrUnreadable = errors.New("metadata cannot be read")
)

// Locator says which objects have the bytes of checkpoints. It reads the metadata of objects, and no containers. It sees the data files that were there when it
// was made. Calls must not overlap.
type Locator struct{ check *Check }

// Locator returns a locator. It reads the heads of all data files.
func (v *View) Locator() (*Locator, error) {
	c := &Check{v: v}
	return &Locator{c}, c.listFiles(v.contents)
}

// Locate returns where the bytes of a difference lie. Its memory is a small multiple of the metadata of the row's objects. It fails with ErrObject or
// ErrUnreadable, and its message names the object and the data file. Beside a writer it also fails where the row is not Current any more.
func (l *Locator) Locate(row *catalog.Row) (*difference.Map, error) {
	r := &differenceReader{of: row, check: l.check, data: l.check.v.data}
	r.place()
	bad := r.open()
	if bad == nil {
		return r.reader.Map(), nil
	}
	kind := ErrObject
	if bad.fault == Unreadable {
		kind = ErrUnreadable
	}
	file := segment.FileName(uint64(bad.lies.from/l.check.v.identity.segment) + 1)
	return nil, fmt.Errorf("%w: %s%w (%s)", kind, r.whose(bad), bad, file)
}
