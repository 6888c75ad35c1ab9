package object

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

const (
	// leastPacked is the length from which on a body is compressed: a frame of fewer bytes saves nothing on a tier, which stores whole blocks.
	leastPacked = 200
	// packWindow bounds the memory of an encoder.
	packWindow = 1 << 20
	// mostRatio is what Zstandard can reach: a block of at most 128 KiB takes 4 bytes at least. A length that claims more is refused before memory is allocated.
	mostRatio = 1 << 15
)

// Encoders and decoders have tables of more than a megabyte, and small objects are frequent: they are used again. Each works in the goroutine of its caller.
var (
	encoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false)) // the header has a checksum of the body
		if err != nil {
			panic(err) // the options are right, or no test passes
		}
		return e
	}}
	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(model.MostMeta),
			zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(err)
		}
		return d
	}}
)

// body says where the bytes of a checkpoint lie.
type body struct {
	form   form
	stored []byte
	plain  int64 // length before it was compressed
}

// newBody makes plain bytes of a form the body of a checkpoint's metadata.
func newBody(checkpoint uint32, form form, plain []byte) (body, error) {
	if most := int64(model.MostMeta - headerBytes); int64(len(plain)) > most {
		return body{}, fmt.Errorf("%w: the metadata of checkpoint %d have more than %s", difference.ErrLimit, checkpoint, quantity.Exact(most))
	}
	stored, err := pack(form, plain)
	return body{form, stored, int64(len(plain))}, err
}

// pack returns a body as it is stored: compressed, if that makes it shorter.
func pack(form form, plain []byte) ([]byte, error) {
	if len(plain) < leastPacked {
		return plain, nil
	}
	columns := plain
	if form == formDifference {
		var err error
		if columns, err = difference.Transpose(plain); err != nil {
			return nil, err
		}
	}
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	if packed := e.EncodeAll(columns, nil); len(packed) < len(plain) {
		return packed, nil
	}
	return plain, nil
}

// unpack returns the plain bytes of a stored body, whose checksum is right. Any bytes are safe: no more memory is allocated than for the length that the
// header says, a copy of so many, and the decoder's tables and window.
func (h *head) unpack(body []byte) ([]byte, error) {
	if h.plain == h.body {
		return body, nil
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	plain, err := d.DecodeAll(body, make([]byte, 0, h.plain))
	if err != nil {
		return nil, fmt.Errorf("%w: the compressed body: %w", ErrFormat, err)
	}
	if int64(len(plain)) != h.plain {
		return nil, fmt.Errorf("%w: the compressed body has %s", ErrFormat, quantity.Exact(int64(len(plain))))
	}
	if h.form == formDifference {
		return difference.Untranspose(plain)
	}
	return plain, nil
}
