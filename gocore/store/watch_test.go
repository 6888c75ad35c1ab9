package store

import (
	"slices"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
)

// The devices are watched from the open to the first Close, which does not wait for the end of the watch.
func TestDevicesAreWatchedWhileTheStoreIsOpen(t *testing.T) {
	b := newBoard(t, double.Config{})
	var watched []string
	ended := 0
	c := b.config(4<<20, 0, 2<<20)
	c.WatchDevices = func(devices []device.Device) func() {
		for _, d := range devices {
			watched = append(watched, d.Name())
		}
		return func() { ended++ }
	}
	s := open(t, c)
	if !slices.Equal(watched, []string{b.dev.Name()}) || ended != 0 {
		t.Fatalf("watched %v, ended %d times", watched, ended)
	}
	for range 2 {
		fd := eventfd(t)
		op := s.Close(fd)
		if ended != 1 {
			t.Fatalf("ended %d times when Close has returned", ended)
		}
		if err := driveClose(t, op, fd); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreWithoutDevicesWatchesNothing(t *testing.T) {
	c := cached(1<<20, 0, nil)
	c.WatchDevices = func([]device.Device) func() { t.Error("watched"); return nil }
	shut(t, open(t, c))
}
