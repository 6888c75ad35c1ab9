package store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// many captures checkpoints as the shim does: until all are captured, or one fails. It returns how many were captured, and how many calls that took.
func (c *client) many(all []operation.CheckpointArgs) (outs []operation.Outcome, done, calls int, err error) {
	c.t.Helper()
	outs = make([]operation.Outcome, len(all))
	for done < len(all) && err == nil {
		n, op, code, failed := c.h.CheckpointMany(all[done:], outs[done:])
		if n < 0 || n > len(all)-done || failed == nil && op == nil && n == 0 {
			c.t.Fatalf("%d of %d, no operation, no error", n, len(all)-done)
		}
		calls++
		done += n
		if err = failed; err == nil && op != nil {
			if err = drive(c.t, op, code, c.fd, &outs[done]); err == nil {
				done++
			}
		}
	}
	return outs, done, calls, err
}

// one is a checkpoint that a test captures in two stores.
type one struct {
	args  operation.CheckpointArgs
	bytes [][]byte
}

func drawOne(t *rapid.T, number int, fd int32) one {
	var x one
	slot := int64(rapid.SampledFrom([]int{0, 0, 64}).Draw(t, "front"))
	largest := rapid.SampledFrom([]int{100, 3000, 20_000, 300_000}).Draw(t, "largest")
	for i := range rapid.IntRange(0, 3).Draw(t, "regions") {
		p := random(rapid.IntRange(0, largest).Draw(t, "bytes"), uint64(number*10+i))
		r := region(p, slot)
		if n := int64(len(p)); n > 0 && rapid.IntRange(0, 3).Draw(t, "strided") == 0 { // backwards
			r.Mem = model.Strided{Base: unsafe.Pointer(&p[n-1]), Shape: []int64{n}, Strides: []int64{-1}, Item: 1}
			p = bytes.Clone(p)
			slices.Reverse(p)
		}
		x.args.Regions, x.bytes = append(x.args.Regions, r), append(x.bytes, p)
		x.args.Layout = fmt.Append(x.args.Layout, r.Offset, " ", r.Bytes, ";")
		slot = (slot + int64(len(p)) + 63) &^ 63
	}
	x.args.Slot, x.args.FD, x.args.Tier = slot, fd, status.TierNone
	x.args.Layout = fmt.Append(x.args.Layout, slot)
	x.args.Meta = fmt.Append(nil, number)
	x.args.SourceStays = rapid.IntRange(0, 9).Draw(t, "stays") == 0
	if x.args.AutoKey = rapid.IntRange(0, 4).Draw(t, "auto") == 0; !x.args.AutoKey {
		x.args.Key = model.NumberKey(rapid.Int64Range(0, 30).Draw(t, "key"))
	}
	return x
}

// Captures of many checkpoints in one call leave what a loop leaves: the same keys in the same order, the same bytes, the same automatic keys. Some wait for room,
// some are large, some keys come twice.
func TestManyIsALoop(t *testing.T) {
	rarely(t)
	for name, cfg := range map[string]func() config.Config{
		"host":            func() config.Config { return cached(32<<20, 0, vfs.NewMem(1<<20)) },
		"small host":      func() config.Config { return cached(700<<10, 64<<20, vfs.NewMem(128<<20)) },
		"durable":         func() config.Config { return stored(700<<10, 64<<20, vfs.NewMem(128<<20)) },
		"without the sum": func() config.Config { c := cached(700<<10, 64<<20, vfs.NewMem(128<<20)); c.Checksum = false; return c },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				var clients [2]*client
				for i := range clients {
					s, err := Open(cfg())
					if err != nil {
						t.Fatal(err)
					}
					defer shut(t, s)
					clients[i] = newClient(t, s, "h")
				}
				loop, many := clients[0], clients[1]
				var all []one
				var args []operation.CheckpointArgs
				for i := range rapid.IntRange(0, 90).Draw(r, "checkpoints") {
					all = append(all, drawOne(r, i, many.fd))
					args = append(args, all[i].args)
				}
				outs, done, _, err := many.many(args)
				if err != nil || done != len(all) {
					t.Fatalf("%d of %d: %v", done, len(all), err)
				}
				latest := map[model.Key]int{}
				for i, x := range all {
					x.args.FD = loop.fd
					out, err := loop.write(&x.args)
					if err != nil {
						t.Fatal(err)
					}
					if outs[i].Key != out.Key || outs[i].Slot != out.Slot || outs[i].Ticket == 0 {
						t.Fatalf("checkpoint %d: %+v, in a loop %+v", i, outs[i], out)
					}
					latest[out.Key] = i
				}
				one, err := loop.h.Keys()
				other, err2 := many.h.Keys()
				if err != nil || err2 != nil || !slices.Equal(one, other) {
					t.Fatalf("keys %v, in a loop %v", other, one)
				}
				for key, i := range latest {
					many.mustHold(key, all[i])
				}
			})
		})
	}
}

