package path

import (
	"errors"
	"time"

	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/pending"
)

// MoveTogether carries out flushes from one device, by one lane. What is to be encoded of them is encoded together, and what moves as it is is copied together.
// Each of these takes a part of the time by its bytes.
func MoveTogether(c *cache.Cache, all []*engine.Transfer, o func(x *engine.Transfer) Options) []*Result {
	results := make([]*Result, len(all))
	var encoded, copied, others []*Path
	for i, x := range all {
		p := newPath(c, x, o(x))
		results[i] = &p.result
		if p.result.Err = p.open(&p.result, checkpoint.Selection{Regions: p.version.Layout.All()}); p.result.Err != nil {
			continue
		}
		if err := p.begin(); err != nil {
			p.close(err)
			continue
		}
		switch leaves := p.leavesDevice(); {
		case leaves && p.encoder.encodes():
			encoded = append(encoded, p)
		case leaves:
			copied = append(copied, p)
		default:
			others = append(others, p)
		}
	}
	moveBy(encodeOnDevice, encoded)
	moveBy(copyFromDevice, copied)
	for _, p := range others {
		p.began = time.Now()
		err := p.runDifference()
		p.close(p.staged(err, time.Since(p.began)))
	}
	return results
}

// leavesDevice tells whether the bytes go from a slot of a device to memory that the host can address, without a lineage.
func (p *Path) leavesDevice() bool {
	s, ok := p.source.(*deviceSlot)
	return ok && s.lane != nil && p.sink.Bytes() != nil && p.encoder.lineage == nil
}

// moveBy moves checkpoints together. One that does not become smaller moves alone afterwards.
func moveBy(way func([]*Path) []error, all []*Path) {
	if len(all) == 0 {
		return
	}
	failed := way(all)
	took, bytes := time.Since(all[0].began), int64(0)
	for _, p := range all {
		bytes += p.x.Rec.Size
	}
	for i, p := range all {
		err := p.conclude(failed[i])
		p.close(p.staged(err, time.Duration(float64(took)*float64(p.x.Rec.Size)/float64(bytes))))
	}
}

// copyFromDevice copies slots of one device to the host, by one worker's lane and with one wait for all. It returns an error for each.
func copyFromDevice(paths []*Path) []error {
	first, _ := paths[0].source.(*deviceSlot)
	failed, captures := make([]error, len(paths)), make([]*pending.Completion, len(paths))
	for i, p := range paths {
		p.awaitPinned(p.spans[0].Bytes) // first: from pending.Begin on, restores may have to wait for this goroutine
		captures[i] = pending.Begin(p.c, first.a, p.version)
		if failed[i] = captures[i].AwaitCopy(); failed[i] == nil && p.version.Gone.Load() {
			failed[i] = engine.ErrStopped
		}
	}
	for i, p := range paths {
		p.x.Begun(p.c.Now())
		p.began = time.Now()
		if failed[i] == nil {
			failed[i] = captures[i].QueueChecksums(first.lane)
		}
	}
	last, err := queueCopies(first, paths, failed)
	for i, c := range captures {
		failed[i] = errors.Join(failed[i], c.AwaitChecksums())
	}
	err = first.a.Finish(last, err)
	for i := range failed {
		if failed[i] == nil {
			failed[i] = err
		}
	}
	return failed
}

// queueCopies queues the copies of the slots that have no error.
func queueCopies(first *deviceSlot, paths []*Path, failed []error) (device.Event, error) {
	var reads []model.Span
	var to [][]byte
	for i, p := range paths {
		if s, ok := p.source.(*deviceSlot); ok && failed[i] == nil && p.spans[0].Bytes > 0 {
			reads, to = append(reads, model.Span{Offset: s.at, Bytes: p.spans[0].Bytes}), append(to, p.sink.Bytes())
		}
	}
	if len(reads) == 0 {
		return nil, nil
	}
	return first.a.QueueReads(first.lane, devicememory.Flushes, reads, func() error {
		for i, r := range reads {
			if err := first.lane.Copy(device.AddressOf(to[i]), first.a.Address(r.Offset), r.Bytes); err != nil {
				return err
			}
		}
		return nil
	})
}
