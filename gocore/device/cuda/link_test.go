package cuda_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
)

// seen are n bytes at an address.
func seen(at unsafe.Pointer, n int64) []byte { return unsafe.Slice((*byte)(at), n) }

// Over the link, contiguous pieces go by the copy engine, and one kernel moves small ones and all others. In a stream of the caller, where each takes a call of its own, so do pieces of
// up to 4 MiB.
func TestLargePiecesCrossTheLinkByCopies(t *testing.T) {
	const large, small, room = 4<<20 + 8, 4 << 20, 40 << 20
	r := open(t, double.Config{})
	defer r.close()
	for r.arena.Mapped() < room {
		if _, err := r.arena.Grow(room); err != nil {
			t.Fatal(err)
		}
	}
	host, err := memory.Map("slots", room)
	if err != nil {
		t.Fatal(err)
	}
	if err = r.dev.Pin(host, 0, room); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.dev.Unpin(host, 0, room); err != nil {
			t.Error(err)
		}
		_ = host.Unmap()
	}()
	sizes := []int64{large, small, 0, large, 1000, large}
	var over, within []device.Piece
	at := int64(0)
	random := rand.New(rand.NewPCG(1, 2))
	for i, n := range sizes {
		mem := model.Strided{Base: pointer(r.arena.Base() + device.Address(at) + 8)}
		for j, b := 0, seen(mem.Base, n); j < len(b); j++ {
			b[j] = byte(random.Uint32())
		}
		if i == 3 { // two halves with a gap between them
			mem.Shape, mem.Strides, mem.Item = []int64{2, large/2 - 2}, []int64{large / 2, 1}, 1
			n = large - 4
		}
		over = append(over, device.Piece{Slot: device.AddressOf(host.Bytes(at, max(n, 1))), Bytes: n, Mem: mem})
		within = append(within, device.Piece{Slot: r.arena.Base() + device.Address(room/2+at/2), Bytes: min(n, 1<<10), Mem: model.Strided{Base: mem.Base}})
		at += (n + 4096) &^ 63
	}
	borrowed := r.dev.Borrow(2)
	moved := func(what string, pieces []device.Piece, move func([]device.Piece) error, copies int) {
		t.Helper()
		count := func() int { return r.driver.Calls("Copy") + r.driver.Calls("CopyAll") }
		before, launches := count(), r.driver.Calls("Launch")
		if err := move(pieces); err != nil {
			t.Fatal(err)
		}
		if got := count() - before; got != copies {
			t.Errorf("%s: %d copies, must be %d", what, got, copies)
		}
		if r.driver.Calls("Launch") == launches {
			t.Errorf("%s: no kernel has moved the small pieces", what)
		}
		for _, lane := range []device.Lane{r.lane, borrowed} {
			event, err := lane.Event()
			if err != nil {
				t.Fatal(err)
			}
			if err = event.Wait(); err != nil {
				t.Error(err)
			}
			event.Drop()
		}
	}
	gather := func(p []device.Piece) error { _, err := r.lane.Gather(p, false); return err }
	moved("within the device", within, gather, 0)
	moved("to the host in the caller's stream", over, func(p []device.Piece) error { _, err := borrowed.Gather(p, false); return err }, 2)
	for i := range over {
		clear(seen(pointer(over[i].Slot), over[i].Bytes))
	}
	moved("to the host", over, gather, 3)
	for i, p := range over {
		if i == 3 || p.Bytes == 0 {
			continue
		}
		if !bytes.Equal(seen(pointer(p.Slot), p.Bytes), seen(p.Mem.Base, p.Bytes)) {
			t.Errorf("piece %d has other bytes in its slot", i)
		}
	}
	pageable := make([]byte, 4<<20)
	staged := device.Piece{Slot: over[1].Slot, Bytes: int64(len(pageable)), Mem: model.Strided{Base: unsafe.Pointer(unsafe.SliceData(pageable))}, Host: true}
	moved("with pageable memory", []device.Piece{staged, over[0]}, gather, 1) // a copy of what is staged would make the call wait
	for i := range over {
		clear(seen(over[i].Mem.Base, over[i].Bytes))
	}
	moved("to the device", over, r.lane.Scatter, 3)
	for i, p := range over {
		if i != 3 && !bytes.Equal(seen(pointer(p.Slot), p.Bytes), seen(p.Mem.Base, p.Bytes)) {
			t.Errorf("piece %d has other bytes in its array", i)
		}
	}
}
