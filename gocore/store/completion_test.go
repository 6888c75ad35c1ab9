package store

import (
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/pending"
)

// A flush that cannot record an event behind its checksums fails, and the next one fetches them again.
func TestFlushWithoutAMarkBehindItsChecksums(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
	c := newClient(t, open(t, b.config(8<<20, 0, 2<<20)), "h")
	const size = 600_000
	c.mustPutOn(b, 1, random(size, 1))
	b.check(c.wait(0, status.TierNone)) // no goroutine records an event to wait for
	coming := func() *pending.Capture {
		c.s.Lock()
		defer c.s.Unlock()
		return pending.Of(c.h.h.Get(model.NumberKey(1)).Version)
	}
	before := coming()
	b.driver.Fail("RecordEvent", cuda.InvalidValue, 0, 1)
	wants(t, c.wait(0, status.TierHost), status.IO)
	if before == nil || coming() != before {
		t.Errorf("the capture is complete: %+v", coming())
	}
	b.check(c.wait(0, status.TierHost))
	if coming() != nil {
		t.Error("nobody has taken the checksums over")
	}
	c.mustGetOn(b, 1, random(size, 1))
}
