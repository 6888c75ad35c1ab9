package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/cache"
	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// removingBoard opens a store of a device and the host, and a history of it whose checkpoints the device de-duplicates.
func removingBoard(t *testing.T, method string, change func(c *config.Config)) (*board, *client) {
	least := cache.LeastAreaTier
	cache.LeastAreaTier = 0
	t.Cleanup(func() { cache.LeastAreaTier = least })
	b, c := encodingBoard(t, change)
	b.check(c.h.Reduce(Reduction{Method: method, Chunk: 256}))
	return b, c
}

// edited is state k of a computation of which a step writes to a few places, and moves what lies at one place to another. Alone no state becomes smaller.
func edited(size int, k int64) []byte {
	p := random(size, 1)
	for i := int64(1); i <= k; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for range 20 {
			p[r.IntN(size)] ^= byte(1 + r.IntN(255))
		}
		if i%3 == 0 {
			n := size / 16 / 256 * 256
			copy(p[r.IntN((size-n)/256)*256:][:n], p[r.IntN((size-n)/256)*256:][:n])
		}
	}
	return p
}

// remains is how many copies on the host have what is new alone, and how many others these need.
func (c *client) remains() (copies, needed int) {
	c.s.Lock()
	defer c.s.Unlock()
	sources, host := map[*engine.Object]bool{}, c.s.HostTier()
	c.h.h.Each(func(r *engine.Record) {
		if c.s.Engine.Complete(r, host) && r.Version.Deduplicated != nil {
			copies++
		}
		for _, o := range r.Objects()[0].Sources(host) {
			sources[o] = true
		}
	})
	return copies, len(sources)
}

// Checkpoints of a device are de-duplicated there: the host gets what is new in them. They come back to the device and to host memory as they were, in any order, whatever else is
// dropped, and the host's memory is free then.
func TestADeviceRemovesDuplicates(t *testing.T) {
	const size, count = 1<<20 + 1236, 24
	orders := map[string]func(i int64) int64{
		"reverse": func(i int64) int64 { return count - 1 - i }, "forward": func(i int64) int64 { return i }, "mixed": func(i int64) int64 { return (i*17 + 5) % count },
	}
	for _, method := range []string{"basic", "list", "tree"} {
		for order, at := range orders {
			t.Run(method+" "+order, func(t *testing.T) { removesDuplicates(t, method, nil, size, count, at) })
		}
	}
	for name, change := range map[string]func(c *config.Config){
		"unverified": func(c *config.Config) { c.Verify = "off" }, "always verified": func(c *config.Config) { c.Verify = "always" },
		"with a disk": func(c *config.Config) { d := int64(256 << 20); c.Disk, c.Path, c.FS = &d, "/d", vfs.NewMem(512<<20) },
		"with a small host": func(c *config.Config) {
			d, h := int64(256<<20), int64(5<<20)
			c.Disk, c.Path, c.FS, c.Host = &d, "/d", vfs.NewMem(512<<20), &h
		},
	} {
		t.Run("tree "+name, func(t *testing.T) { removesDuplicates(t, "tree", change, size, count, orders["mixed"]) })
	}
}

func removesDuplicates(t *testing.T, method string, change func(c *config.Config), size int, count int64, at func(i int64) int64) {
	b, c := removingBoard(t, method, change)
	on := b.states(c, size)
	for k := range count {
		on.put(k, edited(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	if c.s.Disk != nil {
		b.check(c.wait(0, status.TierDisk))
	}
	f := c.reduction()
	if f.Encoded != count || f.Differences < count*3/4 || f.EncodedTo > f.EncodedFrom/4 || f.FirstBytes < int64(size) {
		t.Fatalf("%+v", f)
	}
	if copies, needed := c.remains(); copies == 0 || needed == 0 || c.s.Disk == nil && copies != int(count) {
		t.Errorf("%d copies have what is new alone, and need %d others", copies, needed)
	}
	c.pushOffBy(b, size)
	on.takeAll(count, at, edited)
	drained(t, c.s)
}

// A history that weighs the methods lets its device de-duplicate where little is new, and nearly never where all is.
func TestAutoOfARemovingDevice(t *testing.T) {
	const size, count = 1<<20 + 1236, 44
	for name, change := range map[string]func(c *config.Config){
		"host": nil,
		"disk": func(c *config.Config) {
			d, h := int64(256<<20), int64(16<<20)
			c.Disk, c.Path, c.FS, c.Host = &d, "/d", vfs.NewMem(512<<20), &h
		},
	} {
		for _, few := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, little is new: %t", name, few), func(t *testing.T) {
				b, c := removingBoard(t, "auto", change)
				on, state := b.states(c, size), func(size int, k int64) []byte { return random(size, uint64(k)) }
				if few {
					state = edited
				}
				for k := range int64(count) {
					on.put(k, state(size, k))
				}
				b.check(c.wait(0, status.TierHost))
				if c.s.Disk != nil {
					b.check(c.wait(0, status.TierDisk))
				}
				f := c.reduction()
				if removed := f.FirstBytes > 0; !removed || few && f.EncodedTo > f.EncodedFrom/2 || !few && f.FirstBytes > count*size/4 {
					t.Errorf("%+v", f)
				}
				c.pushOffBy(b, size)
				on.takeAll(count, func(i int64) int64 { return (i*17 + 5) % count }, state)
				drained(t, c.s)
			})
		}
	}
}

