package conformance

import (
	"testing"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
)

const mib = 1 << 20

func arena(t *testing.T, m Machine) {
	dev := got(cuda.Open(m.Driver, 0, m.Image))(t)
	a := got(dev.Reserve(300*mib + 1))(t)
	if a.Mapped() != 0 || a.Base() == 0 {
		t.Errorf("a new arena has %d bytes at %#x", a.Mapped(), a.Base())
	}
	if now := got(a.Grow(0))(t); now != 0 {
		t.Errorf("grown to %d beyond a limit of 0", now)
	}
	for _, want := range []int64{64, 128, 250, 250} { // never beyond the limit
		if now := got(a.Grow(250 * mib))(t); now != want*mib || a.Mapped() != now {
			t.Errorf("grown to %d, want %d MiB", now, want)
		}
	}
	if now := got(a.Grow(1 << 60))(t); now < 300*mib+1 || now > 304*mib { // nor beyond what was reserved
		t.Errorf("grown to %d", now)
	}
	full := a.Mapped()
	if now := got(a.Shrink(1 << 60))(t); now != full {
		t.Errorf("shrunk to %d by asking for more", now)
	}
	for _, c := range []struct{ to, want int64 }{{260, 250}, {129, 128}, {128, 128}, {1, 0}, {-5, 0}} {
		if now := got(a.Shrink(c.to * mib))(t); now != c.want*mib || a.Mapped() != now {
			t.Errorf("shrunk to %d MiB: %d left, want %d MiB", c.to, now, c.want)
		}
	}
	if now := got(a.Grow(64 * mib))(t); now != 64*mib { // freed memory can be mapped again
		t.Errorf("grown again to %d", now)
	}
	must(t, a.Free())
	must(t, dev.Close())
}

// arenaBesideCopies grows while copies use the first piece.
func arenaBesideCopies(t *testing.T, m Machine) {
	b := newBench(t, m, 8*mib)
	limit := int64(300 * mib)
	if m.Large {
		limit = 12 << 30
	}
	a := got(b.dev.Reserve(limit))(t)
	got(a.Grow(64 * mib))(t)
	grown := make(chan error, 1)
	safego.Go("growth", func() {
		for a.Mapped() < limit {
			if _, err := a.Grow(limit); err != nil {
				grown <- err
				return
			}
		}
		grown <- nil
	})
	const n = 4 * mib
	want := pattern(3, n)
	from := b.room(n, 0)
	b.put(from, want)
	for i := 0; ; i++ {
		at := a.Base() + uintptr(i%15*n)
		must(t, b.lane.Copy(at, from, n))
		same(t, "copied beside growth", b.get(at, n), want)
		select {
		case err := <-grown:
			must(t, err)
			last := a.Base() + uintptr(a.Mapped()-n) // the last piece works as well
			b.put(last, want)
			same(t, "in the last piece", b.get(last, n), want)
			across := a.Base() + uintptr(128*mib-n/2)
			b.put(across, want)
			same(t, "across two pieces", b.get(across, n), want)
			must(t, a.Free())
			b.close()
			return
		default:
		}
	}
}

// arenaShrinksBesideCopies unmaps and maps pieces while copies use the first one.
func arenaShrinksBesideCopies(t *testing.T, m Machine) {
	b := newBench(t, m, 8*mib)
	a := got(b.dev.Reserve(256 * mib))(t)
	got(a.Grow(64 * mib))(t)
	lane := got(b.dev.Lane(device.Behind))(t)
	const n, places = 4 * mib, 15
	want := pattern(5, n)
	from := b.room(n, 0)
	b.put(from, want)
	for range 10 {
		for i := range places { // not waited for: they are under way whenever a piece is mapped or unmapped
			must(t, lane.Copy(a.Base()+uintptr(i*n), from, n))
		}
		for a.Mapped() < 256*mib {
			got(a.Grow(256 * mib))(t)
		}
		last := a.Base() + uintptr(a.Mapped()-n)
		b.put(last, want)
		same(t, "in the last piece", b.get(last, n), want)
		if now := got(a.Shrink(64 * mib))(t); now != 64*mib {
			t.Fatalf("shrunk to %d", now)
		}
	}
	b.settle(lane)
	for i := range places {
		same(t, "copied beside shrinking", b.get(a.Base()+uintptr(i*n), n), want)
	}
	must(t, lane.Close())
	must(t, a.Free())
	b.close()
}

// copies go between all kinds of memory, in sizes that are no multiples of anything.
func copies(t *testing.T, m Machine) {
	b := newBench(t, m, 12*mib)
	const n = 5*mib + 3
	pinned := host(t, n)
	must(t, b.dev.Pin(pinned, 0, n))
	pageable := host(t, n)
	here, there := b.room(n, 0), b.room(n, 13)
	for i, bytes := range []int64{1, 7, 64, 4097, mib + 1, n} {
		want := pattern(uint64(i), bytes)
		b.put(here, want)
		copy(pinned.Bytes(0, n), want)
		for _, c := range []struct {
			name string
			path []device.Address
		}{
			{"device to device", []device.Address{here, there}},
			{"device to pinned to device", []device.Address{here, address(pinned), there}},
			{"device to pageable to device", []device.Address{here, address(pageable), there}},
			{"pinned to pageable", []device.Address{address(pinned), address(pageable), there}},
		} {
			b.put(there, make([]byte, bytes))
			for i := 1; i < len(c.path); i++ {
				must(t, b.lane.Copy(c.path[i], c.path[i-1], bytes))
				b.settle(b.lane)
			}
			same(t, c.name, b.get(there, bytes), want)
		}
	}
	must(t, b.lane.Copy(here, there, 0))
	must(t, b.dev.Unpin(pinned, 0, n))
	b.close()
}
