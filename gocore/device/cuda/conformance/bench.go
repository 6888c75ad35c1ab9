package conformance

import (
	"testing"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
)

// bench is a device with memory for arrays and slots.
type bench struct {
	t     *testing.T
	dev   *cuda.Device
	lane  device.Lane
	arena device.Arena
	used  int64
	stage *memory.Mapping
}

// newBench maps at least that many bytes.
func newBench(t *testing.T, m Machine, bytes int64) *bench {
	t.Helper()
	b := &bench{t: t, dev: got(cuda.Open(m.Driver, 0, m.Image))(t)}
	b.dev.UseCodec(func() ([]byte, error) { return m.Codec, nil })
	b.lane = got(b.dev.Lane(device.Waited))(t)
	b.arena = got(b.dev.Reserve(bytes))(t)
	for b.arena.Mapped() < bytes {
		before := b.arena.Mapped()
		if now := got(b.arena.Grow((bytes + 2*mib - 1) &^ (2*mib - 1)))(t); now == before {
			t.Fatalf("the arena stays at %d bytes of %d", now, bytes)
		}
	}
	return b
}

func (b *bench) close() {
	b.t.Helper()
	b.settle(b.lane)
	must(b.t, b.lane.Close())
	must(b.t, b.arena.Free())
	must(b.t, b.dev.Close())
	if b.stage != nil {
		must(b.t, b.stage.Unmap())
	}
}

// room allocates a part of the arena, at a multiple of 64 bytes plus skew from its beginning.
func (b *bench) room(bytes, skew int64) device.Address {
	b.t.Helper()
	at := b.used + skew
	b.used = (at + bytes + 127) &^ 63
	if b.used > b.arena.Mapped() {
		b.t.Fatalf("the test needs more than %d bytes", b.arena.Mapped())
	}
	return b.arena.Base() + uintptr(at)
}

func (b *bench) settle(l device.Lane) {
	b.t.Helper()
	m := got(l.Event())(b.t)
	must(b.t, m.Wait())
	m.Drop()
}

// staging is pageable memory of at least n bytes.
func (b *bench) staging(n int64) *memory.Mapping {
	b.t.Helper()
	if b.stage == nil || b.stage.Size() < n {
		if b.stage != nil {
			must(b.t, b.stage.Unmap())
		}
		b.stage = got(memory.Map("conformance", n))(b.t)
	}
	return b.stage
}

func (b *bench) put(at device.Address, p []byte) {
	b.t.Helper()
	if len(p) == 0 {
		return
	}
	n := int64(len(p))
	s := b.staging(n)
	copy(s.Bytes(0, n), p)
	must(b.t, b.lane.Copy(at, address(s), n))
	b.settle(b.lane)
}

func (b *bench) get(at device.Address, n int64) []byte {
	b.t.Helper()
	if n == 0 {
		return nil
	}
	s := b.staging(n)
	must(b.t, b.lane.Copy(address(s), at, n))
	b.settle(b.lane)
	return append([]byte(nil), s.Bytes(0, n)...)
}
