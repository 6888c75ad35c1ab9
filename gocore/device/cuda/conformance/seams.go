package conformance

import (
	"errors"
	"math/rand/v2"
	"slices"
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

// moves copies many ranges at once between the device, whose memory has several pieces, and host memory that was pinned in pieces.
func moves(t *testing.T, m Machine) {
	b := newBench(t, m, 14*mib)
	const n = 12 * pinPiece
	h := host(t, n)
	for _, i := range rand.Perm(n / pinPiece) {
		must(t, b.dev.Pin(h, int64(i)*pinPiece, pinPiece))
	}
	at := b.room(n, 0)
	want := pattern(6, n)
	r := rand.New(rand.NewPCG(6, 6))
	for _, count := range []int{0, 1, 2, 63, 64, 65, 400} {
		ends := []int64{0, n}
		for len(ends) < count {
			ends = append(ends, r.Int64N(n+1)) // also ranges of no bytes
		}
		slices.Sort(ends)
		var down, up []device.Move
		skipped := map[int]bool{}
		for i, from := range ends[:min(count, len(ends)-1)] {
			if skipped[i] = i%7 == 3; skipped[i] {
				continue
			}
			bytes := ends[i+1] - from
			down = append(down, device.Move{To: address(h) + uintptr(from), From: at + uintptr(from), Bytes: bytes})
			up = append(up, device.Move{To: at + uintptr(from), From: address(h) + uintptr(from), Bytes: bytes})
		}
		expect := make([]byte, n)
		for i, from := range ends[:min(count, len(ends)-1)] {
			if !skipped[i] {
				copy(expect[from:ends[i+1]], want[from:])
			}
		}
		clear(h.Bytes(0, n))
		b.put(at, want)
		must(t, b.lane.CopyAll(down))
		b.settle(b.lane)
		same(t, "down", h.Bytes(0, n), expect)
		b.put(at, make([]byte, n))
		must(t, b.lane.CopyAll(up))
		b.settle(b.lane)
		same(t, "up", b.get(at, n), expect)
	}
	b.close()
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
