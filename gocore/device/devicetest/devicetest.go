// Package devicetest is the conformance suite of device.Device. Its checks hold for every implementation, on a double of the driver as on a real
// device. It needs some 64 MiB of device memory, and as much host memory.
package devicetest

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// Test runs the suite. open returns a new device, with the kernels of the codec and of de-duplication, or one that can be closed and reopened; the suite closes it.
func Test(t *testing.T, open func() device.Device) {
	for name, run := range map[string]func(*bench){
		"identity":         identity,
		"lane order":       laneOrder,
		"marks":            marks,
		"marks are kept":   marksAreKept,
		"stamps":           stamps,
		"borrowed streams": borrowed,
		"growth":           growth,
		"shrinking":        shrinking,
		"copies":           copies,
		"pieces":           pieces,
		"odd sizes":        oddSizes,
		"strides":          strides,
		"many pieces":      manyPieces,
		"not a number":     notANumber,
		"pageable":         pageablePieces,
		"from pinned":      pinnedPieces,
		"sums":             sums,
		"seams":            seams,
		"errors":           mistakes,
		"lanes at once":    lanesAtOnce,
		"schedules":        schedules,
		"encoding":         encoding,
		"many containers":  manyContainers,
		"damage":           damage,
		"references":       references,
		"mixed references": mixedReferences,
		"other references": otherReferences,
		"reference chain":  referenceChain,
		"codec order":      codecOrder,
		"codec results":    codecResults,
		"codec mistakes":   codecMistakes,
		"histories":        histories,
		"large histories":  largeHistories,
		"dedup mistakes":   dedupMistakes,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, open())
			run(b)
		})
	}
}

// Sizes of a bench.
const (
	arenaBytes = 16 << 20
	hostBytes  = 16 << 20
)

// bench is a device with a fully mapped arena, pinned host memory, and a lane.
type bench struct {
	*testing.T
	dev   device.Device
	lane  device.Lane
	arena device.Arena
	base  device.Address
	host  *memory.Mapping // pinned
	rand  *rand.Rand
	undo  []func()
}

func newBench(t *testing.T, dev device.Device) *bench {
	t.Helper()
	b := &bench{T: t, dev: dev, rand: rand.New(rand.NewPCG(7, uint64(len(t.Name()))))}
	t.Cleanup(b.close)
	arena, err := dev.Reserve(arenaBytes)
	b.must(err)
	b.arena, b.base = arena, arena.Base()
	b.defers(func() { b.should(arena.Free()) })
	for arena.Mapped() < arenaBytes {
		before := arena.Mapped()
		after, err := arena.Grow(arenaBytes)
		b.must(err)
		if after <= before {
			t.Fatalf("an arena of %d bytes does not grow beyond %d", arenaBytes, after)
		}
	}
	b.host = b.mapping(hostBytes)
	b.must(dev.Pin(b.host, 0, hostBytes))
	b.defers(func() { b.should(dev.Unpin(b.host, 0, hostBytes)) })
	b.lane = b.newLane()
	return b
}

func (b *bench) defers(fn func()) { b.undo = append(b.undo, fn) }

func (b *bench) close() {
	b.Helper()
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.should(b.dev.Close())
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) should(err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
	}
}

func (b *bench) newLane() device.Lane {
	b.Helper()
	l, err := b.dev.Lane(device.Waited)
	b.must(err)
	b.defers(func() {
		b.finish(l)
		b.should(l.Close())
	})
	return l
}

// mapping is pageable memory filled with random bytes.
func (b *bench) mapping(n int64) *memory.Mapping {
	b.Helper()
	m, err := memory.Map("devicetest", n)
	b.must(err)
	b.defers(func() { b.should(m.Unmap()) })
	b.fill(m.Bytes(0, n))
	return m
}

func (b *bench) fill(p []byte) {
	for len(p) >= 8 {
		*(*uint64)(unsafe.Pointer(&p[0])) = b.rand.Uint64()
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(b.rand.Uint32())
	}
}

func (b *bench) mark(l device.Lane) device.Event {
	b.Helper()
	m, err := l.Event()
	b.must(err)
	return m
}

// finish waits for a lane.
func (b *bench) finish(l device.Lane) {
	b.Helper()
	m := b.mark(l)
	b.wait(m)
	m.Drop()
}

func (b *bench) wait(m device.Event) {
	b.Helper()
	b.must(m.Wait())
}

func (b *bench) hostAt(off int64) device.Address {
	return device.Address(b.host.Base()) + device.Address(off)
}
func (b *bench) at(off int64) device.Address { return b.base + device.Address(off) }

// write copies bytes to device memory, read copies them from it, both through the last part of the pinned memory.
func (b *bench) write(at device.Address, p []byte) { b.Helper(); b.through(at, p, true) }
func (b *bench) read(at device.Address, n int64) []byte {
	b.Helper()
	p := make([]byte, n)
	b.through(at, p, false)
	return p
}

const stage = 1 << 20

func (b *bench) through(at device.Address, p []byte, down bool) {
	b.Helper()
	for off := 0; off < len(p); off += stage {
		part := p[off:min(off+stage, len(p))]
		n := int64(len(part))
		staged := b.host.Bytes(hostBytes-stage, n)
		there, here := at+device.Address(off), b.hostAt(hostBytes-stage)
		if down {
			copy(staged, part)
			b.must(b.lane.Copy(there, here, n))
		} else {
			b.must(b.lane.Copy(here, there, n))
		}
		b.finish(b.lane)
		if !down {
			copy(part, staged)
		}
	}
}

func (b *bench) noise(n int64) []byte {
	p := make([]byte, n)
	b.fill(p)
	return p
}

// pointer converts an address that a mapping or the device keeps valid.
func pointer(at device.Address) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func dense(at device.Address) model.Strided { return model.Strided{Base: pointer(at)} }
