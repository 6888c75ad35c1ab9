package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/reduction/codec"

	"pgregory.net/rapid"
)

// The codec's kernels against the codec in Go.

// encoding and decoding are the structs Encoding and Decoding of parameters.h.
type encoding struct {
	Plain, Reference, Bytes, Container, State, Length uint64
	Modes, Reserved                                   uint32
}

type decoding struct {
	Plain, Reference, Bytes, Container, Offsets, Faults uint64
	First, Reserved                                     uint32
}

// codecKernels are the names of the kernels that encode or decode one region, with or without reference. No lane launches them. Their twin is the codec in
// Go.
func codecKernels() (names []string) {
	for _, kind := range []string{"bytes", "fp16", "bf16", "fp32", "fp64"} {
		names = append(names, "velocpy_encode_"+kind, "velocpy_encode_"+kind+"_reference", "velocpy_decode_"+kind)
	}
	return append(names, "velocpy_locate")
}

// locating is the struct Locating of parameters.h, and locateChunks the chunks that a block of threads locates.
type locating struct{ Bytes, Container, State, Offsets uint64 }

const locateChunks = 1 << 10

var everyKind = []codec.Kind{codec.Int8, codec.Int16, codec.Int32, codec.Int64, codec.Float16, codec.BFloat16, codec.Float32, codec.Float64}

// codecWork is a region and the memory in which kernels encode and decode it. Bytes that no kernel may write are 0xa5.
type codecWork struct {
	kind                                               codec.Kind
	modes                                              codec.Modes
	plain, reference                                   []byte
	atPlain, atReference, atContainer, atState, atRest int
}

const untouched = 0xa5

func (w *codecWork) chunks() int { return codec.Chunks(len(w.plain)) }

// memory lays everything out. The addresses of the regions have the given remainders modulo 16.
func (w *codecWork) memory(shift, shiftReference int) []byte {
	n := len(w.plain)
	w.atPlain = 64 + shift
	w.atReference = w.atPlain + n + 64 - (w.atPlain+n)%16 + shiftReference
	w.atContainer = w.atReference + n + 64 - (w.atReference+n)%16
	w.atState = w.atContainer + (codec.Bound(n)+16+63)/64*64
	w.atRest = w.atState + (8*w.chunks()+15)/16*16
	m := bytes.Repeat([]byte{untouched}, w.atRest+16+(9*w.chunks()+63)/64*64)
	copy(m[w.atPlain:], w.plain)
	copy(m[w.atReference:], w.reference)
	clear(m[w.atState : w.atState+8*w.chunks()])
	return m
}

