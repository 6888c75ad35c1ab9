package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/figures"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// smooth returns floats of four bytes each that differ little from their neighbours.
func smooth(n int, seed uint64) []byte {
	p := make([]byte, n)
	phase := float64(seed)
	for i := 0; i+4 <= n; i += 4 {
		binary.LittleEndian.PutUint32(p[i:], math.Float32bits(float32(math.Sin(float64(i)/3000+phase))))
	}
	return p
}

// reducing opens a history of a store with a method.
func reducing(t *testing.T, s *Store, method string) *client {
	t.Helper()
	c := newClient(t, s, "h")
	if err := c.h.Reduce(reduction(method)); err != nil {
		t.Fatal(err)
	}
	return c
}

// onDisk is how many bytes the disk tier has.
func (c *client) onDisk() int64 {
	c.t.Helper()
	st, err := c.s.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	return st.Tiers["disk"].Used
}

// reduction returns what the reduction of the history did.
func (c *client) reduction() *figures.Reduction {
	c.t.Helper()
	st, err := c.s.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	f := st.Histories["h"].Reduction
	if f == nil {
		c.t.Fatal("the history is not reduced")
	}
	return f
}

// reducedTo returns its figures of encoding.
func (c *client) reducedTo() reductionFigures {
	c.t.Helper()
	f := c.reduction()
	return reductionFigures{f.Encoded, f.Plain, f.EncodedFrom, f.EncodedTo, f.Decoded}
}

type reductionFigures struct{ encoded, plain, from, to, decoded int64 }

// floats is the layout of one region of floats of four bytes each, or of bytes where they are no whole floats; see docs/format.md.
func floats(n int) []byte {
	if n%4 != 0 {
		return []byte(description.Bytes(int64(n)).Text)
	}
	p := []byte("L\x02\x01\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00" + "\x00\x00\x00\x00" + "\x03\x00\x00\x00<f4")
	p = binary.LittleEndian.AppendUint64(p, 4)
	p = binary.LittleEndian.AppendUint64(append(p, 1), uint64(n/4))
	p = binary.LittleEndian.AppendUint64(append(p, 0), 0)
	return binary.LittleEndian.AppendUint64(p, uint64(n))
}

