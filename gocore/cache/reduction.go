package cache

import (
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
)

// Reduction is what the store knows of a history whose checkpoints are encoded or de-duplicated on their way down.
type Reduction struct {
	Planner *encoding.Planner
	Lineage *Lineage // nil: every checkpoint stands alone
	// OnDevice says how devices de-duplicate its checkpoints on their way to the host; nil: they do not. Another method is another value.
	OnDevice  *DeviceMethod
	Residents []*engine.Record // that came to a device or left it lately, and were de-duplicated there
	Course    *schedule.Course // nil: a device encodes what has queued up
	Before    int64            // places that the courses before it had
	Planned   uint64           // the engine's number of the checkpoint that was planned last
	Deeper    bool             // checkpoints of a device have gone on to the disk, so that the time there counts, too
	Refers    bool             // checkpoints are encoded with others: on the host in a lineage, or on a device with an anchor
	Anchor    *Anchor          // with which a device encodes checkpoints; nil: none is kept
	alone     int              // checkpoints that are encoded alone before another anchor is kept
	rest      int              // how many these were the last time
	Figures   figures.Reduction
}

// Begin goes on with another course, or with none. What the one before has counted keeps its places.
func (r *Reduction) Begin(course *schedule.Course) {
	if r.Course != nil {
		r.Before += int64(r.Course.Captured())
	}
	r.Course = course
}