// mustHold compares a checkpoint with what was captured.
func (c *client) mustHold(key model.Key, x one) {
	c.t.Helper()
	var into []model.Region
	var back [][]byte
	for _, p := range x.bytes {
		back = append(back, make([]byte, len(p)))
		into = append(into, region(back[len(back)-1], 0))
	}
	if into == nil {
		into = []model.Region{}
	}
	var out operation.Outcome
	op, code, err := c.h.Restore(&operation.RestoreArgs{Key: key, FD: c.fd, Into: into}, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	if err != nil || out.Meta != int64(len(x.args.Meta)) {
		c.t.Fatalf("checkpoint %v: %v, meta of %d", key, err, out.Meta)
	}
	for i := range back {
		if !bytes.Equal(back[i], x.bytes[i]) {
			c.t.Fatalf("checkpoint %v: region %d differs", key, i)
		}
	}
}

// When one of them fails, those before it stand, and neither that one nor those behind it exist.
func TestManyOfWhichOneFails(t *testing.T) {
	c := newClient(t, open(t, cached(64<<10, 0, vfs.NewMem(1<<20))), "h")
	c.mustPut(2, random(10, 2))
	for name, spoil := range map[string]func(a *operation.CheckpointArgs){
		"too large":  func(a *operation.CheckpointArgs) { a.Slot = 1 << 20 },
		"no tier":    func(a *operation.CheckpointArgs) { a.Tier = status.TierDisk },
		"bad region": func(a *operation.CheckpointArgs) { a.Regions[0].Bytes = 200 },
		"no memory":  func(a *operation.CheckpointArgs) { a.Regions[0].Mem.Base = nil },
	} {
		var all []operation.CheckpointArgs
		for k := range int64(5) {
			p := random(100, 100+uint64(k))
			all = append(all, operation.CheckpointArgs{
				Key: model.NumberKey(k), Regions: []model.Region{region(p, 0)}, Layout: []byte("p"), Slot: 100, FD: c.fd, Tier: status.TierNone,
			})
		}
		all[2].Layout = []byte(name)
		spoil(&all[2])
		_, done, _, err := c.many(all)
		if err == nil || done != 2 {
			t.Errorf("%s: %d, %v", name, done, err)
		}
		keys, _ := c.h.Keys()
		if !slices.Equal(keys, []model.Key{model.NumberKey(2), model.NumberKey(0), model.NumberKey(1)}) {
			t.Errorf("%s: %v", name, keys)
		}
		c.mustGet(0, random(100, 100), operation.RestoreArgs{})
		c.mustGet(1, random(100, 101), operation.RestoreArgs{})
		c.mustGet(2, random(10, 2), operation.RestoreArgs{})
		c.drop(0)
		c.drop(1)
	}
	drained(t, c.s)
}

// A thousand small checkpoints take one call, and few sections of the lock.
func TestManySmallTakeOneCall(t *testing.T) {
	c := newClient(t, open(t, cached(16<<20, 0, vfs.NewMem(1<<20))), "h")
	var all []operation.CheckpointArgs
	for k := range int64(500) {
		p := random(1000, uint64(k))
		all = append(all, operation.CheckpointArgs{
			Key: model.NumberKey(k), Regions: []model.Region{region(p, 0)}, Layout: []byte("p"), Slot: 1000, FD: c.fd, Tier: status.TierNone,
		})
	}
	outs, done, calls, err := c.many(all)
	if err != nil || done != len(all) || calls > 3 { // a slice of time may be over on a busy machine
		t.Fatalf("%d in %d calls: %v", done, calls, err)
	}
	for k := range all {
		if outs[k].Waited != 0 {
			t.Fatalf("checkpoint %d waited", k)
		}
		c.mustGet(int64(k), random(1000, uint64(k)), operation.RestoreArgs{})
	}
}

// One that waits for room can be cancelled: those before it stand, the others do not exist.
func TestManyCancelled(t *testing.T) {
	c := newClient(t, open(t, cached(100<<10, 0, vfs.NewMem(1<<20))), "h")
	c.mustPut(100, random(80<<10, 1))
	lease := c.mustLease(100, operation.RestoreArgs{}) // its room comes free when the application releases it
	var all []operation.CheckpointArgs
	for k := range int64(5) {
		all = append(all, operation.CheckpointArgs{
			Key: model.NumberKey(k), Regions: []model.Region{region(random(8<<10, uint64(k)), 0)}, Layout: []byte("p"), Slot: 8 << 10, FD: c.fd,
			Tier: status.TierNone, Patient: true,
		})
	}
	outs := make([]operation.Outcome, len(all))
	done, op, code, err := c.h.CheckpointMany(all, outs)
	if err != nil || done != 2 || code != status.Pending || op == nil {
		t.Fatalf("%d, %v, %v", done, code, err)
	}
	if op.Cancel() != nil {
		t.Fatal("it was captured all the same")
	}
	keys, _ := c.h.Keys()
	if len(keys) != 3 {
		t.Fatalf("keys %v", keys)
	}
	c.mustGet(1, random(8<<10, 1), operation.RestoreArgs{})
	release(t, lease)
	drained(t, c.s)
}

// The time that one of them waits for room is counted, as that of a checkpoint alone.
func TestManyWait(t *testing.T) {
	c := newClient(t, open(t, cached(100<<10, 0, vfs.NewMem(1<<20))), "h")
	c.mustPut(100, random(80<<10, 1))
	lease := c.mustLease(100, operation.RestoreArgs{Last: true})
	var all []operation.CheckpointArgs
	for k := range int64(5) {
		all = append(all, operation.CheckpointArgs{
			Key: model.NumberKey(k), Regions: []model.Region{region(random(8<<10, uint64(k)), 0)}, Layout: []byte("p"), Slot: 8 << 10, FD: c.fd,
			Tier: status.TierNone, Patient: true,
		})
	}
	outs := make([]operation.Outcome, len(all))
	done, op, code, err := c.h.CheckpointMany(all, outs)
	if err != nil || done != 2 || code != status.Pending {
		t.Fatalf("%d, %v, %v", done, code, err)
	}
	const wait = 20 * time.Millisecond
	time.Sleep(wait)
	release(t, lease)
	if err := drive(t, op, code, c.fd, &outs[2]); err != nil {
		t.Fatal(err)
	}
	if _, done, _, err := c.many(all[3:]); err != nil || done != 2 {
		t.Fatalf("%d, %v", done, err)
	}
	st, err := c.s.Stats()
	if err != nil || outs[2].Waited < wait.Nanoseconds() || st.Waits.CaptureWait != outs[2].Waited {
		t.Errorf("%v, waited %d ns, in all %+v", err, outs[2].Waited, st.Waits)
	}
	for k := range int64(5) {
		c.mustGet(k, random(8<<10, uint64(k)), operation.RestoreArgs{})
	}
}

// Checkpoints of arrays on a device go to the device's tier, beside those of host memory.
func TestManyOnADevice(t *testing.T) {
	b := newBoard(t, double.Config{Delay: 50_000, Seed: 5})
	c := newClient(t, open(t, b.config(8<<20, 64<<20, 2<<20)), "h")
	src := b.alloc(64 << 10)
	var all []operation.CheckpointArgs
	b.fill(src, random(64<<10, 1))
	for k := range int64(40) {
		a := operation.CheckpointArgs{
			Key: model.NumberKey(k), Regions: []model.Region{onDevice(src+device.Address(k*1024), 1000, 0)}, Layout: []byte("p"), Slot: 1000, FD: c.fd,
			Tier: status.TierNone, Streams: []uint64{b.stream},
		}
		if k%3 == 0 {
			a.Regions = []model.Region{region(random(64<<10, 1)[k*1024:k*1024+1000], 0)}
		}
		all = append(all, a)
	}
	if _, done, _, err := c.many(all); err != nil || done != len(all) {
		t.Fatalf("%d: %v", done, err)
	}
	b.fill(src, make([]byte, 64<<10))
	for k := range int64(40) {
		c.mustGet(k, random(64<<10, 1)[k*1024:k*1024+1000], operation.RestoreArgs{})
	}
}

// A thousand checkpoints of 1 KiB, in a loop and in one call.
func BenchmarkMany(b *testing.B) {
	for _, loops := range []bool{true, false} {
		b.Run(map[bool]string{true: "loop", false: "one call"}[loops], func(b *testing.B) {
			c := newClient(b, open(b, cached(64<<20, 0, vfs.NewMem(1<<20))), "h")
			var all []operation.CheckpointArgs
			for k := range int64(1000) {
				all = append(all, operation.CheckpointArgs{
					Key: model.NumberKey(k), Regions: []model.Region{region(random(1024, uint64(k)), 0)}, Layout: []byte("p"), Slot: 1024, FD: c.fd,
					Tier: status.TierNone,
				})
			}
			outs := make([]operation.Outcome, len(all))
			for b.Loop() {
				if !loops {
					if done, _, _, err := c.h.CheckpointMany(all, outs); err != nil || done != len(all) {
						b.Fatal(done, err)
					}
					continue
				}
				for k := range all {
					if _, code, err := c.h.Checkpoint(&all[k], &outs[k]); err != nil || code != status.OK {
						b.Fatal(code, err)
					}
				}
			}
		})
	}
}
