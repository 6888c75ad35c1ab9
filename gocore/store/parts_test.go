package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/devicememory"
)

// A matrix is a region of rows of bytes.
type matrix struct {
	rows, row int64
	offset    int64 // in the slot
	bytes     []byte
}

// window is a part of a matrix: some bytes of some rows.
type window struct{ first, step, rows, from, n int64 }

func (m *matrix) part(w window) model.Part {
	if w.rows == 0 || w.n == 0 {
		return model.Part{Offset: min(w.first*m.row+w.from, m.rows*m.row), Item: w.n, Shape: []int64{w.rows}, Strides: []int64{1}}
	}
	return model.Part{Offset: w.first*m.row + w.from, Item: w.n, Shape: []int64{w.rows}, Strides: []int64{w.step * m.row}}
}

func (m *matrix) bytesIn(w window) (p []byte) {
	for i := range w.rows {
		at := (w.first+i*w.step)*m.row + w.from
		p = append(p, m.bytes[at:at+w.n]...)
	}
	return p
}

// at returns the offset in the slot of a byte of a window.
func (m *matrix) at(w window, byte int64) int64 {
	return m.offset + (w.first+byte/w.n*w.step)*m.row + w.from + byte%w.n
}

// drawMatrices draws up to 3 matrices of other random bytes each, so that none shares chunks with another.
func drawMatrices(t *rapid.T) (all []*matrix, slot int64) {
	for i := range rapid.IntRange(1, 3).Draw(t, "regions") {
		m := &matrix{rows: rapid.Int64Range(1, 9).Draw(t, "rows"), offset: slot}
		m.row = rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, 200_000)).Draw(t, "row")
		m.bytes = random(int(m.rows*m.row), 3*rapid.Uint64Range(0, 1000).Draw(t, "seed")+uint64(i))
		all, slot = append(all, m), (slot+m.rows*m.row+4095)&^4095
	}
	return all, slot
}

func (m *matrix) draw(t *rapid.T) window {
	w := window{first: rapid.Int64Range(0, m.rows-1).Draw(t, "first"), step: rapid.Int64Range(1, 3).Draw(t, "step")}
	w.rows = rapid.Int64Range(0, (m.rows-w.first+w.step-1)/w.step).Draw(t, "rows")
	w.from = rapid.Int64Range(0, m.row-1).Draw(t, "from")
	w.n = rapid.Int64Range(0, m.row-w.from).Draw(t, "bytes")
	return w
}

func matricesIn(all []*matrix, regions func(m *matrix) model.Region) (a operation.CheckpointArgs) {
	for _, m := range all {
		r := regions(m)
		r.Offset = m.offset
		a.Regions, a.Slot = append(a.Regions, r), m.offset+int64(len(m.bytes))
		a.Layout = fmt.Append(a.Layout, len(m.bytes), " ", m.offset, ";")
	}
	return a
}

// places are the ways in which a checkpoint can lie in a store when a part of it is restored.
var places = map[string]struct {
	host, disk int64
	durable    bool
	stays      bool
	reopen     bool
	tier       int
	verify     string
	unsummed   bool
}{
	"host":               {host: 16 << 20, tier: status.TierHost},
	"host, borrowed":     {host: 16 << 20, stays: true, tier: status.TierHost},
	"disk":               {host: 16 << 20, disk: 64 << 20, tier: status.TierDisk},
	"past the host":      {host: 64, disk: 64 << 20, tier: status.TierDisk},
	"durable":            {host: 16 << 20, disk: 64 << 20, durable: true, reopen: true, tier: status.TierDisk},
	"durable, past":      {host: 64, disk: 64 << 20, durable: true, reopen: true, tier: status.TierDisk},
	"disk, unverified":   {host: 16 << 20, disk: 64 << 20, tier: status.TierDisk, verify: "off"},
	"disk, no checksums": {host: 16 << 20, disk: 64 << 20, tier: status.TierDisk, unsummed: true},
}

