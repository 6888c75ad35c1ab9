package cuda_test

import (
	"testing"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/conformance"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/devicetest"
)

var image = []byte("kernels of the double are twins")

// fresh is a double that fails the test on any misuse, and if anything is not freed.
func fresh(t *testing.T, cfg double.Config) *double.Driver {
	d := double.New(cfg)
	t.Cleanup(d.Close)
	return d
}

func proper(t *testing.T, d *double.Driver) {
	t.Helper()
	d.Settle()
	for _, text := range append(d.Misuse(), d.Alive()...) {
		t.Error(text)
	}
}

func TestConformance(t *testing.T) {
	for name, delay := range map[string]time.Duration{"prompt": 0, "late": 50 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, func(t *testing.T) conformance.Machine {
				d := fresh(t, double.Config{Memory: 2 << 30, Delay: delay, Seed: 1})
				return conformance.Machine{
					Driver: d,
					Image:  image,
					Codec:  image,
					Capture: func(_ cuda.Context, s cuda.Stream) (func() error, error) {
						d.SetCapturing(s, true)
						return func() error { d.SetCapturing(s, false); return nil }, nil
					},
					After: func(t *testing.T) { proper(t, d) },
				}
			})
		})
	}
}

// The suite of all devices, on this one.
func TestDevice(t *testing.T) {
	devicetest.Test(t, func() device.Device {
		d := fresh(t, double.Config{Memory: 2 << 30, Delay: 20 * time.Microsecond, Seed: 2})
		dev, err := cuda.Open(d, 0, image)
		if err != nil {
			t.Fatal(err)
		}
		dev.UseCodec(func() ([]byte, error) { return image, nil })
		dev.UseDedup(func() ([]byte, error) { return image, nil })
		return dev
	})
}
