package cuda_test

import (
	"bytes"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
)

// TestBorder: no copy of a device may cross a range that another device has pinned, even before the first device pins it too.
func TestBorder(t *testing.T) {
	r := open(t, double.Config{Devices: 2})
	defer r.close()
	other, err := cuda.Open(r.driver, 1, image)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	memory, err := r.driver.Allocate(1, 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	lane, err := other.Lane(device.Waited)
	if err != nil {
		t.Fatal(err)
	}
	across := func(when string) {
		t.Helper()
		source, want := r.host.Bytes(1<<20-4096, 8192), make([]byte, 8192)
		for i := range want {
			want[i] = byte(i*7) + source[0] + 1
		}
		copy(source, want)
		if err := lane.Copy(memory, device.AddressOf(source), 8192); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		m, err := lane.Event()
		if err != nil {
			t.Fatal(err)
		}
		defer m.Drop()
		if err := m.Wait(); err != nil || !bytes.Equal(r.driver.Bytes(memory, 8192), want) {
			t.Fatalf("%s: wrong bytes, or %v", when, err)
		}
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"a border", func() error { return other.Border(r.host, 0, 1<<20) }},
		{"pinned by the first", func() error { return r.dev.Pin(r.host, 0, 1<<20) }},
		{"pinned by both", func() error { return other.Pin(r.host, 0, 1<<20) }},
		{"unpinned by the second", func() error { return other.Unpin(r.host, 0, 1<<20) }},
	}
	across("at first")
	for _, step := range steps[:3] {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		across(step.what)
	}
	if other.Border(r.host, 4096, 4096) == nil {
		t.Error("a border inside of a pinned range")
	}
	if err := steps[3].do(); err != nil {
		t.Errorf("%s: %v", steps[3].what, err)
	}
	if err := r.dev.Unpin(r.host, 0, 1<<20); err != nil {
		t.Error(err)
	}
	across("when nothing is pinned any more")
	if err := lane.Close(); err != nil {
		t.Error(err)
	}
}
