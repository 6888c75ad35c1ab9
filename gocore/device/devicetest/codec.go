package devicetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"
)

var kinds = []codec.Kind{codec.Int8, codec.Int16, codec.Int32, codec.Int64, codec.Float16, codec.BFloat16, codec.Float32, codec.Float64}

// headerBytes is the length of a container's header, tableBytes that of a chunk's part of its tables.
const (
	headerBytes = 64
	tableBytes  = 11
)

// The part of the arena that a check of the codec uses for one container, and for many. The scratch memory is behind it.
const (
	smallArea    = 256 << 10
	largeArea    = 7 << 20
	scratchBytes = 64 << 10
)

// packed is a container and its content: plain bytes, the reference or nil, and the container by the codec in Go.
type packed struct {
	device.Container
	plain, reference, sealed []byte
}

// packing is several containers in the arena, and its whole content.
type packing struct {
	*bench
	all     []packed
	image   []byte // of the area, as it is before a call or has to be after it
	scratch device.Address
	used    int64
}

func (b *bench) packing(area int64) *packing {
	return &packing{bench: b, image: b.noise(area), scratch: b.at(area)}
}

// room allocates n bytes in the area, skew bytes behind a multiple of 64.
func (p *packing) room(n, skew int64) device.Address {
	p.Helper()
	at := p.used + skew
	if p.used = (at + n + 127) &^ 63; p.used > int64(len(p.image)) {
		p.Fatalf("the suite's own containers do not fit")
	}
	return p.at(at)
}

// add adds a container for plain bytes, with a reference unless that is nil.
func (p *packing) add(plain, reference []byte, kind codec.Kind, modes codec.Modes) {
	p.Helper()
	n := int64(len(plain))
	bound := codec.Bound(len(plain))
	c := device.Container{Bytes: n, Kind: kind, Modes: modes, Plain: p.room(n, int64(len(p.all))%17), At: p.room(int64(bound), 16*int64(len(p.all)%3))}
	if reference != nil {
		c.Reference = p.room(n, int64(5*len(p.all)%17))
	}
	sealed := make([]byte, bound)
	length, err := codec.Encode(sealed, plain, reference, codec.Options{Kind: kind, Modes: modes})
	p.must(err)
	c.Length = int64(length)
	p.all = append(p.all, packed{c, plain, reference, sealed[:length]})
}

func (p *packing) containers() (all []device.Container) {
	for i := range p.all {
		all = append(all, p.all[i].Container)
	}
	if device.ScratchFor(all) > scratchBytes {
		p.Fatalf("the suite's own containers need more scratch memory")
	}
	return all
}

func (p *packing) part(image []byte, at device.Address, n int64) []byte { return image[at-p.base:][:n] }

// settle writes the image of the area.
func (p *packing) settle() { p.Helper(); p.write(p.base, p.image) }

// reference is the reference of a container in the area; nil if it has none.
func (p *packing) reference(c *packed) []byte {
	if c.Reference == 0 {
		return nil
	}
	return p.part(p.image, c.Reference, c.Bytes)
}

// encoded writes the plain bytes and the references, encodes them, and compares the whole area: the containers are there but for their headers, and nothing else has
// changed.
func (p *packing) encoded(what string) {
	p.Helper()
	for _, c := range p.all {
		copy(p.part(p.image, c.Plain, c.Bytes), c.plain)
		copy(p.reference(&c), c.reference)
	}
	p.settle()
	all := p.containers()
	lengths, err := p.lane.Encode(all, p.scratch)
	p.must(err)
	clear(all) // the caller may reuse it
	p.finish(p.lane)
	got, now := lengths.Take(), p.read(p.base, int64(len(p.image)))
	if len(got) != len(p.all) {
		p.Fatalf("%s: %d lengths of %d containers", what, len(got), len(p.all))
	}
	for i, c := range p.all {
		if got[i] != c.Length {
			p.Fatalf("%s: container %d of %d has %d bytes, want %d", what, i, len(p.all), got[i], c.Length)
		}
		container := bytes.Clone(p.part(now, c.At, c.Length))
		if n, err := codec.SealTables(container, c.Kind, int(c.Bytes)); err != nil || int64(n) != c.Length {
			p.Fatalf("%s: sealed, container %d has %d bytes: %v", what, i, n, err)
		}
		if !bytes.Equal(container, c.sealed) {
			p.Fatalf("%s: container %d of %d (%d bytes of kind %v) differs from that of the codec", what, i, len(p.all), c.Bytes, c.Kind)
		}
		tables, payloads := headerBytes+tableBytes*int64(codec.Chunks(int(c.Bytes))), int64(codec.PayloadsAt(int(c.Bytes)))
		copy(p.part(p.image, c.At, c.Length)[headerBytes:tables], c.sealed[headerBytes:])
		copy(p.part(p.image, c.At, c.Length)[payloads:], c.sealed[payloads:])
	}
	if !bytes.Equal(now, p.image) {
		p.Fatalf("%s: bytes outside of the containers have changed", what)
	}
}

