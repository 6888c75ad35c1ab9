//go:build cgo

package libcuda_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/conformance"
	"velocpy/gocore/device/cuda/libcuda"
	"velocpy/gocore/device/devicetest"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

var (
	onGPU   = flag.Bool("gpu", false, "run the tests that need a GPU")
	kernels = flag.String("kernels", "", "the file of kernels, for -gpu")
	codecAt = flag.String("codec", "", "the file of the codec's kernels, for -gpu")
	dedupAt = flag.String("dedup", "", "the file of the kernels of de-duplication, for -gpu")
	losing  = flag.Bool("losing", false, "in a process of its own: lose the context")
)

// gpu opens the driver, or skips the test.
func gpu(t *testing.T) (*libcuda.Driver, []byte) {
	t.Helper()
	if !*onGPU {
		t.Skip("needs -gpu -kernels FILE -codec FILE -dedup FILE")
	}
	image, err := os.ReadFile(*kernels)
	if err != nil {
		t.Fatal(err)
	}
	d, err := libcuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	shared.Do(func() { _, err = d.RetainPrimary(0) })
	if err != nil {
		t.Fatal(err)
	}
	return d, image
}

// codecImage reads the codec's kernels.
func codecImage() ([]byte, error) { return os.ReadFile(*codecAt) }

// dedupImage reads the kernels of de-duplication.
func dedupImage() ([]byte, error) { return os.ReadFile(*dedupAt) }

// shared keeps the context for all tests, like an application: creating one takes a good part of a second.
var shared sync.Once

func TestConformance(t *testing.T) {
	gpu(t)
	conformance.Run(t, func(t *testing.T) conformance.Machine {
		d, image := gpu(t)
		kernels, err := codecImage()
		if err != nil {
			t.Fatal(err)
		}
		return conformance.Machine{
			Driver:  d,
			Image:   image,
			Codec:   kernels,
			Large:   true,
			Current: d.Current,
			Capture: func(c cuda.Context, s cuda.Stream) (func() error, error) {
				return func() error { return d.EndCapture(c, s) }, d.BeginCapture(c, s)
			},
		}
	})
}

func TestDevice(t *testing.T) {
	d, image := gpu(t)
	devicetest.Test(t, func() device.Device {
		dev, err := cuda.Open(d, 0, image)
		if err != nil {
			t.Fatal(err)
		}
		dev.UseCodec(codecImage)
		dev.UseDedup(dedupImage)
		return dev
	})
}

// The differences of any checkpoints are those of package dedup, byte for byte.
func TestDedupOfAnyHistory(t *testing.T) {
	d, image := gpu(t)
	dev, err := cuda.Open(d, 0, image)
	if err != nil {
		t.Fatal(err)
	}
	dev.UseDedup(dedupImage)
	devicetest.AnyHistory(t, dev)
}

// A second Open returns the same driver, and the driver supports the kernels' version.
func TestOpenTwice(t *testing.T) {
	d, _ := gpu(t)
	again, err := libcuda.Open()
	if err != nil || again != d {
		t.Errorf("%p and %p, %v", d, again, err)
	}
	if v, _ := d.Version(); v < libcuda.Oldest {
		t.Errorf("version %d", v)
	}
}

