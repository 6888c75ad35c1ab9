package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/operation"
)

// removing are the methods that remove duplicates.
var removing = []string{"full", "basic", "list", "tree", "runs"}

// lineages are those whose checkpoints have a lineage.
var lineages = append([]string{"reference"}, removing...)

// evolving returns version k of a state of which each version changes a few bytes, and moves some to other places.
func evolving(n int, versions int) [][]byte {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(p)
	all := make([][]byte, versions)
	for k := range all {
		for range 5 {
			p[r.IntN(n)]++
		}
		from, to, m := r.IntN(n-8192)/512*512, r.IntN(n-8192)/512*512, 4096
		copy(p[to:to+m], p[from:from+m])
		all[k] = bytes.Clone(p)
	}
	return all
}

// A history that is de-duplicated takes what is new in its checkpoints, which come back in any order, also when those before are gone.
func TestDuplicatesAreStoredOnce(t *testing.T) {
	const size, count = 1<<20 + 4321, 12
	states := evolving(size, count)
	for _, durable := range []bool{false, true} {
		for _, method := range lineages {
			t.Run(fmt.Sprint(method, durable), func(t *testing.T) {
				fs := vfs.NewMem(256 << 20)
				cfg := cached(8<<20, 64<<20, fs)
				if durable {
					cfg = stored(8<<20, 64<<20, fs)
				}
				s, err := Open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { shut(t, s) }()
				c := reducing(t, s, method)
				for k, p := range states {
					c.mustPutFloats(int64(k), p, status.TierDisk)
				}
				f := c.reducedTo()
				if f.encoded != count || f.plain != 0 || f.from != count*size {
					t.Fatalf("%+v", f)
				}
				if most := int64(2 * size); method != "full" && f.to > most {
					t.Errorf("%d bytes, of %d", f.to, f.from)
				}
				if used := c.onDisk(); used < f.to || used > f.to+count*4096 {
					t.Errorf("%d bytes are used on disk, for %d that were written", used, f.to)
				}
				for k := int64(0); k < count-3; k++ { // what the others need stays
					c.drop(k)
				}
				if durable {
					shut(t, s)
					if s, err = Open(cfg); err != nil {
						t.Fatal(err)
					}
					c = newClient(t, s, "h")
				}
				for k := int64(count - 1); k >= count-3; k-- {
					if !durable {
						c.evict(k, 8<<20)
					}
					c.mustGet(k, states[k], operation.RestoreArgs{Last: k%2 == 0})
				}
				c.drop(count - 1)
				c.drop(count - 3)
				drained(t, s)
			})
		}
	}
}

// Whatever is written, replaced, dropped and restored, bytes come back as they were, and the disk is empty in the end.
func TestRandomLineages(t *testing.T) {
	const size, keys = 200_000, 8
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 17))
			cfg := cached(2<<20, 16<<20, vfs.NewMem(256<<20))
			if seed%2 == 1 {
				cfg = stored(2<<20, 16<<20, vfs.NewMem(256<<20))
			}
			s := open(t, cfg)
			c := reducing(t, s, lineages[int(seed/2)%len(lineages)])
			states, now := evolving(size, 60), 0
			have := map[int64][]byte{}
			for range 150 {
				k := r.Int64N(keys)
				switch want := have[k]; {
				case r.IntN(3) == 0 && now < len(states):
					p := states[now][:size-r.IntN(2)*r.IntN(50_000)]
					tier := status.TierNone
					if r.IntN(2) == 0 {
						tier = status.TierDisk
					}
					c.mustPutFloats(k, p, tier)
					have[k], now = p, now+1
				case want != nil && r.IntN(4) == 0:
					c.drop(k)
					delete(have, k)
				case want != nil && r.IntN(3) == 0:
					c.mustGet(k, want, operation.RestoreArgs{Last: true})
					delete(have, k)
				case want != nil:
					c.mustGet(k, want, operation.RestoreArgs{})
				}
			}
			for k, want := range have {
				c.mustGet(k, want, operation.RestoreArgs{Last: true})
			}
			drained(t, s)
		})
	}
}

