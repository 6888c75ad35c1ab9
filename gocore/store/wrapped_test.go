package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// withDisk makes a store one of a device, a host and a disk.
func withDisk(host, disk int64, durable bool) func(c *config.Config) {
	return func(c *config.Config) {
		c.Host, c.Disk, c.FS, c.Path, c.Flush = &host, &disk, vfs.NewMem(1<<30), "/store", ""
		c.Durable = durable
	}
}

// unforeseen is withDisk without prefetches, so that tests can make a tier give up its checkpoints.
func unforeseen(host, disk int64, durable bool) func(c *config.Config) {
	return func(c *config.Config) {
		withDisk(host, disk, durable)(c)
		c.Guess = false
	}
}

// wrappings are how the disk keeps the checkpoints of a history.
type wrappings struct{ objects, referring, others int }

func (c *client) wrappings() (n wrappings) {
	c.s.Lock()
	defer c.s.Unlock()
	c.h.h.Each(func(r *engine.Record) {
		switch d := r.Version.Difference; {
		case d != nil && d.Refers:
			n.referring++
		case d != nil:
			n.objects++
		default:
			n.others++
		}
	})
	return n
}

// awaitDisk waits until the disk has the checkpoint of a ticket; 0: all.
func (c *client) awaitDisk(ticket uint64) {
	c.t.Helper()
	if err := c.wait(ticket, status.TierDisk); err != nil {
		c.t.Fatal(err)
	}
}

// What a device has encoded with an anchor goes to the disk as it is, and comes back from there, in any order, also after the store was opened again.
func TestEncodedWithAnAnchorOnTheDisk(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, host := range []int64{12 << 20, 64 << 20} {
			for order, at := range map[string]func(i int64) int64{"reverse": func(i int64) int64 { return 29 - i }, "mixed": func(i int64) int64 { return (i*17 + 5) % 30 }} {
				if testing.Short() && (durable != (order == "mixed") || host > 12<<20) { // the emulated kernels take most of the time
					continue
				}
				t.Run(fmt.Sprintf("durable %v, host %d MiB, %s", durable, host>>20, order), func(t *testing.T) { wraps(t, durable, host, at) })
			}
		}
	}
}

func wraps(t *testing.T, durable bool, host int64, at func(i int64) int64) {
	size, count := 3<<20+1236, int64(30)
	if testing.Short() {
		size /= 2
	}
	var cfg config.Config
	b, c := relating(t, func(c *config.Config) { withDisk(host, 256<<20, durable)(c); cfg = *c })
	on := b.states(c, size)
	for k := range count {
		if on.put(k, step(size, k)); k == 0 { // so that the second one has an anchor
			b.check(c.wait(0, status.TierHost))
		}
	}
	c.awaitDisk(0)
	n := c.wrappings()
	if n.referring < int(count)/2 || n.others > 0 {
		t.Errorf("%+v", n)
	}
	if used := c.onDisk(); used > count*int64(size)/4 {
		t.Errorf("the disk has %d bytes", used)
	}
	c.pushOffBy(b, size)
	for i := range count {
		k := at(i)
		want := step(size, k)
		switch k % 3 {
		case 0:
			on.get(k, want)
		case 1:
			on.getToHost(k, want)
		}
		if k%4 == 0 {
			c.drop(k)
		}
	}
	if durable {
		shut(t, c.s)
		c = newClient(t, reopened(t, cfg), "h")
		for i := range count {
			if k := at(i); k%4 != 0 {
				c.mustGet(k, step(size, k), operation.RestoreArgs{Last: k%2 == 0})
			}
		}
	}
	drained(t, c.s)
}

// An anchor that is only on the disk is read from there.
func TestAnAnchorOnTheDiskAlone(t *testing.T) {
	const size, count = 3 << 20, 6
	b, c := relating(t, unforeseen(16<<20, 256<<20, false))
	on := b.states(c, size)
	for k := range int64(count) {
		on.put(k, step(size, k))
		b.check(c.wait(0, status.TierHost)) // so that the first one is the anchor of all
	}
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 1 || n.referring != count-1 {
		t.Fatalf("%+v", n)
	}
	for _, drops := range []bool{false, true} { // its object stays for the others
		c.s.Lock()
		c.s.LetGoAnchors(true)
		c.s.Leave()
		if drops {
			c.drop(0)
		}
		for k := int64(1); k < count; k++ {
			c.pushOffBy(b, size)
			c.pushOffHost()
			on.get(k, step(size, k))
		}
	}
	drained(t, c.s)
}

// pushOffHost lets other checkpoints of host memory take the place of all that the host tier has.
func (c *client) pushOffHost() {
	c.t.Helper()
	c.s.Lock()
	host := c.s.HostTier()
	bytes := c.s.Engine.Capacity(host) / 4
	c.s.Unlock()
	other := newClient(c.t, c.s, "hosts")
	eventually(c.t, "the host gives up the checkpoints", func() bool {
		for k := range int64(5) {
			other.mustPut(k, random(int(bytes), uint64(k)))
		}
		for k := range int64(5) {
			other.drop(k)
		}
		left := false
		c.s.Lock()
		defer c.s.Unlock()
		c.h.h.Each(func(r *engine.Record) { left = left || c.s.Engine.Complete(r, host) })
		return !left
	})
}

