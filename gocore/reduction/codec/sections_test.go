package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

var compressed = []Compression{Zstd, S2, Huff0}

// drawSections draws a region of a few sections, whose parts are of different families.
func drawSections(t *rapid.T) (plain []byte, o Options) {
	o = Options{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Modes: AllModes, Compression: rapid.SampledFrom(compressed).Draw(t, "compression")}
	if rapid.Bool().Draw(t, "raw chunks") {
		o.Modes = Only(Raw)
	}
	plain = make([]byte, rapid.OneOf(rapid.SampledFrom([]int{0, 1, 7, 8, 9, SectionBytes - 1, SectionBytes, SectionBytes + 1, 2*SectionBytes + 3*ChunkBytes + 5}),
		rapid.IntRange(0, 3*SectionBytes)).Draw(t, "length"))
	for at := 0; at < len(plain); at += SectionBytes / 2 {
		p := plain[at:min(len(plain), at+SectionBytes/2)]
		if fillFamily(p, o.Kind, rapid.IntRange(0, len(families)-1).Draw(t, "family"), uint64(at)); rapid.Bool().Draw(t, "repeats") {
			copy(p[len(p)/3:], p)
		}
	}
	return plain, o
}

// Any chunks of a container with sections are those of the region, and nothing else is written.
func TestSections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, o := drawSections(t)
		container := encode(t, plain, nil, o)
		if len(container) > Bound(len(plain)) || !bytes.Equal(container, encode(t, plain, nil, o)) {
			t.Fatalf("%d bytes for %d, or not the same ones twice", len(container), len(plain))
		}
		c, err := Open(container, len(plain))
		if err != nil {
			t.Fatal(err)
		}
		if c.Chunks() != Chunks(len(plain)) || c.Together() != chunksOfSection || c.NeedsReference() || c.Kind() != o.Kind || c.Plain() != len(plain) {
			t.Fatalf("%+v", c)
		}
		back := dirty(len(plain))
		if err := Decode(back, container, nil, 2); err != nil || !bytes.Equal(back, plain) {
			t.Fatalf("other bytes, or %v", err)
		}
		for range 3 {
			from := rapid.IntRange(0, c.Chunks()).Draw(t, "from")
			to := rapid.IntRange(from, c.Chunks()).Draw(t, "to")
			want := plain[min(len(plain), from*ChunkBytes):min(len(plain), to*ChunkBytes)]
			room := dirty(len(want) + 64)
			if err := c.DecodeChunks(room[:len(want):len(want)], nil, from, to, 1); err != nil || !bytes.Equal(room[:len(want)], want) || !bytes.Equal(room[len(want):], dirty(64)) {
				t.Fatalf("chunks %d to %d have other bytes, or %v", from, to, err)
			}
		}
	})
}

// Of each form of a section there is one, and no section is longer than its plain bytes.
func TestFormsOfSections(t *testing.T) {
	random := make([]byte, SectionBytes)
	fillFamily(random, Int32, 0, 7)
	words := rand.New(rand.NewPCG(3, 4))
	skewed := make([]byte, SectionBytes) // a Huffman code pays, chunks do not
	for i := range skewed {
		skewed[i] = byte(min(words.IntN(256), words.IntN(256), words.IntN(256), words.IntN(256), words.IntN(256)))
	}
	plain := bytes.Join([][]byte{random, bytes.Repeat(random[:1000], SectionBytes/1000+1)[:SectionBytes], make([]byte, SectionBytes), skewed, ramp(4, 5000)}, nil)
	for compression, want := range map[Compression][]sectionForm{
		Zstd:  {sectionRaw, sectionZstd, sectionZstd, sectionZstd, sectionChunks},
		S2:    {sectionRaw, sectionSnappy, sectionChunks, sectionRaw, sectionChunks},
		Huff0: {sectionRaw, sectionZstd, sectionZstd, sectionZstd, sectionChunks},
	} {
		container := encode(t, plain, nil, Options{Kind: Int32, Modes: AllModes, Compression: compression})
		c, err := Open(container, len(plain))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range c.sections {
			if s.form != want[i] || s.bytes > sectionLength(len(plain), i) {
				t.Errorf("compressor %d, section %d: form %d, %d bytes, not form %d", compression, i, s.form, s.bytes, want[i])
			}
		}
		back := dirty(len(plain))
		if err := Decode(back, container, nil, 1); err != nil || !bytes.Equal(back, plain) {
			t.Errorf("other bytes, or %v", err)
		}
	}
}

// Every bit of a container with sections is noticed, or does not matter.
func TestEveryBitOfSections(t *testing.T) {
	for _, x := range []struct {
		plain []byte
		o     Options
	}{
		{bytes.Repeat([]byte{1, 2, 3, 4, 5}, 41), Options{Kind: Int16, Compression: Zstd}},
		{bytes.Repeat([]byte{1, 2, 3, 4, 5}, 41), Options{Kind: Int32, Compression: S2}},
		{ramp(4, 800), Options{Kind: Int32, Modes: AllModes, Compression: Huff0}},
		{append(ramp(1, 400), make([]byte, 900)...), Options{Kind: Int8, Compression: Huff0}},
		{[]byte{3, 1, 4, 1, 5}, Options{Kind: Float64, Modes: AllModes, Compression: Zstd}},
	} {
		container := encode(t, x.plain, nil, x.o)
		refused := 0
		for bit := range 8 * len(container) {
			flipped := bytes.Clone(container)
			flipped[bit/8] ^= 1 << (bit % 8)
			room := dirty(len(x.plain) + 8)
			switch err := Decode(room[:len(x.plain):len(x.plain)], flipped, nil, 1); {
			case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrLength):
				t.Fatalf("bit %d: %v", bit, err)
			case err == nil && !bytes.Equal(room[:len(x.plain)], x.plain):
				t.Fatalf("bit %d gives other bytes", bit)
			case err != nil:
				refused++
			}
			if !bytes.Equal(room[len(x.plain):], dirty(8)) {
				t.Fatalf("bit %d: bytes behind the destination changed", bit)
			}
		}
		for n := range container {
			if err := Decode(dirty(len(x.plain)), container[:n], nil, 1); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut at %d: %v", n, err)
			}
		}
		if refused < 8*(headerBytes-atZero-16+sectionEntry) {
			t.Errorf("only %d bits of %d were noticed", refused, 8*len(container))
		}
	}
}

