package hostdevice

import (
	"fmt"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"

	"go.uber.org/atomic"
)

// found implements device.Found.
type found struct {
	counts atomic.Pointer[device.DedupCounts]
}

// Take implements device.Found. It is zero if the work has not run.
func (f *found) Take() device.DedupCounts {
	if counts := f.counts.Swap(nil); counts != nil {
		return *counts
	}
	return device.DedupCounts{}
}

// Discard implements device.Found.
func (f *found) Discard() { f.counts.Store(nil) }

// Dedup implements device.Lane with the launches of the kernels, by their twins: so the state of a lineage is the same as on a CUDA device.
func (l *lane) Dedup(c *device.Deduplication) (device.Found, error) {
	if err := device.CheckDedup(c); err != nil {
		return nil, err
	}
	at, scratch := c.Scratch, device.DedupScratch(c)
	upload := make([]byte, kernel.DedupUpload(c))
	kernel.PutDedupUpload(c, upload)
	counts := new([kernel.DedupResults]uint64)
	var plan kernel.Plan
	plan.Dedup(c, 1, device.Address(unsafe.Pointer(counts)))
	f := &found{}
	return f, l.put(dedupTouches(c, scratch), l.dev.unlessLost(func() {
		memory := view(at, scratch)
		fill(memory)
		copy(memory, upload)
		run(&plan)
		if !c.Apart {
			fill(memory)
		}
		found := kernel.DedupCounts(counts[:])
		f.counts.Store(&found)
	}))
}

// GatherFirsts implements device.Lane.
func (l *lane) GatherFirsts(c *device.Deduplication) error {
	scratch := device.DedupScratch(c)
	var plan kernel.Plan
	plan.GatherFirsts(c, 1)
	return l.put(dedupTouches(c, scratch), l.dev.unlessLost(func() {
		run(&plan)
		fill(view(c.Scratch, scratch))
	}))
}

// run runs the twins of a plan's launches.
func run(plan *kernel.Plan) {
	for _, launch := range plan.Launches() {
		if err := kernel.Twin(launch.Kernel)(launch.Blocks, launch.Threads, launch.Parameter); err != nil {
			panic(fmt.Sprintf("de-duplication: %s: %v", launch.Kernel, err)) // the plan was made for the twins
		}
	}
}

// dedupTouches are the ranges that a Dedup may read or write.
func dedupTouches(c *device.Deduplication, scratch int64) []pinned {
	touches := []pinned{{c.Scratch, scratch}, {c.Result, device.DedupResult(c)}}
	if c.Entries > 0 {
		touches = append(touches, pinned{c.Record, device.RecordBytes(c.Entries)})
	}
	for i := range c.Regions {
		r := &c.Regions[i]
		if r.Bytes == 0 {
			continue
		}
		touches = append(touches, pinned{r.At, r.Bytes}, pinned{r.Leaves, device.LeafBytes(r.Bytes, c.Chunk)})
		if c.Blocks {
			touches = append(touches, pinned{r.Blocks, device.BlockBytes(r.Bytes)})
		}
	}
	return touches
}
