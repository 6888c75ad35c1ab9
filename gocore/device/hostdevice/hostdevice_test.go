package hostdevice

import (
	"errors"
	"testing"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/device/devicetest"
)

func TestConformance(t *testing.T) {
	for name, opt := range map[string]Options{
		"at full speed": {Ordinal: 3},
		"with delays":   {Delay: 20 * time.Microsecond, Piece: 3 << 20},
		"direct":        {Direct: true, Piece: 4096 * 700},
	} {
		t.Run(name, func(t *testing.T) {
			devicetest.Test(t, func() device.Device {
				opt.Seed++
				return New(opt)
			})
		})
	}
	if n := memory.InUse("device"); n != 0 {
		t.Fatalf("%d bytes of arenas are left", n)
	}
}

func open(t *testing.T, opt Options) (*Device, device.Arena, device.Lane) {
	t.Helper()
	d := New(opt)
	a, err := d.Reserve(8 << 20)
	must(t, err)
	for a.Mapped() < 4<<20 {
		_, err := a.Grow(4 << 20)
		must(t, err)
	}
	l, err := d.Lane(device.Behind)
	must(t, err)
	return d, a, l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func TestMemoryHasAnEnd(t *testing.T) {
	d, a, _ := open(t, Options{Memory: 7 << 20})
	b, err := d.Reserve(64 << 20)
	must(t, err)
	_, err = b.Grow(64 << 20)
	must(t, err)
	n, err := b.Grow(64 << 20)
	if wants(t, err, device.ErrMemory); n != 2<<20 || b.Mapped() != n {
		t.Fatalf("%d bytes", n)
	}
	_, err = a.Shrink(1 << 20)
	must(t, err)
	if free, total, _ := d.Memory(); a.Mapped() != 0 || free != 5<<20 || total != 7<<20 {
		t.Fatalf("%d mapped, %d of %d free", a.Mapped(), free, total)
	}
	d.Occupy(4 << 20)
	_, err = b.Grow(64 << 20)
	wants(t, err, device.ErrMemory)
	d.Occupy(-4 << 20)
	_, err = b.Grow(64 << 20)
	must(t, err)
}

func TestWhatCannotBeTouchedIsRefused(t *testing.T) {
	_, a, l := open(t, Options{})
	wants(t, l.Copy(a.Base(), a.Base()+4<<20-10, 11), ErrAddress)
	wants(t, l.Copy(a.Base()+6<<20, a.Base(), 1), ErrAddress)
	wants(t, l.Copy(a.Base()-10, a.Base(), 11), ErrAddress)
	_, err := l.Hash([]device.Piece{{Slot: a.Base() + 4<<20 - 64, Bytes: 65}})
	wants(t, err, ErrAddress)
	d := l.(*lane).dev
	m, err := memory.Map("test", 3*4096)
	must(t, err)
	must(t, d.Pin(m, 0, 4096))
	must(t, d.Pin(m, 4096, 4096))
	at := device.Address(m.Base())
	must(t, l.Copy(a.Base(), at, 4096))
	wants(t, l.Copy(a.Base(), at, 4097), ErrAddress)
	wants(t, l.Copy(a.Base(), at+8191, 2), ErrAddress)
	must(t, l.Copy(a.Base(), at+8192, 4096))
}

func TestCloseSaysWhatIsInUse(t *testing.T) {
	d, a, l := open(t, Options{})
	wants(t, d.Close(), ErrInUse)
	must(t, a.Free())
	_, err := a.Grow(1)
	wants(t, err, ErrAddress)
	wants(t, a.Free(), ErrAddress)
	wants(t, d.Close(), ErrInUse)
	must(t, l.Close())
	_, err = l.Event()
	wants(t, err, ErrAddress)
	must(t, d.Close())
	must(t, d.Close())
}

func TestDroppedMarksAreRefused(t *testing.T) {
	_, _, l := open(t, Options{})
	m, err := l.Event()
	must(t, err)
	kept := m.Keep()
	m.Drop()
	must(t, kept.Wait())
	kept.Drop()
	wants(t, l.After(kept), ErrAddress)
	wants(t, kept.Wait(), ErrAddress)
	_, err = kept.Passed()
	wants(t, err, ErrAddress)
}

// After the loss no queued work runs, and every call reports it.
func TestLostDevice(t *testing.T) {
	d, a, l := open(t, Options{})
	shut, inside := make(chan struct{}), make(chan struct{})
	must(t, l.(*lane).put(nil, func() { close(inside); <-shut }))
	<-inside
	bytes := view(a.Base(), 64)
	bytes[0], bytes[32] = 1, 2
	must(t, l.Copy(a.Base(), a.Base()+32, 32))
	s, err := l.Hash([]device.Piece{{Slot: a.Base(), Bytes: 10}})
	must(t, err)
	m, err := l.Event()
	must(t, err)
	d.Lose(errors.New("deliberate"))
	close(shut)
	wants(t, m.Wait(), device.ErrLost)
	_, err = m.Passed()
	wants(t, err, device.ErrLost)
	wants(t, l.Copy(a.Base(), a.Base()+32, 32), device.ErrLost)
	wants(t, l.After(m), device.ErrLost)
	_, err = d.Lane(device.Waited)
	wants(t, err, device.ErrLost)
	_, err = a.Grow(8 << 20)
	wants(t, err, device.ErrLost)
	wants(t, d.Lost(), device.ErrLost)
	<-m.(*event).passed
	if bytes[0] != 1 || s.Take() != nil {
		t.Fatal("queued work happened after the loss")
	}
}
