package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"
)

var codecKinds = []codec.Kind{codec.Int8, codec.Int16, codec.Int32, codec.Int64, codec.Float16, codec.BFloat16, codec.Float32, codec.Float64}

// packed is a container in the bench, with its plain bytes, its reference or nil, and what the codec in Go makes of them.
type packed struct {
	device.Container
	plain, reference, sealed []byte
}

// values fills n bytes with chunks of several families of words.
func values(r *rand.Rand, n int64, k codec.Kind) []byte {
	p := make([]byte, n+8)
	for at := int64(0); at < n; at += codec.ChunkBytes {
		family, walk := r.IntN(5), uint64(1)<<(8*k.Word-2)
		for i := at; i < min(at+codec.ChunkBytes, n); i += int64(k.Word) {
			x := uint64(0x3f80_3f80_3f80_3f80)
			switch family {
			case 0:
				x = r.Uint64()
			case 1: // floats below 1
				x = math.Float64bits(0.02 * r.NormFloat64())
				if k != codec.Float64 {
					x = uint64(math.Float32bits(float32(math.Float64frombits(x)))) >> (32 - 8*min(k.Word, 4))
				}
			case 2: // a slope
				walk += r.Uint64N(30)
				x = walk
			case 3: // few values
				x = uint64(r.IntN(3)) << (8*k.Word - 4)
			}
			binary.LittleEndian.PutUint64(p[i:], x)
		}
	}
	return p[:n:n]
}

// earlier is a reference for plain bytes: some chunks differ in a few bytes, some in the lowest byte of each element, some in all bytes, some in none.
func earlier(r *rand.Rand, plain []byte, k codec.Kind) []byte {
	p := bytes.Clone(plain)
	for at := 0; at < len(p); at += codec.ChunkBytes {
		chunk := p[at:min(at+codec.ChunkBytes, len(p))]
		switch r.IntN(4) {
		case 0:
			for range 1 + len(chunk)/200 {
				chunk[r.IntN(len(chunk))] ^= byte(r.Uint32())
			}
		case 1:
			for i := 0; i < len(chunk); i += int(k.Word) {
				chunk[i] -= byte(3 + r.IntN(3))
			}
		case 2:
			copy(chunk, pattern(r.Uint64(), int64(len(chunk))))
		}
	}
	return p
}

// pack makes a container in the bench, some with a reference.
func pack(b *bench, r *rand.Rand, n int64, k codec.Kind, modes codec.Modes) packed {
	b.t.Helper()
	bound := codec.Bound(int(n))
	skew := int64(0)
	if r.IntN(2) == 0 {
		skew = r.Int64N(64)
	}
	p := packed{plain: values(r, n, k), sealed: make([]byte, bound)}
	p.Container = device.Container{Plain: b.room(n, skew), Bytes: n, Kind: k, Modes: modes, At: b.room(int64(bound), 16*r.Int64N(4))}
	if r.IntN(2) == 0 {
		p.reference, p.Reference = earlier(r, p.plain, k), b.room(n, skew*r.Int64N(2))
	}
	length := got(codec.Encode(p.sealed, p.plain, p.reference, codec.Options{Kind: k, Modes: modes}))(b.t)
	p.sealed, p.Length = p.sealed[:length], int64(length)
	return p
}

// fitting is the list of containers and their scratch memory.
func fitting(b *bench, all []packed) (list []device.Container, scratch device.Address) {
	b.t.Helper()
	for i := range all {
		list = append(list, all[i].Container)
	}
	return list, b.room(device.ScratchFor(list), 0)
}

// containers encodes and decodes containers of all kinds, alone and together.
func containers(t *testing.T, m Machine) {
	b := newBench(t, m, 48*mib)
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 21))
		b.used = 0
		var all []packed
		for range 1 + r.IntN(40)*r.IntN(2) {
			n := []int64{1 + r.Int64N(200), 1 + r.Int64N(codec.ChunkBytes), codec.ChunkBytes * (1 + r.Int64N(4)), 1 + r.Int64N(300_000)}[r.IntN(4)]
			modes := codec.AllModes
			if r.IntN(3) == 0 {
				modes = codec.Modes(r.IntN(1 << codec.ModeCount))
			}
			all = append(all, pack(b, r, n, codecKinds[r.IntN(len(codecKinds))], modes))
		}
		encodeAndDecode(b, r, all, fmt.Sprintf("seed %d", seed))
	}
	b.close()
}

