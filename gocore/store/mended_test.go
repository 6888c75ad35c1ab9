package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/atomic"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// warningsOf returns the warnings since the last call that have a text.
func warningsOf(text string) (all []string) {
	for _, r := range logring.Drain(1000) {
		if r.Level == logring.Warning && strings.Contains(r.Message, text) {
			all = append(all, r.Message)
		}
	}
	return all
}

// outOfMemory makes the host tier forget all checkpoints of the client's history, and keep those of another history.
func (c *client) outOfMemory(size int64, keys ...int64) {
	c.t.Helper()
	other := newClient(c.t, c.s, "filler")
	for i := int64(0); c.anyInHost(keys); i++ {
		if i > 100 {
			c.t.Fatal("they stay in the host tier")
		}
		other.mustPutFloats(i%2, random(int(size), uint64(i)), status.TierDisk)
	}
}

func (c *client) anyInHost(keys []int64) bool {
	for _, k := range keys {
		if c.inHost(k) {
			return true
		}
	}
	return false
}

// hurt flips a bit of the container on the disk that has a byte of a checkpoint.
func (c *client) hurt(k, offset int64) {
	c.t.Helper()
	if err := c.h.Corrupt(model.NumberKey(k), status.TierDisk, offset); err != nil {
		c.t.Fatal(err)
	}
}

const mendedText = "taken from other checkpoints in memory"

// A checkpoint whose bytes are damaged on the disk, in its own object or in that of another one, is restored if memory has them as part of others, with one warning.
// Otherwise it is damaged. What is written from then on does not need the damaged object.
func TestDamagedBytesComeFromMemory(t *testing.T) {
	const size, count, host = 1 << 20, 6, 3 << 20
	for _, method := range removing[1:] {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprint(method, durable), func(t *testing.T) {
				cfg := cached(host, 64<<20, vfs.NewMem(256<<20))
				if durable {
					cfg = stored(host, 64<<20, vfs.NewMem(256<<20))
				}
				cfg.Prefetch = false // the test alone says what comes to memory
				c := reducing(t, open(t, cfg), method)
				states, all := evolving(size, count), []int64{}
				for k, p := range states {
					c.mustPutFloats(int64(k), p, status.TierDisk)
					all = append(all, int64(k))
				}
				warningsOf("")
				at := commonTo(states)
				c.hurt(count-1, at) // its bytes are those of the first checkpoint's object
				for k := range int64(count) {
					c.outOfMemory(host, all...)
					if _, _, err := c.get(k, size, operation.RestoreArgs{}); status.CodeOf(err) != status.Corrupt {
						t.Fatalf("checkpoint %d, with none in memory: %v", k, err)
					}
				}
				c.mends(states, at)
			})
		}
	}
}

// commonTo is the offset of a byte that is the same in all states, as are those around it.
func commonTo(states [][]byte) int64 {
	const around = 20 << 10
	for at := around; ; at += around {
		same := true
		for _, p := range states[1:] {
			same = same && bytes.Equal(p[at-around:at+around], states[0][at-around:at+around])
		}
		if same {
			return int64(at)
		}
	}
}

// mends brings one checkpoint to memory by undoing the damage for a while, and restores the others with its help.
func (c *client) mends(states [][]byte, at int64) {
	c.t.Helper()
	host, last := 3<<20, int64(len(states)-1)
	all := make([]int64, len(states))
	for k := range all {
		all[k] = int64(k)
	}
	warned := c.reduction().Mended
	for helper := range last {
		c.outOfMemory(int64(host), all...)
		c.hurt(last, at) // the same bit: it is right again
		c.mustGet(helper, states[helper], operation.RestoreArgs{})
		c.hurt(last, at)
		if !c.inHost(helper) || c.inHost(last) {
			c.t.Fatal("the wrong ones are in memory")
		}
		warningsOf("")
		c.mustGet(last, states[last], operation.RestoreArgs{})
		found := warningsOf(mendedText)
		if len(found) != 1 || !strings.Contains(found[0], fmt.Sprintf(`history "h", checkpoint %d: `, last)) || !strings.Contains(found[0], "the numbers [1] of") {
			c.t.Fatalf("with checkpoint %d in memory: %q", helper, found)
		}
		if warned++; c.reduction().Mended != warned {
			c.t.Errorf("%d restores count as mended, not %d", c.reduction().Mended, warned)
		}
	}
	c.mustPutFloats(last, states[last], status.TierDisk)
	c.outOfMemory(int64(host), all...)
	warningsOf("")
	c.mustGet(last, states[last], operation.RestoreArgs{})
	if found := warningsOf(mendedText); len(found) > 0 {
		c.t.Errorf("it was written again, and: %q", found)
	}
}

