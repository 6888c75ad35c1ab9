// Package pending tells how the bytes of a version are taken that is not captured yet: a transfer reads them from the caller's memory, or a device copies them.
// It completes captures of devices, and keeps those whose versions are gone until the device has finished.
package pending

import (
	"sync"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
)

// Capture is a capture that is not complete. Either a transfer reads the bytes from Source, or a device copies them. Then Event is the event behind
// which the bytes are in the slot, and Sums are their checksums.
type Capture struct {
	Source *borrow.Source
	Device *devicememory.Memory
	Event  device.Event
	Sums   device.Sums

	completing sync.Mutex // held by the goroutine that completes the capture
}

// Of returns the capture of a version whose bytes have not all been taken; nil once they have.
func Of(b *checkpoint.Version) *Capture {
	c, _ := b.Pending.(*Capture)
	return c
}

// IsCopied tells whether the device has copied the bytes. It is true if no device does.
func IsCopied(b *checkpoint.Version) bool {
	c := Of(b)
	if c == nil || c.Event == nil {
		return true
	}
	passed, err := c.Event.Passed()
	return passed || err != nil
}

// OpenSource returns the source from which a transfer may still read the bytes, or nil.
func OpenSource(b *checkpoint.Version) *borrow.Source {
	if c := Of(b); c != nil {
		return c.Source
	}
	return nil
}

// drop releases the event and checksums of a capture that the device has finished.
func (c *Capture) drop() {
	if c.Sums != nil {
		c.Sums.Discard()
	}
	c.Event.Drop()
}