// largeContainers have many chunks, so that many blocks of threads look back at each other.
func largeContainers(t *testing.T, m Machine) {
	sizes := []int64{5*mib + 3, 100, 3 * mib}
	if m.Large {
		sizes = []int64{device.MostContainer, 100, device.MostContainer - 5, 33 * mib, 16*mib + codec.ChunkBytes, device.MostContainer}
	}
	need := int64(8 * mib)
	for _, n := range sizes {
		need += 2*n + int64(codec.Bound(int(n)))
	}
	b := newBench(t, m, need)
	r := rand.New(rand.NewPCG(4, 21))
	var all []packed
	for i, n := range sizes {
		all = append(all, pack(b, r, n, []codec.Kind{codec.BFloat16, codec.Float32}[i%2], codec.AllModes))
	}
	encodeAndDecode(b, r, all, "large")
	b.close()
}

// encodeAndDecode compares containers and plain bytes, and everything around them. Some of the containers are damaged before they are decoded, and some are
// decoded where their references are.
func encodeAndDecode(b *bench, r *rand.Rand, all []packed, what string) {
	b.t.Helper()
	list, scratch := fitting(b, all)
	image := pattern(r.Uint64(), b.used)
	part := func(at device.Address, n int64) []byte { return image[at-b.arena.Base():][:n] }
	for _, p := range all {
		copy(part(p.Plain, p.Bytes), p.plain)
		if p.reference != nil {
			copy(part(p.Reference, p.Bytes), p.reference)
		}
	}
	b.put(b.arena.Base(), image)
	lengths := got(b.lane.Encode(list, scratch))(b.t)
	b.settle(b.lane)
	now := b.get(b.arena.Base(), b.used)
	for i, n := range lengths.Take() {
		p := all[i]
		if n != p.Length {
			b.t.Fatalf("%s: container %d has %d bytes, want %d", what, i, n, p.Length)
		}
		tables, payloads := 64+11*int64(codec.Chunks(int(p.Bytes))), int64(codec.PayloadsAt(int(p.Bytes)))
		copy(part(p.At, p.Length)[64:tables], p.sealed[64:])
		copy(part(p.At, p.Length)[payloads:], p.sealed[payloads:])
	}
	copy(part(scratch, device.ScratchFor(list)), now[scratch-b.arena.Base():])
	same(b.t, what+", encoded", now, image)

	var damaged []int
	for i, p := range all {
		for at := range part(p.Plain, p.Bytes) {
			part(p.Plain, p.Bytes)[at] = 0x5a
		}
		if p.reference != nil && r.IntN(2) == 0 { // decoded in place
			list[i].Reference = p.Plain
			copy(part(p.Plain, p.Bytes), p.reference)
		}
		if r.IntN(8) == 0 {
			damaged = append(damaged, i)
			at := part(p.At, p.Length)
			if chunk := r.IntN(codec.Chunks(int(p.Bytes))); r.IntN(2) == 0 {
				at[64+8*chunk] ^= 1 // its hash
			} else {
				binary.LittleEndian.PutUint16(at[64+8*codec.Chunks(int(p.Bytes))+2*chunk:], math.MaxUint16-uint16(i))
			}
		}
	}
	b.put(b.arena.Base(), image)
	faults := got(b.lane.Decode(list, scratch))(b.t)
	b.settle(b.lane)
	now = b.get(b.arena.Base(), b.used)
	if bad := faults.Take(); !slices.Equal(bad, damaged) {
		b.t.Fatalf("%s: containers %v are damaged, want %v", what, bad, damaged)
	}
	for i, p := range all {
		if copy(part(p.Plain, p.Bytes), p.plain); slices.Contains(damaged, i) {
			copy(part(p.Plain, p.Bytes), now[p.Plain-b.arena.Base():])
		}
	}
	copy(part(scratch, device.ScratchFor(list)), now[scratch-b.arena.Base():])
	if !bytes.Equal(now, image) {
		same(b.t, what+", decoded", now, image)
	}
}
