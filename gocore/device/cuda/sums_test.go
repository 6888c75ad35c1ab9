package cuda_test

import (
	"testing"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
)

// gatherTo captures n bytes, different for every capture, from host memory into a slot.
func (r *rig) gatherTo(slot, n int) (device.Sums, uint64) {
	r.t.Helper()
	bytes := r.host.Bytes(int64(slot*n), int64(n))
	for i := range bytes {
		bytes[i] = byte(i*7 + slot)
	}
	s, err := r.lane.Gather([]device.Piece{{Slot: r.arena.Base() + device.Address(slot*n), Bytes: int64(n), Mem: model.Strided{Base: unsafe.Pointer(unsafe.SliceData(bytes))}, Host: true}}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return s, checksum.Sum(bytes)
}

func (r *rig) wait() {
	r.t.Helper()
	m, err := r.lane.Event()
	if err == nil {
		err = m.Wait()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	m.Drop()
}

// More captures than one piece of device memory has words for, taken out of order, some of them never fetched.
func TestSumsOfManyCaptures(t *testing.T) {
	const granularity, n = 4096, 4096
	r := open(t, double.Config{Granularity: granularity})
	before := r.driver.Calls("CreateMemory")
	for round := range 3 {
		var open []device.Sums
		var want []uint64
		for slot := range 200 { // 64 bytes of words each
			s, sum := r.gatherTo(slot, n)
			open, want = append(open, s), append(want, sum)
		}
		for i, s := range open {
			if i%3 > 0 {
				if err := s.Fetch(r.lane); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.wait()
		for i := range open {
			i = (i*71 + round) % len(open)
			if i%3 == 1 {
				open[i].Discard()
			}
			have := open[i].Take()
			if fetched := i%3 == 2; fetched != (len(have) == 1) || fetched && have[0] != want[i] {
				t.Fatalf("capture %d: %x, want %x", i, have, want[i])
			}
			open[i].Discard()
		}
	}
	if grown := r.driver.Calls("CreateMemory") - before; grown != 4 { // for 200 blocks of 64 bytes
		t.Errorf("%d pieces of the device's memory", grown)
	}
	r.close()
}

// If device memory is full, the sums are written to the host, and later captures do not ask for memory again.
func TestSumsOnAFullDevice(t *testing.T) {
	const blocks = 4096 / 64 // of one piece
	for name, onDevice := range map[string]int{"from the start": 0, "later": blocks} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t, double.Config{Granularity: 4096})
			r := openOn(t, d)
			d.Fail("CreateMemory", cuda.OutOfMemory, onDevice/blocks, 1)
			before := d.Calls("CreateMemory")
			for range 3 {
				r.captures(100, onDevice)
			}
			if n := d.Calls("CreateMemory") - before; n != onDevice/blocks+1 {
				t.Errorf("asked for memory %d times", n)
			}
			r.close()
		})
	}
}

// captures takes n checksums at once; onDevice of them are in device memory.
func (r *rig) captures(n, onDevice int) {
	r.t.Helper()
	var open []device.Sums
	var want []uint64
	for slot := range n {
		s, sum := r.gatherTo(slot, 4096)
		open, want = append(open, s), append(want, sum)
	}
	copies := r.driver.Calls("Copy")
	for _, s := range open {
		if err := s.Fetch(r.lane); err != nil {
			r.t.Fatal(err)
		}
	}
	if fetched := r.driver.Calls("Copy") - copies; fetched != onDevice {
		r.t.Errorf("%d of %d fetched from the device, want %d", fetched, n, onDevice)
	}
	r.wait()
	for i, s := range open {
		if have := s.Take(); len(have) != 1 || have[0] != want[i] {
			r.t.Fatalf("capture %d: %x, want %x", i, have, want[i])
		}
	}
}
