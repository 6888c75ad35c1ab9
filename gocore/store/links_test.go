package store

import (
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/numa"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/hostdevice"
	"velocpy/gocore/tier/devicememory"
)

// The pages of the host tier are requested on the node of the device, from the first to the last. If the node is not known, they may lie on any.
func TestTheHostTierLiesNearItsDevice(t *testing.T) {
	probe, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(probe) }()
	if err := numa.Prefer(probe, 0); err != nil {
		t.Skip("this machine refuses to place memory: ", err)
	}
	if placed, err := numa.Preferring(unsafe.Pointer(&probe[0])); !placed || err != nil {
		t.Skip("this process has a policy of its own: ", err)
	}
	for node, want := range map[int]bool{0: true, -1: false} {
		t.Run(fmt.Sprint("node ", node), func(t *testing.T) {
			b := newBoard(t, double.Config{Attributes: map[cuda.Attribute]int{cuda.HostNUMANode: node}})
			s := open(t, b.config(4<<20, 16<<20, 4<<20))
			for _, off := range []int64{0, s.Host.Size() - 1} {
				if placed, err := numa.Preferring(unsafe.Pointer(&s.Host.Bytes(off, 1)[0])); placed != want || err != nil {
					t.Errorf("byte %d is placed: %v, %v", off, placed, err)
				}
			}
			a := s.Devices[0]
			window, err := a.Bounce()
			b.check(err)
			for _, off := range []int64{0, int64(len(window)) - 1} {
				if placed, err := numa.Preferring(unsafe.Pointer(&window[off])); placed != want || err != nil {
					t.Errorf("byte %d of the window is placed: %v, %v", off, placed, err)
				}
			}
		})
	}
}

// Before anything was copied, the assumed rate of a device is that of its link.
func TestFirstRate(t *testing.T) {
	for rate, want := range map[float64]float64{0: 20e9, 100e9: 88e9} {
		if got := devicememory.LinkRate(hostdevice.New(hostdevice.Options{Place: device.Place{LinkRate: rate}})); got != want {
			t.Errorf("a link of %g bytes/s: %g", rate, got)
		}
	}
	b := newBoard(t, double.Config{})
	s := open(t, b.config(4<<20, 16<<20, 4<<20))
	stats, err := s.Stats()
	if err != nil || stats.Tiers["device"].WriteRate != devicememory.LinkRate(s.Devices[0].Device) {
		t.Errorf("a new store flushes with %g bytes/s, %v", stats.Tiers["device"].WriteRate, err)
	}
}

// The management library's rate of a link replaces the kernel's, and either replaces the constant. A measured rate stays.
func TestLinkRatesComeFromTheManagementLibraryFirst(t *testing.T) {
	for name, c := range map[string]struct {
		rates []float64
		want  float64 // 0: the kernel's rate, or the constant
	}{
		"it knows":           {[]float64{100e9}, 88e9},
		"it does not":        {[]float64{0}, 0},
		"there is no answer": {nil, 0},
		"of other devices":   {[]float64{100e9, 1}, 88e9},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{})
			asked, answer := make(chan int, 1), make(chan struct{})
			cfg := b.config(4<<20, 16<<20, 4<<20)
			cfg.LinkRates = func(devices []device.Device) []float64 {
				asked <- len(devices)
				<-answer
				return c.rates
			}
			s := open(t, cfg) // it does not wait for the answer
			if n := <-asked; n != 1 {
				t.Errorf("asked for %d devices", n)
			}
			first := devicememory.LinkRate(s.Devices[0].Device)
			want := c.want
			if want == 0 {
				want = first
			}
			rates := func() (down, up float64) {
				s.Lock()
				defer s.Unlock()
				u := s.Engine.Use(0)
				return u.WriteRate, u.ReadRate
			}
			if down, up := rates(); down != first || up != first {
				t.Errorf("before the answer: %g, %g", down, up)
			}
			close(answer)
			eventually(t, "the answer is taken", func() bool { down, up := rates(); return near(down, want) && near(up, want) })
		})
	}
}

func near(x, y float64) bool { return x > y*0.999 && x < y*1.001 }

// The answer arrives after the store has closed.
func TestLinkRatesCanBeLate(t *testing.T) {
	b := newBoard(t, double.Config{})
	answer, answered := make(chan struct{}), make(chan struct{})
	cfg := b.config(4<<20, 16<<20, 4<<20)
	cfg.LinkRates = func([]device.Device) []float64 {
		defer close(answered)
		<-answer
		return []float64{100e9}
	}
	s, err := Open(cfg)
	b.check(err)
	shut(t, s)
	close(answer)
	<-answered
	eventually(t, "no goroutine of the store touches the lock file of its turn any more", func() bool {
		s.Lock()
		defer s.Unlock()
		return s.Empty
	})
}
