package store

import (
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// A caller's stream waits for a slot that another stream still reads, and for bytes that other work still writes. The statistics count these waits by
// reason, although the calls returned at once. Work without a wait is not counted.
func TestWaitsOfStreamsAreCounted(t *testing.T) {
	const size, slow = 500_000, 200 * time.Millisecond
	waits := func(s *Store) (capture, restore time.Duration) {
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(st.Waits.DeviceCapture), time.Duration(st.Waits.DeviceRestore)
	}
	// begin returns a store whose only slot on the device is being read in another stream, until open is called.
	begin := func(t *testing.T) (b *board, s *Store, c *client, open func()) {
		b, gate := gated(t, double.Config{})
		s = newStore(t, b)
		c = newClient(t, s, "h")
		c.mustPutOn(b, 1, random(size, 1))
		if capture, restore := waits(s); capture > slow/4 || restore > slow/4 {
			t.Errorf("before anybody waits the streams have waited %v and %v", capture, restore)
		}
		other := b.foreign()
		first, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{other}})
		b.check(err)
		open = gate(other)
		b.check(b.dev.Borrow(other).Copy(b.alloc(size), device.Address(first.Base), size))
		b.check(first.Release(other))
		return b, s, c, open
	}
	t.Run("capture", func(t *testing.T) {
		b, s, c, open := begin(t)
		c.drop(1)
		at := b.alloc(size)
		b.fill(at, random(size, 2))
		out, err := c.putOn(b, 2, at, size)
		b.check(err)
		time.Sleep(slow)
		if capture, _ := waits(s); capture > slow/4 {
			t.Errorf("%v, and the wait is not over", capture)
		}
		open()
		b.check(c.wait(out.Ticket, status.TierNone))
		if capture, restore := waits(s); capture < slow*3/4 || restore > slow/4 {
			t.Errorf("the stream of a capture has waited %v, not %v; those of restores %v", capture, slow, restore)
		}
	})
	t.Run("lease", func(t *testing.T) {
		b, s, c, open := begin(t)
		last, _, err := c.lease(1, operation.RestoreArgs{Streams: []uint64{b.stream}, Last: true})
		b.check(err)
		time.Sleep(slow)
		open()
		b.check(last.Release(b.stream))
		b.look(b.alloc(8), 8)
		if capture, restore := waits(s); restore < slow*3/4 || capture > slow/4 {
			t.Errorf("the stream of a lease has waited %v, not %v; those of captures %v", restore, slow, capture)
		}
	})
}

func newStore(t *testing.T, b *board) *Store { return open(t, b.config(4<<20, 0, 2<<20)) }

// Time stamps that are pending when a store closes are released, as are those that have passed.
func TestStampsAreGivenBack(t *testing.T) {
	b := newBoard(t, double.Config{Delay: time.Millisecond, Seed: 3})
	s := open(t, b.config(8<<20, 0, 2<<20))
	c := newClient(t, s, "h")
	at := b.alloc(256 << 10)
	other := b.foreign()
	a := s.Devices[0]
	capture := func(k int64) {
		stream := []uint64{b.stream, other}[k/3%2]
		_, err := c.write(&operation.CheckpointArgs{
			Key: model.Key{Number: k % 3}, Regions: []model.Region{onDevice(at, 256<<10, 0)}, Layout: []byte{1, 0, 0, 4}, Slot: 256 << 10, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{stream},
		})
		b.check(err)
	}
	settle := func() {
		b.driver.Settle()
		if _, n := a.Waits(); n != 0 {
			t.Errorf("%d waits are still open when the device has nothing to do", n)
		}
	}
	for k := range int64(50) {
		capture(k)
	}
	settle()
	made := b.driver.Calls("CreateTimer")
	for k := range int64(100) { // each ends before the next, so that the timers of the first round serve all of them, however fast the device is
		capture(k)
		settle()
	}
	if n := b.driver.Calls("CreateTimer"); n != made {
		t.Errorf("%d timers were made for 50 captures at once, and %d for 100 that came one by one", made, n-made)
	}
	if made == 0 {
		t.Error("no stream has waited for another")
	}
}
