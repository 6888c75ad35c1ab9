package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// tuned returns versions of weights of which most bytes stay: each version changes the last sixteenth.
func tuned(n, versions int) [][]byte {
	p, fresh := make([]byte, n), rand.NewChaCha8([32]byte{4})
	_, _ = fresh.Read(p)
	all := make([][]byte, versions)
	for k := range all {
		_, _ = fresh.Read(p[n-n/16:])
		all[k] = bytes.Clone(p)
	}
	return all
}

// grew returns how many bytes the disk has more after a checkpoint was written.
func (c *client) grew(k int64, p []byte) int64 {
	c.t.Helper()
	before := c.onDisk()
	c.mustPutFloats(k, p, status.TierDisk)
	return c.onDisk() - before
}

// restarts closes a store, and opens it again with a method for its history.
func restarts(t *testing.T, s *Store, cfg config.Config, method string) (*Store, *client) {
	t.Helper()
	shut(t, s)
	s = open(t, cfg)
	return s, reducing(t, s, method)
}

// refuses counts the warnings about lineages that could not go on.
func refuses() (n int) {
	for _, r := range logring.Drain(1000) {
		if r.Level == logring.Warning && strings.Contains(r.Message, "is stored whole") {
			n++
		}
	}
	return n
}

// The first checkpoint after a store was opened stores what has changed since the last one, in several openings, and all come back in any order.
func TestLineagesGoOn(t *testing.T) {
	const size, each = 1<<20 + 4321, 3
	for _, method := range []string{"basic", "list", "tree", "runs"} {
		for _, lazy := range []bool{false, true} {
			t.Run(fmt.Sprint(method, lazy), func(t *testing.T) {
				cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
				cfg.LazyRows = lazy
				s := open(t, cfg)
				c := reducing(t, s, method)
				logring.Drain(1000)
				states := tuned(size, 4*each)
				for k, p := range states {
					if k > 0 && k%each == 0 {
						s, c = restarts(t, s, cfg, method)
					}
					if grown := c.grew(int64(k), p); k > 0 && grown > size/8 {
						t.Errorf("checkpoint %d takes %d bytes", k, grown)
					}
				}
				if n := refuses(); n > 0 {
					t.Errorf("%d warnings", n)
				}
				for k := range int64(2 * each) { // what the others need stays
					c.drop(k)
				}
				s, c = restarts(t, s, cfg, method)
				for k := int64(4*each - 1); k >= 2*each; k-- {
					c.mustGet(k, states[k], operation.RestoreArgs{Last: true})
				}
				drained(t, s)
			})
		}
	}
}

// A store with other options than before begins anew, and goes on with the old lineage when it gets its options again.
func TestLineagesGoOnWithTheirOptionsAlone(t *testing.T) {
	const size = 1 << 20
	states := tuned(size, 20)
	for name, other := range map[string]Reduction{
		"method": {Method: "list"}, "chunk": {Method: "tree", Chunk: 512}, "digest": {Method: "tree", Digest: "murmur3"},
		"compressor": {Method: "tree", Compressor: "zstd"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := stored(16<<20, 64<<20, vfs.NewMem(256<<20))
			for k, step := range []struct {
				r     Reduction
				whole bool
			}{{Reduction{Method: "tree"}, true}, {other, true}, {Reduction{Method: "tree"}, false}, {other, false}} {
				s := open(t, cfg)
				c := newClient(t, s, "h")
				if err := c.h.Reduce(step.r); err != nil {
					t.Fatal(err)
				}
				for i := 2 * k; i < 2*k+2; i++ {
					if grown := c.grew(int64(i), states[i]); (grown > size/2) != (step.whole && i == 2*k) {
						t.Errorf("%+v: checkpoint %d takes %d bytes", step.r, i, grown)
					}
				}
				for i := range 2*k + 2 {
					c.mustGet(int64(i), states[i], operation.RestoreArgs{})
				}
				shut(t, s)
			}
		})
	}
}

// A checkpoint whose key the next one takes over is still there to compare with.
func TestLineagesGoOnFromAReplacedCheckpoint(t *testing.T) {
	const size = 1 << 20
	cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
	s := open(t, cfg)
	c := reducing(t, s, "tree")
	states := tuned(size, 6)
	for k, p := range states {
		c.mustPutFloats(7, p, status.TierDisk)
		if k > 0 {
			if to := c.reducedTo().to; to > size/8 {
				t.Errorf("checkpoint %d takes %d bytes", k, to)
			}
		}
		s, c = restarts(t, s, cfg, "tree")
		c.mustGet(7, p, operation.RestoreArgs{})
	}
	drained(t, s)
}

