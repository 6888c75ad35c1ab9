package store

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/cuda"
	"velocpy/gocore/cuda/double"
	"velocpy/gocore/device"
	"velocpy/gocore/hostdevice"
	"velocpy/gocore/numa"
)

// The host tier's pages are asked for on the node of the device, from the first to the last, and anywhere when it is not known.
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
			for _, off := range []int64{0, s.host.Size() - 1} {
				if placed, err := numa.Preferring(unsafe.Pointer(&s.host.Bytes(off, 1)[0])); placed != want || err != nil {
					t.Errorf("byte %d is placed: %v, %v", off, placed, err)
				}
			}
			if s.touchNode() != node {
				t.Errorf("pages are touched on node %d", s.touchNode())
			}
		})
	}
}

func TestNodesOfDevices(t *testing.T) {
	for _, c := range []struct {
		on, nodes []int
		touch     int
	}{
		{nil, nil, -1},
		{[]int{1}, []int{1}, 1},
		{[]int{1, 1}, []int{1}, 1},
		{[]int{1, 0, 1}, []int{0, 1}, -1},
		{[]int{-1, 2}, []int{2}, 2},
	} {
		s := &Store{}
		for _, node := range c.on {
			s.accelerators = append(s.accelerators, &accelerator{dev: hostdevice.New(hostdevice.Options{Place: device.Place{Node: node}})})
		}
		if got := s.nodes(); !slices.Equal(got, c.nodes) || s.touchNode() != c.touch {
			t.Errorf("devices on %v: nodes %v, touched on %d", c.on, got, s.touchNode())
		}
	}
}

// Before anything was copied, a device is taken for as fast as its link.
func TestFirstRate(t *testing.T) {
	for rate, want := range map[float64]float64{0: assumedLinkRate, 100e9: 88e9} {
		if got := firstRate(hostdevice.New(hostdevice.Options{Place: device.Place{LinkRate: rate}})); got != want {
			t.Errorf("a link of %g bytes/s: %g", rate, got)
		}
	}
	b := newBoard(t, double.Config{})
	s := open(t, b.config(4<<20, 16<<20, 4<<20))
	stats, err := s.Stats()
	if err != nil || stats.Tiers["device"].WriteRate != firstRate(s.accelerators[0].dev) {
		t.Errorf("a new store flushes with %g bytes/s, %v", stats.Tiers["device"].WriteRate, err)
	}
}
