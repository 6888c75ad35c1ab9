package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
)

// encodingBoard opens a store whose device tier has room for staging memory, and a history of it that is encoded.
func encodingBoard(t *testing.T, change func(c *config.Config)) (*board, *client) {
	b := newBoard(t, double.Config{Memory: 512 << 20})
	cfg := b.config(64<<20, 0, 72<<20)
	cfg.Flush = "eager"
	if change != nil {
		change(&cfg)
	}
	c := newClient(t, open(t, cfg), "h")
	if err := c.h.Reduce(Reduction{Method: "codec"}); err != nil {
		t.Fatal(err)
	}
	return b, c
}

// Checkpoints of a device are encoded there: the host gets fewer bytes, and they come back to the device and to host memory as they were.
func TestADeviceEncodes(t *testing.T) {
	const size, count = 3<<20 + 1236, 10
	for name, change := range map[string]func(c *config.Config){
		"verified": nil, "unverified": func(c *config.Config) { c.Verify = "off" }, "always verified": func(c *config.Config) { c.Verify = "always" },
		"with a disk": func(c *config.Config) { d := int64(256 << 20); c.Disk, c.Path, c.FS = &d, "/d", vfs.NewMem(512<<20) },
		"with a small host": func(c *config.Config) {
			d, h := int64(256<<20), int64(8<<20)
			c.Disk, c.Path, c.FS, c.Host = &d, "/d", vfs.NewMem(512<<20), &h
		},
		"with a large device": func(c *config.Config) { c.Devices[0].Bytes = 80 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			b, c := encodingBoard(t, change)
			for k := range int64(count) {
				c.mustPutOn(b, k, few(size, uint64(k)))
			}
			b.check(c.wait(0, status.TierHost))
			f := c.reducedTo()
			if f.encoded != count || f.to >= f.from*9/10 {
				t.Fatalf("%+v", f)
			}
			st, err := c.s.Stats()
			b.check(err)
			if used := st.Tiers["host"].Used + st.Tiers["disk"].Used; used < f.to || used > f.to*2 && c.s.Disk == nil {
				t.Errorf("%d bytes are used below the device, for %d that were sent", used, f.to)
			}
			c.pushOff(b)
			for k := int64(count) - 1; k >= 0; k-- {
				want := few(size, uint64(k))
				if k%2 == 0 {
					c.mustGetOn(b, k, want)
				} else {
					to := make([]byte, size)
					_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{region(to, 0)}})
					b.check(err)
					if !bytes.Equal(to, want) {
						t.Fatalf("checkpoint %d differs in host memory", k)
					}
				}
				c.drop(k)
			}
			if f := c.reducedTo(); f.decoded < count/2 {
				t.Errorf("%+v", f)
			}
			drained(t, c.s)
		})
	}
}

// A device compresses nothing: with a compressor its checkpoints lie in host memory as they are, and on the disk in containers with sections. They come back from both.
func TestACompressorLeavesWhatADeviceHasPlain(t *testing.T) {
	const size, count = 1<<20 + 1236, 12
	for _, method := range []string{"codec+zstd", "codec+s2", "tree+huff0"} {
		t.Run(method, func(t *testing.T) {
			b, c := encodingBoard(t, func(c *config.Config) {
				d, h := int64(256<<20), int64(8<<20)
				c.Disk, c.Path, c.FS, c.Host = &d, "/d", vfs.NewMem(512<<20), &h
			})
			b.check(c.h.Reduce(reduction(method)))
			for k := range int64(count) {
				c.mustPutOn(b, k, few(size, uint64(k)))
			}
			b.check(c.wait(0, status.TierDisk))
			if f := c.reducedTo(); f.encoded != count || f.plain != 0 || f.to >= f.from*9/10 {
				t.Errorf("%+v", f)
			}
			st, err := c.s.Stats()
			b.check(err)
			held := int64(0)
			c.s.Lock()
			c.h.h.Each(func(r *engine.Record) {
				if c.s.Engine.Complete(r, c.s.HostTier()) {
					held++
				}
			})
			c.s.Unlock()
			if used := st.Tiers["host"].Used; held == 0 || held == count || used < held*size {
				t.Errorf("host memory has %d bytes of %d plain checkpoints of %d", used, held, size)
			}
			c.pushOff(b)
			for k := range int64(count) {
				c.mustGetOn(b, k, few(size, uint64(k)))
				c.mustGet(k, few(size, uint64(k)), operation.RestoreArgs{Last: true})
			}
			drained(t, c.s)
		})
	}
}

// pushOff makes the device's tier give up all checkpoints of the history, which the host has.
func (c *client) pushOff(b *board) { c.pushOffBy(b, 8<<20) }

