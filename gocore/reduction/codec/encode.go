package codec

import (
	"fmt"
	"sync"
)

// Options are the options of Encode.
type Options struct {
	Kind       Kind
	Modes      Modes // the allowed modes; AllModes if in doubt. Raw is always allowed
	Goroutines int   // how many encode; at least one does. The result is the same for any number
	// Compression makes containers of version 2: each section gets the shorter one of what this compressor makes of it, and of chunks. There must be no reference.
	// One goroutine encodes.
	Compression Compression
}

// Encode writes the container of a region into dst, which has at least Bound(len(plain)) bytes, and returns its length. reference is nil, or the same region in
// an earlier checkpoint. It must have the same length, and be there again for decoding. plain and reference must not change meanwhile, nor
// overlap dst.
func Encode(dst, plain, reference []byte, o Options) (int, error) {
	if err := o.Kind.check(); err != nil {
		return 0, err
	}
	if len(dst) < Bound(len(plain)) {
		return 0, fmt.Errorf("%w: a destination of %d B, not %d B", ErrLength, len(dst), Bound(len(plain)))
	}
	if reference != nil && len(reference) != len(plain) {
		return 0, fmt.Errorf("%w: it has %d B, and the region %d B", ErrReference, len(reference), len(plain))
	}
	if o.Compression != NoCompression {
		if o.Compression >= compressions || reference != nil {
			return 0, fmt.Errorf("%w: there is none for compressor %d", ErrReference, o.Compression)
		}
		return encodeSections(dst, plain, o)
	}
	chunks := Chunks(len(plain))
	entries := make([]Entry, chunks)
	runs := divide(chunks, o.Goroutines)
	lengths := make([]int, len(runs))
	err := each(runs, func(i int, r run) error {
		lengths[i] = encodeRun(dst, plain, reference, o, r, entries)
		return nil
	})
	if err != nil {
		return 0, err
	}
	joinRuns(dst[payloadsAt(chunks):], runs, lengths)
	return Seal(dst, o.Kind, len(plain), entries)
}

// encoders are encoders not in use.
var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// encodeRun encodes neighbouring chunks. Their payloads lie one behind the other from where the plain bytes would be, so that runs cannot meet.
func encodeRun(dst, plain, reference []byte, o Options, r run, entries []Entry) (length int) {
	e := encoders.Get().(*Encoder)
	e.use(o.Kind, o.Modes)
	room := dst[payloadsAt(len(entries))+r.from*ChunkBytes:]
	for i := r.from; i < r.to; i++ {
		entries[i] = e.Chunk(room[length:], part(plain, i), part(reference, i))
		length += roundUp(entries[i].Bytes, payloadAlign)
	}
	encoders.Put(e)
	return length
}

// part is chunk i of a region, nil if there is no region.
func part(region []byte, i int) []byte {
	if region == nil {
		return nil
	}
	n := chunkLength(len(region), i)
	return region[i*ChunkBytes : i*ChunkBytes+n : i*ChunkBytes+n]
}

// joinRuns moves the payloads of all runs together.
func joinRuns(payloads []byte, runs []run, lengths []int) {
	at := 0
	for i, r := range runs {
		from := r.from * ChunkBytes
		if from != at {
			copy(payloads[at:], payloads[from:from+lengths[i]])
		}
		at += lengths[i]
	}
}