// The last checkpoint need not be a difference, and need not be there any more: an earlier one will do.
func TestLineagesGoOnFromAnEarlierCheckpoint(t *testing.T) {
	const size = 1 << 20
	for name, between := range map[string]func(t *testing.T, c *client){
		"plain": func(t *testing.T, c *client) {
			if err := c.h.Reduce(Reduction{Method: "raw"}); err != nil {
				t.Fatal(err)
			}
			c.mustPutFloats(9, random(size, 1), status.TierDisk)
		},
		"encoded": func(t *testing.T, c *client) {
			if err := c.h.Reduce(Reduction{Method: "codec"}); err != nil {
				t.Fatal(err)
			}
			c.mustPutFloats(9, smooth(size, 1), status.TierDisk)
		},
		"dropped": func(_ *testing.T, c *client) { c.drop(2) },
		"small":   func(_ *testing.T, c *client) { c.mustPutFloats(9, random(4096, 1), status.TierDisk) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
			s := open(t, cfg)
			c := reducing(t, s, "tree")
			states := tuned(size, 5)
			for k, p := range states[:3] {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			between(t, c)
			s, c = restarts(t, s, cfg, "tree")
			for k := 3; k < 5; k++ {
				if grown := c.grew(int64(k), states[k]); grown > size/8 {
					t.Errorf("checkpoint %d takes %d bytes", k, grown)
				}
				c.mustGet(int64(k), states[k], operation.RestoreArgs{})
			}
			c.mustGet(1, states[1], operation.RestoreArgs{})
			drained(t, s)
		})
	}
}

