package store

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// A bit that flips on disk is found wherever it is in a checkpoint that is read in many pieces, in its region and in no other. The undamaged regions
// are restored.
func TestFlippedBitInALargeCheckpointOnDisk(t *testing.T) {
	sizes := []int{3<<20 + 77, 0, 1000, checksum.LeafBytes, 5 << 20, 9}
	for name, host := range map[string]int64{"by the cache": 24 << 20, "past it": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := cached(host, 160<<20, jitter{vfs.NewMem(256 << 20), time.Millisecond})
			cfg.Guess = false // the prefetcher would load a checkpoint again before its bytes on disk are damaged
			s := open(t, cfg)
			h := newClient(t, s, "h")
			for bad, size := range sizes {
				if size == 0 {
					continue
				}
				k := int64(bad)
				regions, _, slot := wide(sizes, uint64(k))
				out, err := h.write(&operation.CheckpointArgs{Key: model.NumberKey(k), Regions: regions, Layout: []byte("wide"), Slot: slot, FD: h.fd, Tier: status.TierNone})
				if err == nil {
					err = h.wait(out.Ticket, status.TierDisk)
				}
				if err != nil {
					t.Fatal(err)
				}
				if host > 0 {
					h.evict(k, 6<<20)
				}
				checkWide3(t, h, k, sizes)
				if host > 0 {
					h.evict(k, 6<<20)
				}
				if err := h.h.Corrupt(model.NumberKey(k), status.TierDisk, regions[bad].Offset+rand.Int64N(int64(size))); err != nil {
					t.Fatal(err)
				}
				_, _, err = h.lease(k, operation.RestoreArgs{})
				if e := wants(t, err, status.Corrupt); e.Tier != status.TierDisk || e.Region != bad {
					t.Fatalf("region %d: %+v", bad, e)
				}
				others := slices.DeleteFunc([]int32{0, 1, 2, 3, 4, 5}, func(i int32) bool { return int(i) == bad })
				release(t, h.mustLease(k, operation.RestoreArgs{Select: others}))
				h.drop(k)
			}
			drained(t, s)
		})
	}
}
