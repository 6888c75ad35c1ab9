package figures

import "velocpy/gocore/policy/engine"

// Causes divide a sum of waits by cause, in ns.
type Causes struct {
	Flush  int64 `json:"flush"`  // copies to the tier below
	Load   int64 `json:"load"`   // bytes on their way up
	Reader int64 `json:"reader"` // leases, and streams of the application that read
	Full   int64 `json:"full"`   // the tier below has no room either; never for a stream
	Other  int64 `json:"other"`  // captures in progress, verification
}

// WaitCauses divide those sums of Counters that have causes. Each adds up to the field of the same name there.
type WaitCauses struct {
	Capture       Causes `json:"capture"`
	DeviceCapture Causes `json:"capture_on_device"`
	DeviceRestore Causes `json:"restore_on_device"`
}

// StreamWaits divide the waits of the application's streams on one device, by cause.
type StreamWaits struct {
	Capture Causes `json:"capture"`
	Restore Causes `json:"restore"`
}

// Add adds the waits of a capture.
func (c *Causes) Add(blocked [engine.Blockers]int64) {
	c.Flush += blocked[engine.ByFlush]
	c.Load += blocked[engine.ByLoad]
	c.Reader += blocked[engine.ByReader]
	c.Full += blocked[engine.ByFull]
	c.Other += blocked[engine.ByOther]
}

// Join adds the waits of another device.
func (c *Causes) Join(more Causes) {
	c.Flush += more.Flush
	c.Load += more.Load
	c.Reader += more.Reader
	c.Full += more.Full
	c.Other += more.Other
}

// Sum adds up the causes.
func (c Causes) Sum() int64 { return c.Flush + c.Load + c.Reader + c.Full + c.Other }