// A checkpoint that is dropped before the next one is written, or that all others are, is not referred to.
func TestLineagesDoNotGoOnFromWhatIsDropped(t *testing.T) {
	const size = 1 << 20
	for name, drop := range map[string]func(c *client){
		"last":    func(c *client) { c.drop(2) },
		"all":     func(c *client) { c.drop(2); c.drop(1); c.drop(0) },
		"cleared": func(c *client) { _ = c.h.Clear() },
		"consumed": func(c *client) {
			for k := range int64(3) {
				c.mustGet(k, tuned(size, 5)[k], operation.RestoreArgs{Last: true})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
			s := open(t, cfg)
			c := reducing(t, s, "tree")
			states := tuned(size, 5)
			for k, p := range states[:3] {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			s, c = restarts(t, s, cfg, "tree")
			logring.Drain(1000)
			drop(c)
			for k := 3; k < 5; k++ {
				c.mustPutFloats(int64(k), states[k], status.TierDisk)
			}
			if n := refuses(); n > 0 {
				t.Errorf("%d warnings", n)
			}
			s, c = restarts(t, s, cfg, "tree")
			for k := 3; k < 5; k++ {
				c.mustGet(int64(k), states[k], operation.RestoreArgs{})
			}
			drained(t, s)
		})
	}
}

// Regions that have come, gone or changed their sizes since the last checkpoint cost what is new in them.
func TestLineagesGoOnWithOtherShapes(t *testing.T) {
	const size = 1 << 20
	cfg := stored(8<<20, 64<<20, vfs.NewMem(256<<20))
	s := open(t, cfg)
	c := reducing(t, s, "runs")
	p := random(size+size/4, 1)
	for k, n := range []int{size, size + size/4, size / 2, size + 4} {
		if k > 0 {
			s, c = restarts(t, s, cfg, "runs")
		}
		grown := c.grew(int64(k), p[:n])
		if most := []int64{2 * size, size / 2, size / 8, size * 3 / 4}[k]; grown > most {
			t.Errorf("checkpoint %d of %d bytes takes %d", k, n, grown)
		}
	}
	s, c = restarts(t, s, cfg, "runs")
	for k, n := range []int{size, size + size/4, size / 2, size + 4} {
		c.mustGet(int64(k), p[:n], operation.RestoreArgs{})
	}
	drained(t, s)
}

// Where there is no memory to decode a checkpoint, the next one is stored whole; the window takes what there is.
func TestLineagesGoOnInLittleMemory(t *testing.T) {
	const size = 3 << 20
	states := tuned(size, 3)
	for host, small := range map[int64]bool{4 << 20: true, 3<<20 + 128<<10: true} {
		cfg := stored(host, 64<<20, vfs.NewMem(256<<20))
		s := open(t, cfg)
		c := newClient(t, s, "h")
		r := Reduction{Method: "tree", Chunk: 4096}
		if err := c.h.Reduce(r); err != nil {
			t.Fatal(err)
		}
		c.mustPutFloats(0, states[0], status.TierDisk)
		shut(t, s)
		s = open(t, cfg)
		c = newClient(t, s, "h")
		if err := c.h.Reduce(r); err != nil {
			t.Fatal(err)
		}
		if grown := c.grew(1, states[1]); (grown < size/8) != small {
			t.Errorf("a host tier of %d bytes: the checkpoint takes %d", host, grown)
		}
		c.mustGet(0, states[0], operation.RestoreArgs{})
		c.mustGet(1, states[1], operation.RestoreArgs{})
		shut(t, s)
	}
}

// Damage of the last checkpoint, or a disk that cannot be read, costs the duplicates of the next one alone, and is logged once.
func TestLineagesDoNotGoOnFromDamage(t *testing.T) {
	const size = 1 << 20
	for name, offset := range map[string]int64{"own bytes": size - 5, "bytes of the first one": 5, "unreadable": -1} {
		t.Run(name, func(t *testing.T) {
			unreadable := &vfs.Rule{Ops: vfs.OpRead, Err: unix.EIO}
			unreadable.Disable()
			cfg := stored(8<<20, 64<<20, vfs.NewFaulty(vfs.NewMem(256<<20), unreadable))
			s := open(t, cfg)
			c := reducing(t, s, "tree")
			states := tuned(size, 6)
			for k, p := range states[:3] {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			if offset >= 0 {
				if err := c.h.Corrupt(model.NumberKey(2), status.TierDisk, offset); err != nil {
					t.Fatal(err)
				}
			}
			s, c = restarts(t, s, cfg, "tree")
			logring.Drain(1000)
			if offset < 0 {
				unreadable.Enable()
			}
			for k := 3; k < 6; k++ {
				if grown := c.grew(int64(k), states[k]); (grown > size/2) != (k == 3) {
					t.Errorf("checkpoint %d takes %d bytes", k, grown)
				}
			}
			unreadable.Disable()
			if n := refuses(); n != 1 {
				t.Errorf("%d warnings", n)
			}
			s, c = restarts(t, s, cfg, "tree")
			for k := 3; k < 6; k++ {
				c.mustGet(int64(k), states[k], operation.RestoreArgs{})
			}
			drained(t, s)
		})
	}
}

// The last checkpoint is read behind the caller's back: a capture does not wait for it. What is dropped meanwhile is not referred to, and a store that is closed
// meanwhile ends.
func TestWhileLineagesGoOn(t *testing.T) {
	const size = 1 << 20
	for name, meanwhile := range map[string]struct {
		do    func(c *client)
		refer int64 // checkpoints that refer to others
		kept  []int64
	}{
		"nothing":      {func(*client) {}, 1, []int64{0, 1, 2, 3}},
		"last dropped": {func(c *client) { c.drop(2) }, 1, []int64{0, 1, 3}},
		"all dropped":  {func(c *client) { c.drop(0); c.drop(1); c.drop(2) }, 0, []int64{3}},
		"cleared":      {func(c *client) { _ = c.h.Clear(); c.mustPutFloats(3, tuned(size, 4)[3], status.TierNone) }, 0, []int64{3}},
		"other method": {func(c *client) { _ = c.h.Reduce(Reduction{Method: "raw"}) }, 1, []int64{0, 1, 2, 3}},
		"closed":       {nil, 0, []int64{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			read := gate(vfs.OpRead)
			cfg := stored(8<<20, 64<<20, vfs.NewFaulty(vfs.NewMem(256<<20), read))
			s := open(t, cfg)
			c := reducing(t, s, "runs")
			states := tuned(size, 4)
			for k, p := range states[:3] {
				c.mustPutFloats(int64(k), p, status.TierDisk)
			}
			s, c = restarts(t, s, cfg, "runs")
			logring.Drain(1000)
			read.Enable()
			c.mustPutFloats(3, states[3], status.TierNone)
			fd := eventfd(t)
			wait, code, err := s.Wait(c.h, 0, status.TierDisk, fd)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the last checkpoint is read", func() bool { return read.Blocked() == 1 })
			if meanwhile.do != nil {
				meanwhile.do(c)
				eventually(t, "the drops have landed", func() bool {
					s.Lock()
					defer s.Unlock()
					return s.Disk.Figures().Pending.Tombstones == 0
				})
				read.Release()
				if err := errors.Join(drive(t, wait, code, fd, &operation.Outcome{}), c.wait(0, status.TierDisk)); err != nil {
					t.Fatal(err)
				}
			} else {
				op := s.Close(c.fd)
				read.Release()
				if err := driveClose(t, op, c.fd); err != nil {
					t.Fatal(err)
				}
			}
			if n := refuses(); n > 0 {
				t.Errorf("%d warnings", n)
			}
			if meanwhile.do != nil {
				st, err := s.Stats()
				if err != nil {
					t.Fatal(err)
				}
				if n := st.Histories["h"].Reduction.Differences; n != meanwhile.refer {
					t.Errorf("%d checkpoints refer to others", n)
				}
				if used := c.onDisk(); used > size*3/2 {
					t.Errorf("%d bytes are used", used)
				}
				shut(t, s)
			}
			s = open(t, cfg)
			c = newClient(t, s, "h")
			for _, k := range meanwhile.kept {
				c.mustGet(k, states[k], operation.RestoreArgs{})
			}
			if n, err := c.h.Len(); err != nil || int(n) < len(meanwhile.kept) || meanwhile.do != nil && int(n) != len(meanwhile.kept) {
				t.Errorf("%d checkpoints, %v", n, err)
			}
			drained(t, s)
		})
	}
}

// Whatever is written, replaced, dropped and restored, in stores that are closed or killed and opened again with the same or other options, bytes come back.
func TestRandomOpenings(t *testing.T) {
	const most, keys = 250_000, 6
	methods := []string{"tree", "tree", "tree", "runs", "list", "basic", "tree+zstd", "auto", "raw"}
	r := Reduction{}
	rapid.Check(t, func(rt *rapid.T) {
		fs := vfs.NewMem(256 << 20)
		cfg := stored(4<<20, 32<<20, fs)
		cfg.LazyRows = rapid.Bool().Draw(rt, "lazy")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		p, fresh := make([]byte, most), rand.NewChaCha8([32]byte{5})
		_, _ = fresh.Read(p)
		have := map[int64][]byte{}
		var s *Store
		var c *client
		opens := func() {
			var err error
			if s, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
			c = newClient(t, s, "h")
			r = reduction(rapid.SampledFrom(methods).Draw(rt, "method"))
			if r.Method == "tree" && rapid.Bool().Draw(rt, "small") {
				r.Chunk = 128
			}
			if err := c.h.Reduce(r); err != nil {
				t.Fatal(err)
			}
		}
		opens()
		defer func() { shut(t, s) }()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			k := random.Int64N(keys)
			switch what := rapid.SampledFrom([]string{"put", "put", "put", "drop", "get", "consume", "open", "kill"}).Draw(rt, "step"); {
			case what == "put":
				for range random.IntN(4) {
					n := min(1+random.IntN(20_000), most)
					_, _ = fresh.Read(p[random.IntN(most-n+1):][:n])
				}
				have[k] = bytes.Clone(p[:most-random.IntN(3)*random.IntN(most/2)])
				c.mustPutFloats(k, have[k], status.TierDisk)
			case what == "open":
				shut(t, s)
				opens()
			case what == "kill":
				after := fs.Crash(random, random.Float64())
				shut(t, s)
				fs = after
				cfg.FS = fs
				opens()
				found, err := c.h.Keys() // those that were dropped may be there
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range found {
					if have[key.Number] == nil {
						c.drop(key.Number)
					}
				}
			case have[k] == nil:
			case what == "drop":
				c.drop(k)
				delete(have, k)
			case what == "get":
				c.mustGet(k, have[k], operation.RestoreArgs{})
			case what == "consume":
				c.mustGet(k, have[k], operation.RestoreArgs{Last: true})
				delete(have, k)
			}
		}
		shut(t, s)
		opens()
		for k, want := range have {
			c.mustGet(k, want, operation.RestoreArgs{Last: true})
		}
		drained(t, s)
	})
}