// The caller's context, a foreign one or none, is the same after any of our calls; ours never stays current.
func TestCallersContextStays(t *testing.T) {
	d, image := gpu(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dev, err := cuda.Open(d, 0, image)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := d.Current(); err != nil || c != 0 {
		t.Errorf("context %#x is left behind by opening: %v", uintptr(c), err)
	}
	if count, _ := d.Devices(); count > 1 {
		other, err := d.RetainPrimary(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.MakeCurrent(other); err != nil {
			t.Fatal(err)
		}
		if _, _, err := dev.Memory(); err != nil {
			t.Error(err)
		}
		if c, err := d.Current(); err != nil || c != other {
			t.Errorf("context %#x instead of the caller's %#x: %v", uintptr(c), uintptr(other), err)
		}
		if err := errors.Join(d.Uncurrent(), d.ReleasePrimary(1)); err != nil {
			t.Error(err)
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// Invalid modules are refused with the call's name, and the context stays valid.
func TestBadImages(t *testing.T) {
	d, image := gpu(t)
	for name, bad := range map[string][]byte{
		"text": []byte("no kernels at all"), "old PTX": []byte(".version 8.0\n.target sm_52\n.address_size 64\n.visible .entry velocpy_pack() { ret; }\n"),
	} {
		if _, err := cuda.Open(d, 0, bad); !errors.Is(err, device.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dev, err := cuda.Open(d, 0, image)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// Losing a context ends CUDA for the process, so it happens in a child process.
func TestLoss(t *testing.T) {
	gpu(t)
	command := exec.Command(os.Args[0], "-test.run=^TestLosing$", "-gpu", "-losing", "-kernels", *kernels)
	timer := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	if text, err := command.CombinedOutput(); err != nil || !bytes.Contains(text, []byte("PASS")) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestLosing(t *testing.T) {
	d, image := gpu(t)
	if !*losing {
		t.Skip("runs in a process of its own: see TestLoss")
	}
	dev, err := cuda.Open(d, 0, image)
	if err != nil {
		t.Fatal(err)
	}
	lane, err := dev.Lane(device.Waited)
	if err != nil {
		t.Fatal(err)
	}
	arena, err := dev.Reserve(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := arena.Grow(64 << 20); err != nil {
		t.Fatal(err)
	}
	before, err := lane.Event()
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Wait(); err != nil {
		t.Fatal(err)
	}
	wild := pointer(arena.Base() + 512<<20) // reserved, but not mapped
	sums, err := lane.Gather([]device.Piece{{Slot: arena.Base(), Bytes: 4096, Mem: model.Strided{Base: wild}}}, true)
	if err == nil {
		mark, marking := lane.Event()
		if err = marking; err == nil {
			err = mark.Wait()
		}
	}
	t.Log(err)
	if !errors.Is(err, device.ErrLost) || !errors.Is(dev.Lost(), device.ErrLost) {
		t.Fatalf("a read of nothing: %v; lost: %v, sums %v", err, dev.Lost(), sums)
	}
	if _, err := before.Passed(); !errors.Is(err, device.ErrLost) {
		t.Errorf("a mark from before: %v", err)
	}
	if _, err := arena.Grow(1 << 30); !errors.Is(err, device.ErrLost) {
		t.Errorf("growth: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// BenchmarkCodec encodes and decodes 256 MiB of bfloat16 weights in containers of 64 MiB, 8 MiB and 64 KiB.
func BenchmarkCodec(b *testing.B) {
	if !*onGPU {
		b.Skip("needs -gpu -kernels FILE -codec FILE")
	}
	for _, n := range []int{64 << 20, 8 << 20, 64 << 10} {
		b.Run(fmt.Sprintf("container=%dKiB", n>>10), func(b *testing.B) {
			c := openCodecBench(b, n)
			encode := c.fastest(func() func() {
				lengths, err := c.lane.Encode(c.all, c.scratch)
				c.must(err)
				return func() {
					for i, n := range lengths.Take() {
						c.all[i].Length = n
					}
				}
			})
			decode := c.fastest(func() func() {
				faults, err := c.lane.Decode(c.all, c.scratch)
				c.must(err)
				return func() {
					if bad := faults.Take(); len(bad) > 0 {
						b.Fatalf("damaged: %v", bad)
					}
				}
			})
			b.ReportMetric(codecPlain/float64(encode), "encode-GB/s")
			b.ReportMetric(codecPlain/float64(decode), "decode-GB/s")
			b.ReportMetric(0, "ns/op")
			for _, err := range []error{c.lane.Close(), c.arena.Free(), c.dev.Close()} {
				c.must(err)
			}
		})
	}
}

const codecPlain = 256 << 20

// codecBench is a device with weights, and room for their containers.
type codecBench struct {
	*testing.B
	dev     *cuda.Device
	lane    device.Lane
	arena   device.Arena
	all     []device.Container
	scratch device.Address
}

func (c *codecBench) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func openCodecBench(b *testing.B, n int) *codecBench {
	c := &codecBench{B: b}
	d, err := libcuda.Open()
	c.must(err)
	image, err := os.ReadFile(*kernels)
	c.must(err)
	c.dev, err = cuda.Open(d, 0, image)
	c.must(err)
	c.dev.UseCodec(codecImage)
	c.lane, err = c.dev.Lane(device.Waited)
	c.must(err)
	c.arena, err = c.dev.Reserve(4 * codecPlain)
	c.must(err)
	for c.arena.Mapped() < 4*codecPlain {
		_, err = c.arena.Grow(4 * codecPlain)
		c.must(err)
	}
	c.scratch = c.arena.Base() + 3*codecPlain
	weights := make([]byte, 64<<20)
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(weights); i += 2 {
		binary.LittleEndian.PutUint16(weights[i:], uint16(math.Float32bits(float32(0.02*r.NormFloat64()))>>16))
	}
	room := device.Address(codec.Bound(n)+63) &^ 63
	for i := range codecPlain / n {
		plain := c.arena.Base() + device.Address(i*n)
		at := c.arena.Base() + codecPlain + device.Address(i)*room
		c.all = append(c.all, device.Container{Plain: plain, Bytes: int64(n), Kind: codec.BFloat16, Modes: codec.AllModes, At: at})
	}
	for at := 0; at < codecPlain; at += len(weights) {
		c.must(c.lane.Copy(c.arena.Base()+device.Address(at), device.AddressOf(weights), int64(len(weights))))
	}
	return c
}

// fastest is the time on the device of the fastest of some calls, each of which returns a function for its results.
func (c *codecBench) fastest(queue func() func()) int64 {
	best := int64(math.MaxInt64)
	for range 30 {
		from, err := c.lane.Stamp()
		c.must(err)
		take := queue()
		to, err := c.lane.Stamp()
		c.must(err)
		m, err := c.lane.Event()
		c.must(err)
		c.must(m.Wait())
		m.Drop()
		take()
		ns, _, err := to.Since(from)
		c.must(err)
		best = min(best, ns)
		from.Drop()
		to.Drop()
	}
	return best
}