func parameter(t failing, p any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type failing interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func (w *codecWork) referenceAddress() uint64 {
	if w.reference == nil {
		return 0
	}
	return uint64(there + w.atReference)
}

func (w *codecWork) encode(t failing) Launch {
	name, modes := "velocpy_encode_"+codecKind(w.kind), w.modes
	if w.reference != nil {
		name += "_reference"
	}
	if !w.kind.Float() {
		modes &^= 1 << codec.Exp
	}
	p := encoding{
		Plain: uint64(there + w.atPlain), Reference: w.referenceAddress(), Bytes: uint64(len(w.plain)), Container: uint64(there + w.atContainer),
		State: uint64(there + w.atState), Length: uint64(there + w.atRest), Modes: uint32(modes),
	}
	return Launch{Kernel: name, Blocks: w.chunks(), Threads: codecThreads, Parameter: parameter(t, p)}
}

// decode decodes the chunks from, ..., to-1.
func (w *codecWork) decode(t failing, from, to int) Launch {
	p := decoding{
		Plain: uint64(there + w.atPlain), Reference: w.referenceAddress(), Bytes: uint64(len(w.plain)), Container: uint64(there + w.atContainer),
		Offsets: uint64(there + w.atRest + 16), Faults: uint64(there + w.atRest + 16 + 8*w.chunks()), First: uint32(from),
	}
	return Launch{Kernel: "velocpy_decode_" + codecKind(w.kind), Blocks: to - from, Threads: codecThreads, Parameter: parameter(t, p)}
}

// sealed is the container by the codec in Go.
func (w *codecWork) sealed(t failing) []byte {
	dst := make([]byte, codec.Bound(len(w.plain)))
	n, err := codec.Encode(dst, w.plain, w.reference, codec.Options{Kind: w.kind, Modes: w.modes})
	if err != nil {
		t.Fatal(err)
	}
	return dst[:n]
}

// offsets writes where the payloads of a container begin.
func (w *codecWork) offsets(m, container []byte) {
	at, lengths := codec.PayloadsAt(len(w.plain)), container[64+8*w.chunks():]
	for i := range w.chunks() {
		binary.LittleEndian.PutUint64(m[w.atRest+16+8*i:], uint64(at))
		at += (int(binary.LittleEndian.Uint16(lengths[2*i:])) + 15) / 16 * 16
	}
}

// testEncoding compares a container by the kernel with one by Go.
func (w *codecWork) testEncoding(t failing, s *source, shift, shiftReference int) {
	before := w.memory(shift, shiftReference)
	after := s.run(before, []Launch{w.encode(t)})
	want := w.sealed(t)
	length := int(binary.LittleEndian.Uint64(after[w.atRest:]))
	got := bytes.Clone(after[w.atContainer : w.atContainer+codec.Bound(len(w.plain))])
	for i := range w.chunks() {
		if a, b := got[64+10*w.chunks()+i], want[64+10*w.chunks()+i]; a != b {
			t.Fatalf("chunk %d: mode %v, want %v", i, codec.Mode(a), codec.Mode(b))
		}
		if a, b := got[64+8*w.chunks()+2*i:][:2], want[64+8*w.chunks()+2*i:][:2]; !bytes.Equal(a, b) {
			t.Fatalf("chunk %d, mode %v: length %d, want %d", i, codec.Mode(want[64+10*w.chunks()+i]), binary.LittleEndian.Uint16(a), binary.LittleEndian.Uint16(b))
		}
	}
	if n, err := codec.SealTables(got, w.kind, len(w.plain)); err != nil || n != length {
		t.Fatalf("%d B, and the kernel says %d B: %v", n, length, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("byte %d of %d is %#x, want %#x; payloads from %d on, modes %v", i, len(want), got[i], want[i], codec.PayloadsAt(len(w.plain)), want[64+10*w.chunks():][:w.chunks()])
		}
	}
	// Nothing else has changed: the rest of the memory is as before.
	copy(before[w.atContainer+64:], after[w.atContainer+64:w.atContainer+64+11*w.chunks()])
	copy(before[w.atContainer+codec.PayloadsAt(len(w.plain)):], want[codec.PayloadsAt(len(w.plain)):])
	copy(before[w.atState:], after[w.atState:w.atState+8*w.chunks()])
	copy(before[w.atRest:], after[w.atRest:w.atRest+8])
	sameBytes(t, after, before)
}

// testDecoding compares the region that the kernel decodes from a container with that of Go, and the faults. The container may be damaged behind
// its tables.
func (w *codecWork) testDecoding(t failing, s *source, container []byte, shift, shiftReference, from, to int) {
	before := w.memory(shift, shiftReference)
	for i := range w.plain {
		before[w.atPlain+i] = untouched
	}
	copy(before[w.atContainer:], container)
	w.offsets(before, container)
	after := s.run(before, []Launch{w.decode(t, from, to)})
	c, err := codec.Open(container, len(w.plain))
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		begin, end := i*codec.ChunkBytes, min((i+1)*codec.ChunkBytes, len(w.plain))
		dst, reference := make([]byte, end-begin), []byte(nil)
		if w.reference != nil {
			reference = w.reference[begin:end]
		}
		fault := byte(0)
		if err := c.DecodeChunks(dst, reference, i, i+1, 1); err != nil {
			fault = 2
			if strings.Contains(err.Error(), "malformed") {
				fault = 1
			}
		}
		at := w.atRest + 16 + 8*w.chunks() + i
		if after[at] != fault {
			t.Fatalf("chunk %d, mode %v: fault %d, want %d", i, c.Entry(i).Mode, after[at], fault)
		}
		before[at] = fault
		if fault == 0 {
			copy(before[w.atPlain+begin:], dst)
		} else {
			copy(before[w.atPlain+begin:w.atPlain+end], after[w.atPlain+begin:])
		}
	}
	sameBytes(t, after, before)
}