// decoded decodes the containers, whose bytes in the area may be damaged, with their references, which may be at the plain bytes, and compares plain bytes, faults, and everything else. It returns the
// faults.
func (p *packing) decoded(what string) (bad []int) {
	p.Helper()
	for _, c := range p.all {
		p.fill(p.part(p.image, c.Plain, c.Bytes))
		copy(p.reference(&c), c.reference)
	}
	p.settle()
	found, err := p.lane.Decode(p.containers(), p.scratch)
	p.must(err)
	p.finish(p.lane)
	got, now := found.Take(), p.read(p.base, int64(len(p.image)))
	for i, c := range p.all {
		dst := p.part(p.image, c.Plain, c.Bytes)
		opened, err := codec.OpenTables(p.part(p.image, c.At, c.Length), c.Kind, int(c.Bytes))
		if err == nil {
			err = opened.Decode(dst, bytes.Clone(p.reference(&c)), 1)
		}
		if err != nil {
			bad = append(bad, i)
			copy(dst, p.part(now, c.Plain, c.Bytes))
		}
	}
	if !slices.Equal(got, bad) {
		p.Fatalf("%s: containers %v of %d are damaged, want %v", what, got, len(p.all), bad)
	}
	if !bytes.Equal(now, p.image) {
		for i, c := range p.all {
			if !bytes.Equal(p.part(now, c.Plain, c.Bytes), p.part(p.image, c.Plain, c.Bytes)) {
				p.Fatalf("%s: the plain bytes of container %d of %d (%d of kind %v) differ", what, i, len(p.all), c.Bytes, c.Kind)
			}
		}
		p.Fatalf("%s: other bytes have changed", what)
	}
	return bad
}

// content fills plain bytes with one of several families, so that every mode is the best for some chunk.
func (b *bench) content(n int, k codec.Kind, family int) []byte {
	p := make([]byte, n+8)
	walk, constant := uint64(1)<<(8*k.Word-2), b.rand.Uint64()
	for i := 0; i < n; i += int(k.Word) {
		x := constant
		switch family % contents {
		case 0:
			x = b.rand.Uint64()
		case 1: // weights
			x = math.Float64bits(0.02 * b.rand.NormFloat64())
			if k.Exponent == 8 {
				x = uint64(math.Float32bits(float32(math.Float64frombits(x)))) >> (32 - 8*k.Word)
			} else if k == codec.Float16 {
				x = x>>42&0x3fff | x>>63<<15
			}
		case 2: // a slope
			walk += b.rand.Uint64N(30)
			x = walk
		case 3: // few values
			x = []uint64{0, 1 << (8*k.Word - 1), math.MaxUint64, 1}[b.rand.IntN(4)]
		}
		binary.LittleEndian.PutUint64(p[i:], x)
	}
	return p[:n:n]
}

const contents = 5

// encoding: all kinds, contents and odd sizes; each alone, and all in one call.
func encoding(b *bench) {
	sizes := []int{1, 2, 7, 8, 9, 15, 16, 17, 255, 4097, codec.ChunkBytes - 1, codec.ChunkBytes, codec.ChunkBytes + 1, 3*codec.ChunkBytes + 1003}
	together := b.packing(largeArea)
	for i, k := range kinds {
		for family := range contents {
			alone := b.packing(smallArea)
			n := sizes[(5*i+family)%len(sizes)]
			alone.add(b.content(n, k, family), nil, k, codec.AllModes)
			alone.encoded(fmt.Sprint(k, family, n))
			if bad := alone.decoded(fmt.Sprint(k, family, n)); bad != nil {
				b.Fatalf("damaged: %v", bad)
			}
			together.add(b.content(sizes[(i+3*family)%len(sizes)], k, family), nil, k, codec.Modes(b.rand.IntN(1<<codec.ModeCount)))
			together.add(b.content(2*codec.ChunkBytes+77*i, k, family), nil, k, codec.AllModes)
		}
	}
	together.encoded("together")
	if bad := together.decoded("together"); bad != nil {
		b.Fatalf("damaged: %v", bad)
	}
}

