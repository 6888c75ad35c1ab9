package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/tier/disk/segment"
)

// streamable are the ways in which a checkpoint can lie on a disk alone.
var streamable = map[string]struct {
	host     int64
	durable  bool
	readOnly bool
	buffered bool // the files go by the page cache
	verify   string
	unsummed bool
}{
	"disk":                {host: 8 << 20},
	"disk, buffered":      {host: 8 << 20, buffered: true},
	"past the host":       {host: 64},
	"durable":             {host: 8 << 20, durable: true},
	"durable, read only":  {host: 8 << 20, durable: true, readOnly: true},
	"without a host tier": {durable: true, readOnly: true},
	"unverified":          {host: 8 << 20, durable: true, verify: "off"},
	"no checksums":        {host: 8 << 20, durable: true, unsummed: true},
}

// drawnRegion is a region of a checkpoint, and the array that a restore writes.
type drawnRegion struct {
	bytes  []byte
	offset int64
	part   model.Part // what is wanted of it
	array  []byte     // with bytes before and behind the destination
	into   model.Region
	places []int // of the bytes wanted, in the array
}

// drawRegions draws regions of a slot: none, small ones, and some of several leaves.
func drawRegions(t *rapid.T) (all []*drawnRegion, slot int64) {
	for i := range rapid.IntRange(1, 5).Draw(t, "regions") {
		near := func(n int64) *rapid.Generator[int64] { return rapid.Int64Range(max(n-70, 0), n+70) }
		n := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 5000), near(checksum.LeafBytes), near(2*checksum.LeafBytes), rapid.Int64Range(1, 1<<20)).Draw(t, "bytes")
		r := &drawnRegion{offset: slot, bytes: random(int(n), 7*rapid.Uint64Range(0, 1000).Draw(t, "seed")+uint64(i))}
		all, slot = append(all, r), slot+n
		slot += rapid.SampledFrom([]int64{0, 1, 63, 4096, 100_000}).Draw(t, "gap")
	}
	return all, slot
}

// want draws what is restored of a region, and the array.
func (r *drawnRegion) want(t *rapid.T) {
	n := int64(len(r.bytes))
	r.part = model.Part{Item: n}
	if rapid.Bool().Draw(t, "a part") {
		r.part.Offset = rapid.Int64Range(0, n).Draw(t, "from")
		r.part.Item = rapid.Int64Range(0, n-r.part.Offset).Draw(t, "bytes of the part")
	}
	const margin = 100
	count, item, step := int(r.part.Item), 1, 1
	if kind := rapid.IntRange(0, 3).Draw(t, "strided"); kind > 0 && count > 0 {
		for item = 8; count%item > 0; item /= 2 {
		}
		step = rapid.IntRange(1, 3).Draw(t, "step")
	}
	length := max(count/item, 0)
	skew := rapid.IntRange(0, 65).Draw(t, "skew")
	r.array = bytes.Repeat([]byte{0xa5}, margin+skew+length*item*step+margin)
	base := margin + skew
	r.into = model.Region{Mem: model.Strided{Base: unsafe.Pointer(&r.array[base])}, Bytes: int64(count)}
	back := step > 1 && rapid.Bool().Draw(t, "backwards")
	if step > 1 {
		stride := item * step
		if back {
			base += (length - 1) * stride
			stride = -stride
		}
		r.into.Mem = model.Strided{Base: unsafe.Pointer(&r.array[base]), Shape: []int64{int64(length)}, Strides: []int64{int64(stride)}, Item: int64(item)}
		r.places = nil
		for e := range length {
			for b := range item {
				r.places = append(r.places, base+e*stride+b)
			}
		}
		return
	}
	r.places = nil
	for i := range count {
		r.places = append(r.places, base+i)
	}
}

// expect is what the array has after the restore.
func (r *drawnRegion) expect() []byte {
	want := bytes.Repeat([]byte{0xa5}, len(r.array))
	for i, at := range r.places {
		want[at] = r.bytes[r.part.Offset+int64(i)]
	}
	return want
}