// fillRegion fills a region with a family of data.
func fillRegion(p []byte, k codec.Kind, family int, r *rand.Rand) {
	size, walk, speed := int(k.Word), uint64(1)<<(8*k.Word-2), uint64(0)
	constant := r.Uint64()
	for i := 0; i < len(p); i += size {
		var x uint64
		switch family {
		case 0: // random
			x = r.Uint64()
		case 1: // weights
			x = floatBits(k, 0.02*r.NormFloat64())
		case 2: // differences of order 1
			walk += r.Uint64N(40)
			x = walk
		case 3: // differences of order 2
			speed += r.Uint64N(5) - 2
			walk += speed
			x = walk
		case 4: // zeros with spikes
			if r.IntN(50) == 0 {
				x = r.Uint64()
			}
		case 5: // constant
			x = constant
		case 6: // a smooth field
			x = floatBits(k, math.Sin(float64(i)/3000)*math.Exp(-float64(i%5000)/900))
		case 8: // exponents for which codes of 1 and 2 bits take the same space
			x = r.Uint64()
			if k.Float() {
				often, mantissa := 8*k.Word-1-k.Exponent, uint64(1)<<(8*k.Word-1-k.Exponent)-1
				rare := 8
				if k == codec.Float64 {
					rare = 16
				}
				x &= mantissa
				if i/size%rare == 0 {
					x |= 1 << often
				}
				x += 9 << often
			}
		case 9: // two exponents of which each has half of the words
			x = r.Uint64()
			if k.Float() {
				at := 8*k.Word - 1 - k.Exponent
				x = x&(1<<at-1) | uint64(3+i/size%2*20)<<at
			}
		case 7: // special values
			x = []uint64{0, 1, 1 << (8*k.Word - 1), ^uint64(0), floatBits(k, math.Inf(1)), floatBits(k, math.NaN()), floatBits(k, 1), 7}[r.IntN(8)]
		}
		for j := i; j < min(i+size, len(p)); j++ {
			p[j] = byte(x >> (8 * (j - i)))
		}
	}
}

const families = 10

// floatBits rounds a number down to a kind, for integers to a multiple of 2^-20.
func floatBits(k codec.Kind, x float64) uint64 {
	single := uint64(math.Float32bits(float32(x)))
	switch k {
	case codec.Float64:
		return math.Float64bits(x)
	case codec.Float32:
		return single
	case codec.BFloat16:
		return single >> 16
	case codec.Float16:
		e := max(min(int(single>>23&0xff)-127+15, 31), 0)
		return single>>16&0x8000 | uint64(e)<<10 | single>>13&0x3ff
	}
	return uint64(int64(x * (1 << 20)))
}

// drawCodec draws a region with a few chunks of several families.
func drawCodec(t *rapid.T) (w codecWork) {
	w.kind = rapid.SampledFrom(everyKind).Draw(t, "kind")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	whole := rapid.IntRange(0, 2).Draw(t, "chunks")
	n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, codec.ChunkBytes-1), rapid.Map(rapid.IntRange(0, 16), func(i int) int { return i * 1024 })).Draw(t, "rest")
	n = max(1, whole*codec.ChunkBytes+n)
	w.plain = make([]byte, n)
	for at := 0; at < n; at += codec.ChunkBytes {
		fillRegion(w.plain[at:min(n, at+codec.ChunkBytes)], w.kind, rapid.IntRange(0, families-1).Draw(t, "family"), r)
	}
	w.modes = codec.AllModes
	if rapid.Bool().Draw(t, "some modes") {
		w.modes = codec.Modes(rapid.IntRange(0, int(codec.AllModes)).Draw(t, "modes"))
	}
	if !rapid.Bool().Draw(t, "referenced") {
		return w
	}
	w.reference = bytes.Clone(w.plain)
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0: // sparse
		for range 1 + n/100 {
			w.reference[r.IntN(n)] ^= byte(r.Uint32())
		}
	case 1: // small
		for i := 0; i < n; i += int(w.kind.Word) {
			w.reference[i] ^= byte(r.IntN(4))
		}
	case 2: // none
	case 3: // another region
		fillRegion(w.reference, w.kind, r.IntN(families), r)
	}
	return w
}