// manyContainers are more than fit one launch, and one of many chunks.
func manyContainers(b *bench) {
	p := b.packing(largeArea)
	for i := range 500 {
		p.add(b.content(1+i*7%900, kinds[i%3*2], i), nil, kinds[i%3*2], codec.AllModes)
	}
	large := b.content(130*codec.ChunkBytes+5, codec.BFloat16, 1)
	for i := range 60 {
		copy(large[2*i*codec.ChunkBytes:], b.content(codec.ChunkBytes, codec.BFloat16, i))
	}
	p.add(large, nil, codec.BFloat16, codec.AllModes)
	p.encoded("many")
	if bad := p.decoded("many"); bad != nil {
		b.Fatalf("damaged: %v", bad)
	}
}

// damage: containers with damage anywhere behind their headers are found, and nothing but their plain bytes may change.
func damage(b *bench) {
	found := 0
	for round := range 20 {
		p := b.packing(1 << 20)
		for i := range 12 {
			k := kinds[b.rand.IntN(len(kinds))]
			p.add(b.content(1+b.rand.IntN(2*codec.ChunkBytes), k, i), nil, k, codec.AllModes)
		}
		for i := range p.all {
			c := &p.all[i]
			at := p.part(p.image, c.At, c.Length)
			copy(at, c.sealed)
			b.fill(at[:headerBytes]) // no device reads it
			b.harm(at, c)
		}
		found += len(p.decoded(fmt.Sprint("damage ", round)))
	}
	if found < 100 || found > 220 {
		b.Fatalf("%d of 240 containers are damaged", found)
	}
	p := b.packing(2 << 20)
	for i := range 3 {
		p.add(b.content(5*codec.ChunkBytes, codec.Float32, i), nil, codec.Float32, codec.AllModes)
		copy(p.part(p.image, p.all[i].At, p.all[i].Length), p.all[i].sealed)
	}
	p.part(p.image, p.all[1].At, p.all[1].Length)[headerBytes+3] ^= 4
	if bad := p.decoded("a wrong hash"); !slices.Equal(bad, []int{1}) {
		b.Fatalf("damaged: %v", bad)
	}
}

// harm damages a container, or leaves it as it is.
func (b *bench) harm(at []byte, c *packed) {
	chunks := codec.Chunks(int(c.Bytes))
	chunk := b.rand.IntN(chunks)
	switch b.rand.IntN(7) {
	case 0: // a byte anywhere
		at[headerBytes+b.rand.IntN(len(at)-headerBytes)] ^= byte(1 + b.rand.IntN(255))
	case 1: // a length
		binary.LittleEndian.PutUint16(at[headerBytes+8*chunks+2*chunk:], uint16(b.rand.Uint32()))
	case 2: // all lengths the longest
		for i := range chunks {
			binary.LittleEndian.PutUint16(at[headerBytes+8*chunks+2*i:], math.MaxUint16)
		}
	case 3: // a mode
		at[headerBytes+10*chunks+chunk] = byte(b.rand.IntN(256))
	case 4: // cut
		least := int64(codec.PayloadsAt(int(c.Bytes)))
		c.Length = least + b.rand.Int64N(c.Length-least+1)
	case 5: // noise behind the header
		b.fill(at[headerBytes:])
	}
}

// codecOrder: an Encode runs behind the copies queued before it and before those queued later, and so does a Decode.
func codecOrder(b *bench) {
	const n = 3*codec.ChunkBytes + 1000
	bound := int64(codec.Bound(n))
	for round := range 20 {
		plain, other := b.content(n, codec.Float32, 1+round%2), b.noise(n)
		copy(b.host.Bytes(0, n), plain)
		copy(b.host.Bytes(n, n), other)
		c := []device.Container{{Plain: b.at(3), Bytes: n, Kind: codec.Float32, Modes: codec.AllModes, At: b.at(1 << 20)}}
		b.must(b.lane.Copy(c[0].Plain, b.hostAt(0), n))
		lengths, err := b.lane.Encode(c, b.at(4<<20))
		b.must(err)
		b.must(b.lane.Copy(c[0].Plain, b.hostAt(n), n))
		b.must(b.lane.Copy(b.hostAt(1<<20), c[0].At, bound))
		b.finish(b.lane)
		length := lengths.Take()[0]
		container := bytes.Clone(b.host.Bytes(1<<20, length))
		if _, err := codec.SealTables(container, codec.Float32, n); err != nil {
			b.Fatal(err)
		}
		if err := codec.Decode(make([]byte, n), container, nil, 1); err != nil || !bytes.Equal(b.read(c[0].Plain, n), other) {
			b.Fatalf("round %d: %v, or the copies beside the Encode had another order", round, err)
		}
		copy(b.host.Bytes(0, length), container)
		b.must(b.lane.Copy(b.at(2<<20), b.hostAt(0), length))
		c[0].At, c[0].Length = b.at(2<<20), length
		faults, err := b.lane.Decode(c, b.at(4<<20))
		b.must(err)
		b.must(b.lane.Copy(b.at(2<<20), b.hostAt(4<<20), length))
		b.must(b.lane.Copy(b.hostAt(n), c[0].Plain, n))
		b.finish(b.lane)
		if bad := faults.Take(); len(bad) > 0 || !bytes.Equal(b.host.Bytes(n, n), plain) {
			b.Fatalf("round %d: damaged containers %v, or the plain bytes differ", round, bad)
		}
	}
}