// Parts of regions come back exactly from every place, alone and beside whole regions. Damage to a byte of a part is found wherever bytes are verified.
func TestPartsOfRegions(t *testing.T) {
	rarely(t)
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				fs := vfs.NewMem(128 << 20)
				cfg := func() config.Config {
					c := cached(place.host, place.disk, fs)
					if place.durable {
						c = stored(place.host, place.disk, fs)
						c.SegmentBytes = 1 << 20
					}
					c.Verify, c.Checksum, c.Guess = place.verify, !place.unsummed, false // a guess would bring the checkpoint up
					return c
				}
				s, err := Open(cfg())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { shut(t, s) }()
				c := newClient(t, s, "h")
				all, _ := drawMatrices(r)
				a := matricesIn(all, func(m *matrix) model.Region { return region(m.bytes, 0) })
				a.Key, a.FD, a.Tier, a.SourceStays = model.NumberKey(1), c.fd, status.TierNone, place.stays
				out, err := c.write(&a)
				if err == nil {
					err = c.wait(out.Ticket, map[bool]int{true: status.TierDisk, false: status.TierNone}[place.disk > 0])
				}
				if err != nil {
					t.Fatal(err)
				}
				if place.reopen {
					shut(t, s)
					if s, err = Open(cfg()); err != nil {
						t.Fatal(err)
					}
					c = newClient(t, s, "h")
				} else if place.tier == status.TierDisk {
					c.pushOut(1)
				}
				for range 3 {
					c.checkParts(r, all, place.tier, place.verify != "off" && !place.unsummed)
				}
			})
		})
	}
}

// pushOut fills the host tier with other checkpoints until it has the one of a key no more.
func (c *client) pushOut(k int64) {
	c.t.Helper()
	c.s.Lock()
	room := c.s.Engine.Capacity(0)
	c.s.Unlock()
	p := make([]byte, min(room/4, 4<<20))
	for i := range int64(8) {
		c.mustPut(1000+i, p)
	}
	c.s.Lock()
	defer c.s.Unlock()
	if rec := c.h.h.Get(model.NumberKey(k)); c.s.Engine.Complete(rec, 0) {
		c.t.Fatal("it is still there")
	}
}

// checkParts restores random parts, and again with a damaged byte in one of them.
func (c *client) checkParts(r *rapid.T, all []*matrix, tier int, verified bool) {
	c.t.Helper()
	var a operation.RestoreArgs
	var wanted []window
	var back [][]byte
	for i, m := range all {
		if rapid.IntRange(0, 3).Draw(r, "wanted") == 0 {
			continue
		}
		w := m.draw(r)
		part := m.part(w)
		if rapid.IntRange(0, 3).Draw(r, "whole") == 0 {
			w, part = window{step: 1, rows: m.rows, n: m.row}, model.Part{Item: m.rows * m.row}
		}
		to := make([]byte, w.rows*w.n)
		into := region(to, 0)
		if len(to) > 0 && rapid.Bool().Draw(r, "strided") { // every other element, backwards
			to = make([]byte, 2*len(to))
			into.Mem = model.Strided{Base: unsafe.Pointer(&to[len(to)-1]), Shape: []int64{w.rows * w.n}, Strides: []int64{-2}, Item: 1}
		}
		a.Select, a.Into, a.Parts = append(a.Select, int32(i)), append(a.Into, into), append(a.Parts, part)
		wanted, back = append(wanted, w), append(back, to)
	}
	if a.Select == nil {
		a.Select, a.Into, a.Parts = []int32{}, []model.Region{}, []model.Part{}
	}
	if _, err := c.restoreTo(1, a); err != nil {
		c.t.Fatal(err)
	}
	hit := -1
	for j, w := range wanted {
		m := all[a.Select[j]]
		got := back[j]
		if len(got) != int(w.rows*w.n) {
			got = nil
			for at := len(back[j]) - 1; at >= 0; at -= 2 {
				got = append(got, back[j][at])
			}
		}
		if !bytes.Equal(got, m.bytesIn(w)) {
			c.t.Fatalf("region %d of %dx%d: %+v differs", a.Select[j], m.rows, m.row, w)
		}
		if len(got) > 0 {
			hit = j
		}
	}
	if hit < 0 || !verified || rapid.Bool().Draw(r, "intact") {
		return
	}
	m, w := all[a.Select[hit]], wanted[hit]
	at := m.at(w, rapid.Int64Range(0, w.rows*w.n-1).Draw(r, "damaged"))
	c.flip(at, tier)
	_, err := c.restoreTo(1, a)
	var e *status.Error
	if !errors.As(err, &e) || e.Code != status.Corrupt || e.Region != int(a.Select[hit]) || e.Tier != tier {
		c.t.Fatalf("byte %d of region %d is damaged: %v", at, a.Select[hit], err)
	}
	c.flip(at, tier)
	if _, err := c.restoreTo(1, a); err != nil {
		c.t.Fatal(err)
	}
}

