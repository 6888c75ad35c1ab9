package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"

	"pgregory.net/rapid"
)

// Kernels for several containers against their twins, which use the codec in Go.

// containers are several containers in one memory, by offset: the memory can be at any address.
type containers struct {
	all              []codecPlace
	memory           []byte
	scratch, results int
}

// codecPlace is one container.
type codecPlace struct {
	device.Container       // without addresses
	plain, at, reference   int
	sealed, referenceBytes []byte // nil: no reference
}

// referenced tells whether a chunk of the container needs the reference.
func (p *codecPlace) referenced(t failing) bool {
	opened, err := codec.OpenTables(p.sealed, p.Kind, int(p.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	return opened.NeedsReference()
}

func (c *containers) take(n, align, skew int) int {
	at := (len(c.memory)+64+align-1)/align*align + skew
	for len(c.memory) < at+n {
		c.memory = append(c.memory, untouched)
	}
	return at
}

func (c *containers) add(t failing, plain, reference []byte, k codec.Kind, modes codec.Modes, shift int) {
	p := codecPlace{Container: device.Container{Bytes: int64(len(plain)), Kind: k, Modes: modes}, sealed: make([]byte, codec.Bound(len(plain)))}
	p.plain = c.take(len(plain), 16, shift)
	copy(c.memory[p.plain:], plain)
	p.at = c.take(codec.Bound(len(plain)), 16, 0)
	if reference != nil {
		p.referenceBytes, p.reference = reference, c.take(len(plain), 16, 2*shift%16)
		copy(c.memory[p.reference:], reference)
	}
	n, err := codec.Encode(p.sealed, plain, reference, codec.Options{Kind: k, Modes: modes})
	if err != nil {
		t.Fatal(err)
	}
	p.sealed, p.Length = p.sealed[:n], int64(n)
	c.all = append(c.all, p)
}

// end lays out the scratch memory, with arbitrary content, and results that are 0.
func (c *containers) end() {
	c.scratch = c.take(int(device.ScratchFor(c.at(0))), 256, 0)
	c.results = c.take(8*len(c.all), 8, 0)
	clear(c.memory[c.results:])
	c.memory = c.memory[:c.take(0, 4096, 0)]
}

func (c *containers) at(base uint64) (all []device.Container) {
	for _, p := range c.all {
		p.Plain, p.At = device.Address(base)+device.Address(p.plain), device.Address(base)+device.Address(p.at)
		if p.referenceBytes != nil {
			p.Reference = device.Address(base) + device.Address(p.reference)
		}
		all = append(all, p.Container)
	}
	return all
}

func (c *containers) encode(base uint64) []Launch {
	var p Plan
	p.Encode(c.at(base), device.Address(base)+device.Address(c.scratch), device.Address(base)+device.Address(c.results))
	return p.Launches()
}

func (c *containers) decode(base uint64) []Launch {
	var p Plan
	p.Decode(c.at(base), device.Address(base)+device.Address(c.scratch), device.Address(base)+device.Address(c.results))
	return p.Launches()
}

// twins runs launches of a plan by their twins, on a copy of the memory. Every byte that they change is in what Touches returns as written.
func (c *containers) twins(t failing, plan func(uint64) []Launch) []byte {
	memory := aligned(c.memory)
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	for _, l := range plan(base) {
		before, written := bytes.Clone(memory), make([]bool, len(memory))
		_, writes := Touches(l.Kernel, l.Parameter)
		for _, r := range writes {
			for i := range r.Bytes {
				written[int64(uint64(r.At)-base)+i] = true
			}
		}
		if err := Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter); err != nil {
			t.Fatal(err)
		}
		for i := range before {
			if before[i] != memory[i] && !written[i] {
				t.Fatalf("%s writes byte %d beside what it touches", l.Kernel, i)
			}
		}
	}
	return memory
}

// drawContainers draws containers of several kinds.
func drawContainers(t *rapid.T) *containers {
	c := &containers{}
	for range rapid.IntRange(1, 4).Draw(t, "count") {
		w := drawCodec(t)
		c.add(t, w.plain, w.reference, w.kind, w.modes, rapid.IntRange(0, 15).Draw(t, "shift")*rapid.IntRange(0, 1).Draw(t, "shifted"))
	}
	c.end()
	return c
}

// checkEncoded compares a memory behind an encoding with the containers of the codec.
func (c *containers) checkEncoded(t failing, after []byte) {
	for i, p := range c.all {
		if n := binary.LittleEndian.Uint64(after[c.results+8*i:]); int64(n) != p.Length {
			t.Fatalf("container %d: %d B, want %d B", i, n, p.Length)
		}
		got := bytes.Clone(after[p.at : p.at+int(p.Length)])
		if _, err := codec.SealTables(got, p.Kind, int(p.Bytes)); err != nil || !bytes.Equal(got, p.sealed) {
			t.Fatalf("container %d is not that of the codec: %v", i, err)
		}
	}
}

// withoutWords clears the words of the look-back, which the emulated machine does not always replace by sums.
func (c *containers) withoutWords(memory []byte) []byte {
	clear(memory[c.scratch : c.scratch+8*blocksOf(c.at(0))])
	return memory
}

func TestContainersSource(t *testing.T) {
	s := startSource(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawContainers(t)
		want := c.twins(t, c.encode)
		c.checkEncoded(t, want)
		sameBytes(t, c.withoutWords(s.run(c.memory, c.encode(there))), c.withoutWords(want))
		c.someInPlace(func() bool { return rapid.Bool().Draw(t, "in place") })
		c.prepareDecoding(func(codecPlace) {})
		want = c.twins(t, c.decode)
		for i, p := range c.all {
			if binary.LittleEndian.Uint64(want[c.results+8*i:]) != 0 {
				t.Fatalf("container %d is damaged", i)
			}
			if err := codec.Decode(make([]byte, p.Bytes), p.sealed, p.referenceBytes, 1); err != nil {
				t.Fatal(err)
			}
		}
		sameBytes(t, s.run(c.memory, c.decode(there)), want)
	})
}