// results of the codec may be taken late, in any order, or discarded.
func codecResults(b *bench) {
	p := b.packing(smallArea)
	p.add(b.content(20_000, codec.Float16, 1), nil, codec.Float16, codec.AllModes)
	p.encoded("first")
	copy(p.part(p.image, p.all[0].At, p.all[0].Length), p.all[0].sealed)
	p.settle()
	var lengths []device.Lengths
	var faults []device.Faults
	for range 50 {
		l, err := b.lane.Encode(p.containers(), p.scratch)
		b.must(err)
		f, err := b.lane.Decode(p.containers(), p.scratch)
		b.must(err)
		lengths, faults = append(lengths, l), append(faults, f)
	}
	b.finish(b.lane)
	for i := len(lengths) - 1; i >= 0; i-- {
		if i%3 == 0 {
			lengths[i].Discard()
			faults[i].Discard()
		} else if n, bad := lengths[i].Take(), faults[i].Take(); !slices.Equal(n, []int64{p.all[0].Length}) || bad != nil {
			b.Fatalf("lengths %v, damaged %v", n, bad)
		}
	}
}

// codecMistakes are refused, and the device stays usable.
func codecMistakes(b *bench) {
	lengths, err := b.lane.Encode(nil, 0)
	b.must(err)
	faults, err := b.lane.Decode(nil, 0)
	b.must(err)
	b.finish(b.lane)
	if n, bad := lengths.Take(), faults.Take(); len(n) > 0 || len(bad) > 0 {
		b.Errorf("of no containers: lengths %v, damaged %v", n, bad)
	}
	good := device.Container{Plain: b.at(0), Bytes: 1000, Kind: codec.Int8, At: b.at(1 << 20), Length: int64(codec.PayloadsAt(1000))}
	scratch := b.at(2 << 20)
	for what, change := range map[string]func(*device.Container){
		"no bytes":       func(c *device.Container) { c.Bytes = 0 },
		"-1 bytes":       func(c *device.Container) { c.Bytes = -1 },
		"many bytes":     func(c *device.Container) { c.Bytes = device.MostContainer + 1 },
		"unknown kind":   func(c *device.Container) { c.Kind.Word = 3 },
		"odd address":    func(c *device.Container) { c.At += 8 },
		"no address":     func(c *device.Container) { c.At = 0 },
		"no plain bytes": func(c *device.Container) { c.Plain = 0 },
		"short":          func(c *device.Container) { c.Length-- },
		"long":           func(c *device.Container) { c.Length = int64(codec.Bound(1000)) + 1 },
	} {
		bad := good
		change(&bad)
		if _, err := b.lane.Encode([]device.Container{good, bad}, scratch); !errors.Is(err, device.ErrContainer) && bad.Length == good.Length {
			b.Errorf("%s: %v", what, err)
		}
		if _, err := b.lane.Decode([]device.Container{good, bad}, scratch); !errors.Is(err, device.ErrContainer) {
			b.Errorf("%s: %v", what, err)
		}
	}
	b.referenceMistakes(good, scratch)
	for _, at := range []device.Address{0, scratch + 8} {
		_, encoding := b.lane.Encode([]device.Container{good}, at)
		_, decoding := b.lane.Decode([]device.Container{good}, at)
		if !errors.Is(encoding, device.ErrContainer) || !errors.Is(decoding, device.ErrContainer) {
			b.Errorf("scratch memory at %#x: %v, %v", at, encoding, decoding)
		}
	}
	b.must(b.dev.Lost())
	p := b.packing(smallArea)
	p.add(b.content(1000, codec.Int8, 2), nil, codec.Int8, codec.AllModes)
	p.encoded("afterwards")
}