// flip inverts a bit of checkpoint 1.
func (c *client) flip(at int64, tier int) {
	c.t.Helper()
	if err := c.h.Corrupt(model.NumberKey(1), tier, at); err != nil {
		c.t.Fatal(err)
	}
}

// Of a region on disk only the leaves that a part touches are read: counted by the store, and seen at the files.
func TestPartsReadOnlyWhatTheyNeed(t *testing.T) {
	countsDiskBytes(t) // those of encoded regions are counted by TestPartsOfEncodedRegions
	const leaf, leaves = checksum.LeafBytes, 32
	for name, tc := range map[string]struct {
		rows, row int64
		part      window
		verify    string
		want      []int // leaves
		bytes     int64
	}{
		"rows":                  {64, leaf / 2, window{first: 10, step: 1, rows: 3, n: leaf / 2}, "", []int{5, 6}, 2 * leaf},
		"one row":               {64, leaf / 2, window{first: 63, step: 1, rows: 1, n: leaf / 2}, "", []int{31}, leaf},
		"few of long rows":      {8, 4 * leaf, window{first: 0, step: 1, rows: 8, from: leaf + 1, n: 100}, "", []int{1, 5, 9, 13, 17, 21, 25, 29}, 8 * leaf},
		"over a seam":           {8, 4 * leaf, window{first: 2, step: 3, rows: 2, from: 2*leaf - 1, n: 2}, "", []int{9, 10, 21, 22}, 4 * leaf},
		"few of short rows":     {2048, leaf / 64, window{first: 0, step: 1, rows: 2048, from: 1, n: 1}, "", span(0, leaves), leaves * leaf},
		"nothing":               {64, leaf / 2, window{first: 10, step: 1, rows: 0, n: leaf / 2}, "", nil, 0},
		"unverified rows":       {64, leaf / 2, window{first: 11, step: 1, rows: 1, n: leaf / 2}, "off", []int{5}, leaf / 2},
		"unverified long rows":  {8, 4 * leaf, window{first: 0, step: 1, rows: 8, from: leaf + 1, n: 100}, "off", []int{1, 5, 9, 13, 17, 21, 25, 29}, 8 * 4096},
		"unverified in a block": {8, 4 * leaf, window{first: 1, step: 1, rows: 1, from: leaf - 1, n: 2}, "off", []int{4, 5}, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			touched := make([]*vfs.Rule, leaves)
			for i := range touched {
				touched[i] = &vfs.Rule{Ops: vfs.OpRead, From: int64(i) * leaf, To: int64(i+1) * leaf, Skip: 1 << 62} // it counts, and changes nothing
			}
			cfg := cached(16<<20, 64<<20, vfs.NewFaulty(vfs.NewMem(64<<20), touched...))
			cfg.Verify = tc.verify
			s := open(t, cfg)
			c := newClient(t, s, "h")
			m := &matrix{rows: tc.rows, row: tc.row, bytes: random(int(tc.rows*tc.row), 3)}
			out := c.mustPut(1, m.bytes)
			if err := c.wait(out.Ticket, status.TierDisk); err != nil {
				t.Fatal(err)
			}
			c.pushOut(1)
			before := make([]int64, leaves)
			for i, rule := range touched {
				before[i] = rule.Seen()
			}
			read := c.readFromDisk()
			to := make([]byte, tc.part.rows*tc.part.n)
			if _, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(tc.part)}}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(to, m.bytesIn(tc.part)) {
				t.Fatal("the part differs")
			}
			var seen []int
			for i, rule := range touched {
				if rule.Seen() > before[i] {
					seen = append(seen, i)
				}
			}
			if !slices.Equal(seen, tc.want) {
				t.Errorf("leaves %v were read, %v are needed", seen, tc.want)
			}
			if n := c.readFromDisk() - read; n != tc.bytes {
				t.Errorf("%d bytes were read, %d are needed", n, tc.bytes)
			}
		})
	}
}