// After a failed sync nothing new refers to objects in that file: what becomes durable later comes back after a loss of power, as does all that was before.
func TestDuplicatesAfterAFailedSync(t *testing.T) {
	for _, method := range slices.DeleteFunc(slices.Clone(lineages), func(m string) bool { return m == "full" }) {
		w := newWatched()
		cfg := stored(8<<20, 256<<20, w)
		c := reducing(t, reopened(t, cfg), method)
		states, want := evolving(300_000, 9), map[int64][]byte{}
		for k, p := range states {
			switch k {
			case 4:
				w.fails.Enable()
			case 6:
				w.fails.Disable()
			}
			out, err := c.put(int64(k), p)
			if err == nil {
				err = c.wait(out.Ticket, status.TierDisk)
			}
			if bad := k == 4 || k == 5; (err != nil) != bad {
				t.Fatalf("%s: checkpoint %d: %v", method, k, err)
			} else if !bad {
				want[int64(k)] = p
			}
		}
		if f := c.reducedTo(); f.to > f.from*2/3 {
			t.Errorf("%s: %+v", method, f)
		}
		x := cfg
		x.FS = w.disk.Crash(rand.New(rand.NewPCG(1, 1)), 0)
		after := newClient(t, reopened(t, x), "h")
		for k, p := range want {
			c.mustGet(k, p, operation.RestoreArgs{})
			after.mustGet(k, p, operation.RestoreArgs{})
		}
	}
}

// Bytes that do not become smaller fill all of their blocks. Later checkpoints refer to them all the same.
func TestDuplicatesOfIncompressibleBytes(t *testing.T) {
	const count = 6
	for _, size := range []int{1 << 20, 72 << 10, 3<<20 + 4096} {
		for _, method := range lineages {
			t.Run(fmt.Sprint(method, size), func(t *testing.T) {
				cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
				s := open(t, cfg)
				c := reducing(t, s, method)
				states := evolving(size, count)
				for k, p := range states {
					c.mustPutFloats(int64(k), p, status.TierDisk)
				}
				f := c.reducedTo()
				if f.encoded != count || f.plain != 0 {
					t.Fatalf("%+v", f)
				}
				if most := int64(size + size/32 + count*64<<10); method != "full" && f.to > most {
					t.Errorf("%d bytes, of %d", f.to, f.from)
				}
				if used := c.onDisk(); used < f.to || used > f.to+count*4096 {
					t.Errorf("%d bytes are used on disk, for %d that were written", used, f.to)
				}
				shut(t, s)
				s = open(t, cfg)
				c = newClient(t, s, "h")
				for k, p := range states {
					c.mustGet(int64(k), p, operation.RestoreArgs{Last: true})
				}
				drained(t, s)
			})
		}
	}
}

// A checkpoint whose tree of digests has no room in memory is not de-duplicated, with one warning for the history. With larger chunks it is.
func TestTreesThatDoNotFit(t *testing.T) {
	const size, count = 3 << 20, 4
	for chunk, fits := range map[int]bool{32: false, 4096: true} {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			s := open(t, cached(8<<20, 64<<20, vfs.NewMem(128<<20)))
			c := newClient(t, s, "h")
			if err := c.h.Reduce(Reduction{Method: "tree", Chunk: chunk}); err != nil {
				t.Fatal(err)
			}
			logring.Drain(1000)
			p := evolving(size, 1)[0]
			for k := range int64(count) {
				c.mustPutFloats(k, p, status.TierDisk)
			}
			warnings := 0
			for _, r := range logring.Drain(1000) {
				if strings.Contains(r.Message, "larger chunks need less") {
					warnings++
				}
			}
			used, want := c.onDisk(), map[bool]int{true: 0, false: 1}[fits]
			if once := used < 2*size; once != fits || warnings != want {
				t.Errorf("%d bytes on the disk, %d warnings", used, warnings)
			}
			for k := range int64(count) {
				c.mustGet(k, p, operation.RestoreArgs{})
			}
			drained(t, s)
		})
	}
}