// Restores that stream are compared with the bytes of the capture, byte by byte, with what lies around their destinations; and a changed bit in what they verify
// is found.
func TestStreamedRestores(t *testing.T) {
	countsDiskBytes(t)
	rarely(t)
	for name, place := range streamable {
		t.Run(name, func(t *testing.T) {
			streams := 0
			rapid.Check(t, func(r *rapid.T) {
				fs := vfs.NewMem(256 << 20)
				cfg := func(readOnly bool) config.Config {
					c := cached(place.host, 128<<20, fs)
					if place.durable {
						c = stored(place.host, 128<<20, fs)
						c.SegmentBytes = 1 << 20
					}
					c.Verify, c.Checksum, c.ReadOnly, c.Direct = place.verify, !place.unsummed, readOnly, !place.buffered
					c.Guess = false
					return c
				}
				s, err := Open(cfg(false))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { shut(t, s) }()
				c := newClient(t, s, "h")
				all, slot := drawRegions(r)
				a := operation.CheckpointArgs{Key: model.NumberKey(1), FD: c.fd, Tier: status.TierNone, Slot: slot}
				for _, d := range all {
					a.Regions = append(a.Regions, region(d.bytes, d.offset))
					a.Layout = fmt.Append(a.Layout, len(d.bytes), " ", d.offset, ";")
				}
				out, err := c.write(&a)
				if err == nil {
					err = c.wait(out.Ticket, status.TierDisk)
				}
				if err != nil {
					t.Fatal(err)
				}
				if place.durable {
					shut(t, s)
					if s, err = Open(cfg(place.readOnly)); err != nil {
						t.Fatal(err)
					}
					c = newClient(t, s, "h")
				} else {
					c.pushOut(1)
				}
				streams += c.checkStream(r, all, place.verify != "off" && !place.unsummed && !place.readOnly)
			})
			if streams == 0 {
				t.Error("no restore has streamed")
			}
		})
	}
}

// checkStream restores a drawn part of a checkpoint twice, which the disk alone has at first, and again with a changed bit. It returns how often it streamed.
func (c *client) checkStream(r *rapid.T, all []*drawnRegion, damage bool) (streamed int) {
	a := operation.RestoreArgs{Select: []int32{}, Into: []model.Region{}}
	var wanted []*drawnRegion
	parts := rapid.Bool().Draw(r, "parts")
	for i, d := range all {
		if rapid.IntRange(0, 4).Draw(r, "wanted") == 0 {
			continue
		}
		d.want(r)
		if !parts && !d.part.IsWhole(int64(len(d.bytes))) {
			parts = true
		}
		a.Select, a.Into, a.Parts, wanted = append(a.Select, int32(i)), append(a.Into, d.into), append(a.Parts, d.part), append(wanted, d)
	}
	if !parts {
		a.Parts = nil
	}
	before := c.streams()
	for range 2 {
		for _, d := range wanted {
			for i := range d.array {
				d.array[i] = 0xa5
			}
		}
		if _, err := c.restoreTo(1, a); err != nil {
			c.t.Fatal(err)
		}
		for _, d := range wanted {
			if !bytes.Equal(d.array, d.expect()) {
				c.t.Fatalf("region of %d bytes at %d, part %+v into %+v: it differs", len(d.bytes), d.offset, d.part, d.into.Mem)
			}
		}
	}
	streamed = c.streams() - before
	for _, d := range wanted {
		if n := len(d.places); damage && n > 0 {
			i := rapid.IntRange(0, n-1).Draw(r, "damaged")
			c.s.Lock()
			cached := c.s.Engine.Complete(c.h.h.Get(model.NumberKey(1)), 0)
			c.s.Unlock()
			if cached {
				break // the restore reads the sound copy
			}
			c.flip(d.offset+d.part.Offset+int64(i), status.TierDisk)
			_, err := c.restoreTo(1, a)
			e := wants(c.t, err, status.Corrupt)
			if all[e.Region] != d || e.Tier != status.TierDisk {
				c.t.Fatalf("region %d on tier %d is damaged, %v says the error", a.Select, e.Tier, err)
			}
			break
		}
	}
	return streamed
}