func span(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func (c *client) readFromDisk() int64 {
	c.t.Helper()
	st, err := c.s.Stats()
	if err != nil {
		c.t.Fatal(err)
	}
	return st.Tiers["disk"].Read
}

// What cannot be a part of the region, or has other bytes than its destination, is refused before anything is written.
func TestPartsThatAreRefused(t *testing.T) {
	c := newClient(t, open(t, cached(1<<20, 0, vfs.NewMem(1<<20))), "h")
	c.mustPut(1, random(1000, 1))
	for name, p := range map[string]model.Part{
		"behind the end":  {Offset: 990, Item: 16},
		"of other bytes":  {Offset: 0, Item: 15},
		"overlapping":     {Item: 8, Shape: []int64{2}, Strides: []int64{4}},
		"backwards":       {Offset: 500, Item: 8, Shape: []int64{2}, Strides: []int64{-8}},
		"an overflow":     {Item: 16, Shape: []int64{1 << 62}, Strides: []int64{1 << 62}},
		"empty":           {},
		"negative length": {Item: 16, Shape: []int64{-1}, Strides: []int64{16}},
	} {
		to := make([]byte, 16)
		_, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{p}})
		var e *status.Error
		if !errors.As(err, &e) || e.Code != status.Invalid || e.Region != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(to, make([]byte, 16)) {
			t.Errorf("%s: bytes were written", name)
		}
	}
	if _, err := c.restoreTo(1, operation.RestoreArgs{Lease: true, Parts: []model.Part{{Item: 1000}}}); status.CodeOf(err) != status.Invalid {
		t.Errorf("a lease: %v", err)
	}
	if _, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(make([]byte, 1000), 0)}, Parts: []model.Part{}}); status.CodeOf(err) != status.Invalid {
		t.Errorf("no part for a region: %v", err)
	}
}

// A damaged copy in host memory is made up for by the disk, for parts as for whole checkpoints.
func TestPartsFromBelow(t *testing.T) {
	countsDiskBytes(t)
	c := newClient(t, open(t, cached(16<<20, 64<<20, vfs.NewMem(64<<20))), "h")
	m := &matrix{rows: 8, row: checksum.LeafBytes, bytes: random(8*checksum.LeafBytes, 5)}
	out := c.mustPut(1, m.bytes)
	if err := c.wait(out.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	w := window{first: 3, step: 2, rows: 2, from: 7, n: 1000}
	c.flip(m.at(w, 1500), status.TierHost)
	to := make([]byte, w.rows*w.n)
	_, err := c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}})
	if err != nil || !bytes.Equal(to, m.bytesIn(w)) {
		t.Fatalf("%v, equal %v", err, bytes.Equal(to, m.bytesIn(w)))
	}
	if n := c.readFromDisk(); n != 2*checksum.LeafBytes {
		t.Errorf("%d bytes were read", n)
	}
}

