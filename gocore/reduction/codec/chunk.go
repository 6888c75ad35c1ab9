package codec

import (
	"bytes"
	"encoding/binary"

	"velocpy/gocore/base/checksum"
)

// ChunkBytes is the length of the plain bytes of every chunk but the last. The shared memory of a GPU's thread block holds a chunk and its encoding.
const ChunkBytes = 16 << 10

// referenceHead is in front of the bodies of Xrz and Step: the low 32 bits of the hash of the reference's chunk, and 32 zero bits.
const referenceHead = 8

// Entry is what the tables of a container tell of a chunk.
type Entry struct {
	Mode  Mode
	Bytes int    // length of the payload
	Hash  uint64 // XXH3-64 of the plain bytes
}

// Encoder encodes chunks. It is for one goroutine at a time.
type Encoder struct {
	kind  Kind
	modes Modes
	float float

	view    view
	tail    []byte // of the chunk
	chunk   []byte
	former  []byte // the reference's chunk
	diff    differences
	step    differences
	change  [ChunkBytes]byte // the words less those of the reference
	counts  histogram
	codes   codes
	xor     byteplanes
	maps    bitmaps
	padding [2][ChunkBytes]byte
}

// NewEncoder returns an encoder for a kind that uses only the given modes, and Raw. Modes that the kind does not permit are left out.
func NewEncoder(k Kind, modes Modes) (*Encoder, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	e := new(Encoder)
	e.use(k, modes)
	return e, nil
}

// use prepares the encoder for a kind.
func (e *Encoder) use(k Kind, modes Modes) { e.kind, e.modes, e.float = k, modes, floatOf(k) }

// release drops the references to the caller's bytes.
func (e *Encoder) release() { e.view, e.tail, e.chunk, e.former = view{}, nil, nil, nil }

// Chunk encodes a chunk of 1 to ChunkBytes bytes. reference is nil or has the same length. dst has at least the chunk's length, which the payload
// never exceeds, and does not overlap the others.
func (e *Encoder) Chunk(dst, chunk, reference []byte) Entry {
	raceReads(chunk)
	raceReads(reference)
	e.begin(chunk, reference)
	defer e.release()
	best, n := e.choose()
	raceWrites(dst[:n])
	e.write(dst[:n], best)
	return Entry{Mode: best, Bytes: n, Hash: checksum.Leaf(chunk)}
}

// choose returns the mode with the shortest payload, of equal ones the lowest, and the payload's length. It leaves behind what write needs for that mode. It
// does not measure modes that cannot be the one.
func (e *Encoder) choose() (best Mode, length int) {
	best, length = Raw, len(e.chunk)
	allowed := e.allowed()
	take := func(m Mode, n int) {
		if n < length || n == length && m < best {
			best, length = m, n
		}
	}
	if allowed.Has(Const) && e.constant() {
		take(Const, e.measure(Const))
		return best, length // no other mode has a body as short as a word
	}
	if allowed.Has(Xrz) && e.unchanged() {
		return Xrz, e.measure(Xrz)
	}
	for _, m := range [...]Mode{Diff, Xrz, Step, Exp} {
		if allowed.Has(m) && (m != Exp || e.leastExp() <= length) {
			take(m, e.measure(m))
		}
	}
	return best, length
}

// unchanged tells whether a whole chunk equals the reference's. Then no mode but Const is as short as Xrz, whose payload has 12 bytes: without any plane, the
// bodies of Diff and Step have 16 or more.
func (e *Encoder) unchanged() bool {
	return len(e.chunk) == ChunkBytes && bytes.Equal(e.chunk, e.former)
}

// leastExp is the length of the shortest payload of any chunk of this length in mode Exp.
func (e *Encoder) leastExp() int {
	least := codes{bits: 1}
	return least.bytes(&e.float, groups(e.view.words)) + len(e.tail)
}

// allowed are the modes that may be used for the chunk.
func (e *Encoder) allowed() Modes {
	if e.view.words == 0 {
		return Only()
	}
	return e.modes.permitted(e.kind, e.former != nil)
}

// Sizes returns the length of the payload by mode; -1 stands for modes that are not allowed, or cannot encode this chunk.
func (e *Encoder) Sizes(chunk, reference []byte) [ModeCount]int {
	e.begin(chunk, reference)
	defer e.release()
	return e.sizes()
}

// begin takes a chunk. Behind the words of a short one follow zeros up to a whole group.
func (e *Encoder) begin(chunk, reference []byte) {
	size := int(e.kind.Word)
	words := len(chunk) / size
	e.chunk, e.former, e.tail = chunk, reference, chunk[words*size:]
	e.view = view{plain: chunk, reference: reference, words: words, size: size}
	if len(chunk) == ChunkBytes {
		return
	}
	e.view.plain = pad(&e.padding[0], chunk[:words*size], size)
	if reference != nil {
		e.view.reference = pad(&e.padding[1], reference[:words*size], size)
	}
}

// pad copies words and adds zeros up to a whole group.
func pad(room *[ChunkBytes]byte, words []byte, size int) []byte {
	n := groups(len(words)/size) * groupWords * size
	clear(room[copy(room[:], words):n])
	return room[:n]
}

