package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/figures"
	"velocpy/gocore/operation"
)

// smallChunk is the unit in which a small host tier gives memory back; chunkBytes is that of larger ones.
const (
	smallChunk = 64 << 10
	chunkBytes = 2 << 20
)

// sized changes budgets, waits until the resize has ended, and returns the bytes of the resized tiers.
func (c *client) sized(b config.Budgets) int64 {
	c.t.Helper()
	var out operation.Outcome
	op, code, err := c.s.Resize(b, c.fd, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	if err != nil {
		c.t.Fatalf("resize: %v", err)
	}
	return out.Slot
}

func hostBudget(n int64) config.Budgets { return config.Budgets{Host: &n} }
func diskBudget(n int64) config.Budgets { return config.Budgets{Disk: &n} }

// openUnjoined opens a store in whose host memory the kernel joins no small pages to a huge one (khugepaged). It does so at any time, and what it joins is resident though
// no record lies there.
func openUnjoined(t *testing.T, c config.Config) *Store {
	t.Helper()
	s := open(t, c)
	if err := unix.Madvise(s.Host.Bytes(0, s.Host.Size()), unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	return s
}

// residentBytes returns how many bytes of the host tier's memory are resident.
func residentBytes(t *testing.T, s *Store) (bytes int64) {
	t.Helper()
	p := s.Host.Bytes(0, s.Host.Size())
	seen := make([]byte, (len(p)+4095)/4096)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(s.Host.Base()), uintptr(len(p)), uintptr(unsafe.Pointer(&seen[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, x := range seen {
		bytes += int64(x&1) * 4096
	}
	return bytes
}

func tierStats(t *testing.T, s *Store, name string) figures.TierStats {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st.Tiers[name]
}

// Checkpoints beyond the new end come back exactly, their memory is returned to the system, and the tier grows again.
func TestResizeHost(t *testing.T) {
	const n, size = 30, 200_001
	s := openUnjoined(t, cached(8<<20, 64<<20, vfs.NewMem(64<<20)))
	c := newClient(t, s, "h")
	for k := range int64(n) {
		c.mustPut(k, random(size, uint64(k)))
	}
	for _, to := range []int64{4 << 20, 1 << 20, 1<<20 + 1, 300_000, 1, 0} {
		got := c.sized(hostBudget(to))
		if st := tierStats(t, s, "host"); got > to || st.Capacity != to || st.Used > to {
			t.Fatalf("resized to %d: it has %d: %+v", to, got, st)
		}
		if in := residentBytes(t, s); in > (to+smallChunk-1)/smallChunk*smallChunk {
			t.Fatalf("resized to %d: %d bytes are resident", to, in)
		}
		for k := range int64(n) {
			c.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
		}
		c.mustPut(3, random(size, 3))
	}
	if got := c.sized(hostBudget(8 << 20)); got != 8<<20 {
		t.Fatalf("it has %d", got)
	}
	for k := range int64(n) {
		c.mustPut(k, random(size, uint64(100+k)))
	}
	if st := tierStats(t, s, "host"); st.Used < 4<<20 || st.GivenBack == 0 {
		t.Errorf("the tier is not used again: %+v", st)
	}
	drained(t, s)
}

// The bytes of a lease stay as long as the lease. Their memory is given back afterwards without another call.
func TestResizeHostBeneathALease(t *testing.T) {
	const size = 1 << 20
	s := openUnjoined(t, cached(8<<20, 64<<20, vfs.NewMem(64<<20)))
	c := newClient(t, s, "h")
	for k := range int64(7) {
		c.mustPut(k, random(size, uint64(k)))
	}
	l := c.mustLease(6, operation.RestoreArgs{})
	if got := c.sized(hostBudget(1 << 20)); got != 2<<20 {
		t.Fatalf("%d bytes stay", got)
	}
	if string(view(l, size)) != string(random(size, 6)) {
		t.Error("the lease shows something else")
	}
	if in := residentBytes(t, s); in > 2<<20 {
		t.Errorf("%d bytes are resident", in)
	}
	release(t, l)
	eventually(t, "the memory of the lease is given back", func() bool { return residentBytes(t, s) <= 1<<20 })
	c.mustGet(6, random(size, 6), operation.RestoreArgs{})
}

// Without a tier below all checkpoints stay, and no new ones are added.
func TestResizeHostWithoutADisk(t *testing.T) {
	const size = 1 << 20
	s := open(t, cached(8<<20, 0, nil))
	c := newClient(t, s, "h")
	for k := range int64(5) {
		c.mustPut(k, random(size, uint64(k)))
	}
	var out operation.Outcome
	op, code, err := s.Resize(hostBudget(2<<20), c.fd, &out)
	if err == nil {
		err = drive(t, op, code, c.fd, &out)
	}
	wants(t, err, status.TierFull)
	if out.Slot != 5<<20 {
		t.Fatalf("%d bytes stay", out.Slot)
	}
	_, err = c.put(9, random(size, 9))
	wants(t, err, status.TierFull)
	for k := range int64(5) {
		c.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
	}
	for k := int64(1); k < 5; k++ {
		c.drop(k)
	}
	c.mustPut(9, random(size, 9))
	eventually(t, "what was dropped is given back", func() bool { return residentBytes(t, s) <= 2<<20 })
}

func TestBudgetsThatCannotBe(t *testing.T) {
	type budget struct {
		b    config.Budgets
		code status.Code
	}
	for name, x := range map[string]struct {
		cfg  config.Config
		asks []budget
	}{
		"host": {cached(1<<20, 0, nil), []budget{{hostBudget(1<<20 + 1), status.Invalid}, {hostBudget(-1), status.Invalid}, {diskBudget(1 << 20), status.Unavailable}}},
		"disk": {cached(0, 1<<20, vfs.NewMem(64<<20)), []budget{{diskBudget(-1), status.Invalid}, {diskBudget(config.MostBytes + 1), status.Invalid}, {hostBudget(1), status.Unavailable}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, x.cfg)
			for _, a := range x.asks {
				_, _, err := s.Resize(a.b, eventfd(t), &operation.Outcome{})
				wants(t, err, a.code)
			}
		})
	}
}

// Memory that was idle for a while is given back. Memory in use is not. The tier maps memory again when it needs it.
func TestIdleMemoryIsGivenBack(t *testing.T) {
	const size, most = 1 << 20, 8 * chunkBytes // four records, each of which may lie in two chunks
	cfg := cached(64<<20, 0, nil)
	cfg.Idle = 0.02
	s := openUnjoined(t, cfg)
	c := newClient(t, s, "h")
	for range 2 {
		for k := range int64(40) {
			c.mustPut(k, random(size, uint64(k)))
		}
		if tierStats(t, s, "host").Resident < 40<<20 {
			t.Fatalf("%+v", tierStats(t, s, "host"))
		}
		for k := int64(4); k < 40; k++ {
			c.drop(k)
		}
		eventually(t, "idle memory is given back", func() bool {
			return residentBytes(t, s) <= most && tierStats(t, s, "host").Resident <= most
		})
		for k := range int64(4) {
			c.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
		}
	}
	if st := tierStats(t, s, "host"); st.GivenBack < 2*(40<<20-most) {
		t.Errorf("%+v", st)
	}
}

// A store keeps its memory unless it is trimmed. A trim gives back the free memory.
func TestTrim(t *testing.T) {
	s := openUnjoined(t, cached(8<<20, 0, nil))
	c := newClient(t, s, "h")
	for k := range int64(7) {
		c.mustPut(k, random(1<<20, uint64(k)))
	}
	for k := range int64(6) {
		c.drop(k)
	}
	if in := residentBytes(t, s); in < 7<<20 {
		t.Fatalf("%d bytes are resident", in)
	}
	if got := c.sized(config.Budgets{Trim: true}); got < 6<<20 {
		t.Errorf("%d bytes are said to be given back", got)
	}
	if in, st := residentBytes(t, s), tierStats(t, s, "host"); in != 1<<20 || st.Resident != 1<<20 || st.GivenBack < 6<<20 {
		t.Errorf("%d bytes are resident: %+v", in, st)
	}
	c.mustGet(6, random(1<<20, 6), operation.RestoreArgs{})
}

// pinned opens a store whose host tier is pinned in small pieces, and fills it.
func pinned(t *testing.T, b *board, n int64) *client {
	t.Helper()
	cfg := b.watched(b.config(8<<20, 64<<20, 1<<20))
	cfg.PinPiece, cfg.Pinning, cfg.Turns = 1<<20, "pipeline", filepath.Join(t.TempDir(), "turn")
	c := newClient(t, openUnjoined(t, cfg), "h")
	allPinned(t, c.s)
	for k := range n {
		c.mustPutOn(b, k, random(100_000, uint64(k)))
		c.mustPut(100+k, random(100_000, uint64(100+k)))
	}
	return c
}

func allPinned(t *testing.T, s *Store) {
	t.Helper()
	eventually(t, "the host tier is pinned", func() bool { return s.Host.Watermark().End() == s.Host.Size() })
}

func (c *client) mustGetBoth(b *board, n int64) {
	c.t.Helper()
	for k := range n {
		c.mustGetOn(b, k, random(100_000, uint64(k)))
		c.mustGet(100+k, random(100_000, uint64(100+k)), operation.RestoreArgs{})
	}
}

// Memory beyond a smaller budget is unregistered, piece by piece, before it is given back. With a larger budget it is registered again.
func TestPinnedMemoryIsGivenBack(t *testing.T) {
	const n = 20
	b := newBoard(t, double.Config{Granularity: granule, Seed: 9})
	c := pinned(t, b, n)
	s := c.s
	for range 2 {
		unregistered := b.driver.Calls("Unregister")
		if got := c.sized(hostBudget(500_000)); got != 500_000 {
			t.Fatalf("it has %d", got)
		}
		if in, st := residentBytes(t, s), tierStats(t, s, "host"); in > 512<<10 || st.Pinned > 512<<10 || st.Resident > 512<<10 || b.driver.Calls("Unregister") == unregistered {
			t.Errorf("%d bytes are resident: %+v", in, st)
		}
		c.mustGetBoth(b, n)
		if got := c.sized(hostBudget(8 << 20)); got != 8<<20 {
			t.Fatalf("it has %d", got)
		}
		allPinned(t, s)
		c.mustGetBoth(b, n)
	}
}

// Pinned memory that the driver fails to unregister stays mapped, and the budget holds all the same.
func TestPinnedMemoryStays(t *testing.T) {
	const n = 20
	b := newBoard(t, double.Config{Granularity: granule, Seed: 9})
	c := pinned(t, b, n)
	before := residentBytes(t, c.s)
	b.driver.Fail("Unregister", cuda.InvalidValue, b.driver.Calls("Unregister"), 1)
	if got := c.sized(hostBudget(500_000)); got != 500_000 {
		t.Fatalf("it has %d", got)
	}
	if in, st := residentBytes(t, c.s), tierStats(t, c.s, "host"); in != before || st.GivenBack != 0 || st.Capacity != 500_000 {
		t.Errorf("%d of %d bytes are resident: %+v", in, before, st)
	}
	c.mustGetBoth(b, n)
}

// A device reads a checkpoint beyond the new end. Its memory stays registered meanwhile.
func TestPinnedMemoryBeneathALease(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Seed: 9})
	c := pinned(t, b, 20)
	var held []*operation.Lease
	for k := int64(100); k < 120; k++ {
		held = append(held, c.mustLease(k, operation.RestoreArgs{}))
	}
	c.sized(hostBudget(1 << 20))
	for k, l := range held {
		if string(view(l, 100_000)) != string(random(100_000, uint64(100+k))) {
			t.Errorf("the lease of %d shows something else", 100+k)
		}
		release(t, l)
	}
	eventually(t, "the memory of the leases is given back", func() bool { return residentBytes(t, c.s) <= 1<<20 && c.s.Host.Watermark().End() <= 1<<20 })
	c.mustGetBoth(b, 20)
}

// The disk keeps its checkpoints, and no new ones are added until its budget exceeds the space in use. Files give back free space.
func TestResizeDisk(t *testing.T) {
	countsDiskBytes(t)
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			const size = 1 << 20
			fs := vfs.NewMem(128 << 20)
			cfg := stored(0, 32<<20, fs)
			cfg.Durable = durable
			s := open(t, cfg)
			c := newClient(t, s, "h")
			for k := range int64(20) {
				out := c.mustPut(k, random(size, uint64(k)))
				if err := c.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			taken := func() int64 {
				n, err := fs.Free("/d")
				if err != nil {
					t.Fatal(err)
				}
				return 128<<20 - n
			}
			if got := c.sized(diskBudget(8 << 20)); got != 20<<20 {
				t.Fatalf("it has %d", got)
			}
			_, err := c.put(50, random(size, 50))
			wants(t, err, status.TierFull)
			for k := range int64(16) {
				c.drop(k)
			}
			used := func() bool { return tierStats(t, s, "disk").Used == 4<<20 }
			eventually(t, "what was dropped is gone", used)
			if got := c.sized(diskBudget(8 << 20)); got != 8<<20 || taken() > 12<<20 {
				t.Fatalf("it has %d, and takes %d", got, taken())
			}
			for k := int64(30); k < 34; k++ {
				c.mustPut(k, random(size, uint64(k)))
			}
			_, err = c.put(50, random(size, 50))
			wants(t, err, status.TierFull)
			if !durable { // a durable store keeps the earlier version's space until the catalog has the later one
				c.mustPut(33, random(size, 33))
			}
			if got := c.sized(diskBudget(40 << 20)); got != 40<<20 {
				t.Fatalf("it has %d", got)
			}
			for k := int64(60); k < 90; k++ {
				c.mustPut(k, random(size, uint64(k)))
			}
			if durable {
				shut(t, s)
				s = reopened(t, cfg)
				c = newClient(t, s, "h")
			}
			for _, from := range []int64{16, 30, 60} {
				for k := from; k < map[int64]int64{16: 20, 30: 34, 60: 90}[from]; k++ {
					c.mustGet(k, random(size, uint64(k)), operation.RestoreArgs{})
				}
			}
		})
	}
}

