package store

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// step is state k of a computation of which a step changes one byte in about a hundred. Alone no state becomes smaller.
func step(size int, k int64) []byte {
	p := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	r := rand.New(rand.NewPCG(uint64(k), 1))
	for range size / 100 {
		p[r.IntN(size)] = byte(r.Uint32())
	}
	return p
}

// relating opens a store of a device and the host, and a history of it whose checkpoints are encoded with others.
func relating(t *testing.T, change func(c *config.Config)) (*board, *client) {
	b, c := encodingBoard(t, change)
	b.check(c.h.Reduce(Reduction{Method: "reference"}))
	return b, c
}

// states are where the states of a computation lie on the device.
type states struct {
	b  *board
	c  *client
	at device.Address
	n  int
}

func (b *board) states(c *client, size int) *states { return &states{b, c, b.alloc(size), size} }

func (s *states) put(k int64, p []byte) {
	s.c.t.Helper()
	s.b.fill(s.at, p)
	out, err := s.c.putOn(s.b, k, s.at, s.n)
	s.b.check(err)
	s.c.untilCaptured(out)
}

func (s *states) get(k int64, want []byte) {
	s.c.t.Helper()
	s.b.fill(s.at, make([]byte, s.n))
	_, err := s.c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(s.at, s.n, 0)}, Streams: []uint64{s.b.stream}})
	if s.b.check(err); !bytes.Equal(s.b.look(s.at, s.n), want) {
		s.c.t.Fatalf("checkpoint %d differs", k)
	}
}

// getToHost restores a checkpoint to host memory.
func (s *states) getToHost(k int64, want []byte) {
	s.c.t.Helper()
	to := make([]byte, s.n)
	_, err := s.c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{region(to, 0)}})
	if s.b.check(err); !bytes.Equal(to, want) {
		s.c.t.Fatalf("checkpoint %d differs in host memory", k)
	}
}

// takeAll restores as many checkpoints in some order, to the device, to host memory and as leases by turns, and drops them. state is that which each has.
func (s *states) takeAll(count int64, at func(i int64) int64, state func(size int, k int64) []byte) {
	s.c.t.Helper()
	for i := range count {
		k := at(i)
		want := state(s.n, k)
		switch k % 3 {
		case 0:
			s.get(k, want)
		case 1:
			s.getToHost(k, want)
		default:
			s.c.mustGet(k, want, operation.RestoreArgs{Last: true})
			continue
		}
		s.c.drop(k)
	}
}

// needed is how many copies on the host are needed by others.
func (c *client) needed() (n int) {
	c.s.Lock()
	defer c.s.Unlock()
	sources := map[*engine.Object]bool{}
	c.h.h.Each(func(r *engine.Record) {
		if o := r.Objects()[0].Source(c.s.HostTier()); o != nil {
			sources[o] = true
		}
	})
	return len(sources)
}

// Checkpoints of a device are encoded with others that the device has. They come back to the device and to host memory as they were, in any order, whatever else is
// dropped, and the host's memory is free then.
func TestADeviceEncodesWithAnAnchor(t *testing.T) {
	const size, count = 3<<20 + 1236, 40
	if testing.Short() { // the emulated kernels take most of the time
		encodesWithAnAnchor(t, nil, size/2, 16, func(i int64) int64 { return (i*7 + 5) % 16 })
		return
	}
	orders := map[string]func(i int64) int64{
		"reverse": func(i int64) int64 { return count - 1 - i }, "forward": func(i int64) int64 { return i }, "mixed": func(i int64) int64 { return (i*17 + 5) % count },
	}
	for name, change := range map[string]func(c *config.Config){
		"verified": nil, "unverified": func(c *config.Config) { c.Verify = "off" }, "always verified": func(c *config.Config) { c.Verify = "always" },
	} {
		for order, at := range orders {
			t.Run(name+" "+order, func(t *testing.T) { encodesWithAnAnchor(t, change, size, count, at) })
		}
	}
}

