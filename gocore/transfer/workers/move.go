package workers

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/path"
)

// move carries out a transfer. It runs in a worker, without the lock: the engine holds source and destination for it.
func (w *worker) move(x *engine.Transfer) *path.Result {
	lane, err := w.laneFor(x)
	if err != nil {
		return &path.Result{Err: err}
	}
	o := w.options(x, lane)
	if o.Parts != nil && o.Parts.Ended != nil {
		defer o.Parts.Ended()
	}
	return path.Move(w.s.Cache, x, wanted(x), o)
}

// options are what the worker contributes to a transfer.
func (w *worker) options(x *engine.Transfer, lane device.Lane) path.Options {
	o := path.Options{Lane: lane, Read: func() { w.hasRead(1) }, Planner: w.planner(x), Forwarder: w.forwarder(x), Anchor: w.anchorOf(x), Copies: w.copies(x), Room: &w.room}
	if x.Kind == engine.Fetch {
		o.Into = x.Restore.Notify.(Fetcher).Into()
	}
	if lane != nil && x.Stage != engine.Verbatim {
		o.Staging = w.stagingOf()
	}
	w.s.Lock()
	defer w.s.Unlock()
	o.Parts, o.Deduplicates = w.s.partsOf(x), lane != nil && w.s.deduplicates(x)
	return o
}

// stagingOf returns the worker's part of the device's staging memory; nil if there is none.
func (w *worker) stagingOf() *cache.Staging {
	if w.staging == nil {
		w.s.Lock()
		defer w.s.Unlock()
		w.staging = w.s.TakeStaging(w.pool.device)
	}
	return w.staging
}

// wanted returns what a transfer moves.
func wanted(x *engine.Transfer) checkpoint.Selection {
	if x.Kind == engine.Fetch {
		return x.Restore.Notify.(Fetcher).Wants()
	}
	return checkpoint.Selection{Regions: x.Rec.Version.Layout.All()}
}

// laneFor returns the worker's own lane for a transfer over the link of its device, and nil for other transfers.
func (w *worker) laneFor(x *engine.Transfer) (device.Lane, error) {
	a := w.pool.device
	if a == nil || x.Kind == engine.Fetch || x.Kind == engine.Spill && w.s.DeviceOf(x.Rec) != a {
		return nil, nil
	}
	return w.laneOf(a)
}

// laneOf returns the worker's own lane, and creates it on first use.
func (w *worker) laneOf(a *devicememory.Memory) (device.Lane, error) {
	if w.lane != nil {
		return w.lane, nil
	}
	priority := device.Behind
	switch {
	case w.pool.demanded:
		priority = device.Waited
	case w.pool.direction == engine.Up:
		priority = device.Ahead
	}
	lane, err := a.Device.Lane(priority)
	if err != nil {
		return nil, devicememory.Explain(err)
	}
	w.lane = lane
	return lane, nil
}
