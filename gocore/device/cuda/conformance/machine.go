// Package conformance is the suite that every driver has to pass, the real one and the double: the functions of cuda.Driver one by
// one, and package cuda on top of them. What it leaves out is what only one of them can do: faults on demand.
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

// Machine is what the suite runs on.
type Machine struct {
	Driver cuda.Driver
	Image  []byte // the kernels
	// Capture records a stream into a graph until end is called, on the same thread, which says whether somebody broke it.
	Capture func(cuda.Context, cuda.Stream) (end func() error, err error)
	// Current is the context of the calling thread; nil if threads have none here.
	Current func() (cuda.Context, error)
	// After, if any, is called when all of a test has been given back.
	After func(*testing.T)
	// Large asks for sizes that only a real device is fast enough for.
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
		{"Copies", copies}, {"Seams", seams}, {"PinBesideCopies", pinBesideCopies},
		{"Gather", gather}, {"Scatter", scatter}, {"ManyPieces", manyPieces}, {"Hash", hash}, {"HostPieces", hostPieces},
		{"Marks", marks}, {"Borrowed", borrowed}, {"Recording", recording}, {"BesideRecording", besideRecording}, {"Sums", sumsPool},
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

// host is n bytes outside the Go heap, where addresses can be told to others.
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

// together runs fn n times at once, each on a thread of its own, and waits.
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