// Damage of first occurrences on the host is found in every checkpoint that needs them, and in no other.
func TestDamageOfFirstOccurrences(t *testing.T) {
	const size, count = 1 << 20, 6
	b, c := removingBoard(t, "tree", nil)
	on := b.states(c, size)
	for k := range int64(count) {
		p := edited(size, k)
		if k == count-1 {
			p = random(size, 99)
		}
		on.put(k, p)
	}
	b.check(c.wait(0, status.TierHost))
	c.pushOffBy(b, size)
	c.s.Lock()
	o := c.h.h.Get(model.NumberKey(0)).Objects()[0]
	if first := c.h.h.Get(model.NumberKey(1)); first.Version.Deduplicated.Bytes == size { // two workers flush: either may come first
		o = first.Objects()[0]
	}
	off := c.s.Engine.Offset(o, c.s.HostTier())
	damaged := c.s.Host.Bytes(off, size)[size/2:][:256]
	for i := range damaged { // no step has written here
		damaged[i] ^= 0x55
	}
	c.s.Unlock()
	for k := range int64(count) {
		_, _, err := c.get(k, size, operation.RestoreArgs{})
		if bad := status.CodeOf(err) == status.Corrupt; bad != (k < count-1) {
			t.Errorf("checkpoint %d: %v", k, err)
		}
	}
}

// Whatever an application does with a history that a device de-duplicates, each checkpoint has the bytes that were captured.
func TestModelOfARemovingDevice(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { modelOfARemovingDevice(t, seed) })
	}
}

func modelOfARemovingDevice(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	if seed%4 < 3 {
		apart, copied := path.LeastApart, path.LeastCopied
		path.LeastApart, path.LeastCopied = 0, int64(seed%3)<<10
		t.Cleanup(func() { path.LeastApart, path.LeastCopied = apart, copied })
	}
	b, c := removingBoard(t, []string{"basic", "list", "tree", "auto"}[seed/3%4], func(c *config.Config) {
		c.Flush, c.Devices[0].Bytes = []string{"eager", "eager", "lazy"}[r.IntN(3)], int64(6+r.IntN(5))<<20
		if h := int64(3 << 20); r.IntN(2) == 0 {
			c.Host = &h
		}
		if d := int64(128 << 20); r.IntN(3) > 0 {
			c.Disk, c.Path, c.FS = &d, "/d", vfs.NewMem(256<<20)
		}
	})
	const most = 600 << 10
	at := b.alloc(most)
	state, kept := random(most, seed), map[int64][]byte{}
	for step := range int64(200) {
		for range 1 + r.IntN(3) {
			n := min(1+r.IntN(3000), most)
			from := r.IntN(most - n + 1)
			switch r.IntN(3) {
			case 0:
				copy(state[from:], random(n, r.Uint64()))
			case 1:
				copy(state[from/256*256:], state[r.IntN(most/256)*256:][:min(n, 256)])
			default:
				clear(state[from : from+n])
			}
		}
		size := []int{most, most, most, most - 1000, 300_001, 100 << 10}[r.IntN(6)]
		switch k := int64(r.IntN(24)); r.IntN(6) {
		case 0, 1, 2: // also keys that are there
			b.fill(at, state[:size])
			out, err := c.putOn(b, k, at, size)
			if status.CodeOf(err) == status.TierFull {
				continue
			}
			b.check(err)
			c.untilCaptured(out)
			kept[k] = slices.Clone(state[:size])
		case 3:
			if kept[k] != nil {
				c.drop(k)
				delete(kept, k)
			}
		default:
			if want := kept[k]; want != nil {
				last := r.IntN(4) == 0
				c.mustGet(k, want, operation.RestoreArgs{Last: last})
				if last {
					delete(kept, k)
				}
			}
		}
		if step%40 == 39 && r.IntN(2) == 0 {
			b.check(c.h.Reduce(Reduction{Method: []string{"raw", "tree", "list", "auto"}[r.IntN(4)]}))
		}
	}
	for k, want := range kept {
		c.mustGetOn(b, k, want)
		c.drop(k)
	}
	t.Logf("%+v", c.reduction())
	drained(t, c.s)
}

