package disk

import (
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk/segment"
)

// Objects are the objects of the disk tier, at the offsets that the engine assigns. They are safe for concurrent use without the store's lock.
//
// In a durable store an object survives once the catalog has a row of a checkpoint that refers to it: Tier.Commit hands the row over after the sink's Commit.
// List tells of none of them all the same: what the catalog lists are checkpoints, by history and key, as the last one that was written of each. An object
// whose row has not landed is not among them, and the serial of a version, which would be its ID, is given only when its row is handed over.
type Objects struct {
	segment.Objects
	versions *versions // nil: the tier's files vanish when the store closes
}

// Objects returns what the tier keeps.
func (d *Tier) Objects() *Objects { return &d.objects }

// openObjects is called once the files of the tier are open.
func (d *Tier) openObjects() {
	d.objects = Objects{segment.Objects{Space: d.Space, Failed: d.Error, Unread: d.ReadError}, d.versions}
}

// Capabilities implements tier.Objects.
func (o *Objects) Capabilities() tier.Capabilities {
	c := o.Objects.Capabilities()
	c.Durable = o.versions != nil
	return c
}

// Sync implements tier.Objects: it waits until the catalog has answered the rows that were handed over. An object whose row it has refused is not committed:
// the end of its transfer says why.
func (o *Objects) Sync() error {
	if o.versions == nil || o.versions.dir == nil {
		return nil
	}
	return o.Failed(o.versions.dir.Sync())
}
