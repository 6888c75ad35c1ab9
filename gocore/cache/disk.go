package cache

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
)

// diskCache shows the cache to the disk tier.
type diskCache struct{ shared }

var _ disk.Cache = diskCache{}

func (c diskCache) Engine() *engine.Engine { return c.s.Engine }

func (c diskCache) Landed(r *engine.Record) { c.s.Counted(r) }

func (c diskCache) Rule(history string) *model.Retention { return c.s.Rule(history) }

func (c diskCache) Refuse(x *engine.Capture, why error) {
	if x.Notify != nil {
		x.Notify.(Caller).Refuse(why)
	}
}

func (c diskCache) RefuseAll(why error) {
	for op := range c.s.Callers {
		op.Refuse(why)
	}
}

// UsesDisk tells whether a transfer reads or writes the disk tier.
func (ts *tiers) UsesDisk(x *engine.Transfer) bool { return ts.Disk != nil && ts.Disk.Uses(x) }

// IsDurable tells whether checkpoints outlive the process.
func (ts *tiers) IsDurable() bool { return ts.Disk != nil && ts.Disk.Durable() }

// RetryForCaller lets the disk tier retry what failed, for a caller that needs the disk.
func (ts *tiers) RetryForCaller() {
	if ts.Disk != nil {
		ts.Disk.RetryForCaller()
	}
}

// DiskError explains an error of the disk tier; nil stays nil.
func (ts *tiers) DiskError(err error) error {
	if ts.Disk == nil {
		return err
	}
	return ts.Disk.Error(err)
}