func encodesWithAnAnchor(t *testing.T, change func(c *config.Config), size int, count int64, at func(i int64) int64) {
	b, c := relating(t, change)
	on := b.states(c, size)
	for k := range count {
		on.put(k, step(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	f := c.reduction()
	if f.Encoded != f.Differences || f.Differences < count/2 || f.EncodedTo > f.EncodedFrom/10 {
		t.Fatalf("%+v", f)
	}
	if n := c.needed(); n == 0 || n > int(count-f.Differences) {
		t.Errorf("%d copies are needed by %d", n, f.Differences)
	}
	c.pushOffBy(b, size)
	on.takeAll(count, at, step)
	if f := c.reduction(); f.Decoded < count/3 {
		t.Errorf("%+v", f)
	}
	drained(t, c.s)
}

// An anchor that is damaged damages the checkpoints that were encoded with it, which is found, and no others.
func TestADamagedAnchor(t *testing.T) {
	const size = 1 << 20
	b, c := relating(t, nil)
	on := b.states(c, size)
	for k := range int64(20) {
		on.put(k, step(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	c.s.Lock()
	c.s.LetGoAnchors(true) // with its bytes on the device nothing would be decoded
	c.s.Leave()
	c.pushOffBy(b, size)
	anchor := (*engine.Record)(nil)
	for k := int64(1); anchor == nil && k < 20; k++ {
		anchor = c.anchorOf(k)
	}
	b.check(c.h.Corrupt(anchor.Key, status.TierHost, 500_000))
	to := make([]byte, size)
	for k := range int64(20) {
		_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{region(to, 0)}})
		if of := c.anchorOf(k); of == anchor || anchor.Key.Number == k {
			if code := status.CodeOf(err); code != status.Corrupt && code != status.Belated {
				t.Errorf("checkpoint %d: %v", k, err)
			}
		} else if err == nil && !bytes.Equal(to, step(size, k)) {
			t.Errorf("checkpoint %d differs", k)
		}
	}
}

// anchorOf is the checkpoint with which one was encoded; nil: it was encoded alone.
func (c *client) anchorOf(k int64) *engine.Record {
	c.s.Lock()
	defer c.s.Unlock()
	if o := c.h.h.Get(model.NumberKey(k)).Objects()[0].Source(c.s.HostTier()); o != nil {
		return o.Made()
	}
	return nil
}

// An anchor whose checkpoint goes is let go, and what was encoded with it stays whole.
func TestAnAnchorIsLetGo(t *testing.T) {
	const size = 3 << 20
	for name, end := range map[string]func(c *client){
		"dropped":  func(c *client) { c.drop(0) },
		"consumed": func(c *client) { c.mustGet(0, step(size, 0), operation.RestoreArgs{Last: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			b, c := relating(t, nil)
			on := b.states(c, size)
			for k := range int64(3) {
				on.put(k, step(size, k))
				b.check(c.wait(0, status.TierHost))
			}
			if c.anchors() == 0 || c.anchorOf(1) == nil {
				t.Fatal("there is no anchor")
			}
			end(c)
			eventually(t, "the anchor is let go", func() bool { return c.anchors() == 0 })
			for k := int64(1); k < 3; k++ {
				on.get(k, step(size, k))
				c.drop(k)
			}
		})
	}
}

// Captures that fill the device faster than its link empties it do not wait for ever for an anchor.
func TestAnAnchorInACrowdedTier(t *testing.T) {
	size, count := 3<<20, int64(60)
	if testing.Short() {
		size, count = 1<<20, 90
	}
	b, c := relating(t, func(c *config.Config) { c.Devices[0].Bytes = 80 << 20 })
	on := b.states(c, size)
	for k := range count {
		on.put(k, step(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	for k := count - 1; k >= 0; k-- {
		on.get(k, step(size, k))
		c.drop(k)
	}
	drained(t, c.s)
}

// With "auto" a few checkpoints are encoded with others, to learn what that costs, and all come back, also where the device does not de-duplicate.
func TestAutoOnADeviceTriesAnAnchor(t *testing.T) {
	const size, count = 3 << 20, 60
	least := cache.LeastAreaTier
	cache.LeastAreaTier = math.MaxInt64
	t.Cleanup(func() { cache.LeastAreaTier = least })
	b, c := relating(t, func(c *config.Config) { *c.Host = 256 << 20 })
	on := b.states(c, size)
	b.check(c.h.Reduce(Reduction{Method: "auto"}))
	for k := range int64(count) {
		on.put(k, few(size, uint64(k/20)))
		b.check(c.wait(0, status.TierHost))
	}
	if f := c.reduction(); f.Differences < 3 || f.Encoded+f.Plain != count {
		t.Errorf("%+v", f)
	}
	c.pushOffBy(b, size)
	for k := range int64(count) {
		on.get(k, few(size, uint64(k/20)))
		c.drop(k)
	}
	drained(t, c.s)
}

// An anchor with which a checkpoint is being encoded is lent for reading alone, also for the last time.
func TestAnAnchorInUseIsNotWritten(t *testing.T) {
	for _, verify := range []string{"moved", "off"} {
		t.Run(verify, func(t *testing.T) { lendsAnAnchor(t, verify) })
	}
}

func lendsAnAnchor(t *testing.T, verify string) {
	const size = 3 << 20
	b, gate := gated(t, double.Config{Memory: 512 << 20})
	cfg := b.config(64<<20, 0, 72<<20)
	cfg.Flush, cfg.Verify = "eager", verify
	c := newClient(t, open(t, cfg), "h")
	b.check(c.h.Reduce(Reduction{Method: "reference"}))
	on := b.states(c, size)
	on.put(0, step(size, 0))
	b.check(c.wait(0, status.TierHost))
	context, err := b.driver.RetainPrimary(0)
	b.check(err)
	other, err := b.driver.CreateStream(context, 0)
	b.check(err)
	b.fill(on.at, step(size, 1))
	_ = b.look(on.at, 1)
	free := gate(b.stream) // the application's stream is busy, and the flush waits for it
	_, err = c.putOn(b, 1, on.at, size)
	b.check(err)
	eventually(t, "the flush has an anchor", func() bool {
		c.s.Lock()
		defer c.s.Unlock()
		a := c.s.Reductions["h"].Anchor
		return a != nil && a.Users > 0
	})
	l, _, err := c.untaken(0, operation.RestoreArgs{Last: true, Streams: []uint64{uint64(other)}})
	b.check(err)
	if b.check(l.Take()); l.Writable {
		t.Error("the anchor may be written")
	}
	free()
	b.check(c.wait(0, status.TierHost))
	if c.anchorOf(1) == nil {
		t.Error("it was encoded alone")
	}
	b.check(l.Release(uint64(other)))
	c.pushOffBy(b, size)
	on.get(1, step(size, 1))
}

// A store that closes while a flush ends keeps no anchor.
func TestNoAnchorIsKeptWhenAStoreCloses(t *testing.T) {
	const size = 6 << 20
	for range 4 {
		t.Run("", func(t *testing.T) {
			b, c := relating(t, nil)
			b.states(c, size).put(0, step(size, 0))
			shut(t, c.s)
			c.s.Lock() // a goroutine of the store may end after the close, and forgets everything
			kept := c.s.Reductions["h"].Anchor
			c.s.Unlock()
			if kept != nil {
				t.Error("an anchor is kept")
			}
			shut(t, c.s)
		})
	}
}

// Captures into a full host that its device could take do not wait for an anchor.
func TestAnAnchorWhileTheHostIsFull(t *testing.T) {
	const size = 3 << 20
	b, c := relating(t, func(c *config.Config) { *c.Host = 8 << 20 })
	on := b.states(c, size)
	on.put(0, step(size, 0))
	b.check(c.wait(0, status.TierHost))
	if c.anchors() == 0 {
		t.Fatal("there is no anchor")
	}
	other := newClient(t, c.s, "raw")
	for k := range int64(3) {
		b.fill(on.at, random(size, uint64(k)))
		var out operation.Outcome
		_, _, err := other.tryStays(b, k, &out, onDevice(on.at, size, 0))
		b.check(err)
		other.untilCaptured(out)
	}
}

// With another method no anchor is kept.
func TestAnAnchorEndsWithItsMethod(t *testing.T) {
	const size = 3 << 20
	b, c := relating(t, nil)
	on := b.states(c, size)
	for k := range int64(2) {
		on.put(k, step(size, k))
		b.check(c.wait(0, status.TierHost))
	}
	b.check(c.h.Reduce(Reduction{Method: "raw"}))
	if c.anchors() != 0 {
		t.Error("an anchor is kept")
	}
	on.get(1, step(size, 1))
}
