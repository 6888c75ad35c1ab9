package workers

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
	"velocpy/gocore/transfer/path"
	"velocpy/gocore/transfer/pending"
)

// A device needs a launch and a wait for what it encodes, however little that is, and a wait for what it copies. So the worker of its link moves together what is
// small and queued for flushing (Maurya et al., HiPC'23, section III). Checkpoints accumulate while the flushes before them are under way; the worker waits for
// none, unless the schedule of a history says so (heldruns.go).

// accumulatedBytes is the most plain bytes that move together: a few groups of staging memory. While the link carries one group, the device encodes the next one;
// while it encodes the first one of a transfer, the link may be idle. The room of all these checkpoints in the device's tier becomes free when the last has moved.
const accumulatedBytes = 32 << 20

// mostAccumulated is how many checkpoints move together. Each keeps a restore of it waiting for all.
const mostAccumulated = 64

// accumulate continues the flush of a small checkpoint from a device with others that can move together with it. The lock is held.
func (s *Workers) accumulate(c *workerPool, first *engine.Transfer) (all []*engine.Transfer, together int) {
	most := min(accumulatedBytes, s.Engine.Capacity(max(first.To, 0))/cache.HeldPart)
	bytes, n, atMost := int64(0), 0, s.anchors.mayJoin(first)
	joins := func(x, first *engine.Transfer) bool {
		d := s.Decision(x.Rec)
		return s.Set.Together && x.Lower != engine.Deduplicated && x.Rec.Size <= most/2 && canAccumulate(x, first) && d == s.Decision(first.Rec) && d != schedule.Alone
	}
	return s.joined(c, first, joins, func(x *engine.Transfer) bool {
		bytes, n = bytes+x.Rec.Size, n+1
		return bytes+x.Rec.Size > most || n >= atMost
	})
}

// canAccumulate tells whether x can leave its device together with first. A capture that is still under way would keep the others waiting.
func canAccumulate(x, first *engine.Transfer) bool {
	return x.Kind == engine.Flush && first.Kind == engine.Flush && x.From == first.From && x.To == first.To && x.Side == engine.UpperSide &&
		pending.IsCopied(x.Rec.Version)
}

// moveTogether carries out the flushes of several checkpoints from a device.
func (w *worker) moveTogether(all []*engine.Transfer) []*path.Result {
	lane, err := w.laneFor(all[0])
	if err != nil {
		results := make([]*path.Result, len(all))
		for i := range results {
			results[i] = &path.Result{Err: err}
		}
		return results
	}
	together := plans{}
	return path.MoveTogether(w.s.Cache, all, func(x *engine.Transfer) path.Options {
		o := w.options(x, lane)
		if p, ok := o.Planner.(*planner); ok {
			p.together = together
		}
		return o
	})
}
