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

// Checks of containers that have references.

// former is a reference for plain bytes: the region before one of several changes.
func (b *bench) former(plain []byte, k codec.Kind, change int) []byte {
	p := append(bytes.Clone(plain), make([]byte, 8)...)
	switch word := int(k.Word); change % changes {
	case 0: // a few elements
		for range 1 + len(plain)/300 {
			p[b.rand.IntN(len(plain))] ^= byte(1 + b.rand.IntN(255))
		}
	case 1: // nothing
	case 2: // everything, by a little
		for i := 0; i < len(plain); i += word {
			p[i] -= byte(3 + b.rand.IntN(3))
		}
	case 3: // everything, to other values
		b.fill(p)
	case 4: // everything, to NaNs with payloads if the elements are floats
		for i := 0; i < len(plain); i += word {
			binary.LittleEndian.PutUint64(p[i:], math.MaxUint64<<(8*k.Word-1-k.Exponent-1)^b.rand.Uint64N(1<<(8*k.Word-2-k.Exponent)))
		}
	}
	return p[:len(plain):len(plain)]
}

const changes = 5

// notNumbers has some of the elements be NaNs with payloads, where the kind has any.
func (b *bench) notNumbers(plain []byte, k codec.Kind) []byte {
	if k.Float() {
		nan := b.former(plain, k, 4)
		for i := 0; i+int(k.Word) <= len(plain); i += 7 * int(k.Word) {
			copy(plain[i:][:k.Word], nan[i:])
		}
	}
	return plain
}

// inPlace has the references of the containers that are decoded next be at the plain bytes, of one container in every so many.
func (p *packing) inPlace(every int) {
	for i := range p.all {
		if c := &p.all[i]; c.Reference != 0 && i%every == 0 {
			c.Reference = c.Plain
		}
	}
}

// intact decodes the containers, of which none is damaged.
func (p *packing) intact(what string) {
	p.Helper()
	if bad := p.decoded(what); bad != nil {
		p.Fatalf("%s: damaged: %v", what, bad)
	}
}

// need are the containers of which some chunk needs the reference.
func (p *packing) need() (list []int) {
	p.Helper()
	for i, c := range p.all {
		opened, err := codec.Open(c.sealed, int(c.Bytes))
		p.must(err)
		if opened.NeedsReference() {
			list = append(list, i)
		}
	}
	return list
}

// references: all kinds, changes and odd sizes; each alone, and all in one call; decoded with the reference elsewhere and in place.
func references(b *bench) {
	sizes := []int{1, 7, 8, 9, 16, 255, 4097, codec.ChunkBytes - 1, codec.ChunkBytes, codec.ChunkBytes + 1, 2 * codec.ChunkBytes, 3*codec.ChunkBytes + 1003}
	together := b.packing(largeArea)
	var seen [codec.ModeCount]int
	for i, k := range kinds {
		for change := range changes {
			what := fmt.Sprint(k, change)
			alone := b.packing(smallArea)
			plain := b.notNumbers(b.content(sizes[(5*i+change)%len(sizes)], k, i+change), k)
			alone.add(plain, b.former(plain, k, change), k, codec.AllModes)
			alone.encoded(what)
			alone.intact(what)
			alone.inPlace(1)
			alone.intact(what + " in place")

			plain = b.notNumbers(b.content(2*codec.ChunkBytes+77*i, k, 2*i+change), k)
			together.add(plain, b.former(plain, k, change), k, codec.AllModes)
			plain = b.content(sizes[(i+3*change)%len(sizes)], k, change)
			together.add(plain, b.former(plain, k, change), k, codec.Modes(b.rand.IntN(1<<codec.ModeCount)))
		}
	}
	together.encoded("together")
	together.intact("together")
	together.inPlace(1)
	together.intact("together, in place")
	for _, c := range together.all {
		for _, m := range c.sealed[headerBytes+10*codec.Chunks(int(c.Bytes)):][:codec.Chunks(int(c.Bytes))] {
			seen[m]++
		}
	}
	if seen[codec.Xrz] < 5 || seen[codec.Step] < 5 {
		b.Fatalf("the suite's own containers have modes %v", seen)
	}
}

