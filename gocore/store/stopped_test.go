package store

import (
	"bytes"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/disk/segment"
)

// A flush to disk ends between two pieces when its checkpoint is dropped, replaced or consumed. Nothing counts as failed because of that, and later
// flushes run.
func TestFlushOfWhatIsGoneStops(t *testing.T) {
	const size = 192 << 20 // pieces of 8 MiB, of which several are written at once
	for name, goes := range map[string]func(*client){
		"dropped":  func(c *client) { c.drop(1) },
		"replaced": func(c *client) { c.mustPut(1, random(100, 2)) },
		"consumed": func(c *client) {
			got, _, err := c.get(1, size, operation.RestoreArgs{Last: true})
			if err != nil || !bytes.Equal(got, random(size, 1)) {
				c.t.Fatal("the checkpoint does not come back whole", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			block := &vfs.Rule{Ops: vfs.OpWrite, Block: true}
			cfg := cached(3*size/2, 2*size, vfs.NewFaulty(vfs.NewMem(4*size), block))
			cfg.Flush = "eager"
			s := open(t, cfg)
			c := newClient(t, s, "h")
			c.mustPut(1, random(size, 1))
			eventually(t, "the flush has begun", func() bool { return block.Blocked() > 0 })
			goes(c)
			begun := block.Seen()
			block.Release()
			c.mustPut(2, random(100, 3))
			if err := c.wait(0, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the flush ends, as one that was cancelled", func() bool {
				st, err := s.Stats()
				return err == nil && st.Bytes.CancelledFlush == slotOf(size) && st.Tiers["disk"].Used < size
			})
			if n := block.Seen(); n > begun+segment.DefaultParallel+2 {
				t.Errorf("%d writes of 25, %d of which had begun when the checkpoint went", n, begun)
			}
			st, err := s.Stats()
			if err != nil || st.Tiers["disk"].Written >= size {
				t.Errorf("%d bytes count as written; %v", st.Tiers["disk"].Written, err)
			}
		})
	}
}

func slotOf(bytes int64) int64 {
	size, _ := checkpoint.Room(bytes)
	return size
}

// The same for a flush from a device.
func TestFlushFromADeviceOfWhatIsGoneStops(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 2 * time.Millisecond, Seed: 5})
	cfg := b.config(16<<20, 0, 8<<20)
	cfg.Flush, cfg.Cut = "eager", 64<<10
	s := open(t, cfg)
	c := newClient(t, s, "h")
	const size = 4 << 20 // 64 cuts
	at := b.alloc(size)
	b.fill(at, random(size, 1))
	before := b.driver.Calls("Copy")
	_, err := c.putOn(b, 1, at, size)
	b.check(err)
	eventually(t, "the flush has begun", func() bool { return b.driver.Calls("Copy") > before+4 })
	c.drop(1)
	_, err = c.write(&operation.CheckpointArgs{
		Key: model.Key{Number: 2}, Regions: []model.Region{onDevice(at, 1000, 0)}, Layout: []byte{1, 232, 3, 0}, Slot: 1000, FD: c.fd, Tier: status.TierNone, Streams: []uint64{b.stream},
	})
	b.check(err)
	b.check(c.wait(0, status.TierHost))
	if n := b.driver.Calls("Copy") - before; n > 60 {
		t.Errorf("%d copies for a checkpoint of 64 cuts that was dropped when 5 had begun, and for a small one", n)
	}
	eventually(t, "the flush ends, as one that was cancelled", func() bool {
		st, err := s.Stats()
		return err == nil && st.Bytes.CancelledFlush == slotOf(size) && st.Tiers["host"].Written < size
	})
	c.mustGetOn(b, 2, random(size, 1)[:1000])
}