// someInPlace has the references of some containers at their plain bytes.
func (c *containers) someInPlace(those func() bool) {
	for i := range c.all {
		if p := &c.all[i]; p.referenceBytes != nil && those() {
			p.reference = p.plain
		}
	}
}

// prepareDecoding writes the containers without headers, removes the plain bytes, writes the references, and lets change damage the containers.
func (c *containers) prepareDecoding(change func(codecPlace)) {
	for _, p := range c.all {
		copy(c.memory[p.at+containerHeader:], p.sealed[containerHeader:])
		for i := range p.Bytes {
			c.memory[p.plain+int(i)] = untouched
		}
		copy(c.memory[p.reference:], p.referenceBytes)
		change(p)
	}
}

// Damaged containers have the same results as with the twins, and nothing but their plain bytes and the scratch memory changes.
func TestContainersSourceDamage(t *testing.T) {
	s := startSource(t)
	damaged := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawContainers(t)
		c.someInPlace(func() bool { return rapid.Bool().Draw(t, "in place") })
		c.prepareDecoding(func(p codecPlace) { harm(t, c.memory[p.at:p.at+int(p.Length)], codec.Chunks(int(p.Bytes))) })
		for i := range c.all {
			if p := &c.all[i]; rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
				p.Length = rapid.Int64Range(int64(codec.PayloadsAt(int(p.Bytes))), p.Length).Draw(t, "length")
			}
		}
		after, want := s.run(c.memory, c.decode(there)), c.twins(t, c.decode)
		for i, p := range c.all {
			if binary.LittleEndian.Uint64(want[c.results+8*i:]) != 0 {
				damaged++
				copy(want[p.plain:p.plain+int(p.Bytes)], after[p.plain:])
			}
		}
		sameBytes(t, after, want)
	})
	if damaged < 20 {
		t.Errorf("only %d damaged containers", damaged)
	}
}

