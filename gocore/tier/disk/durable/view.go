package durable

import (
	"errors"
	"sync"

	"velocpy/gocore/tier/disk/segment"
)

// View is a directory that is open for reading, as it was when it was opened. A writer goes on meanwhile. What it drops or replaces, a reader may find
// overwritten: checksums tell, and Current does where there are none.
type View struct {
	*contents
	data *segment.Space

	looking sync.Mutex
	latest  *contents // what the catalog said when it was read the last time
}

// Read opens a directory for reading; nothing in it is changed. A damaged catalog is no error: Damage tells.
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

// Space is where the bytes of checkpoints are.
func (v *View) Space() *segment.Space { return v.data }

// Damage is what was acknowledged and is missing from the catalog; nil: nothing.
func (v *View) Damage() error { return v.damage() }

// About is what there is to know of a store before anything in it is looked at.
type About struct {
	Store        [16]byte // its identity
	Format       int      // the version of it
	SegmentBytes int64    // length of its data files
	Damage       error    // as View.Damage
}

// About tells it.
func (v *View) About() About {
	return About{Store: v.identity.store, Format: formatVersion, SegmentBytes: v.identity.segment, Damage: v.damage()}
}

// Close gives everything back.
func (v *View) Close() error { return errors.Join(v.data.Close(), v.o.release()) }