// pushOffBy does so by checkpoints of a size. One with which others are encoded stays.
func (c *client) pushOffBy(b *board, size int) {
	c.t.Helper()
	c.s.Lock()
	count := c.s.Engine.Capacity(0)/int64(size) + 1
	c.s.Unlock()
	other, at := newClient(c.t, c.s, "other"), b.alloc(size)
	eventually(c.t, "the device gives up the checkpoints", func() bool {
		for k := range count {
			out, err := other.putOn(b, k, at, size)
			b.check(err)
			other.untilCaptured(out)
		}
		for k := range count {
			other.drop(k)
		}
		return c.onTheDevice() <= c.anchors()
	})
}

// anchors is how many checkpoints of the history the device keeps to encode others with.
func (c *client) anchors() int {
	c.s.Lock()
	defer c.s.Unlock()
	if c.s.Reductions[c.h.h.Name].Anchor != nil {
		return 1
	}
	return 0
}

// onTheDevice is how many checkpoints of the history the device has.
func (c *client) onTheDevice() (n int) {
	c.s.Lock()
	defer c.s.Unlock()
	c.h.h.Each(func(r *engine.Record) {
		if c.s.Engine.Complete(r, 0) {
			n++
		}
	})
	return n
}

// A damaged byte of encoded bytes in host memory is found, wherever the checkpoint goes.
func TestDamageOfWhatADeviceEncoded(t *testing.T) {
	for _, verify := range []string{"moved", "off"} {
		t.Run(verify, func(t *testing.T) { findsDamage(t, verify) })
	}
}

func findsDamage(t *testing.T, verify string) {
	const size = 1 << 20
	b, c := encodingBoard(t, func(c *config.Config) { c.Verify = verify })
	at := b.alloc(size)
	for k := range int64(2) {
		b.fill(at, few(size, uint64(k)))
		out, err := c.putOn(b, k, at, size)
		b.check(err)
		c.untilCaptured(out)
	}
	b.check(c.wait(0, status.TierHost))
	c.pushOff(b)
	b.check(c.h.Corrupt(model.NumberKey(0), status.TierHost, 500_000))
	_, err := c.restoreTo(0, operation.RestoreArgs{Into: []model.Region{onDevice(at, size, 0)}, Streams: []uint64{b.stream}})
	if err == nil { // the restore was queued before the device looked
		eventually(t, "the damage is found", func() bool {
			err = c.wait(0, status.TierHost)
			return err != nil
		})
	}
	if code := status.CodeOf(err); code != status.Corrupt && code != status.Belated {
		t.Errorf("%v", err)
	}
	c.mustGet(1, few(size, 1), operation.RestoreArgs{})
}

// A container that is too short to be one is damage, too, not a fault of the device.
func TestContainersTooShortForADevice(t *testing.T) {
	const size = 1 << 20
	b, c := encodingBoard(t, nil)
	at := b.alloc(size)
	b.fill(at, few(size, 1))
	out, err := c.putOn(b, 0, at, size)
	b.check(err)
	c.untilCaptured(out)
	b.check(c.wait(0, status.TierHost))
	c.pushOff(b)
	c.s.Lock()
	v := c.h.h.Get(model.NumberKey(0)).Version
	short := *v.Encoding
	short.Lengths = slices.Clone(short.Lengths)
	short.Lengths[0] = model.ContainerAlign
	v.Encoding = &short
	c.s.Unlock()
	_, err = c.restoreTo(0, operation.RestoreArgs{Into: []model.Region{onDevice(at, size, 0)}, Streams: []uint64{b.stream}})
	if code := status.CodeOf(err); code != status.Corrupt {
		t.Errorf("%v", err)
	}
}

// What a device cannot encode, or what does not become smaller, goes to the host as it is.
func TestWhatADeviceDoesNotEncode(t *testing.T) {
	const size = 1<<20 + 77
	for name, change := range map[string]func(c *config.Config){
		"random bytes":         nil,
		"without its kernels":  func(c *config.Config) { c.OpenDevice = withoutCodec(c.OpenDevice) },
		"a tier without space": func(c *config.Config) { c.Devices[0].Bytes = 16 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			b, c := encodingBoard(t, change)
			at := b.alloc(size)
			want := func(k int64) []byte {
				if name == "random bytes" {
					p := make([]byte, size)
					_, _ = rand.NewChaCha8([32]byte{byte(k)}).Read(p)
					return p
				}
				return few(size, uint64(k))
			}
			for k := range int64(5) {
				b.fill(at, want(k))
				out, err := c.putOn(b, k, at, size)
				b.check(err)
				c.untilCaptured(out)
			}
			b.check(c.wait(0, status.TierHost))
			if f := c.reducedTo(); f.encoded != 0 || f.plain != 5 {
				t.Errorf("%+v", f)
			}
			c.pushOff(b)
			for k := range int64(5) {
				c.mustGetOn(b, k, want(k))
				c.mustGet(k, want(k), operation.RestoreArgs{Last: true})
			}
			drained(t, c.s)
		})
	}
}