// Of a capture on a device, borrowed or not, only the leaves that a part touches are read from disk. If their hashes are not known, the region is read whole,
// once.
func TestPartsOfADeviceReadOnlyWhatTheyNeed(t *testing.T) {
	countsDiskBytes(t) // those of encoded regions are counted by TestPartsOfEncodedRegions
	for name, tc := range map[string]struct{ stays, forgotten bool }{"captured": {}, "borrowed": {stays: true}, "not known": {forgotten: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
			c := newClient(t, open(t, b.config(4<<20, 64<<20, 4<<20)), "h")
			m := &matrix{rows: 8, row: checksum.LeafBytes, bytes: random(8*checksum.LeafBytes, 5)}
			src := b.alloc(4 << 20)
			b.fill(src, m.bytes)
			out, err := c.write(&operation.CheckpointArgs{
				Key: model.NumberKey(1), Regions: []model.Region{onDevice(src, len(m.bytes), 0)}, Layout: []byte("m"), Slot: int64(len(m.bytes)), FD: c.fd,
				Tier: status.TierNone, Streams: []uint64{b.stream}, SourceStays: tc.stays,
			})
			b.check(err)
			b.check(c.wait(out.Ticket, status.TierDisk))
			for k := range int64(16) {
				_, err := c.putOn(b, 2+k, src, 1<<20)
				b.check(err)
				b.check(c.wait(0, status.TierHost))
			}
			c.s.Lock()
			for tier := range 2 {
				if c.s.Engine.Complete(c.h.h.Get(model.NumberKey(1)), tier) {
					t.Errorf("tier %d still has it", tier)
				}
			}
			if tc.forgotten {
				rec := c.h.h.Get(model.NumberKey(1))
				rec.Version = &checkpoint.Version{Layout: rec.Version.Layout, Sums: rec.Version.Sums}
			}
			c.s.Unlock()
			w := window{first: 3, step: 2, rows: 2, from: 7, n: 1000}
			to := make([]byte, w.rows*w.n)
			want := int64(2 * checksum.LeafBytes)
			if tc.forgotten {
				want = int64(len(m.bytes))
			}
			for range 2 {
				read := c.readFromDisk()
				_, err = c.restoreTo(1, operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}})
				if err != nil || !bytes.Equal(to, m.bytesIn(w)) {
					t.Fatalf("%v, equal %v", err, bytes.Equal(to, m.bytesIn(w)))
				}
				if n := c.readFromDisk() - read; n != want {
					t.Errorf("%d bytes were read, %d are needed", n, want)
				}
				want = 2 * checksum.LeafBytes
			}
		})
	}
}

// A restore of parts may be cancelled at any moment; what it holds is given back.
func TestPartsCancelled(t *testing.T) {
	slow := &vfs.Rule{Ops: vfs.OpRead, Delay: 2 * time.Millisecond}
	c := newClient(t, open(t, cached(16<<20, 64<<20, vfs.NewFaulty(vfs.NewMem(64<<20), slow))), "h")
	m := &matrix{rows: 8, row: checksum.LeafBytes, bytes: random(8*checksum.LeafBytes, 5)}
	out := c.mustPut(1, m.bytes)
	if err := c.wait(out.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	c.pushOut(1)
	w := window{first: 0, step: 2, rows: 4, from: 7, n: 1000}
	for i := range 8 {
		to := make([]byte, w.rows*w.n)
		a := operation.RestoreArgs{Key: model.NumberKey(1), FD: c.fd, Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}}
		var out operation.Outcome
		op, _, err := c.h.Restore(&a, &out)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		op.Cancel()
		rung(c.fd, 0)
	}
	drained(t, c.s)
}

