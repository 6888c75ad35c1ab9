package conformance

import (
	"runtime"
	"testing"

	"velocpy/gocore/device/cuda"
)

// caller is an application: it has a thread, on which the test continues, and a stream of the first device.
type caller struct {
	t       *testing.T
	driver  cuda.Driver
	context cuda.Context
	stream  cuda.Stream
}

func newCaller(t *testing.T, m Machine) *caller {
	t.Helper()
	runtime.LockOSThread()
	c := got(m.Driver.RetainPrimary(0))(t)
	return &caller{t: t, driver: m.Driver, context: c, stream: got(m.Driver.CreateStream(c, 0))(t)}
}

// leave frees everything. A test that fails earlier does not need it: its thread ends with it.
func (c *caller) leave() {
	c.t.Helper()
	must(c.t, c.driver.DestroyStream(c.context, c.stream))
	must(c.t, c.driver.ReleasePrimary(0))
	runtime.UnlockOSThread()
}
