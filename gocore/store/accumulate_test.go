package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

const encodeLaunch = "Launch velocpy_codec_encode_bytes" // the kind of elements without a description

// accumulating is a board whose device flushes nothing until it is asked to. So the test says what is queued together.
func accumulating(t *testing.T, change func(c *config.Config)) (*board, *client) {
	return encodingBoard(t, func(c *config.Config) {
		c.Flush, c.Devices[0].Bytes = "lazy", 256<<20 // staging memory for 1 MiB at once
		if change != nil {
			change(c)
		}
	})
}

// Small checkpoints whose flushes are queued at once are encoded together: the device launches its kernels a few times, not once for each. Each comes back by itself,
// and one that is dropped takes none with it.
func TestSmallCheckpointsAreEncodedTogether(t *testing.T) {
	for _, at := range []struct {
		size, count, launches int
	}{{200_004, 30, 6}, {70_000, 100, 8}, {1<<20 + 4, 12, 24}, {2 << 20, 8, 16}} {
		t.Run(fmt.Sprint(at.size), func(t *testing.T) {
			b, c := accumulating(t, nil)
			for k := range int64(at.count) {
				c.mustPutOn(b, k, few(at.size, uint64(k)))
			}
			before := b.driver.Calls(encodeLaunch)
			b.check(c.wait(0, status.TierHost))
			f := c.reduction()
			if f.Encoded != int64(at.count) || f.Accumulated < int64(at.count)*3/4 || f.EncodedTo >= f.EncodedFrom*9/10 {
				t.Errorf("%+v", f)
			}
			if n := b.driver.Calls(encodeLaunch) - before; n < at.launches || n > at.launches+int(f.Encoded-f.Accumulated)+1 { // two workers share them
				t.Errorf("%d launches for %+v", n, f)
			}
			c.pushOff(b)
			for k := int64(at.count) - 1; k >= 0; k-- {
				if k%3 == 1 {
					c.drop(k)
					continue
				}
				c.mustGetOn(b, k, few(at.size, uint64(k)))
			}
			drained(t, c.s)
		})
	}
}

// Small checkpoints that move as they are are copied together, with one event behind all of them.
func TestSmallCheckpointsAreCopiedTogether(t *testing.T) {
	const size, count = 200_004, 15
	events := map[bool]int{}
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			b, c := accumulating(t, func(c *config.Config) { c.Together, c.Checksum = together, false })
			b.check(c.h.Reduce(Reduction{Method: "raw"}))
			for k := range int64(count) {
				c.untilCaptured(c.mustPutOn(b, k, random(size, uint64(k))))
			}
			before := b.driver.Calls("RecordEvent")
			b.check(c.wait(0, status.TierHost))
			events[together] = b.driver.Calls("RecordEvent") - before
			c.pushOff(b)
			for k := int64(count) - 1; k >= 0; k-- {
				c.mustGetOn(b, k, random(size, uint64(k)))
				c.drop(k)
			}
			drained(t, c.s)
		})
	}
	if events[false] < count || events[true] > count/2 {
		t.Errorf("events behind copies, by whether they are copied together: %v", events)
	}
}

// Of checkpoints that are encoded together, those that do not become smaller go as they are, those that need more room than was predicted are written again, and one
// that is gone is left out. The others are not touched by it.
func TestWhatIsEncodedTogetherEndsAlone(t *testing.T) {
	const size, rounds, count = 200_000, 6, 20
	b, c := accumulating(t, nil)
	want := func(k int64) []byte {
		p := few(size, uint64(k))
		switch k % 5 {
		case 1: // of no encoder, whatever the other histories of these tests are reduced by
			_, _ = rand.NewChaCha8([32]byte{byte(k)}).Read(p)
		case 2:
			_, _ = rand.NewChaCha8([32]byte{byte(k)}).Read(p[:size/2])
		}
		return p
	}
	c.mustPutOn(b, rounds*count, few(size, 0)) // the first sample pays, whichever checkpoint a worker takes first
	b.check(c.wait(0, status.TierHost))
	for round := range int64(rounds) {
		for k := round * count; k < (round+1)*count; k++ {
			c.mustPutOn(b, k, want(k))
		}
		c.s.Lock() // no worker begins before the last line
		c.h.h.Each(func(r *engine.Record) {
			if !c.s.Engine.Complete(r, c.s.HostTier()) {
				r.Version.Gone.Store(r.Key.Number%count == 3)
			}
		})
		c.s.Leave()
		c.drop(round*count + 3)
		b.check(c.wait(0, status.TierHost))
	}
	f := c.reduction()
	if f.Plain == 0 || f.Accumulated < rounds*count/2 {
		t.Errorf("%+v", f)
	}
	c.pushOff(b)
	for k := range int64(rounds * count) {
		if k%count != 3 {
			c.mustGetOn(b, k, want(k))
		}
	}
	drained(t, c.s)
}

// A call of the driver that fails while checkpoints move together fails all of them, or the one that it was for. What is captured is not lost, and the next
// attempt succeeds.
func TestFaultsWhileMovingTogether(t *testing.T) {
	const size, count = 200_004, 12
	for i, call := range []string{"Launch", "Copy", "RecordEvent", "SynchronizeEvent", "StreamWaitEvent"} {
		for skip := range 4 {
			t.Run(fmt.Sprint(call, skip), func(t *testing.T) {
				b, c := accumulating(t, nil)
				if (i+skip)%2 == 1 {
					b.check(c.h.Reduce(Reduction{Method: "raw"}))
				}
				for k := range int64(count) {
					c.untilCaptured(c.mustPutOn(b, k, few(size, uint64(k))))
				}
				b.driver.Fail(call, cuda.InvalidValue, skip, 1)
				c.again(func() error { return c.wait(0, status.TierHost) })
				for k := range int64(count) {
					var got []byte
					c.again(func() (err error) { got, _, err = c.get(k, size, operation.RestoreArgs{}); return err })
					if !bytes.Equal(got, few(size, uint64(k))) {
						t.Fatalf("checkpoint %d differs", k)
					}
				}
			})
		}
	}
}