// A checkpoint whose anchor was dropped before it came to the disk is encoded anew there, without it, and comes back to host and device.
func TestAnAnchorThatNeverComesToTheDisk(t *testing.T) {
	const size, count = 3 << 20, 5
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprint("durable ", durable), func(t *testing.T) {
			var cfg config.Config
			b, c := relating(t, func(c *config.Config) { unforeseen(64<<20, 256<<20, durable)(c); cfg = *c })
			on := b.states(c, size)
			for k := range int64(count) {
				on.put(k, step(size, k))
				b.check(c.wait(0, status.TierHost))
			}
			if c.anchorOf(count-1) == nil || c.anchorOf(1).Key.Number != 0 {
				t.Fatal("it was encoded alone")
			}
			c.drop(0)
			on.get(1, step(size, 1))
			c.awaitDisk(0)
			if n := c.wrappings(); n.objects != count-1 || n.referring > 0 {
				t.Fatalf("%+v", n)
			}
			c.s.Lock()
			c.s.LetGoAnchors(true)
			c.s.Leave()
			for range 2 {
				for k := int64(1); k < count; k++ {
					on.get(k, step(size, k))
					c.pushOffBy(b, size)
				}
				c.pushOffHostBySmall()
			}
			if durable {
				shut(t, c.s)
				c = newClient(t, reopened(t, cfg), "h")
			}
			for k := int64(1); k < count; k++ {
				c.mustGet(k, step(size, k), operation.RestoreArgs{})
			}
			drained(t, c.s)
		})
	}
}

// pushOffHostBySmall shrinks the host tier to make it give up what it has, and gives it back its size.
func (c *client) pushOffHostBySmall() {
	c.t.Helper()
	c.s.Lock()
	host := c.s.HostTier()
	was := c.s.Engine.Capacity(host)
	c.s.Engine.Shrink(c.s.Now(), host, 1<<20)
	c.s.Leave()
	eventually(c.t, "the host gives up the checkpoints", func() bool {
		left := false
		c.s.Lock()
		defer c.s.Leave()
		c.h.h.Each(func(r *engine.Record) { left = left || c.s.Engine.Complete(r, host) })
		return !left
	})
	c.s.Lock()
	defer c.s.Leave()
	c.s.Engine.Grow(c.s.Now(), host, was)
}

// A checkpoint that a caller wants on the disk goes there behind its anchor, which nobody has asked for.
func TestAnAnchorGoesFirst(t *testing.T) {
	const size = 3 << 20
	b, c := relating(t, withDisk(64<<20, 256<<20, true))
	on := b.states(c, size)
	var tickets []uint64
	for k := range int64(4) {
		b.fill(on.at, step(size, k))
		out, err := c.putOn(b, k, on.at, size)
		b.check(err)
		c.untilCaptured(out)
		b.check(c.wait(0, status.TierHost))
		tickets = append(tickets, out.Ticket)
	}
	c.awaitDisk(tickets[2])
	if n := c.wrappings(); n.objects != 1 || n.referring != 1 || n.others != 2 {
		t.Fatalf("%+v", n)
	}
	c.awaitDisk(0)
	if n := c.wrappings(); n.objects != 1 || n.referring != 3 {
		t.Errorf("%+v", n)
	}
	drained(t, c.s)
}

// A damaged anchor on the disk damages what was encoded with it, which is found, and no others.
func TestADamagedAnchorOnTheDisk(t *testing.T) {
	const size, count = 3 << 20, 20
	b, c := relating(t, unforeseen(16<<20, 256<<20, true))
	on := b.states(c, size)
	for k := range int64(count) {
		on.put(k, step(size, k))
	}
	c.awaitDisk(0)
	c.s.Lock()
	c.s.LetGoAnchors(true)
	c.s.Leave()
	c.pushOffBy(b, size)
	c.pushOffHost()
	sources := map[int64]int64{} // offset of the anchor, by checkpoint
	at := map[int64]int64{}
	c.s.Lock()
	c.h.h.Each(func(r *engine.Record) {
		at[r.Key.Number] = c.s.Engine.Fragment(r, c.s.HostTier()+1).Offset
		if d := r.Version.Difference; d != nil && d.Refers {
			sources[r.Key.Number] = d.Sources[0].Offset
		}
	})
	c.s.Unlock()
	anchor := int64(-1)
	for _, off := range sources {
		for k, own := range at {
			if own == off {
				anchor = k
			}
		}
	}
	b.check(c.h.Corrupt(model.NumberKey(anchor), status.TierDisk, 500_000))
	bad := 0
	for k := range int64(count) {
		to := make([]byte, size)
		_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{region(to, 0)}})
		if off, refers := sources[k]; k == anchor || refers && off == at[anchor] {
			if bad++; status.CodeOf(err) != status.Corrupt && status.CodeOf(err) != status.Belated {
				t.Errorf("checkpoint %d: %v", k, err)
			}
		} else if b.check(err); !bytes.Equal(to, step(size, k)) {
			t.Errorf("checkpoint %d differs", k)
		}
	}
	if bad < 2 {
		t.Errorf("%d are damaged", bad)
	}
}