// The first checkpoints of a history are de-duplicated, too: they wait until the host's memory is pinned, which goes on meanwhile, however it is pinned.
func TestRemovalWaitsForPinnedMemory(t *testing.T) {
	for _, pinning := range []string{"auto", "sequential", "pipeline"} {
		t.Run(pinning, func(t *testing.T) { waitsForPinnedMemory(t, pinning) })
	}
}

func waitsForPinnedMemory(t *testing.T, pinning string) {
	b, c := removingBoard(t, "list", func(c *config.Config) {
		h := int64(256 << 20)
		c.Host, c.Pinning = &h, pinning
	})
	const size, count = 3_000_001, 4
	on := b.states(c, size)
	for k := range int64(count) {
		on.put(k, edited(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	if f := c.reduction(); f.Encoded != count || f.Differences != count-1 {
		t.Errorf("%+v", f)
	}
	for k := range int64(count) {
		c.mustGet(k, edited(size, k), operation.RestoreArgs{Last: true})
	}
	drained(t, c.s)
}

// A region that grows, in a tier of which the digests take most of what they may, costs longer chunks, and the history once more.
func TestRemovalWithLittleMemory(t *testing.T) {
	const count, least = 20, 1 << 20
	b, c := removingBoard(t, "tree", func(c *config.Config) { c.Devices[0].Bytes = 24 << 20 })
	b.check(c.h.Reduce(Reduction{Method: "tree", Chunk: 32}))
	at := b.alloc(2 << 20)
	want := func(k int64) []byte { return edited(2<<20, k)[:least+20_000*k] }
	for k := range int64(count) {
		b.fill(at, want(k))
		out, err := c.putOn(b, k, at, len(want(k)))
		b.check(err)
		c.untilCaptured(out)
	}
	b.check(c.wait(0, status.TierHost))
	if f := c.reduction(); f.Encoded != count || f.Differences < count*3/4 {
		t.Errorf("%+v", f)
	}
	c.pushOffBy(b, 1<<20)
	for k := range int64(count) {
		c.mustGetOn(b, k, want(k))
		c.drop(k)
	}
	drained(t, c.s)
}

// More histories than have room for their digests: one that nobody writes to any more makes room for a new one, and begins anew when it is written to again.
func TestRemovalOfManyHistories(t *testing.T) {
	const size, count = 1 << 20, 30
	b, c := removingBoard(t, "tree", func(c *config.Config) { c.Devices[0].Bytes = 10 << 20 })
	at := b.alloc(size)
	put := func(c *client, k int64) {
		b.fill(at, edited(size, k))
		out, err := c.putOn(b, k, at, size)
		b.check(err)
		c.untilCaptured(out)
		b.check(c.wait(0, status.TierHost))
	}
	put(c, 0)
	put(c, 1)
	var all []*client
	for i := range count {
		other := newClient(t, c.s, fmt.Sprint("other ", i))
		b.check(other.h.Reduce(Reduction{Method: "tree", Chunk: 32}))
		for k := range int64(3) {
			put(other, k)
		}
		if f := other.did(); f.Encoded != 3 || f.Differences != 2 {
			t.Errorf("history %d: %+v", i, f)
		}
		all = append(all, other)
	}
	before := c.did().FirstBytes
	put(c, 2)
	if now := c.did().FirstBytes; now-before < size*9/10 {
		t.Errorf("%d bytes were new behind those of %d other histories: there was memory for all", now-before, count)
	}
	for i, c := range all {
		for k := range int64(3) {
			c.mustGet(k, edited(size, k), operation.RestoreArgs{Last: i%2 == 0})
		}
	}
	drained(t, c.s)
}

// did is what reducing the client's history did.
func (c *client) did() figures.Reduction {
	c.s.Lock()
	defer c.s.Unlock()
	return c.s.Reductions[c.h.h.Name].Figures
}

// What is new in large checkpoints comes to the host apart from the metadata: by a kernel, or, where most is new and lies together, by copies.
func TestLargeCheckpointsOfARemovingDevice(t *testing.T) {
	const size, count = 17<<20 + 77, 5
	host := int64(128 << 20)
	b, c := removingBoard(t, "tree", func(c *config.Config) { c.Devices[0].Bytes, c.Host = 160<<20, &host })
	on := b.states(c, size)
	want := func(k int64) []byte {
		p := edited(size, min(k, 2))
		switch k {
		case 3: // all is new, and the first part repeats
			p = random(size, 9)
			copy(p[5<<20:8<<20], p[:3<<20])
			clear(p[10<<20 : 11<<20])
		case 4: // most is new, in short pieces
			for at := 0; at+256 <= size; at += 3 << 7 {
				p[at] ^= 1
			}
		}
		return p
	}
	for k := range int64(count) {
		on.put(k, want(k))
	}
	b.check(c.wait(0, status.TierHost))
	if f := c.reduction(); f.Encoded != count || f.FirstBytes > 4*size {
		t.Errorf("%+v", f)
	}
	c.pushOffBy(b, size)
	for k := range int64(count) {
		on.get(k, want(k))
		on.getToHost(k, want(k))
		c.drop(k)
	}
	drained(t, c.s)
}

// Launches that fail while a device de-duplicates harm no bytes: the checkpoint stays on the device, or goes as it is, and those after it come back, too.
func TestFaultsOfARemovingDevice(t *testing.T) {
	const size, count = 1<<20 + 99, 6
	for first := 0; first < 120; first += 7 {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			b, c := removingBoard(t, []string{"basic", "list", "tree"}[first%3], nil)
			on := b.states(c, size)
			b.driver.Fail("Launch", cuda.OutOfMemory, first, 1+first%2)
			put := map[int64]bool{}
			for k := range int64(count) {
				b.fill(on.at, edited(size, k))
				if out, err := c.putOn(b, k, on.at, size); err == nil {
					put[k] = true
					eventually(t, "the capture ends", func() bool { return c.state(out).Captured || c.state(out).Gone })
				}
			}
			_ = c.wait(0, status.TierHost) // it may say that a flush has failed
			if len(put) < count-2 {
				t.Errorf("%d of %d were captured", len(put), count)
			}
			for k := range put {
				_, _, err := c.get(k, size, operation.RestoreArgs{}) // a launch of this may be the one that fails
				if err != nil {
					c.mustGet(k, edited(size, k), operation.RestoreArgs{})
				}
			}
			for k := range put {
				c.mustGet(k, edited(size, k), operation.RestoreArgs{Last: true})
			}
			drained(t, c.s)
		})
	}
}

// A restore does not wait until other checkpoints have been de-duplicated, before which its own may not be.
func TestARestoreDoesNotWaitForATurn(t *testing.T) {
	const size = 1 << 20
	b, c := removingBoard(t, "tree", nil)
	on := b.states(c, size)
	for k := range int64(3) {
		on.put(k, edited(size, k))
	}
	b.check(c.wait(0, status.TierHost))
	c.s.Lock()
	area := c.s.AreaFor(c.s.Reductions["h"], 0)
	c.s.Unlock()
	area.Turn.Lock() // as another history's checkpoint does
	on.put(3, edited(size, 3))
	time.Sleep(50 * time.Millisecond) // a worker waits for the turn, in most runs
	on.getToHost(3, edited(size, 3))
	area.Turn.Unlock()
	b.check(c.wait(0, status.TierHost))
	c.pushOffBy(b, size)
	for k := range int64(4) {
		c.mustGet(k, edited(size, k), operation.RestoreArgs{Last: true})
	}
	drained(t, c.s)
}

// A checkpoint that was captured while its history was to be de-duplicated goes to the host as it is once the history is reduced otherwise, or while the device has no memory
// for that: never encoded, since whoever reads the copy expects plain bytes.
func TestWhatIsNotRemovedAfterAll(t *testing.T) {
	const size = 1 << 20
	for name, begin := range map[string]func(t *testing.T) (*board, *client, func()){
		"another method": func(t *testing.T) (*board, *client, func()) {
			b, c := removingBoard(t, "tree", func(c *config.Config) { c.Flush = "lazy" })
			return b, c, func() { b.check(c.h.Reduce(Reduction{Method: "codec"})) }
		},
		"no memory yet": func(t *testing.T) (*board, *client, func()) {
			b, c := encodingBoard(t, func(c *config.Config) { c.Flush = "lazy" })
			first := newClient(t, c.s, "first")
			for k := range int64(8) {
				first.mustPutOn(b, k, few(size, uint64(k)))
			}
			l := first.lent(b, 0, operation.RestoreArgs{})
			t.Cleanup(func() { b.check(l.Release(b.stream)) })
			b.check(c.h.Reduce(Reduction{Method: "tree", Chunk: 256}))
			return b, c, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, c, then := begin(t)
			for k := range int64(3) {
				c.mustPutOn(b, k, few(size, uint64(k)))
			}
			then()
			b.check(c.wait(0, status.TierHost))
			for k := range int64(3) {
				c.mustGetOn(b, k, few(size, uint64(k)))
			}
			c.pushOffBy(b, size)
			for k := range int64(3) {
				c.mustGetOn(b, k, few(size, uint64(k)))
				c.mustGet(k, few(size, uint64(k)), operation.RestoreArgs{Last: true})
			}
		})
	}
}
