package operation

import (
	"sync"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
)

// copying is an operation that copies between its caller's regions and a checkpoint.
type copying struct {
	watching
	device  *devicememory.Memory // the device on which regions lie; nil when all lie in host memory
	streams []uint64             // the caller's streams on that device
	at      int64                // offset of the bytes in the device's tier; valid when placed is set
	placed  bool                 // the device's tier has the bytes, or room for them
	async   *asyncJob            // work that another goroutine does for the operation

	job     *copier.Job    // the copy in progress
	slot    []byte         // the bytes in host memory, once they have a place: the slot in the cache, or the mapping that a fetch filled
	regions []model.Region // capture: sources; restore: destinations, parallel to want
}

// slice bounds how long one call copies before the caller can check for Ctrl-C. A copy of at most oneSlice bytes runs in one call.
const (
	slice    = 25 * time.Millisecond
	oneSlice = 16 << 20
)

// copy runs the job, for one slice of time when it is large.
func (op *copying) copy() (done bool) {
	began := op.s.Now()
	budget := slice
	if op.job.Bytes() <= oneSlice {
		budget = 0 // no limit
	}
	done = op.job.Run(budget)
	op.copied += op.s.Now() - began
	return done
}

func (op *copying) freeJob() {
	if op.job != nil {
		op.job.Free()
		op.job = nil
	}
}

// asyncJob is work that a separate goroutine does for an operation because the work waits. It waits for the caller's streams, or for copies to and
// from memory that the device cannot access. The goroutine accesses memory of the operation and of its caller through the gate only. The operation
// can therefore be given up while the job still waits.
type asyncJob struct {
	gate *borrow.Source

	mu   sync.Mutex
	over bool
	err  error
}

// startAsync runs work in a goroutine after the event behind, if it is not nil. The job takes over the event. The caller is notified when the job has
// ended.
func (op *copying) startAsync(a *devicememory.Memory, behind device.Event, work func(gate *borrow.Source) error) {
	e := &asyncJob{gate: borrow.New(op.regions)}
	op.async = e
	a.Go("device job", func() {
		var err error
		if behind != nil {
			err = a.Wait(behind)
		}
		if err == nil {
			err = work(e.gate)
		}
		e.end(err)
		op.notifier.notify()
	})
}

func (e *asyncJob) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over, e.err = true, err
}

func (e *asyncJob) ended() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over, e.err
}

// halt closes the gate of the operation's job. It waits for at most one piece of a copy.
func (op *copying) halt() {
	if op.async != nil {
		op.async.gate.Abandon()
	}
}

// disown is part of operation.
func (op *copying) disown() { op.halt() }
