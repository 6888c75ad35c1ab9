package operation

import (
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// watching is an operation that may wait for work of a device.
type watching struct {
	Op
	event device.Event // event of device work that the operation waits for
	// capture: why the disk does not take the bytes; restore: why copies could not be queued; wait: the loss of a device that was copying the bytes
	failed error
}

// watch makes the operation wait for an event. It notifies the caller when the event has passed.
func (op *watching) watch(a *devicememory.Memory, m device.Event) {
	op.event = m
	kept := m.Keep()
	a.Go("device watch", func() {
		defer kept.Drop()
		_ = kept.Wait() // the caller's next step returns the error
		op.notifier.notify()
	})
}

func (op *watching) dropEvent() {
	if op.event != nil {
		op.event.Drop()
		op.event = nil
	}
}