// Where an anchor that never comes to the disk is damaged, what was encoded with it does not become durable, and says why.
func TestADamagedAnchorThatNeverComesToTheDisk(t *testing.T) {
	const size, count = 3 << 20, 3
	b, c := relating(t, unforeseen(64<<20, 256<<20, true))
	on := b.states(c, size)
	for k := range int64(count) {
		on.put(k, step(size, k))
		b.check(c.wait(0, status.TierHost))
	}
	c.s.Lock()
	f := c.s.Engine.Fragment(c.h.h.Get(model.NumberKey(1)), c.s.HostTier())
	c.s.Host.Bytes(f.Offset, f.Size)[f.Size/2] ^= 1 // in a payload
	c.s.Unlock()
	c.drop(0)
	if err := c.wait(0, status.TierDisk); status.CodeOf(err) != status.Corrupt {
		t.Errorf("%v", err)
	}
	if n := c.wrappings(); n.objects+n.referring != 1 {
		t.Errorf("%+v", n)
	}
	on.get(1, step(size, 1)) // the device has it
	on.get(2, step(size, 2))
}

// Checkpoints of a device that is too small to encode are encoded with others by the host.
func TestASmallDeviceLeavesItToTheHost(t *testing.T) {
	const size, count = 1 << 20, 8
	b, c := relating(t, func(c *config.Config) {
		withDisk(64<<20, 256<<20, true)(c)
		c.Devices[0].Bytes = 32 << 20
	})
	on := b.states(c, size)
	for k := range int64(count) {
		on.put(k, step(size, k))
		c.awaitDisk(0)
	}
	if n := c.wrappings(); n.referring < count-2 {
		t.Errorf("%+v", n)
	}
	for k := range int64(count) {
		on.get(k, step(size, k))
	}
	drained(t, c.s)
}

// Whatever is captured, dropped, restored and waited for, in whichever order: what is there comes back as it was, and nothing is left over.
func TestAnchorsAndADiskAtRandom(t *testing.T) {
	const size = 1<<20 + 36
	on, none, rounds := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if rounds++; rounds > 25 && testing.Short() {
			return
		}
		b := newBoard(t, double.Config{Memory: 512 << 20})
		cfg := b.config(64<<20, 0, 72<<20)
		withDisk(rapid.Int64Range(5<<20, 24<<20).Draw(rt, "host"), 256<<20, rapid.Bool().Draw(rt, "durable"))(&cfg)
		cfg.Verify = rapid.SampledFrom([]string{"moved", "off", "always"}).Draw(rt, "verify")
		cfg.Devices[0].Bytes = rapid.Int64Range(66<<20, 80<<20).Draw(rt, "device")
		s, err := Open(cfg)
		b.check(err)
		c := newClient(t, s, "h")
		b.check(c.h.Reduce(Reduction{Method: rapid.SampledFrom([]string{"reference", "reference", "auto"}).Draw(rt, "method")}))
		at := b.states(c, size)
		there := map[int64]bool{}
		pick := func() int64 {
			var all []int64
			for k := range int64(64) {
				if there[k] {
					all = append(all, k)
				}
			}
			if len(all) == 0 {
				rt.Skip("nothing")
			}
			return rapid.SampledFrom(all).Draw(rt, "key")
		}
		next := int64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(*rapid.T) {
				for range rapid.IntRange(1, 6).Draw(rt, "number") {
					if next == 64 {
						return
					}
					at.put(next, step(size, next))
					there[next] = true
					next++
				}
			},
			"drop": func(*rapid.T) {
				k := pick()
				c.drop(k)
				delete(there, k)
			},
			"wait for the host": func(*rapid.T) { b.check(c.wait(0, status.TierHost)) },
			"wait for the disk": func(*rapid.T) { c.awaitDisk(0) },
			"restore": func(*rapid.T) {
				k := pick()
				at.get(k, step(size, k))
			},
			"restore to the host": func(*rapid.T) {
				k := pick()
				at.getToHost(k, step(size, k))
			},
			"consume": func(*rapid.T) {
				k := pick()
				c.mustGet(k, step(size, k), operation.RestoreArgs{Last: true})
				delete(there, k)
			},
			"hint": func(*rapid.T) {
				r := rand.New(rand.NewPCG(uint64(next), 1))
				var hints []int64
				for k := range there {
					hints = append(hints, k)
				}
				r.Shuffle(len(hints), func(i, j int) { hints[i], hints[j] = hints[j], hints[i] })
				c.hint(hints...)
			},
		})
		n := c.wrappings()
		on, none = on+n.referring, none+n.objects+n.others
		for k := range there {
			at.get(k, step(size, k))
		}
		drained(t, s)
		shut(t, s)
	})
	if on == 0 {
		t.Errorf("no checkpoint on the disk refers to another, of %d", none)
	}
}