// Tables that fit a right hash and no container are refused.
func TestAbsurdSections(t *testing.T) {
	plain := ramp(4, 2*SectionBytes+100)
	good := encode(t, plain, nil, Options{Kind: Int32, Compression: Zstd})
	inner := encode(t, plain[:5000], nil, Options{Kind: Int32, Compression: Zstd})
	at := sectionsAt(3)
	change := map[string]func(p []byte){
		"flags":           func(p []byte) { p[atFlags] = 1 },
		"an unknown form": func(p []byte) { p[headerBytes+36] = byte(sectionForms) },
		"a raw section that is short": func(p []byte) {
			p[headerBytes+36] = byte(sectionRaw)
		},
		"a payload that is long":  func(p []byte) { binary.LittleEndian.PutUint32(p[headerBytes+24:], SectionBytes+1) },
		"a payload beyond":        func(p []byte) { binary.LittleEndian.PutUint32(p[headerBytes+32:], 1<<31) },
		"a kind":                  func(p []byte) { p[atWord] = 3 },
		"another number":          func(p []byte) { binary.LittleEndian.PutUint64(p[atChunks:], 2) },
		"another length":          func(p []byte) { binary.LittleEndian.PutUint64(p[atTotal:], uint64(len(p)+16)) },
		"a payload of other form": func(p []byte) { p[headerBytes+36] = byte(sectionSnappy) },
		"chunks that are none":    func(p []byte) { p[headerBytes+36] = byte(sectionChunks) },
	}
	for what, f := range change {
		p := bytes.Clone(good)
		f(p)
		binary.LittleEndian.PutUint64(p[atHash:], xxh3.Hash(p[atVersion:at]))
		if err := Decode(dirty(len(plain)), p, nil, 1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	room := make([]byte, Bound(5000))
	n := sectionsAt(1)
	copy(room[n:], inner)
	nested := room[:sealSections(room, Int32, 5000, []section{{xxh3.Hash(plain[:5000]), n, len(inner), sectionChunks}})]
	if err := Decode(dirty(5000), nested, nil, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a section that has sections: %v", err)
	}
}

// A payload that claims to become long takes no more memory than a section.
func TestAPayloadThatGrows(t *testing.T) {
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := e.EncodeAll(make([]byte, 64<<20), nil)
	d := expanders.Get().(*expander)
	defer expanders.Put(d)
	for _, n := range []int{1, SectionBytes} {
		room := dirty(n + 8)
		if err := d.expand(room[:n:n], bomb, sectionZstd, Int32); err == nil || !bytes.Equal(room[n:], dirty(8)) {
			t.Errorf("64 MiB in %d bytes: %v", n, err)
		}
	}
}

func TestNoReferenceForSections(t *testing.T) {
	p := make([]byte, 100)
	for _, o := range []Options{{Kind: Int32, Compression: Zstd}, {Kind: Int32, Compression: compressions}} {
		var reference []byte
		if o.Compression == Zstd {
			reference = p
		}
		if _, err := Encode(make([]byte, Bound(100)), p, reference, o); !errors.Is(err, ErrReference) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// BenchmarkSections encodes and decodes by one goroutine; the ratio stands beside that of chunks.
func BenchmarkSections(b *testing.B) {
	for _, s := range samples() {
		if s.reference != nil {
			continue
		}
		for name, c := range map[string]Compression{"chunks": NoCompression, "zstd": Zstd, "s2": S2, "huff0": Huff0} {
			o := Options{Kind: s.kind, Modes: AllModes, Compression: c}
			dst, back := make([]byte, Bound(len(s.plain))), make([]byte, len(s.plain))
			n := 0
			b.Run("encode/"+name+"/"+s.name, func(b *testing.B) {
				b.SetBytes(int64(len(s.plain)))
				for range b.N {
					var err error
					if n, err = Encode(dst, s.plain, nil, o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(s.plain))/float64(n), "ratio")
			})
			b.Run("decode/"+name+"/"+s.name, func(b *testing.B) {
				b.SetBytes(int64(len(s.plain)))
				for range b.N {
					if err := Decode(back, dst[:n], nil, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The byte planes are those of the definition, and make the words again, for words of any number.
func TestBytePlanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "word")
		plain := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "plain")
		want := make([]byte, 0, len(plain))
		for j := range word {
			for i := range len(plain) / word {
				want = append(want, plain[i*word+j])
			}
		}
		want = append(want, plain[len(want):]...)
		got := split(dirty(len(plain)), plain, word)
		if !bytes.Equal(got, want) {
			t.Fatalf("%x, not %x", got, want)
		}
		back := dirty(len(plain))
		if word == 1 {
			back = got
		}
		if join(back, got, word); !bytes.Equal(back, plain) {
			t.Fatalf("%x, not %x", back, plain)
		}
	})
}
