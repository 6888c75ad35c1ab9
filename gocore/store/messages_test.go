package store

import (
	"strings"
	"testing"

	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/operation"
)

func says(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Messages have sizes in binary units, and the exact bytes where a few bytes matter.
func TestSizesOfBudgetsInMessages(t *testing.T) {
	_, err := Open(cached(2<<60, 0, nil))
	says(t, err, "the budget of host is 2.0 EiB (2305843009213693952 bytes); it must be above zero and at most 1.0 EiB")
	c := cached(1<<20, 0, nil)
	c.Devices = []config.Device{{Bytes: 3 << 20, Share: 0.5}}
	_, err = Open(c)
	says(t, err, "the budget of device 0 is 3.0 MiB (3145728 bytes) or a share of 0.5")
}

func TestSizesOfDestinationsInMessages(t *testing.T) {
	h := newClient(t, open(t, cached(1<<20, 0, nil)), "h")
	h.mustPut(0, random(2048, 1))
	_, _, err := h.get(0, 2047, operation.RestoreArgs{})
	says(t, err, "destination of 2.0 KiB (2047 bytes) for a region of 2.0 KiB (2048 bytes)")
}

func TestSizesOfDevicesInMessages(t *testing.T) {
	b := newBoard(t, double.Config{Granularity: granule, Seed: 5})
	s := open(t, b.config(8<<20, 0, 4<<20))
	_, _, err := s.Resize(config.Budgets{Devices: []config.Device{{Bytes: 5 << 20}}}, newClient(t, s, "h").fd, &operation.Outcome{})
	says(t, err, "a budget of 5.0 MiB (5242880 bytes) for device 0: the store was opened with 4.0 MiB (4194304 bytes)")
}