func TestCodecSource(t *testing.T) {
	s := startSource(t)
	rapid.Check(t, func(t *rapid.T) {
		w := drawCodec(t)
		shift, shiftReference := rapid.IntRange(0, 15).Draw(t, "shift"), rapid.IntRange(0, 15).Draw(t, "shift of the reference")
		if rapid.Bool().Draw(t, "aligned") {
			shift, shiftReference = 0, 0
		}
		w.testEncoding(t, s, shift, shiftReference)
		from := rapid.IntRange(0, w.chunks()-1).Draw(t, "from")
		w.testDecoding(t, s, w.sealed(t), shift, shiftReference, from, rapid.IntRange(from, w.chunks()).Draw(t, "to"))
	})
}

// Every kind, family and mode, in whole chunks and a short one.
func TestCodecSourceOfAll(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(1, 2))
	var seen [codec.ModeCount]int
	for _, k := range everyKind {
		for family := range families {
			for m := range codec.Mode(codec.ModeCount) {
				w := codecWork{kind: k, modes: codec.Only(m), plain: make([]byte, codec.ChunkBytes+1000*(family+1)+5)}
				fillRegion(w.plain, k, family, r)
				if m == codec.Xrz || m == codec.Step {
					w.reference = make([]byte, len(w.plain))
					fillRegion(w.reference, k, (family+int(m))%families, r)
					copy(w.reference[500:], w.plain[500:9000])
				}
				w.testEncoding(t, s, 0, 0)
				container := w.sealed(t)
				for i := range w.chunks() {
					seen[container[64+10*w.chunks()+i]]++
				}
				w.testDecoding(t, s, container, 0, 0, 0, w.chunks())
			}
		}
	}
	for m, n := range seen {
		if n < 10 {
			t.Errorf("only %d chunks have mode %v", n, codec.Mode(m))
		}
	}
}

// Many chunks, each of which has to look back over the lengths of hundreds before it.
func TestCodecSourceOfManyChunks(t *testing.T) {
	s := startSource(t)
	w := codecWork{kind: codec.BFloat16, modes: codec.AllModes, plain: make([]byte, 910*codec.ChunkBytes+77)}
	r := rand.New(rand.NewPCG(5, 5))
	for at := 0; at < len(w.plain); at += codec.ChunkBytes {
		fillRegion(w.plain[at:min(len(w.plain), at+codec.ChunkBytes)], w.kind, r.IntN(families), r)
	}
	w.testEncoding(t, s, 0, 0)
	w.testDecoding(t, s, w.sealed(t), 0, 0, 500, 600)
}

// Payloads that are damaged, cut, extended or of another mode decode to the same as in Go, or are faults for the same reason.
func TestCodecSourceDamage(t *testing.T) {
	s := startSource(t)
	faults := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := drawCodec(t)
		plain := len(w.plain)
		container := w.sealed(t)
		entries := make([]codec.Entry, w.chunks())
		c, err := codec.Open(container, plain)
		if err != nil {
			t.Fatal(err)
		}
		damaged := make([]byte, codec.Bound(plain)+16*w.chunks())
		at, from := codec.PayloadsAt(plain), codec.PayloadsAt(plain)
		for i := range entries {
			e := c.Entry(i)
			payload := bytes.Clone(container[from : from+e.Bytes])
			from += (e.Bytes + 15) / 16 * 16
			payload, e.Mode = damage(t, payload, e.Mode, min(codec.ChunkBytes, plain-i*codec.ChunkBytes))
			if w.reference == nil && e.Mode >= codec.Xrz {
				e.Mode = codec.Diff
			}
			e.Bytes = len(payload)
			entries[i] = e
			copy(damaged[at:], payload)
			at += (e.Bytes + 15) / 16 * 16
		}
		n, err := codec.Seal(damaged, w.kind, plain, entries)
		if err != nil {
			t.Fatal(err)
		}
		if n > codec.Bound(plain) {
			return // there is no room for it in the memory
		}
		w.testDecoding(t, s, damaged[:n], 0, 0, 0, w.chunks())
		for i := range entries {
			faults[fmt.Sprint(entries[i].Mode)]++
		}
	})
}

