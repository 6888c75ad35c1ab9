package codec

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"velocpy/gocore/base/checksum"
)

// Compression is a compressor of the host. It gets the byte planes of a section: the first bytes of all words, then the second ones, and so on.
type Compression uint8

// The compressors.
const (
	NoCompression Compression = iota // containers have chunks
	Zstd
	S2
	Huff0
	compressions
)

// compressor holds what a goroutine needs to compress sections. It is used again, as its tables are large.
type compressor struct {
	planes, packed, other, chunks []byte
	zstd                          *zstd.Encoder
	huff0                         *huff0.Scratch
}

// Each compressor works in the goroutine of its caller. The window is no longer than a section.
var compressors = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(SectionBytes), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), // the tables have a hash
		zstd.WithAllLitEntropyCompression(true)) // planes of exponents have few values, and nothing that repeats
	if err != nil {
		panic(err) // the options are right, or no test passes
	}
	return &compressor{
		planes: make([]byte, SectionBytes), packed: make([]byte, 0, s2.MaxEncodedLen(SectionBytes)), chunks: make([]byte, Bound(SectionBytes)),
		zstd: e, huff0: &huff0.Scratch{Reuse: huff0.ReusePolicyNone},
	}
}}

// encodeSections is Encode for containers of version 2. Of the forms of a section the shortest payload counts.
func encodeSections(dst, plain []byte, o Options) (int, error) {
	all := make([]section, sectionsOf(len(plain)))
	e := compressors.Get().(*compressor)
	defer compressors.Put(e)
	at := sectionsAt(len(all))
	for i := range all {
		from := plain[i*SectionBytes:][:sectionLength(len(plain), i)]
		payload, form, err := e.shortest(from, o)
		if err != nil {
			return 0, err
		}
		all[i] = section{checksum.Leaf(from), at, copy(dst[at:], payload), form}
		end := roundUp(at+len(payload), payloadAlign)
		clear(dst[at+len(payload) : end])
		at = end
	}
	return sealSections(dst, o.Kind, len(plain), all), nil
}

// shortest returns the shortest payload of a section, which is valid until the next call.
func (e *compressor) shortest(plain []byte, o Options) (payload []byte, form sectionForm, err error) {
	payload, form = plain, sectionRaw
	if packed := e.compress(split(e.planes[:len(plain)], plain, int(o.Kind.Word)), int(o.Kind.Word), o.Compression); len(packed) < len(payload) {
		payload, form = packed, o.Compression.form()
	}
	n, err := Encode(e.chunks, plain, nil, Options{Kind: o.Kind, Modes: o.Modes, Goroutines: 1})
	if n < len(payload) {
		payload, form = e.chunks[:n], sectionChunks
	}
	return payload, form, err
}

// form is the form of the payloads that a compressor makes.
func (c Compression) form() sectionForm {
	if c == S2 {
		return sectionSnappy
	}
	return sectionZstd
}

// compress returns the compressed planes of words of so many bytes. Zstandard's form has a frame for each plane: planes have little in common, and of some only
// the codes pay.
func (e *compressor) compress(planes []byte, word int, c Compression) []byte {
	if c == S2 {
		e.packed = s2.EncodeSnappy(e.packed[:cap(e.packed)], planes) // any reader of Snappy knows the format
		return e.packed
	}
	e.packed = e.packed[:0]
	for n := len(planes) / word; len(planes) > 0; {
		plane := planes
		if len(planes) >= 2*n && n > 0 {
			plane = planes[:n] // the last one has what is left behind the words
		}
		planes = planes[len(plane):]
		begin := len(e.packed)
		e.packed = e.literals(plane, e.packed)
		if c == Zstd {
			if e.other = e.zstd.EncodeAll(plane, e.other[:0]); len(e.other) < len(e.packed)-begin {
				e.packed = append(e.packed[:begin], e.other...)
			}
		}
	}
	return e.packed
}

// Parts of a frame of Zstandard (RFC 8878).
const (
	frameOfKnownLength = 0xa0 // one segment, whose length has 4 bytes
	blockRaw           = 0 << 1
	blockRepeated      = 1 << 1
	blockCompressed    = 2 << 1
	blockLast          = 1
	literalsCompressed = 2 | 3<<2 // in 4 streams, both lengths of 18 bits
	literalBlock       = 64 << 10 // bytes of a block; Zstandard allows twice as many
)

// literals appends a frame of Zstandard in whose blocks no bytes repeat: there are literals with Huffman codes alone.
func (e *compressor) literals(plane, to []byte) []byte {
	n := uint32(len(plane))
	to = append(to, 0x28, 0xb5, 0x2f, 0xfd, frameOfKnownLength, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	for len(plane) > 0 {
		part := plane[:min(literalBlock, len(plane))]
		plane = plane[len(part):]
		last := byte(0)
		if len(plane) == 0 {
			last = blockLast
		}
		packed, _, err := huff0.Compress4X(part, e.huff0)
		switch {
		case errors.Is(err, huff0.ErrUseRLE):
			to = append(appendBlock(to, blockRepeated|last, len(part)), part[0])
		case err != nil || len(packed)+6 >= len(part):
			to = append(appendBlock(to, blockRaw|last, len(part)), part...)
		default:
			sizes := uint64(literalsCompressed) | uint64(len(part))<<4 | uint64(len(packed))<<22
			to = appendBlock(to, blockCompressed|last, len(packed)+6)
			to = append(to, byte(sizes), byte(sizes>>8), byte(sizes>>16), byte(sizes>>24), byte(sizes>>32))
			to = append(append(to, packed...), 0) // no sequences
		}
	}
	return to
}

func appendBlock(to []byte, form byte, length int) []byte {
	x := uint32(form) | uint32(length)<<3
	return append(to, byte(x), byte(x>>8), byte(x>>16))
}

// expander holds what a goroutine needs to decode sections.
type expander struct {
	planes, whole []byte
	zstd          *zstd.Decoder
}

var expanders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(SectionBytes),
		zstd.WithDecoderMaxWindow(SectionBytes), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err)
	}
	return &expander{planes: make([]byte, SectionBytes), whole: make([]byte, SectionBytes), zstd: d}
}}

// errSectionLength: a payload has another number of plain bytes than its section.
var errSectionLength = errors.New("the payload has another length")

// expand decodes a payload. Any payload is safe: no more is written than dst has bytes.
func (d *expander) expand(dst, payload []byte, form sectionForm, k Kind) error {
	planes := d.planes[:len(dst)]
	if k.Word == 1 {
		planes = dst
	}
	switch form {
	case sectionRaw:
		copy(dst, payload)
		return nil
	case sectionChunks:
		c, err := Open(payload, len(dst))
		if err == nil && (c.sections != nil || c.reference) {
			err = fmt.Errorf("%w: a container that a section cannot have", ErrCorrupt)
		}
		if err != nil {
			return err
		}
		return c.Decode(dst, nil, 1)
	case sectionZstd: // of frames behind one another
		plain, err := d.zstd.DecodeAll(payload, planes[:0:len(planes)])
		if err != nil || len(plain) != len(planes) {
			return errors.Join(err, errSectionLength)
		}
	case sectionSnappy:
		n, err := s2.DecodedLen(payload)
		if err != nil || n != len(planes) {
			return errors.Join(err, errSectionLength)
		}
		if _, err := s2.Decode(planes, payload); err != nil {
			return err
		}
	}
	join(dst, planes, int(k.Word))
	return nil
}