func (c *client) mustPutFloats(k int64, p []byte, tier int) {
	c.t.Helper()
	out, err := c.write(&operation.CheckpointArgs{
		Key: model.NumberKey(k), Regions: []model.Region{region(p, 0)}, Layout: floats(len(p)), Slot: int64(len(p)), FD: c.fd, Tier: tier,
	})
	if err == nil {
		err = c.wait(out.Ticket, tier)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// Encoded checkpoints take less room on disk, also those that go there straight from the caller, and come back exactly, also in a new store.
func TestEncodedCheckpointsComeBack(t *testing.T) {
	const size, count = 3<<20 + 1236, 8
	for name, tc := range map[string]struct {
		host    int64
		durable bool
		verify  string
		method  string
	}{
		"by way of the host": {host: 8 << 20}, "straight": {}, "durable": {host: 8 << 20, durable: true}, "durable, straight": {durable: true},
		"unverified": {host: 8 << 20, durable: true, verify: "off"},
		"zstd":       {host: 8 << 20, durable: true, method: "codec+zstd"}, "s2, straight": {method: "codec+s2"}, "huff0, unverified": {verify: "off", method: "codec+huff0"},
	} {
		t.Run(name, func(t *testing.T) {
			method := cmp.Or(tc.method, "codec")
			fs := vfs.NewMem(256 << 20)
			cfg := cached(tc.host, 64<<20, fs)
			if tc.durable {
				cfg = stored(tc.host, 64<<20, fs)
				cfg.SegmentBytes = 8 << 20
			}
			cfg.Verify = tc.verify
			s, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { shut(t, s) }()
			c := reducing(t, s, method)
			for k := range int64(count) {
				c.mustPutFloats(k, smooth(size, uint64(k)), status.TierDisk)
			}
			f := c.reducedTo()
			if f.encoded != count || f.plain != 0 || f.from != count*size || f.to >= f.from*9/10 {
				t.Fatalf("%+v", f)
			}
			if used := c.onDisk(); used < f.to || used > f.to+count*4096 {
				t.Errorf("%d bytes are used on disk, for %d that were written", used, f.to)
			}
			if tc.durable {
				shut(t, s)
				if s, err = Open(cfg); err != nil {
					t.Fatal(err)
				}
				c = newClient(t, s, "h")
				if used := c.onDisk(); used < f.to || used > f.to+count*4096 {
					t.Errorf("%d bytes are used on disk, for %d that were written, after the store was opened again", used, f.to)
				}
			}
			for k := int64(count) - 1; k >= 0; k-- {
				c.mustGet(k, smooth(size, uint64(k)), operation.RestoreArgs{Last: true})
			}
			drained(t, s)
		})
	}
}

// Each checkpoint stays as it was written, whichever compressor its history gets then, also in a store that is opened again.
func TestCompressorsComeAndGo(t *testing.T) {
	const size = 600_001
	cfg := stored(8<<20, 256<<20, vfs.NewMem(512<<20))
	s := open(t, cfg)
	methods := []string{"codec", "codec+zstd", "tree+s2", "tree", "tree+s2", "codec+huff0", "raw", "codec+zstd"}
	want := func(k int) []byte { return few(size, uint64(k)) }
	c := reducing(t, s, methods[0])
	for k, method := range methods {
		if err := c.h.Reduce(reduction(method)); err != nil {
			t.Fatal(err)
		}
		c.mustPutFloats(int64(k), want(k), status.TierDisk)
	}
	sections := func(c *client) (all []bool) {
		c.s.Lock()
		defer c.s.Unlock()
		for k := range methods {
			v := c.h.h.Get(model.NumberKey(int64(k))).Version
			all = append(all, v.Encoding != nil && v.Encoding.Sections || v.Difference != nil && v.Difference.Sections)
		}
		return all
	}
	expected := []bool{false, true, true, false, true, true, false, true}
	if got := sections(c); !slices.Equal(got, expected) {
		t.Errorf("containers with sections: %v", got)
	}
	shut(t, s)
	s = reopened(t, cfg)
	c = newClient(t, s, "h")
	if got := sections(c); !slices.Equal(got, expected) {
		t.Errorf("containers with sections after the store was opened again: %v", got)
	}
	for k := range methods {
		c.mustGet(int64(k), want(k), operation.RestoreArgs{Last: true})
	}
	for _, bad := range []Reduction{{Method: "raw", Compressor: "s2"}, {Method: "auto", Compressor: "zstd"}, {Method: "codec", Compressor: "gzip"}} {
		if err := c.h.Reduce(bad); status.CodeOf(err) != status.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What does not become smaller is written as it is, and costs no room.
func TestRandomBytesStayPlain(t *testing.T) {
	for _, method := range []string{"codec", "auto", "codec+zstd", "codec+huff0"} {
		t.Run(method, func(t *testing.T) { staysPlain(t, method) })
	}
}

func staysPlain(t *testing.T, method string) {
	const size, count = 1<<20 + 5, 6
	s := open(t, cached(8<<20, 256<<20, vfs.NewMem(512<<20)))
	c := reducing(t, s, method)
	r := rand.NewChaCha8([32]byte{1})
	all := make([][]byte, count)
	for k := range all {
		all[k] = make([]byte, size)
		_, _ = r.Read(all[k])
		c.mustPutFloats(int64(k), all[k], status.TierDisk)
	}
	if f := c.reducedTo(); f.encoded != 0 || f.plain != count || f.to > f.from+f.from/500 {
		t.Errorf("%s: %+v", method, f)
	}
	if used := c.onDisk(); used != count*(size+4095)/4096*4096 && used > count*(size+4096) {
		t.Errorf("%s: %d bytes are used", method, used)
	}
	for k := range all {
		c.evict(int64(k), 8<<20)
		c.mustGet(int64(k), all[k], operation.RestoreArgs{Last: true})
	}
}

// A checkpoint whose containers would be larger than it is written as it is after all, whatever a sample said.
func TestWhatDoesNotPayAfterAll(t *testing.T) {
	countsDiskBytes(t)
	for name, host := range map[string]int64{"by way of the host": 8 << 20, "straight": 0} {
		for _, durable := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				cfg := cached(host, 256<<20, vfs.NewMem(512<<20))
				if durable {
					cfg = stored(host, 256<<20, vfs.NewMem(512<<20))
				}
				s := open(t, cfg)
				c := reducing(t, s, "codec")
				p := make([]byte, 700_001)
				_, _ = rand.NewChaCha8([32]byte{2}).Read(p)
				for k := range int64(3) {
					s.Lock()
					for layout := range uint64(5) { // the store's numbers of layouts are small
						s.Reductions["h"].Planner.Sampled(layout, []regions.Choice{{Kind: codec.Float32, Modes: codec.AllModes}}, 1000, 1)
					}
					s.Unlock()
					p[0] = byte(k)
					c.mustPutFloats(k, p, status.TierDisk)
					if host > 0 {
						c.evict(k, 8<<20)
					}
					c.mustGet(k, p, operation.RestoreArgs{})
				}
				if f := c.reducedTo(); f.encoded != 0 || f.plain < 3 {
					t.Errorf("%+v", f)
				}
			})
		}
	}
}

// Small checkpoints, and those of histories that are not reduced any more, stay as they are.
func TestWhatIsNotReduced(t *testing.T) {
	s := open(t, cached(8<<20, 256<<20, vfs.NewMem(512<<20)))
	c := reducing(t, s, "codec")
	c.mustPutFloats(1, smooth(64<<10, 1), status.TierDisk)
	c.mustPutFloats(2, smooth(64<<10+4, 1), status.TierDisk)
	if f := c.reducedTo(); f.encoded != 1 || f.plain != 0 {
		t.Errorf("%+v", f)
	}
	if err := c.h.Reduce(Reduction{Method: "raw"}); err != nil {
		t.Fatal(err)
	}
	c.mustPutFloats(3, smooth(1<<20, 1), status.TierDisk)
	if f := c.reducedTo(); f.encoded != 1 || f.plain != 0 {
		t.Errorf("%+v", f)
	}
	if err := c.h.Reduce(Reduction{Method: "zip"}); status.CodeOf(err) != status.Invalid {
		t.Errorf("a method that is not known: %v", err)
	}
	for k, n := range map[int64]int{1: 64 << 10, 2: 64<<10 + 4, 3: 1 << 20} {
		c.evict(k, 8<<20)
		c.mustGet(k, smooth(n, 1), operation.RestoreArgs{Last: true})
	}
}

// Of an encoded region on disk a part brings up the containers that it touches, and no others.
func TestPartsOfEncodedRegions(t *testing.T) {
	const rows, row = 64, checksum.LeafBytes / 2
	s := open(t, cached(24<<20, 256<<20, vfs.NewMem(512<<20)))
	c := reducing(t, s, "codec")
	m := &matrix{rows: rows, row: row, bytes: smooth(rows*row, 3)}
	c.mustPutFloats(1, m.bytes, status.TierDisk)
	c.pushOut(1)
	whole := c.reducedTo().to
	read := c.readFromDisk()
	w := window{first: 10, step: 1, rows: 3, from: 7, n: 1000}
	to := make([]byte, w.rows*w.n)
	if _, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(to, m.bytesIn(w)) {
		t.Fatal("the part differs")
	}
	if n := c.readFromDisk() - read; n == 0 || n > whole/4 {
		t.Errorf("%d bytes of %d were read for one container of eight", n, whole)
	}
}

// A flipped bit on disk is found, named by region, and other regions come back.
func TestDamageInEncodedCheckpoints(t *testing.T) {
	for _, verify := range []string{"moved", "off"} {
		t.Run(verify, func(t *testing.T) { damageIsFound(t, verify) })
	}
}

func damageIsFound(t *testing.T, verify string) {
	c0 := stored(8<<20, 256<<20, vfs.NewMem(512<<20))
	c0.Verify, c0.Guess = verify, false // a guess would bring the checkpoint up
	s := open(t, c0)
	c := reducing(t, s, "codec")
	parts := [][]byte{few(400_000, 1), nil, few(1<<20+77, 2), few(100, 3)}
	var all []model.Region
	slot := int64(0)
	for _, p := range parts {
		all = append(all, region(p, slot))
		slot += (int64(len(p)) + 63) / 64 * 64
	}
	for k, bad := range []int{0, 2, 3} {
		key := model.NumberKey(int64(k))
		out, err := c.write(&operation.CheckpointArgs{Key: key, Regions: all, Layout: []byte("four"), Slot: slot, FD: c.fd, Tier: status.TierDisk})
		if err == nil {
			err = c.wait(out.Ticket, status.TierDisk)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.evict(int64(k), 8<<20)
		if err := c.h.Corrupt(key, status.TierDisk, all[bad].Offset+rand.Int64N(all[bad].Bytes)); err != nil {
			t.Fatal(err)
		}
		_, _, err = c.lease(int64(k), operation.RestoreArgs{})
		if e := wants(t, err, status.Corrupt); e.Tier != status.TierDisk || e.Region != bad {
			t.Fatalf("region %d: %+v", bad, e)
		}
		var others []int32
		for i := range parts {
			if i != bad {
				others = append(others, int32(i))
			}
		}
		release(t, c.mustLease(int64(k), operation.RestoreArgs{Select: others}))
		c.drop(int64(k))
	}
}

// few returns bytes that differ little from their neighbours.
func few(n int, seed uint64) []byte {
	p := random(n, seed)
	for i := range p {
		p[i] &= 7
	}
	return p
}

// The method belongs to the history and the process: a store that is opened again keeps what it has, and writes plain checkpoints until it is told.
func TestTheMethodIsNotStored(t *testing.T) {
	fs := vfs.NewMem(256 << 20)
	cfg := func() config.Config { return stored(8<<20, 64<<20, fs) }
	s := open(t, cfg())
	c := reducing(t, s, "codec")
	c.mustPutFloats(1, smooth(1<<20, 1), status.TierDisk)
	encoded := c.onDisk()
	shut(t, s)
	s = reopened(t, cfg())
	h, err := s.History("h")
	if err != nil {
		t.Fatal(err)
	}
	c = &client{t: t, s: s, h: h, fd: eventfd(t)}
	c.mustPutFloats(2, smooth(1<<20, 1), status.TierDisk)
	if n := c.onDisk() - encoded; n != 1<<20 {
		t.Errorf("%d bytes for the second checkpoint", n)
	}
	c.mustGet(1, smooth(1<<20, 1), operation.RestoreArgs{})
	c.mustGet(2, smooth(1<<20, 1), operation.RestoreArgs{})
}

// Flushes beside each other get the room that is predicted for them, so that a disk holds what its ratio promises; one that needs more is repeated.
func TestRoomOnDiskIsPredicted(t *testing.T) {
	const size, count = 1 << 20, 24
	for _, durable := range []bool{false, true} {
		t.Run(map[bool]string{false: "scratch", true: "durable"}[durable], func(t *testing.T) {
			cfg := cached(8<<20, 16<<20, vfs.NewMem(512<<20))
			if durable {
				cfg = stored(8<<20, 16<<20, vfs.NewMem(512<<20))
			}
			cfg.Flush = "eager"
			s := open(t, cfg)
			c := reducing(t, s, "codec")
			want := func(k int64) []byte {
				if k%7 == 6 { // larger than those before
					return random(size, uint64(k))
				}
				return few(size, uint64(k))
			}
			for k := range int64(count) {
				out, err := c.write(&operation.CheckpointArgs{
					Key: model.NumberKey(k), Regions: []model.Region{region(want(k), 0)}, Layout: []byte("few"), Slot: size, FD: c.fd, Tier: status.TierNone,
				})
				if err != nil {
					t.Fatal(err)
				}
				if k%6 == 5 {
					if err := c.wait(out.Ticket, status.TierDisk); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.wait(0, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			if f := c.reducedTo(); f.plain != 0 && *reduced == "raw" && f.plain != count/7 {
				t.Errorf("%+v", f)
			}
			for k := int64(count) - 1; k >= 0; k-- {
				c.mustGet(k, want(k), operation.RestoreArgs{Last: true})
			}
		})
	}
}

// A restore of a part counts the bytes that it decoded, not those of the checkpoint.
func TestPartsCountWhatTheyDecode(t *testing.T) {
	const rows, row = 64, checksum.LeafBytes / 2
	s := open(t, cached(24<<20, 64<<20, vfs.NewMem(64<<20)))
	c := reducing(t, s, "codec")
	m := &matrix{rows: rows, row: row, bytes: smooth(rows*row, 3)}
	c.mustPutFloats(1, m.bytes, status.TierDisk)
	c.pushOut(1)
	s.Lock()
	before := s.Reductions["h"].Figures.DecodedBytes
	s.Unlock()
	w := window{first: 10, step: 1, rows: 1, from: 7, n: 1000}
	to := make([]byte, w.rows*w.n)
	if _, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}}); err != nil {
		t.Fatal(err)
	}
	s.Lock()
	defer s.Unlock()
	if n := s.Reductions["h"].Figures.DecodedBytes - before; n != checksum.LeafBytes {
		t.Errorf("%d bytes are counted for a part in one leaf", n)
	}
}

// With "auto" differences are tried where chunks of a checkpoint equal those of the one before, and, where the host tier does not have that one any more, without
// a look. They are not tried where no chunk is equal.
func TestAutoLooksForDuplicates(t *testing.T) {
	const size, count = 1 << 20, 16
	for name, x := range map[string]struct {
		changed int  // bytes of a checkpoint
		evicts  bool // the checkpoint before
		tries   bool
	}{"little is new": {size / 20, false, true}, "all is new": {size, false, false}, "all is new, unseen": {size, true, true}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, cached(8<<20, 256<<20, vfs.NewMem(512<<20)))
			c := reducing(t, s, "auto")
			all, r := make([][]byte, count), rand.NewChaCha8([32]byte{2})
			last := make([]byte, size)
			_, _ = r.Read(last)
			for k := range all {
				at := k * size / count
				_, _ = r.Read(last[at:min(size, at+x.changed)])
				_, _ = r.Read(last[:max(0, at+x.changed-size)])
				all[k] = bytes.Clone(last)
				c.mustPutFloats(int64(k), all[k], status.TierDisk)
				if x.evicts {
					c.evict(int64(k), 8<<20)
				}
			}
			if f := c.reducedTo(); (f.encoded > 0) != x.tries {
				t.Errorf("%+v", f)
			}
			for k := range all {
				c.mustGet(int64(k), all[k], operation.RestoreArgs{})
			}
		})
	}
}
