//go:build cgo

package libcuda_test

import (
	"bytes"
	"errors"
	"flag"
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
)

var (
	onGPU   = flag.Bool("gpu", false, "run the tests that need a GPU")
	kernels = flag.String("kernels", "", "the file of kernels, for -gpu")
	codec   = flag.String("codec", "", "the file of the codec's kernels, for -gpu")
	losing  = flag.Bool("losing", false, "in a process of its own: lose the context")
)

// gpu opens the driver, or skips the test.
func gpu(t *testing.T) (*libcuda.Driver, []byte) {
	t.Helper()
	if !*onGPU {
		t.Skip("needs -gpu -kernels FILE -codec FILE")
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
func codecImage() ([]byte, error) { return os.ReadFile(*codec) }

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
		return dev
	})
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