// Whatever is damaged on the disk and in memory: a restore has the right bytes or says that they are damaged.
func TestDamageOfRandomLineages(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { damageOfRandomLineages(t, seed, ends) })
	}
	t.Logf("restores: %v", ends)
	if ends["damaged"] == 0 || ends["mended"] == 0 || ends["right"] == 0 {
		t.Errorf("not each end occurs: %v", ends)
	}
}

func damageOfRandomLineages(t *testing.T, seed uint64, ends map[string]int) {
	const size, keys = 300_000, 7
	r := rand.New(rand.NewPCG(seed, 23))
	cfg := cached(1<<20, 32<<20, vfs.NewMem(256<<20))
	if seed%2 == 1 {
		cfg = stored(1<<20, 32<<20, vfs.NewMem(256<<20))
	}
	c := reducing(t, open(t, cfg), removing[1+int(seed/2)%4])
	states := evolving(size, keys)
	for k, p := range states {
		c.mustPutFloats(int64(k), p, status.TierDisk)
	}
	for range 40 {
		k := r.Int64N(keys)
		switch r.IntN(6) {
		case 0:
			_ = c.h.Corrupt(model.NumberKey(k), status.TierDisk, r.Int64N(size)) // it does nothing where it cannot read what says where the byte is
		case 1:
			_ = c.h.Corrupt(model.NumberKey(k), status.TierHost, r.Int64N(size)) // … and where the checkpoint is not in memory
		default:
			before := c.reduction().Mended
			from, n := int64(0), int64(size)
			if r.IntN(2) == 0 {
				from, n = r.Int64N(size), r.Int64N(50_000)
			}
			got, err := c.stretch(k, from, min(n, size-from))
			switch {
			case err == nil && !bytes.Equal(got, states[k][from:min(from+n, size)]):
				t.Fatalf("checkpoint %d has other bytes from %d on", k, from)
			case err != nil && status.CodeOf(err) != status.Corrupt:
				t.Fatalf("checkpoint %d: %v", k, err)
			case err != nil:
				ends["damaged"]++
			case c.reduction().Mended > before:
				ends["mended"]++
			default:
				ends["right"]++
			}
		}
	}
	drained(t, c.s)
}

// stretch restores a part of a checkpoint.
func (c *client) stretch(k, from, n int64) ([]byte, error) {
	c.t.Helper()
	to := make([]byte, n)
	_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{{Offset: from, Item: n}}})
	return to, err
}