// streams is 1 once the disk tier has buffers for streams.
func (c *client) streams() int {
	if memory.InUse(segment.StreamPurpose) > 0 {
		return 1
	}
	return 0
}

const large = 3<<20 + 100

// onDisk opens a store whose disk alone has some large checkpoints.
func onDisk(t *testing.T, fs vfs.FS, checkpoints int64, change func(*config.Config)) *client {
	t.Helper()
	cfg := cached(16<<20, 128<<20, fs)
	cfg.Guess = false
	if change != nil {
		change(&cfg)
	}
	c := newClient(t, open(t, cfg), "h")
	for k := range checkpoints {
		out := c.mustPut(k, random(large, uint64(k)))
		if err := c.wait(out.Ticket, status.TierDisk); err != nil {
			t.Fatal(err)
		}
	}
	for k := range checkpoints {
		c.pushOut(k)
	}
	return c
}

// A checkpoint that is restored once does not take the room of others in memory. One that is restored again, that a plan names, or that is lent, does.
func TestStreamedOnce(t *testing.T) {
	countsDiskBytes(t)
	c := onDisk(t, vfs.NewMem(256<<20), 4, nil)
	cached := func(k int64) bool {
		c.s.Lock()
		defer c.s.Unlock()
		return c.s.Engine.Complete(c.h.h.Get(model.NumberKey(k)), 0)
	}
	check := func(what string, k int64, want bool) {
		t.Helper()
		c.mustGet(k, random(large, uint64(k)), operation.RestoreArgs{})
		if cached(k) != want {
			t.Errorf("%s: in memory: %v", what, !want)
		}
	}
	check("the first restore", 0, false)
	check("the second", 0, true)
	check("the third", 0, true)
	if _, err := c.h.Hint([]plan.Hint{{Key: model.NumberKey(1)}, {Key: model.NumberKey(1)}}); err != nil {
		t.Fatal(err)
	}
	check("of a plan", 1, true)
	release(t, c.mustLease(2, operation.RestoreArgs{}))
	if !cached(2) {
		t.Error("a lease left nothing in memory")
	}
	c.mustGet(3, random(large, 3), operation.RestoreArgs{Last: true})
	_, _, err := c.get(3, large, operation.RestoreArgs{})
	wants(t, err, status.NotFound)
}

// Nothing writes to the arrays of a restore that was given up, that failed, or whose store has closed, while a read goes on.
func TestStreamsThatAreGivenUp(t *testing.T) {
	countsDiskBytes(t)
	for _, how := range []string{"cancel", "close"} {
		for _, after := range []int64{0, 1, 3} {
			t.Run(fmt.Sprint(how, " after ", after), func(t *testing.T) {
				rule := &vfs.Rule{Ops: vfs.OpRead, Block: true, Skip: after}
				rule.Disable()
				c := onDisk(t, vfs.NewFaulty(vfs.NewMem(256<<20), rule), 1, nil)
				defer rule.Release()
				rule.Enable()
				array := make([]byte, large)
				var out operation.Outcome
				a := operation.RestoreArgs{Key: model.NumberKey(0), FD: c.fd, Into: []model.Region{region(array, 0)}}
				op, code, err := c.h.Restore(&a, &out)
				if err != nil || code != status.Pending {
					t.Fatal(code, err)
				}
				eventually(t, "it is being read", func() bool { return rule.Blocked() > 0 })
				closing := eventfd(t)
				var closed *operation.Op
				if how == "cancel" {
					op.Cancel()
				} else {
					closed = c.s.Close(closing)
					if code, err := closed.Step(&operation.Outcome{}); code != status.Pending || err != nil {
						t.Fatal(code, err)
					}
					wants(t, drive(t, op, status.Pending, c.fd, &out), status.Closed)
				}
				for i := range array {
					array[i] = 0x5a
				}
				time.Sleep(5 * time.Millisecond)
				rule.Release()
				if closed != nil {
					if err := drive(t, closed, status.Pending, closing, &operation.Outcome{}); err != nil {
						t.Fatal(err)
					}
				} else {
					c.mustGet(0, random(large, 0), operation.RestoreArgs{})
				}
				if bytes.Count(array, []byte{0x5a}) != len(array) {
					t.Error("the array was written after its caller had it back")
				}
			})
		}
	}
}