// Budgets of host and disk change, and free memory is given back, while several goroutines capture, restore and drop.
func TestResizeUnderWayOfAllTiers(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := stored(8<<20, 64<<20, jitter{vfs.NewMem(256 << 20), 100 * time.Microsecond})
			cfg.Durable, cfg.Idle = seed%2 == 1, 0.002
			if cfg.Flush = "lazy"; seed > 1 {
				cfg.Flush = "eager"
			}
			s := open(t, cfg)
			stop := make(chan struct{})
			var all, resizer sync.WaitGroup
			resizer.Go(func() {
				r := rand.New(rand.NewPCG(seed, 1))
				c := newClient(t, s, "sizes")
				for {
					select {
					case <-stop:
						return
					default:
					}
					b := [](func(int64) config.Budgets){hostBudget, diskBudget}[r.IntN(2)](2<<20 + r.Int64N(6<<20))
					if b.Disk != nil {
						*b.Disk += 24 << 20
					}
					b.Trim = r.IntN(3) == 0
					var out operation.Outcome
					op, code, err := s.Resize(b, c.fd, &out)
					switch {
					case err != nil:
						t.Error(err)
					case code == status.Pending && r.IntN(2) == 0:
						op.Cancel()
					default:
						_ = drive(t, op, code, c.fd, &out)
					}
					time.Sleep(time.Duration(r.Int64N(int64(2 * time.Millisecond))))
				}
			})
			for g := range uint64(3) {
				all.Go(func() { mixed(t, s, g, rand.New(rand.NewPCG(seed, 10+g))) })
			}
			all.Wait()
			close(stop)
			resizer.Wait()
			drained(t, s)
		})
	}
}

// mixed writes, restores, lends and drops checkpoints of a history, and compares all bytes.
func mixed(t *testing.T, s *Store, g uint64, r *rand.Rand) {
	c := newClient(t, s, fmt.Sprint("h", g))
	have := map[int64][]byte{}
	for step := range 150 {
		k := r.Int64N(20)
		switch want := have[k]; {
		case want == nil || r.IntN(4) == 0:
			p := random(1+r.IntN(300_000), g<<16|uint64(step))
			if _, err := c.put(k, p); err != nil {
				t.Errorf("%d bytes: %v", len(p), err)
				return
			}
			have[k] = p
		case r.IntN(8) == 0:
			c.drop(k)
			delete(have, k)
		case r.IntN(2) == 0:
			l := c.mustLease(k, operation.RestoreArgs{})
			if string(view(l, len(want))) != string(want) {
				t.Errorf("the lease of %d shows something else", k)
			}
			release(t, l)
		default:
			c.mustGet(k, want, operation.RestoreArgs{})
		}
	}
}