// withoutCodec opens devices that have no kernels of the codec.
func withoutCodec(open config.DeviceOpener) config.DeviceOpener {
	return func(ordinal int, kernels string) (device.Device, error) {
		d, err := open(ordinal, kernels)
		if err == nil {
			d.(*cuda.Device).UseCodec(func() ([]byte, error) { return nil, errors.New("they are not there") })
		}
		return d, err
	}
}

// Checkpoints that become larger than the ones before get the room that they need.
func TestWhatADeviceEncodesGrows(t *testing.T) {
	const size, count = 1 << 20, 14
	b, c := encodingBoard(t, nil)
	at := b.alloc(size)
	want := func(k int64) []byte {
		p := few(size, uint64(k))
		if k%4 == 3 {
			copy(p, random(size*3/4, uint64(k)))
		}
		return p
	}
	for k := range int64(count) {
		b.fill(at, want(k))
		out, err := c.putOn(b, k, at, size)
		b.check(err)
		c.untilCaptured(out)
		if k%2 == 0 {
			b.check(c.wait(0, status.TierHost))
		}
	}
	b.check(c.wait(0, status.TierHost))
	c.pushOff(b)
	for k := int64(count) - 1; k >= 0; k-- {
		c.mustGetOn(b, k, want(k))
		c.drop(k)
	}
	drained(t, c.s)
}

// A device's tier that becomes small keeps the memory in which it encodes, and all checkpoints come back.
func TestATierThatEncodesShrinks(t *testing.T) {
	const size, count = 3 << 20, 8
	b, c := encodingBoard(t, nil)
	at, to := b.alloc(size), b.alloc(size)
	put := func(k int64) {
		b.fill(at, few(size, uint64(k)))
		out, err := c.putOn(b, k, at, size)
		b.check(err)
		c.untilCaptured(out)
	}
	for k := range int64(count) {
		put(k)
	}
	for _, budget := range []int64{1 << 20, 40 << 20, 0, 72 << 20} {
		var out operation.Outcome
		fd := eventfd(t)
		op, code, err := c.s.Resize(config.Budgets{Devices: []config.Device{{Bytes: budget}}}, fd, &out)
		b.check(err)
		b.check(drive(t, op, code, fd, &out))
		put(count)
		b.check(c.wait(0, status.TierHost))
		for k := range int64(count + 1) {
			_, err := c.restoreTo(k, operation.RestoreArgs{Into: []model.Region{onDevice(to, size, 0)}, Streams: []uint64{b.stream}})
			b.check(err)
			if !bytes.Equal(b.look(to, size), few(size, uint64(k))) {
				t.Fatalf("checkpoint %d differs", k)
			}
		}
	}
	if f := c.reducedTo(); f.encoded < count {
		t.Errorf("%+v", f)
	}
}

// With "auto" the host gets the room that is predicted for what a device encodes, though the history is also one that may be de-duplicated, and the disk that of what
// the host has.
func TestRoomOfWhatADeviceEncodes(t *testing.T) {
	const size, count = 1 << 20, 24 // some are de-duplicated, others encoded
	b, c := encodingBoard(t, nil)
	if err := c.h.Reduce(Reduction{Method: "auto"}); err != nil {
		t.Fatal(err)
	}
	at := b.alloc(size)
	for k := range int64(count) {
		b.fill(at, few(size, uint64(k)))
		out, err := c.putOn(b, k, at, size)
		b.check(err)
		c.untilCaptured(out)
		b.check(c.wait(0, status.TierHost))
	}
	c.s.Lock()
	defer c.s.Unlock()
	p := c.s.Reductions["h"].Planner
	var r *engine.Record
	c.h.h.Each(func(each *engine.Record) {
		if r == nil && each.Version.Encoding != nil {
			r = each
		}
	})
	if r == nil {
		t.Fatalf("the device has encoded none: %+v", c.s.reductionOf("h"))
	}
	for range 12 { // whatever the double's times were
		p.Flushed(encoding.Encoded, size, 1)
		p.Flushed(encoding.Plain, size, 1<<30)
		p.Next(encoding.Checkpoint{Layout: r.Version.Layout.ID})
	}
	is, encoded, wrapped := r.Version.Encoding.Bytes(), c.s.ExpectBytes(r, engine.Encoded), c.s.ExpectBytes(r, engine.Difference)
	if encoded > size*3/4 || wrapped < is || wrapped > is+4096 {
		t.Errorf("%d bytes are expected of encoded ones, %d of an object, of %d bytes of containers", encoded, wrapped, is)
	}
}
