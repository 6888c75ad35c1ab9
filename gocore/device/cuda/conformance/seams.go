package conformance

import (
	"errors"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
)

const pinPiece = 1 << 20

// seams copies between the device and host memory of which pieces were pinned separately, adjacent and with gaps.
func seams(t *testing.T, m Machine) {
	b := newBench(t, m, 14*mib)
	const pieces = 12
	const n = pieces * pinPiece
	h := host(t, n)
	pinned := []int64{0, 1, 2, 4, 5, 8, 11}
	for _, i := range rand.Perm(len(pinned)) {
		must(t, b.dev.Pin(h, pinned[i]*pinPiece, pinPiece))
	}
	if err := b.dev.Pin(h, pinPiece/2, pinPiece); !errors.Is(err, device.ErrPinning) {
		t.Errorf("pinned twice: %v", err)
	}
	if err := b.dev.Pin(h, n-1, 2); !errors.Is(err, device.ErrPinning) {
		t.Errorf("pinned beyond the mapping: %v", err)
	}
	if err := b.dev.Unpin(h, 0, 2*pinPiece); !errors.Is(err, device.ErrPinning) {
		t.Errorf("unpinned two as one: %v", err)
	}
	at := b.room(n, 0)
	want := pattern(4, n)
	r := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		from := r.Int64N(n)
		bytes := 1 + r.Int64N(n-from)
		clear(h.Bytes(0, n))
		b.put(at, want)
		must(t, b.lane.Copy(address(h)+uintptr(from), at+uintptr(from), bytes))
		b.settle(b.lane)
		same(t, "down", h.Bytes(from, bytes), want[from:from+bytes])
		b.put(at, make([]byte, n))
		must(t, b.lane.Copy(at+uintptr(from), address(h)+uintptr(from), bytes))
		b.settle(b.lane)
		same(t, "up", b.get(at+uintptr(from), bytes), want[from:from+bytes])
	}
	for _, i := range pinned[1:] {
		must(t, b.dev.Unpin(h, i*pinPiece, pinPiece))
	}
	must(t, b.dev.Pin(h, pinPiece, 2*pinPiece))
	b.close() // unpins the rest
}

// pinBesideCopies pins and unpins one half while copies use all of the other, up to the border.
func pinBesideCopies(t *testing.T, m Machine) {
	b := newBench(t, m, 6*mib)
	const n = 4 * mib
	h := host(t, 2*n)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	safego.Go("pinning", func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := errors.Join(b.dev.Pin(h, n, n), b.dev.Unpin(h, n, n)); err != nil {
				stopped <- err
				return
			}
		}
	})
	at := b.room(n, 0)
	for i := range uint64(20) {
		want := pattern(i, n-5)
		b.put(at, want)
		must(t, b.lane.Copy(address(h)+5, at, n-5))
		b.settle(b.lane)
		same(t, "beside pinning", h.Bytes(5, n-5), want)
	}
	close(stop)
	must(t, <-stopped)
	b.close()
}