// mixedReferences: containers with and without a reference in one list, more than fit one launch, and one of many chunks.
func mixedReferences(b *bench) {
	p := b.packing(largeArea)
	for i := range 420 {
		k := kinds[i%3*2]
		plain := b.content(1+i*7%900, k, i)
		reference := b.former(plain, k, i)
		if i%5 == 0 {
			reference = nil
		}
		p.add(plain, reference, k, codec.AllModes)
	}
	large := b.content(90*codec.ChunkBytes+5, codec.BFloat16, 1)
	former := b.former(large, codec.BFloat16, 0)
	for i := range 40 {
		copy(former[2*i*codec.ChunkBytes:], b.former(large[2*i*codec.ChunkBytes:][:codec.ChunkBytes], codec.BFloat16, i))
	}
	p.add(large, former, codec.BFloat16, codec.AllModes)
	p.encoded("mixed")
	p.intact("mixed")
	p.inPlace(2)
	p.intact("mixed, some in place")
	if need := p.need(); len(need) < 100 || len(need) > 336 {
		b.Fatalf("%d of the suite's own containers need a reference", len(need))
	}
}

// otherReferences: containers that need a reference are damaged if other bytes are there, or none is given. The others are not.
func otherReferences(b *bench) {
	for what, change := range map[string]func(*packed){
		"other bytes":           func(c *packed) { c.reference = b.noise(c.Bytes) },
		"other bytes, in place": func(c *packed) { c.reference, c.Reference = b.noise(c.Bytes), c.Plain },
		"no reference":          func(c *packed) { c.reference, c.Reference = nil, 0 },
	} {
		p := b.packing(4 << 20)
		for i := range 40 {
			k := kinds[i%len(kinds)]
			plain := b.content(1+b.rand.IntN(3*codec.ChunkBytes), k, i/len(kinds))
			reference := b.former(plain, k, i/5)
			if i%7 == 6 {
				reference = nil
			}
			p.add(plain, reference, k, codec.AllModes)
		}
		p.encoded(what)
		for i := range p.all {
			if p.all[i].reference != nil && i%3 > 0 {
				change(&p.all[i])
			}
		}
		want := slices.DeleteFunc(p.need(), func(i int) bool { return i%3 == 0 })
		if bad := p.decoded(what); !slices.Equal(bad, want) || len(want) < 10 {
			b.Fatalf("%s: damaged %v, want %v", what, bad, want)
		}
	}
}

// referenceChain: each container has the plain bytes of the one before as its reference, and is decoded in their place, in calls that follow each other.
func referenceChain(b *bench) {
	for _, n := range []int{5*codec.ChunkBytes + 1000, 4 * codec.ChunkBytes} {
		for _, skew := range []int64{0, 3} {
			p := b.packing(4 << 20)
			var before []byte
			plain := b.content(n, codec.Float32, 1)
			for change := range 2 * changes {
				p.add(plain, before, codec.Float32, codec.AllModes)
				before, plain = plain, b.former(plain, codec.Float32, change)
			}
			p.encoded("chain")
			var found []device.Faults
			at := p.room(int64(n), skew)
			for i, c := range p.containers() {
				if c.Plain = at; i > 0 {
					c.Reference = at
				}
				faults, err := b.lane.Decode([]device.Container{c}, p.scratch)
				b.must(err)
				found = append(found, faults)
			}
			b.finish(b.lane)
			for i, faults := range found {
				if bad := faults.Take(); bad != nil {
					b.Fatalf("container %d of a chain of %d bytes is damaged", i, n)
				}
			}
			if !bytes.Equal(b.read(at, int64(n)), before) {
				b.Fatalf("a chain of %d bytes decodes to other bytes", n)
			}
		}
	}
}

// referenceMistakes are references where the container is written, and such as overlap the plain bytes and are not at their place.
func (b *bench) referenceMistakes(good device.Container, scratch device.Address) {
	for _, skew := range []device.Address{0, 1, device.Address(good.Length) - 1} {
		bad := good
		bad.Reference = good.At + skew
		if _, err := b.lane.Encode([]device.Container{good, bad}, scratch); !errors.Is(err, device.ErrContainer) {
			b.Errorf("a reference %d bytes behind the container: %v", skew, err)
		}
	}
	for _, skew := range []device.Address{1, 999} {
		bad := good
		bad.Reference = good.Plain + skew
		if _, err := b.lane.Decode([]device.Container{good, bad}, scratch); !errors.Is(err, device.ErrContainer) {
			b.Errorf("a reference %d bytes behind the plain bytes: %v", skew, err)
		}
	}
}