// Parts of regions on a device come back to the device and to the host, from the device's tier, the host's and the disk, whatever lies where.
func TestPartsOnADevice(t *testing.T) {
	for name, tc := range map[string]struct {
		delay    time.Duration
		checksum bool
		verify   string
		host     int64
	}{
		"prompt":           {0, true, "", 8 << 20},
		"late":             {100 * time.Microsecond, true, "", 8 << 20},
		"always verified":  {20 * time.Microsecond, true, "always", 8 << 20},
		"without a sum":    {20 * time.Microsecond, false, "", 8 << 20},
		"from the disk":    {20 * time.Microsecond, true, "", 2 << 20},
		"never verified":   {20 * time.Microsecond, true, "off", 8 << 20},
		"first, and later": {50 * time.Microsecond, true, "first", 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: tc.delay, Seed: 5})
			cfg := b.config(tc.host, 64<<20, 4<<20)
			cfg.Checksum, cfg.Verify = tc.checksum, tc.verify
			c := newClient(t, open(t, cfg), "h")
			const count = 12
			src, dst := b.alloc(2<<20), b.alloc(4<<20)
			var all []*matrix
			for k := range int64(count) {
				m := &matrix{rows: 7, row: 100_000 + 13*k + k%2*80_000, bytes: random(int(7*(100_000+13*k+k%2*80_000)), uint64(k))}
				all = append(all, m)
				b.fill(src, m.bytes)
				if _, err := c.putOn(b, k, src, len(m.bytes)); err != nil {
					t.Fatal(err)
				}
				b.fill(src, make([]byte, len(m.bytes)))
			}
			windows := []window{
				{first: 2, step: 1, rows: 3, n: 100_000}, {first: 1, step: 3, rows: 2, from: 17, n: 999}, {first: 6, step: 1, rows: 1, from: 5, n: 7},
				{first: 0, step: 2, rows: 0, n: 10}, {first: 0, step: 1, rows: 7, from: 3, n: 1},
			}
			for k := int64(count - 1); k >= 0; k-- {
				for i, w := range windows {
					m := all[k]
					p, n := m.part(w), w.rows*w.n
					if i == 0 && k%2 == 1 { // whole rows are contiguous
						w.n = m.row
						p, n = model.Part{Offset: 2 * m.row, Item: 3 * m.row}, 3*m.row
					}
					want := m.bytesIn(w)
					for kind, shift := range map[string]int64{"": 0, "strided ": 0, "shifted ": 8, "host ": -1} {
						var got []byte
						into := onDevice(dst+device.Address(max(shift, 0)), int(n), 0)
						switch {
						case kind == "host ":
							got = make([]byte, n)
							into = region(got, 0)
						case kind == "strided " && n > 0:
							into.Mem = model.Strided{Base: devicememory.Pointer(dst), Shape: []int64{n}, Strides: []int64{2}, Item: 1}
						}
						_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{into}, Parts: []model.Part{p}, Streams: []uint64{b.stream}})
						if err != nil {
							t.Fatalf("checkpoint %d, %+v, %s: %v", k, w, kind, err)
						}
						switch {
						case kind == "strided ":
							got = nil
							for i, x := range b.look(dst, int(2*n)) {
								if i%2 == 0 {
									got = append(got, x)
								}
							}
						case kind != "host ":
							got = b.look(dst+device.Address(shift), int(n))
						}
						if !bytes.Equal(got, want) {
							t.Fatalf("checkpoint %d: %s%+v differs", k, kind, w)
						}
						b.fill(dst, make([]byte, 2*n+16))
					}
				}
			}
		})
	}
}

// Damage on a device that a part has is found when bytes are verified there, and on their way to host memory.
func TestDamagedPartsOnADevice(t *testing.T) {
	for _, verify := range []string{"", "always"} {
		t.Run("verify "+verify, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond, Seed: 5})
			cfg := b.config(8<<20, 64<<20, 4<<20)
			cfg.Verify = verify
			c := newClient(t, open(t, cfg), "h")
			m := &matrix{rows: 4, row: 2 * checksum.LeafBytes, bytes: random(8*checksum.LeafBytes, 1)}
			src := b.alloc(len(m.bytes))
			b.fill(src, m.bytes)
			if _, err := c.putOn(b, 1, src, len(m.bytes)); err != nil {
				t.Fatal(err)
			}
			w := window{first: 1, step: 2, rows: 2, from: 100, n: 50}
			to := make([]byte, w.rows*w.n)
			a := operation.RestoreArgs{Into: []model.Region{region(to, 0)}, Parts: []model.Part{m.part(w)}, Streams: []uint64{b.stream}}
			if _, err := c.restoreTo(1, a); err != nil || !bytes.Equal(to, m.bytesIn(w)) {
				t.Fatalf("%v, equal %v", err, bytes.Equal(to, m.bytesIn(w)))
			}
			c.flip(m.at(w, 60), status.TierDevice)
			if _, err := c.restoreTo(1, a); corrupt(t, err) != 1 {
				t.Errorf("verify %q: the damage was not found", verify)
			}
			if verify == "always" {
				a.Into = []model.Region{onDevice(src, len(to), 0)}
				if _, err := c.restoreTo(1, a); corrupt(t, err) != 1 {
					t.Error("the damage was not found on the device")
				}
			}
		})
	}
}
