// Package conformance is the suite that every driver has to pass, the real one and the double. It tests the functions of cuda.Driver one by one, and
// package cuda on top of them. It leaves out the abilities of only one of them: faults on demand.
package conformance

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
)

// Machine is the environment of the suite.
type Machine struct {
	Driver cuda.Driver
	Image  []byte // the kernels
	Codec  []byte // the kernels of the codec
	// Capture records a stream into a graph until end is called on the same thread. end fails if other calls broke the graph.
	Capture func(cuda.Context, cuda.Stream) (end func() error, err error)
	// Current is the context of the calling thread; nil if threads have no current context here.
	Current func() (cuda.Context, error)
	// After, if set, is called when a test has freed everything.
	After func(*testing.T)
	// Large enables sizes that only a real device is fast enough for.
	Large bool
}

// Run runs the suite. open makes a machine for one test.
func Run(t *testing.T, open func(*testing.T) Machine) {
	tests := []struct {
		name string
		run  func(*testing.T, Machine)
	}{
		{"Identity", identity}, {"Refusals", refusals}, {"Memory", physicalMemory}, {"Pinned", pinnedMemory}, {"Streams", streams},
		{"Events", events}, {"Modules", modules}, {"Threads", threads},
		{"Arena", arena}, {"ArenaGrowsBesideCopies", arenaBesideCopies}, {"ArenaShrinksBesideCopies", arenaShrinksBesideCopies},
		{"Copies", copies}, {"Seams", seams}, {"Moves", moves}, {"PinBesideCopies", pinBesideCopies},
		{"Gather", gather}, {"Scatter", scatter}, {"ManyPieces", manyPieces}, {"Hash", hash}, {"HostPieces", hostPieces},
		{"Events", marks}, {"Borrowed", borrowed}, {"Recording", recording}, {"BesideRecording", besideRecording}, {"Sums", sumsPool},
		{"Containers", containers}, {"LargeContainers", largeContainers},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			m := open(t)
			c.run(t, m)
			if m.After != nil {
				m.After(t)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got is must for a call that returns something.
func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func pattern(seed uint64, n int64) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 7}).Read(p)
	return p
}

// host is n bytes outside the Go heap, with a stable address.
func host(t *testing.T, n int64) *memory.Mapping {
	t.Helper()
	m := got(memory.Map("conformance", n))(t)
	t.Cleanup(func() { _ = m.Unmap() })
	return m
}

func address(m *memory.Mapping) device.Address { return uintptr(m.Base()) }

func same(t *testing.T, what string, have, want []byte) {
	t.Helper()
	if bytes.Equal(have, want) {
		return
	}
	if len(have) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", what, len(have), len(want))
	}
	for i := range have {
		if have[i] != want[i] {
			t.Fatalf("%s: byte %d of %d is %#x, want %#x", what, i, len(have), have[i], want[i])
		}
	}
}

// together runs fn n times at once, each on its own thread, and waits.
func together(n int, fn func(i int)) {
	done := make(chan struct{})
	for i := range n {
		safego.Go("conformance", func() {
			defer func() { done <- struct{}{} }()
			fn(i)
		})
	}
	for range n {
		<-done
	}
}
