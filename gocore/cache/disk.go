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
