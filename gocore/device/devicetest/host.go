package devicetest

import (
	"bytes"
	"errors"
	"math"

	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// seams: separately pinned ranges may be adjacent, and each is usable by itself.
func seams(b *bench) {
	const piece, count = 1 << 20, 4
	m := b.mapping(count * piece)
	base := device.Address(m.Base())
	for i := range int64(count) {
		b.must(b.dev.Pin(m, i*piece, piece))
	}
	want := bytes.Clone(m.Bytes(0, count*piece))
	for i := range device.Address(count) {
		b.must(b.lane.Copy(b.at(int64(i)*piece), base+i*piece, piece))
	}
	if !bytes.Equal(b.read(b.at(0), count*piece), want) {
		b.Fatal("copies of whole pieces")
	}
	// A copy across the border is refused, or its result is right.
	b.write(b.at(0), b.noise(piece))
	if err := b.lane.Copy(b.at(0), base+piece-500, 1000); err == nil {
		if !bytes.Equal(b.read(b.at(0), 1000), want[piece-500:piece+500]) {
			b.Fatal("a copy across a seam was accepted, and is wrong")
		}
	} else if errors.Is(err, device.ErrLost) {
		b.Fatal(err)
	}
	b.must(b.dev.Lost())
	// In any order; unpinning one range leaves the others.
	b.must(b.dev.Unpin(m, 2*piece, piece))
	b.must(b.lane.Copy(b.at(0), base+piece, piece))
	b.must(b.lane.Copy(b.at(piece), base+3*piece, piece))
	b.must(b.lane.Copy(b.at(2*piece), base+2*piece, piece)) // pageable now
	if got := b.read(b.at(0), 3*piece); !bytes.Equal(got[:piece], want[piece:2*piece]) || !bytes.Equal(got[piece:2*piece], want[3*piece:]) ||
		!bytes.Equal(got[2*piece:], want[2*piece:3*piece]) {
		b.Fatal("copies beside a piece that was taken back")
	}
	b.must(b.dev.Pin(m, 2*piece, piece))
	for _, i := range []int64{3, 0, 2, 1} {
		b.must(b.dev.Unpin(m, i*piece, piece))
	}
}

// mistakes: bad input is an error, and the device stays usable.
func mistakes(b *bench) {
	refused := func(what string, err error) {
		b.Helper()
		if err == nil || errors.Is(err, device.ErrLost) {
			b.Errorf("%s: %v", what, err)
		}
	}
	for _, n := range []int64{0, -1, math.MinInt64} {
		_, err := b.dev.Reserve(n)
		refused("a reservation of nothing", err)
	}
	m := b.mapping(1 << 16)
	refused("pinned outside of the mapping", b.dev.Pin(m, 1<<15, 1<<16))
	refused("pinned before the mapping", b.dev.Pin(m, -4096, 4096))
	refused("nothing pinned", b.dev.Pin(m, 0, 0))
	refused("unpinned without having been pinned", b.dev.Unpin(m, 0, 4096))
	b.must(b.dev.Pin(m, 0, 1<<15))
	refused("pinned twice", b.dev.Pin(m, 4096, 4096))
	refused("unpinned in part", b.dev.Unpin(m, 4096, 4096))
	b.must(b.dev.Unpin(m, 0, 1<<15))

	refused("a copy of -1 bytes", b.lane.Copy(b.at(0), b.at(4096), -1))
	for _, bad := range []model.Strided{
		{Base: pointer(b.at(arraysFrom)), Shape: []int64{3}, Strides: []int64{8, 8}, Item: 8},
		{Base: pointer(b.at(arraysFrom)), Shape: []int64{4}, Strides: []int64{8}, Item: 8},
		{Base: pointer(b.at(arraysFrom)), Shape: []int64{-3}, Strides: []int64{8}, Item: -8},
	} {
		p := []device.Piece{{Slot: b.at(0), Bytes: 24, Mem: bad}}
		_, err := b.lane.Gather(p, true)
		refused("an impossible shape", err)
		refused("an impossible shape", b.lane.Scatter(p))
	}
	p := []device.Piece{{Slot: b.at(0), Bytes: -1, Mem: dense(b.at(arraysFrom))}}
	_, err := b.lane.Gather(p, false)
	refused("a piece of -1 bytes", err)
	_, err = b.lane.Hash(p)
	refused("a hash of -1 bytes", err)

	b.must(b.dev.Lost())
	b.roundTrip(b.arrays(flat(1000)))
}
