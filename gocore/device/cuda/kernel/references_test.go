package kernel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"
)

// Kernels for containers with references.

// references draws containers of some chunks, whose references differ in a few elements, in the low byte of each, in nothing, or in everything, at addresses of any
// remainder modulo 16. One of so many has no reference.
func references(t failing, r *rand.Rand, count, without int) *containers {
	c := &containers{}
	for i := range count {
		k := everyKind[i%len(everyKind)]
		plain := make([]byte, 1+r.IntN(2*codec.ChunkBytes+500))
		fillRegion(plain, k, r.IntN(families), r)
		reference := bytes.Clone(plain)
		switch i / len(everyKind) % 4 {
		case 0:
			for range 1 + len(plain)/500 {
				reference[r.IntN(len(plain))] ^= byte(r.Uint32())
			}
		case 1:
			for j := 0; j < len(plain); j += int(k.Word) {
				reference[j] -= byte(3 + r.IntN(3))
			}
		case 3:
			fillRegion(reference, k, 0, r)
		}
		if i%without == without-1 {
			reference = nil
		}
		c.add(t, plain, reference, k, codec.AllModes, i%3*r.IntN(16))
	}
	c.end()
	return c
}

// damagedOf are the containers whose results are not 0.
func (c *containers) damagedOf(memory []byte) (bad []int) {
	for i := range c.all {
		if binary.LittleEndian.Uint64(memory[c.results+8*i:]) != 0 {
			bad = append(bad, i)
		}
	}
	return bad
}

// Containers with and without references, with other bytes at the reference's place, and with none although they need it.
func TestReferencesSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(13, 1))
	c := references(t, r, 96, 5)
	encoded := c.twins(t, c.encode)
	c.checkEncoded(t, encoded)
	sameBytes(t, c.withoutWords(s.run(c.memory, c.encode(there))), c.withoutWords(encoded))

	c.someInPlace(func() bool { return r.IntN(2) == 0 })
	c.prepareDecoding(func(codecPlace) {})
	decoded := c.twins(t, c.decode)
	sameBytes(t, s.run(c.memory, c.decode(there)), decoded)
	var need []int
	for i, p := range c.all {
		if !bytes.Equal(decoded[p.plain:][:p.Bytes], encoded[p.plain:][:p.Bytes]) {
			t.Fatalf("container %d of %d bytes, kind %v, decodes to other bytes", i, p.Bytes, p.Kind)
		}
		if p.referenced(t) {
			need = append(need, i)
		}
	}
	if bad := c.damagedOf(decoded); bad != nil || len(need) < 30 {
		t.Fatalf("damaged: %v; only %d need a reference", bad, len(need))
	}
	for what, change := range map[string]func(*codecPlace){
		"wrong": func(p *codecPlace) { p.referenceBytes = bytes.Repeat([]byte{0x77}, int(p.Bytes)) },
		"none":  func(p *codecPlace) { p.referenceBytes = nil },
	} {
		other := *c
		other.memory, other.all = bytes.Clone(c.memory), slices.Clone(c.all)
		for i := range other.all {
			if other.all[i].referenceBytes != nil {
				change(&other.all[i])
			}
		}
		other.prepareDecoding(func(codecPlace) {})
		if bad := other.damagedOf(s.run(other.memory, other.decode(there))); !slices.Equal(bad, need) {
			t.Errorf("%s: damaged %v, want %v", what, bad, need)
		}
		if bad := other.damagedOf(other.twins(t, other.decode)); !slices.Equal(bad, need) {
			t.Errorf("%s, twins: damaged %v, want %v", what, bad, need)
		}
	}
}

// A chain: each container is decoded in place, with the plain bytes of the container before as its reference.
func TestChainOfReferencesSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(13, 2))
	for _, n := range []int{codec.ChunkBytes, 3*codec.ChunkBytes + 777, 2 * codec.ChunkBytes, 1003} {
		for _, shift := range []int{0, 1, 4, 15} {
			c := &containers{}
			before, plain := []byte(nil), make([]byte, n)
			fillRegion(plain, codec.BFloat16, 1, r)
			for range 4 {
				c.add(t, bytes.Clone(plain), bytes.Clone(before), codec.BFloat16, codec.AllModes, shift)
				before = bytes.Clone(plain)
				for range 1 + n/70 {
					plain[r.IntN(n)] ^= byte(r.IntN(4))
				}
			}
			c.end()
			c.prepareDecoding(func(codecPlace) {})
			at := c.all[0].plain
			chain := func(base uint64) []Launch {
				var p Plan
				for i, x := range c.at(base) {
					x.Plain = device.Address(base) + device.Address(at)
					if x.Reference != 0 {
						x.Reference = x.Plain
					}
					results := device.Address(base) + device.Address(c.results+8*i)
					p.Decode([]device.Container{x}, device.Address(base)+device.Address(c.scratch), results)
				}
				return p.Launches()
			}
			after := s.run(c.memory, chain(there))
			sameBytes(t, after, c.twins(t, chain))
			if bad := c.damagedOf(after); bad != nil || !bytes.Equal(after[at:][:n], before) {
				t.Fatalf("%d bytes, shift %d: damaged %v, or other bytes", n, shift, bad)
			}
		}
	}
}