// Marks behind the end of each level of a sparse plane, with the byte that they require.
func TestCodecSourceMarksBehindTheEnd(t *testing.T) {
	s := startSource(t)
	w := codecWork{kind: codec.Int8, modes: codec.Only(codec.Xrz), plain: make([]byte, 100)}
	w.reference = bytes.Clone(w.plain)
	w.reference[99] = 1
	const three, two, one, end = 12, 13, 14, 16 // the places of the only byte of each level, and the length
	container := w.sealed(t)
	c, err := codec.Open(container, len(w.plain))
	if err != nil || c.Entry(0).Mode != codec.Xrz || c.Entry(0).Bytes != end {
		t.Fatalf("%+v %v", c.Entry(0), err)
	}
	payload := container[codec.PayloadsAt(100):][:end]
	for what, x := range map[string]struct{ at, bit, insert int }{
		"nothing": {three, -1, end}, "third": {three, 2, two + 1}, "second": {two, 5, one + 1}, "first": {one, 4, end},
	} {
		damaged := bytes.Clone(payload)
		if x.bit >= 0 {
			damaged[x.at] |= 1 << x.bit
			damaged = slices.Insert(damaged, x.insert, 0)
		}
		into := make([]byte, codec.Bound(100))
		copy(into[codec.PayloadsAt(100):], damaged)
		n, err := codec.Seal(into, w.kind, 100, []codec.Entry{{Mode: codec.Xrz, Bytes: len(damaged), Hash: c.Entry(0).Hash}})
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.Decode(make([]byte, 100), into[:n], w.reference, 1); (err != nil) != (x.bit >= 0) {
			t.Fatalf("%s: %v", what, err)
		}
		w.testDecoding(t, s, into[:n], 0, 0, 0, 1)
	}
}

// damage changes a payload, which stays at most as long as its chunk.
func damage(t *rapid.T, p []byte, m codec.Mode, most int) ([]byte, codec.Mode) {
	switch rapid.IntRange(0, 5).Draw(t, "damage") {
	case 0: // bits near the start, where lengths are
		for range rapid.IntRange(1, 3).Draw(t, "bits") {
			if len(p) > 0 {
				p[rapid.IntRange(0, min(len(p), 64)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
		}
	case 1: // bits anywhere
		if len(p) > 0 {
			p[rapid.IntRange(0, len(p)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		}
	case 2: // truncation
		p = p[:rapid.IntRange(0, len(p)).Draw(t, "length")]
	case 3: // extension
		p = append(p, make([]byte, rapid.IntRange(0, min(40, most-len(p))).Draw(t, "more"))...)
	case 4: // another mode
		m = codec.Mode(rapid.IntRange(0, codec.ModeCount-1).Draw(t, "mode"))
	case 5: // random bytes behind a head that is small numbers
		p = make([]byte, rapid.IntRange(0, most).Draw(t, "length"))
		_, _ = rand.NewChaCha8([32]byte{byte(len(p))}).Read(p)
		for i := range min(len(p), rapid.IntRange(0, 60).Draw(t, "head")) {
			p[i] = byte(rapid.IntRange(0, 8).Draw(t, "small"))
		}
	}
	return p, m
}

// Payloads of containers with few chunks and with many, in which some blocks of threads look back over many others.
func TestLocateSource(t *testing.T) {
	s := startSource(t)
	r := rand.New(rand.NewPCG(8, 9))
	for _, chunks := range []int{1, 2, 31, 32, 33, 257, locateChunks - 1, locateChunks, locateChunks + 1, 5*locateChunks + 77, 40 * locateChunks} {
		blocks := (chunks + locateChunks - 1) / locateChunks
		container := (64 + 8*blocks + 31) / 16 * 16
		offsets := (container + 64 + 11*chunks + 64 + 15) / 16 * 16
		before := bytes.Repeat([]byte{untouched}, offsets+8*chunks+64)
		clear(before[64 : 64+8*blocks])
		n := (chunks-1)*codec.ChunkBytes + 1 + r.IntN(codec.ChunkBytes)
		want, at := bytes.Clone(before), uint64(codec.PayloadsAt(n))
		for i := range chunks {
			length := 1 + r.IntN(codec.ChunkBytes)
			binary.LittleEndian.PutUint16(before[container+64+8*chunks+2*i:], uint16(length))
			binary.LittleEndian.PutUint64(want[offsets+8*i:], at)
			at += uint64(length+15) / 16 * 16
		}
		p := locating{Bytes: uint64(n), Container: uint64(there + container), State: uint64(there + 64), Offsets: uint64(there + offsets)}
		after := s.run(before, []Launch{{Kernel: "velocpy_locate", Blocks: blocks, Threads: codecThreads, Parameter: parameter(t, p)}})
		copy(want[64:64+8*blocks], after[64:])
		copy(want[container:offsets-16], before[container:])
		sameBytes(t, after, want)
	}
}
