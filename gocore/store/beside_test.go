package store

import (
	"bytes"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// A chunk counts as a duplicate of the one before it only if the bytes in the host tier say so, too: digests can collide. Here a bit of the copy is flipped, so that
// the bytes differ and the digests do not.
func TestDuplicatesAreComparedWithTheHostsCopy(t *testing.T) {
	const size, chunk = 1<<20 + 300, 1024
	for _, durable := range []bool{false, true} {
		for _, method := range removing[1:] {
			cfg := cached(16<<20, 64<<20, vfs.NewMem(256<<20))
			if durable {
				cfg = stored(16<<20, 64<<20, vfs.NewMem(256<<20))
			}
			s := open(t, cfg)
			c := reducing(t, s, method)
			p := random(size, 1)
			c.mustPutFloats(0, p, status.TierDisk)
			for _, at := range []int64{5*chunk + 3, 700 * chunk, size - 1} {
				if err := c.h.Corrupt(model.NumberKey(0), status.TierHost, at); err != nil {
					t.Fatal(err)
				}
			}
			before := c.reduction().FirstBytes
			c.mustPutFloats(1, p, status.TierDisk)
			if n := c.reduction().FirstBytes - before; n != 2*chunk+size%chunk {
				t.Errorf("%s: %d bytes are stored anew", method, n)
			}
			before = c.reduction().FirstBytes
			c.mustPutFloats(2, p, status.TierDisk)
			if n := c.reduction().FirstBytes - before; n != 0 {
				t.Errorf("%s: %d bytes are stored anew of what equals the copy", method, n)
			}
			for k := range int64(3) {
				c.mustGet(k, p, operation.RestoreArgs{Last: k == 2})
			}
			drained(t, s)
			shut(t, s)
		}
	}
}

// That is so for the first checkpoint after an opening, too, if the host tier has loaded the last one.
func TestTheFirstOneIsComparedWithTheHostsCopy(t *testing.T) {
	const size, chunk = 1<<20 + 300, 1024
	for _, lazy := range []bool{false, true} {
		for _, loaded := range []bool{false, true} {
			cfg := stored(16<<20, 64<<20, vfs.NewMem(256<<20))
			cfg.LazyRows = lazy
			s := open(t, cfg)
			c := reducing(t, s, "tree")
			p := random(size, 1)
			c.mustPutFloats(0, p, status.TierDisk)
			s, c = restarts(t, s, cfg, "tree")
			want := int64(0)
			if loaded {
				c.mustGet(0, p, operation.RestoreArgs{})
				if err := c.h.Corrupt(model.NumberKey(0), status.TierHost, 5*chunk+3); err != nil {
					t.Fatal(err)
				}
				want = chunk
			}
			c.mustPutFloats(1, p, status.TierDisk)
			if n := c.reduction().FirstBytes; n != want {
				t.Errorf("lazy %v, loaded %v: %d bytes are stored anew", lazy, loaded, n)
			}
			c.mustGet(1, p, operation.RestoreArgs{})
			drained(t, s)
			shut(t, s)
		}
	}
}

// The copy with which a checkpoint is compared may be dropped, lent for the last time or replaced, and its room wanted, at any time.
func TestTheComparedCopyIsGivenUp(t *testing.T) {
	const size = 700_000
	states := tuned(size, 40)
	for _, host := range []int64{1 << 20, 2 << 20, 5 << 20} {
		s := open(t, stored(host, 64<<20, vfs.NewMem(256<<20)))
		c := reducing(t, s, "tree")
		for k, p := range states {
			c.mustPutFloats(int64(k%7), p, status.TierNone)
			switch k % 5 {
			case 1:
				c.mustGet(int64(k%7), p, operation.RestoreArgs{Last: true})
			case 2:
				c.drop(int64(k % 7))
			case 3:
				l := c.mustLease(int64(k%7), operation.RestoreArgs{})
				if !bytes.Equal(view(l, size), p) {
					t.Errorf("host %d: checkpoint %d differs", host, k)
				}
				release(t, l)
			}
		}
		if err := c.wait(0, status.TierDisk); err != nil {
			t.Fatal(err)
		}
		drained(t, s)
		shut(t, s)
	}
}