// harm damages what stands behind a header, or nothing.
func harm(t *rapid.T, container []byte, chunks int) {
	chunk := rapid.IntRange(0, chunks-1).Draw(t, "chunk")
	rest := container[containerHeader:]
	switch rapid.IntRange(0, 5).Draw(t, "harm") {
	case 0:
		rest[rapid.IntRange(0, len(rest)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
	case 1:
		binary.LittleEndian.PutUint16(rest[8*chunks+2*chunk:], uint16(rapid.IntRange(0, 1<<16-1).Draw(t, "length")))
	case 2:
		for i := range 2 * chunks {
			rest[8*chunks+i] = 0xff
		}
	case 3:
		rest[10*chunks+chunk] = byte(rapid.IntRange(0, 255).Draw(t, "mode"))
	case 4:
		_, _ = rand.NewChaCha8([32]byte{byte(chunk), byte(chunks)}).Read(rest)
	}
}

// Enough containers for several launches, one of them with many chunks.
func TestManyContainersSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(3, 3))
	c := &containers{}
	for i := range 2*mostContainers + 5 {
		k := everyKind[4+i%2*2]
		plain := make([]byte, 1+r.IntN(300))
		fillRegion(plain, k, r.IntN(families), r)
		c.add(t, plain, nil, k, codec.AllModes, i%16)
	}
	large := make([]byte, 80*codec.ChunkBytes+5)
	for i := range 40 {
		fillRegion(large[2*i*codec.ChunkBytes:][:codec.ChunkBytes], codec.Float16, i%families, r)
	}
	c.add(t, large, nil, codec.Float16, codec.AllModes, 0)
	c.end()
	if n := len(c.encode(there)); n != 5 {
		t.Errorf("%d launches", n)
	}
	want := c.twins(t, c.encode)
	c.checkEncoded(t, want)
	sameBytes(t, c.withoutWords(s.run(c.memory, c.encode(there))), c.withoutWords(want))
	c.prepareDecoding(func(codecPlace) {})
	sameBytes(t, s.run(c.memory, c.decode(there)), c.twins(t, c.decode))
}

// Payloads of containers with so many chunks that a block of threads locates them in several passes.
func TestLocateContainersSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(8, 10))
	c := &containers{}
	for _, chunks := range []int{1, locateChunks - 1, locateChunks, locateChunks + 1, 2*locateChunks + 77, device.MostContainer / codec.ChunkBytes} {
		p := codecPlace{Container: device.Container{Bytes: int64(chunks * codec.ChunkBytes), Kind: codec.Int8}, sealed: make([]byte, 1)}
		p.Length = int64(codec.PayloadsAt(int(p.Bytes)))
		p.at = c.take(int(p.Length), 16, 0)
		for i := range chunks {
			binary.LittleEndian.PutUint16(c.memory[p.at+containerHeader+8*chunks+2*i:], uint16(r.IntN(1<<16)))
		}
		c.all = append(c.all, p)
	}
	c.end()
	locate := func(base uint64) []Launch { return c.decode(base)[:1] }
	sameBytes(t, s.run(c.memory, locate(there)), c.twins(t, locate))
}

// otherReference is a parameter for containers without the first reference, or with references if it has none.
func otherReference(b []byte) []byte {
	if len(b) != referencedSize {
		return append(b, make([]byte, referencedSize-codecSize)...)
	}
	clear(b[codecReference : codecReference+8])
	return b
}

// Launches that do not match their parameters, or that come in the wrong order, are refused.
func TestTwinsOfContainersRefuse(t *testing.T) {
	for _, reference := range [][]byte{nil, make([]byte, 3*codec.ChunkBytes)} {
		twinsRefuse(t, reference)
	}
}

func twinsRefuse(t *testing.T, reference []byte) {
	t.Helper()
	c := &containers{}
	c.add(t, make([]byte, 3*codec.ChunkBytes), reference, codec.Float32, codec.AllModes, 0)
	c.end()
	memory := aligned(c.memory)
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	run := func(l Launch) error { return Twin(l.Kernel)(l.Blocks, l.Threads, l.Parameter) }
	encode, decode := c.encode(base), c.decode(base)
	for what, l := range map[string]Launch{"encoded before the words are 0": encode[1], "decoded before it is located": decode[1]} {
		copy(memory[c.all[0].at:], c.all[0].sealed)
		if err := run(l); !errors.Is(err, ErrLaunch) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, l := range append(encode, decode...) {
		for what, change := range map[string]func(*Launch){
			"blocks":    func(l *Launch) { l.Blocks++ },
			"threads":   func(l *Launch) { l.Threads-- },
			"parameter": func(l *Launch) { l.Parameter = l.Parameter[1:] },
			"nothing":   func(l *Launch) { l.Parameter = make([]byte, len(l.Parameter)) },
			"reference": func(l *Launch) { l.Parameter = otherReference(l.Parameter) },
		} {
			bad := l
			bad.Parameter = bytes.Clone(l.Parameter)
			if change(&bad); !errors.Is(run(bad), ErrLaunch) {
				t.Errorf("%s with other %s is accepted", l.Kernel, what)
			}
		}
	}
}