// constant tells whether all words are equal.
func (e *Encoder) constant() bool {
	words := e.chunk[:len(e.chunk)-len(e.tail)]
	return bytes.Equal(words[e.view.size:], words[:len(words)-e.view.size])
}

// sizes measures all allowed modes.
func (e *Encoder) sizes() (n [ModeCount]int) {
	allowed := e.allowed()
	for m := range n {
		if n[m] = -1; allowed.Has(Mode(m)) && (Mode(m) != Const || e.constant()) {
			n[m] = e.measure(Mode(m))
		}
	}
	return n
}

// measure returns the length of the payload in a mode that can encode the chunk, and leaves behind what write needs for it.
func (e *Encoder) measure(m Mode) int {
	v := &e.view
	n := len(e.tail)
	switch m {
	case Const:
		n += v.size
	case Diff:
		n += e.diff.measure(v.plain, v.words, v.size)
	case Exp:
		e.counts.take(&e.float, v)
		e.codes = e.counts.choose(&e.float, v.words)
		n += e.codes.bytes(&e.float, groups(v.words))
	case Xrz:
		n += referenceHead + measureXor(&e.xor, &e.maps, v)
	case Step:
		n += referenceHead + e.step.measure(e.changes(), v.words, v.size)
	default:
		n = len(e.chunk)
	}
	return n
}

// changes computes the words less those of the reference.
func (e *Encoder) changes() []byte {
	x := e.change[:len(e.view.plain)]
	switch e.view.size {
	case 1:
		subtractWords[uint8](x, e.view.plain, e.view.reference)
	case 2:
		subtractWords[uint16](x, e.view.plain, e.view.reference)
	case 4:
		subtractWords[uint32](x, e.view.plain, e.view.reference)
	default:
		subtractWords[uint64](x, e.view.plain, e.view.reference)
	}
	return x
}

// write writes the payload in a mode that was measured; dst has its length.
func (e *Encoder) write(dst []byte, m Mode) {
	if m == Raw {
		copy(dst, e.chunk)
		return
	}
	body := dst[:len(dst)-len(e.tail)]
	copy(dst[len(body):], e.tail)
	if m.referenced() {
		binary.LittleEndian.PutUint64(body, checksum.Leaf(e.former)&0xffffffff)
		body = body[referenceHead:]
	}
	switch m {
	case Const:
		copy(body, e.chunk)
	case Diff:
		e.diff.write(body, wordAt(e.view.plain, e.view.size), e.view.size)
	case Exp:
		writeExp(body, &e.codes, &e.float, &e.view)
	case Xrz:
		writeXor(body, &e.xor, &e.maps, &e.view)
	case Step:
		e.step.write(body, wordAt(e.change[:], e.view.size), e.view.size)
	}
}

// decoder decodes chunks. It is for one goroutine at a time.
type decoder struct {
	widths  widths
	xor     byteplanes
	maps    bitmaps
	padding [2][ChunkBytes]byte
}

// chunk writes the plain bytes of a payload to dst, which has their length. reference has the same length, or is nil if the mode needs none. It
// returns false if the payload is malformed; dst may then hold anything.
func (d *decoder) chunk(dst, payload, reference []byte, m Mode, k Kind) bool {
	size := int(k.Word)
	words := len(dst) / size
	tail := dst[words*size:]
	if m == Raw {
		return len(payload) == len(dst) && copy(dst, payload) == len(dst)
	}
	if words == 0 || len(payload) < len(tail) {
		return false
	}
	body := payload[:len(payload)-len(tail)]
	v := view{plain: dst, words: words, size: size}
	if m.referenced() {
		if len(body) < referenceHead || binary.LittleEndian.Uint32(body[4:]) != 0 {
			return false
		}
		body, v.reference = body[referenceHead:], reference
		raceReads(reference)
	}
	raceWrites(dst)
	if len(dst) != ChunkBytes {
		d.pad(&v)
	}
	if !d.words(&v, body, m, k) {
		return false
	}
	if len(dst) != ChunkBytes {
		copy(dst, v.plain[:words*size])
	}
	copy(tail, payload[len(payload)-len(tail):])
	return true
}

// pad lets a view of a short chunk refer to whole groups.
func (d *decoder) pad(v *view) {
	v.plain = d.padding[0][:groups(v.words)*groupWords*v.size]
	if v.reference != nil {
		v.reference = pad(&d.padding[1], v.reference[:v.words*v.size], v.size)
	}
}

// words decodes the words of a chunk.
func (d *decoder) words(v *view, body []byte, m Mode, k Kind) bool {
	switch m {
	case Const:
		return len(body) == v.size && fill(v.plain, body)
	case Diff, Step:
		return readDiff(v, &d.widths, body)
	case Exp:
		f := floatOf(k)
		return k.Float() && readExp(v, &f, body)
	case Xrz:
		return readXor(v, &d.xor, &d.maps, body)
	}
	return false
}

// fill repeats a word.
func fill(dst, word []byte) bool {
	for n := copy(dst, word); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
	return true
}