// Restores that take bytes from each other's checkpoints, beside captures that want the room of these, have the right bytes or say that they are damaged. While one
// that has the damaged bytes is lent, all have the right ones.
func TestDamageBesideOtherOperations(t *testing.T) {
	const size, keys = 1 << 20, 6
	for _, lent := range []bool{true, false} {
		t.Run(fmt.Sprint(lent), func(t *testing.T) {
			s := open(t, stored(5<<20, 64<<20, vfs.NewMem(256<<20)))
			c := reducing(t, s, "tree")
			states := evolving(size, keys)
			for k, p := range states {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			var l *operation.Lease
			if lent {
				l = c.mustLease(0, operation.RestoreArgs{})
			}
			c.hurt(keys-1, commonTo(states))
			var right, damaged atomic.Int64
			var all sync.WaitGroup
			for g := range uint64(3) {
				mine, other := newClient(t, s, "h"), newClient(t, s, fmt.Sprint("other", g))
				all.Go(func() { restoresBesideCaptures(mine, other, states, g, &right, &damaged) })
			}
			all.Wait()
			t.Logf("%d restores, %d of them and of the prefetches mended, and %d damaged", right.Load(), c.reduction().Mended, damaged.Load())
			if lent && (c.reduction().Mended == 0 || damaged.Load() > 0) {
				t.Error("not all are right, or none needed another one")
			}
			if lent {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			drained(t, s)
		})
	}
}

func restoresBesideCaptures(mine, other *client, states [][]byte, seed uint64, right, damaged *atomic.Int64) {
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range 60 {
		k := r.IntN(len(states))
		got, _, err := mine.get(int64(k), len(states[k]), operation.RestoreArgs{})
		switch {
		case err == nil && !bytes.Equal(got, states[k]):
			mine.t.Errorf("checkpoint %d has other bytes", k)
		case err == nil:
			right.Inc()
		case status.CodeOf(err) == status.Corrupt:
			damaged.Inc()
		default:
			mine.t.Errorf("checkpoint %d: %v", k, err)
		}
		if i%4 == 0 {
			if _, err := other.put(int64(i%2), random(len(states[0]), uint64(i))); err != nil {
				mine.t.Errorf("beside restores: %v", err)
			}
		}
	}
}

// Bytes that the medium does not read count as damaged. If memory has them not, the error is that of the read.
func TestUnreadableBytesComeFromMemory(t *testing.T) {
	const size, host = 1 << 20, 3 << 20
	rule := &vfs.Rule{Ops: vfs.OpRead, Err: syscall.EIO}
	rule.Disable()
	cfg := cached(host, 64<<20, vfs.NewFaulty(vfs.NewMem(256<<20), rule))
	cfg.Prefetch = false
	s := open(t, cfg)
	c := reducing(t, s, "tree")
	states := evolving(size, 4)
	for k, p := range states {
		c.mustPutFloats(int64(k), p, status.TierDisk)
	}
	c.outOfMemory(host, 0, 1, 2, 3)
	c.mustGet(0, states[0], operation.RestoreArgs{})
	at, err := c.place(3, commonTo(states))
	if err != nil {
		t.Fatal(err)
	}
	warningsOf("")
	rule.From, rule.To = at, at+1
	rule.Enable()
	c.mustGet(3, states[3], operation.RestoreArgs{})
	if found := warningsOf(mendedText); len(found) != 1 || c.reduction().Mended != 1 {
		t.Errorf("%d are mended: %q", c.reduction().Mended, found)
	}
	c.outOfMemory(host, 0, 1, 2, 3)
	for k := range int64(4) {
		_, _, err := c.get(k, size, operation.RestoreArgs{})
		if e := wants(t, err, status.IO); e.Errno != int(syscall.EIO) || e.Tier != status.TierDisk {
			t.Errorf("%+v", e)
		}
	}
	rule.Disable()
	for k, p := range states {
		c.mustGet(int64(k), p, operation.RestoreArgs{})
	}
	drained(t, s)
}

// place is the offset on the disk of bytes that a byte of a checkpoint needs.
func (c *client) place(k, offset int64) (int64, error) {
	c.s.Lock()
	defer c.s.Unlock()
	rec := c.h.h.Get(model.NumberKey(k))
	return c.s.differenceAt(rec.Version, c.s.Engine.Fragment(rec, c.s.HostTier()+1).Offset, offset)
}

// Without checksums nothing proves that bytes from memory are right, so damage stays damage.
func TestUnprovenBytesAreNotMended(t *testing.T) {
	const size, host = 1 << 20, 3 << 20
	for name, change := range map[string]func(*config.Config){
		"no checksums": func(c *config.Config) { c.Checksum = false }, "unverified": func(c *config.Config) { c.Verify = "off" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cached(host, 64<<20, vfs.NewMem(256<<20))
			change(&cfg)
			c := reducing(t, open(t, cfg), "tree")
			states := evolving(size, 2)
			for k, p := range states {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			c.outOfMemory(host, 0, 1)
			c.mustGet(0, states[0], operation.RestoreArgs{})
			warningsOf("")
			c.hurt(1, commonTo(states))
			if _, _, err := c.get(1, size, operation.RestoreArgs{}); status.CodeOf(err) != status.Corrupt || !c.inHost(0) {
				t.Errorf("%v, and the other one is in memory: %v", err, c.inHost(0))
			}
			if found := warningsOf(mendedText); len(found) > 0 {
				t.Errorf("%q", found)
			}
		})
	}
}

// A checkpoint that is encoded on the disk, and damaged there, is read from the host tier as long as that has it.
func TestEncodedDamageIsNotReadBesideMemory(t *testing.T) {
	const size, host = 1 << 20, 3 << 20
	c := reducing(t, open(t, stored(host, 64<<20, vfs.NewMem(256<<20))), "codec")
	p := smooth(size, 1)
	c.mustPutFloats(0, p, status.TierDisk)
	if f := c.reducedTo(); f.encoded != 1 {
		t.Fatalf("%+v", f)
	}
	c.hurt(0, size/2)
	if !c.inHost(0) {
		t.Fatal("it is not in memory")
	}
	c.mustGet(0, p, operation.RestoreArgs{})
	c.outOfMemory(host, 0)
	if _, _, err := c.get(0, size, operation.RestoreArgs{}); status.CodeOf(err) != status.Corrupt {
		t.Errorf("on the disk alone: %v", err)
	}
}