// More containers with references, and without, than one launch takes.
func TestManyReferencesSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(13, 3))
	c := &containers{}
	for i := range 3*mostContainers + 10 {
		plain := make([]byte, 1+r.IntN(300))
		fillRegion(plain, codec.Float32, r.IntN(families), r)
		reference := bytes.Clone(plain)
		if reference[r.IntN(len(plain))]++; i%3 == 2 {
			reference = nil
		}
		c.add(t, plain, reference, codec.Float32, codec.AllModes, i%16)
	}
	c.end()
	const groups = 2 + 3 // of 129 without references, and of 259 with
	if encoding, decoding := c.encode(there), c.decode(there); len(encoding) != 1+groups || len(decoding) != 2*groups {
		t.Errorf("%d launches to encode, %d to decode", len(encoding), len(decoding))
	}
	want := c.twins(t, c.encode)
	c.checkEncoded(t, want)
	sameBytes(t, c.withoutWords(s.run(c.memory, c.encode(there))), c.withoutWords(want))
	c.someInPlace(func() bool { return true })
	c.prepareDecoding(func(codecPlace) {})
	sameBytes(t, s.run(c.memory, c.decode(there)), c.twins(t, c.decode))
}

// launched are kernels and the sizes of their parameters.
type launched struct {
	kernel     string
	containers int
	size       int
}

func launchesOf(all []Launch) (list []launched) {
	for _, l := range all {
		n := 0
		if len(l.Parameter) >= codecSize {
			n = int(binary.LittleEndian.Uint32(l.Parameter[codecCount:]))
		}
		list = append(list, launched{l.Kernel, n, len(l.Parameter)})
	}
	return list
}

// Containers without a reference, and those whose modes need none, have the kernels and parameters that they had without references beside them.
func TestLaunchesOfReferences(t *testing.T) {
	bare := device.Container{Plain: 1 << 20, Bytes: 100, Kind: codec.Float16, Modes: codec.AllModes, At: 2 << 20, Length: 200}
	with, unused := bare, bare
	with.Reference, unused.Reference, unused.Modes = 3<<20, 3<<20, codec.Only(codec.Const, codec.Diff, codec.Exp)
	all := []device.Container{with, bare, unused, with}
	var p Plan
	p.Encode(all, 4<<20, 5<<20)
	want := []launched{
		{"velocpy_codec_clear", 0, clearSize}, {"velocpy_codec_encode_fp16", 2, codecSize}, {"velocpy_codec_encode_fp16_reference", 2, referencedSize},
	}
	if got := launchesOf(p.Launches()); !slices.Equal(got, want) {
		t.Errorf("to encode: %v", got)
	}
	p.Reset()
	p.Decode(all, 4<<20, 5<<20)
	want = []launched{
		{"velocpy_codec_locate", 1, codecSize}, {"velocpy_codec_decode_fp16", 1, codecSize},
		{"velocpy_codec_locate", 3, codecSize}, {"velocpy_codec_decode_fp16_reference", 3, referencedSize},
	}
	if got := launchesOf(p.Launches()); !slices.Equal(got, want) {
		t.Errorf("to decode: %v", got)
	}
}

// A launch reads the references of its containers, and no other launch does.
func TestTouchesOfReferences(t *testing.T) {
	c := references(t, rand.New(rand.NewPCG(13, 4)), 24, 3)
	c.someInPlace(func() bool { return true })
	for what, plan := range map[string]func(uint64) []Launch{"encode": c.encode, "decode": c.decode} {
		read := map[Range]int{}
		for _, l := range plan(there) {
			reads, _ := Touches(l.Kernel, l.Parameter)
			for _, x := range reads {
				read[x]++
			}
		}
		for i, x := range c.at(there) {
			want := 0
			if x.Reference != 0 {
				want++
			}
			if what == "encode" { // the plain bytes are read, too
				want++
			}
			if n := read[Range{x.Plain, x.Bytes}]; n != want {
				t.Errorf("%s: the place of container %d is read %d times, want %d", what, i, n, want)
			}
		}
	}
}
