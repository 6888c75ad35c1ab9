package durable

import (
	"errors"
	"sync"

	"velocpy/gocore/tier/disk/segment"
)

// View is a directory that is open for reading, as of the moment when it was opened. A writer may continue meanwhile, and overwrite checkpoints that it has
// dropped or replaced. A reader detects that by checksums or, where a checkpoint has none, by Current.
type View struct {
	*contents
	data *segment.Space

	looking sync.Mutex
	latest  *contents // of the catalog's last read
}

// Read opens a directory for reading, and changes nothing in it. A damaged catalog is not an error here: Damage reports it.
func Read(o Options) (*View, error) {
	if o.Guard == nil {
		o.Guard = &sync.Mutex{}
	}
	o.Capacity = 0
	if err := o.hold(); err != nil {
		return nil, err
	}
	c, err := read(o)
	if err != nil {
		return nil, errors.Join(err, o.release())
	}
	data, err := c.space(true)
	if err != nil {
		return nil, errors.Join(err, o.release())
	}
	return &View{contents: c, data: data, latest: c}, nil
}

// Space returns the space that has the bytes of checkpoints.
func (v *View) Space() *segment.Space { return v.data }

// Damage lists the acknowledged parts of the catalog that are missing; nil: none are.
func (v *View) Damage() error { return v.damage() }

// About is the metadata of a store that needs no lookup in its state.
type About struct {
	Store        [16]byte // its identity
	Format       int      // its format version
	SegmentBytes int64    // length of its data files
	Damage       error    // as View.Damage
}

// About returns the store's metadata.
func (v *View) About() About {
	return About{Store: v.identity.store, Format: formatVersion, SegmentBytes: v.identity.segment, Damage: v.damage()}
}

// Close closes the data files and the directory.
func (v *View) Close() error { return errors.Join(v.data.Close(), v.o.release()) }
