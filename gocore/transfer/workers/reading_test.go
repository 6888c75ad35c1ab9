package workers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/path"
)

// twoTiers returns workers without goroutines of their own, whose store has a host tier and a disk tier on a file system.
func twoTiers(t *testing.T, fs vfs.FS) *Workers {
	t.Helper()
	bytes := int64(16 << 20)
	set, err := config.Config{Host: &bytes, Disk: &bytes, Path: "/d", FS: fs, Workers: 1, Checksum: true}.Check()
	if err != nil {
		t.Fatal(err)
	}
	c := cache.New(set)
	c.Tiers = []int{status.TierHost, status.TierDisk}
	if c.Host, err = host.Open(host.Options{Bytes: bytes, Now: c.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Host.Unmap() }) // nothing is left to tell
	o := disk.Options{FS: fs, Path: set.Path, Capacity: bytes, Verified: true, Now: c.Now, Layouts: &c.Layouts, Cache: c.ForDisk()}
	o.StallAfter, o.GiveUpAfter = time.Minute, func() time.Duration { return time.Minute }
	if c.Disk, err = disk.Open(1, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err, _ := c.Disk.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Engine = engine.New(engine.Config{Tiers: []engine.TierConfig{{Name: "host", Capacity: bytes}, {Name: "disk", Capacity: bytes, Grain: disk.Grain, Remote: true}}})
	s := &Workers{Cache: c}
	s.pools = s.newPools()
	return s
}

// stored writes random bytes of one region to the disk, and returns the transfer that loads them.
func stored(t *testing.T, s *Workers, k, at int64, size int) *engine.Transfer {
	t.Helper()
	p := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(k)})
	_, _ = r.Read(p)
	room, _ := checkpoint.Room(int64(size))
	blocks := make([]byte, (room+disk.Grain-1)/disk.Grain*disk.Grain)
	copy(blocks, p)
	if err := s.Disk.Space.Write(at, blocks); err != nil {
		t.Fatal(err)
	}
	l := &checkpoint.Layout{Layout: model.Layout{Slot: int64(size), Spans: []model.Span{{Bytes: int64(size)}}}}
	rec := &engine.Record{Size: room, Version: &checkpoint.Version{Layout: l, Sums: []uint64{checksum.Sum(p)}}}
	return &engine.Transfer{Kind: engine.Load, Rec: rec, From: 1, FromOff: at, ToOff: k << 20}
}

// Another worker may begin to read when the last transfer of a batch has been read, before the batch is reported, and not sooner.
func TestOthersMayReadWhenAllHasBeenRead(t *testing.T) {
	for name, keys := range map[string][]int64{"neighbours": {0, 1, 2, 3}, "scattered": {0, 2, 3, 5}, "one": {4}, "large": {9}} {
		t.Run(name, func(t *testing.T) {
			gate := &vfs.Rule{Ops: vfs.OpRead, Block: true}
			gate.Disable()
			s := twoTiers(t, vfs.NewFaulty(vfs.NewMem(64<<20), gate))
			var all []*engine.Transfer
			for k := range int64(9) {
				if x := stored(t, s, k, k*8192, 5000); slices.Contains(keys, k) {
					all = append(all, x)
				}
			}
			if x := stored(t, s, 9, 1<<20, 5<<20); slices.Contains(keys, 9) {
				all = append(all, x)
			}
			w := &worker{s: s, pool: s.pools[1]}
			reading := func() int {
				s.Lock()
				defer s.Unlock()
				return w.pool.reading
			}
			s.Lock()
			w.begin(len(all))
			s.Unlock()
			last := all[len(all)-1]
			gate.From, gate.To = last.FromOff, last.FromOff+disk.Grain
			defer gate.Release()
			gate.Enable()
			ended := make(chan []*path.Result)
			go func() { ended <- w.carry(all) }()
			for end := time.Now().Add(8 * time.Second); gate.Blocked() != 1; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the last one is not read")
				}
			}
			if reading() != 1 {
				t.Error("others may read too early")
			}
			gate.Release()
			for i, m := range <-ended {
				if m.Err != nil {
					t.Errorf("%d: %v", keys[i], m.Err)
				}
			}
			if reading() != 0 {
				t.Error("it still counts as reading")
			}
			w.free()
		})
	}
}