// A read that fails, or that brings other bits, fails the restore. The next one succeeds.
func TestStreamsThatCannotBeRead(t *testing.T) {
	countsDiskBytes(t)
	for name, tc := range map[string]struct {
		err   error
		short bool
		flip  []int64
		code  status.Code
	}{
		"an error":     {err: errors.New("broken"), code: status.IO},
		"a short read": {short: true, code: status.IO},
		"a wrong bit":  {flip: []int64{77}, code: status.Corrupt},
	} {
		for skip := range int64(4) {
			t.Run(fmt.Sprint(name, ", ", skip), func(t *testing.T) {
				rule := &vfs.Rule{Ops: vfs.OpRead, Skip: skip, Times: 1, Err: tc.err, Short: tc.short, ShortBytes: 512, Flip: tc.flip}
				rule.Disable()
				c := onDisk(t, vfs.NewFaulty(vfs.NewMem(256<<20), rule), 1, nil)
				rule.Enable()
				_, _, err := c.get(0, large, operation.RestoreArgs{})
				e := wants(t, err, tc.code)
				if e.Tier != status.TierDisk {
					t.Errorf("tier %d: %v", e.Tier, err)
				}
				c.mustGet(0, random(large, 0), operation.RestoreArgs{})
			})
		}
	}
}

// Restores of the same checkpoints by several callers, while others drop, replace and cancel: each gets the bytes of one version, or an error that says that
// there is none.
func TestStreamsBesideEachOther(t *testing.T) {
	countsDiskBytes(t)
	const keys, versions = 3, 4
	c := onDisk(t, jitter{vfs.NewMem(256 << 20), 300 * time.Microsecond}, keys, nil)
	var version [keys][versions][]byte
	for k := range version {
		for v := range version[k] {
			version[k][v] = random(large, uint64(k+100*v))
		}
	}
	var callers sync.WaitGroup
	until := time.Now().Add(700 * time.Millisecond)
	for i := range 6 {
		callers.Add(1)
		mine := &client{t: t, s: c.s, h: c.h, fd: eventfd(t)}
		go func() {
			defer callers.Done()
			array := make([]byte, large)
			for n := i; time.Now().Before(until); n++ {
				k := n % keys
				if i == 0 { // replaces and drops
					if n%5 == 4 {
						_ = c.h.Drop(model.NumberKey(int64(k)))
					}
					if _, err := mine.put(int64(k), version[k][n%versions]); err != nil {
						t.Error(err)
					}
					mine.mustPut(1000+int64(n%8), make([]byte, 6<<20))
					continue
				}
				var out operation.Outcome
				a := operation.RestoreArgs{Key: model.NumberKey(int64(k)), FD: mine.fd, Into: []model.Region{region(array, 0)}}
				op, code, err := c.h.Restore(&a, &out)
				if err == nil && code == status.Pending && n%4 == 0 {
					op.Cancel()
					clear(array)
					continue
				}
				if err == nil {
					err = drive(t, op, code, mine.fd, &out)
				}
				var e *status.Error
				if errors.As(err, &e) && (e.Code == status.NotFound || e.Code == status.Dropped) {
					continue
				}
				some := false
				for _, p := range version[k] {
					some = some || bytes.Equal(p, array)
				}
				if err != nil || !some {
					t.Errorf("key %d: %v, known bytes: %v", k, err, some)
				}
			}
		}()
	}
	callers.Wait()
}
