package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"
)

// Twins of the codec's kernels. They use the codec in Go.

// container is one container of a parameter, with the words of its chunks in the scratch memory and the address of its result.
type container struct {
	plain, at, result uint64
	reference         uint64 // 0: none
	bytes, length     int
	words             []uint64
}

// former is a copy of the reference, which the plain bytes may replace; nil if there is none.
func (c *container) former() []byte {
	if c.reference == 0 {
		return nil
	}
	return bytes.Clone(text(c.reference, int64(c.bytes)))
}

// Parts of a container that kernels write or read. They leave its header alone.
const (
	containerHeader = 64
	tableBytes      = 11 // of a chunk
)

func (c *container) tables() int { return containerHeader + tableBytes*len(c.words) }

// codecTwin is the twin of a kernel of the codec; nil if the name is no such kernel's.
func codecTwin(name string) func(blocks, threads int, parameter []byte) error {
	if name == codecClear {
		return twinClear
	}
	work := containerWork(name)
	if work == nil {
		return nil
	}
	return func(blocks, threads int, b []byte) error { return eachContainer(name, blocks, threads, b, work) }
}

// containerWork is what a kernel does with one container; nil if the name is no such kernel's.
func containerWork(name string) func(*container, codec.Modes) error {
	if name == codecLocate {
		return (*container).locate
	}
	plain := strings.TrimSuffix(name, codecReferenced)
	encoded, encodes := strings.CutPrefix(plain, codecEncode)
	decoded, decodes := strings.CutPrefix(plain, codecDecode)
	if kind, known := codecKinds[encoded]; encodes && known {
		return func(c *container, modes codec.Modes) error { return c.encode(kind, modes) }
	}
	if kind, known := codecKinds[decoded]; decodes && known {
		return func(c *container, modes codec.Modes) error { return c.decode(kind, modes) }
	}
	return nil
}

func twinClear(blocks, threads int, b []byte) error {
	if len(b) != clearSize || threads != codecThreads {
		return fmt.Errorf("%d bytes, %d threads: %w", len(b), threads, ErrLaunch)
	}
	words := int(binary.LittleEndian.Uint64(b[8:]))
	if words == 0 || blocks != (words-1)/clearWords+1 {
		return fmt.Errorf("%d blocks for %d words: %w", blocks, words, ErrLaunch)
	}
	clear(text(binary.LittleEndian.Uint64(b), 8*int64(words)))
	return nil
}

// parsed reads a kernel's parameter, without looking at the memory.
func parsed(name string, b []byte) (all []container, modes codec.Modes, scratch uint64, blocks int, err error) {
	referenced := strings.HasSuffix(name, codecReferenced)
	if len(b) != containersSize(referenced) {
		return nil, 0, 0, 0, fmt.Errorf("%d bytes: %w", len(b), ErrLaunch)
	}
	count := int(binary.LittleEndian.Uint32(b[codecCount:]))
	if count == 0 || count > mostContainers {
		return nil, 0, 0, 0, fmt.Errorf("%d containers: %w", count, ErrLaunch)
	}
	results := binary.LittleEndian.Uint64(b[codecResults:])
	for i := range count {
		c := container{
			plain:  binary.LittleEndian.Uint64(b[codecPlain+8*i:]),
			at:     binary.LittleEndian.Uint64(b[codecContainer+8*i:]),
			result: results + 8*uint64(binary.LittleEndian.Uint32(b[codecResult+4*i:])),
			bytes:  int(binary.LittleEndian.Uint32(b[codecBytes+4*i:])),
			length: int(binary.LittleEndian.Uint32(b[codecLength+4*i:])),
		}
		first := binary.LittleEndian.Uint32(b[codecFirst+4*i:])
		if referenced {
			c.reference = binary.LittleEndian.Uint64(b[codecReference+8*i:])
		}
		if referenced && c.reference == 0 {
			return nil, 0, 0, 0, fmt.Errorf("container %d has no reference: %w", i, ErrLaunch)
		}
		if c.bytes == 0 || c.bytes > device.MostContainer || c.at%16 != 0 || int(first) != blocks {
			return nil, 0, 0, 0, fmt.Errorf("container %d of %d bytes at %#x begins with block %d after %d: %w", i, c.bytes, c.at, first, blocks, ErrLaunch)
		}
		blocks += codec.Chunks(c.bytes)
		all = append(all, c)
	}
	if blocks != int(binary.LittleEndian.Uint32(b[codecBlocks:])) {
		return nil, 0, 0, 0, fmt.Errorf("%d blocks: %w", blocks, ErrLaunch)
	}
	return all, codec.Modes(binary.LittleEndian.Uint32(b[codecModes:])), binary.LittleEndian.Uint64(b[codecScratch:]), blocks, nil
}

// eachContainer runs work on the containers of a launch, which has a block for each of them, or for each chunk.
func eachContainer(name string, blocks, threads int, b []byte, work func(*container, codec.Modes) error) error {
	all, modes, scratch, wanted, err := parsed(name, b)
	if err != nil {
		return err
	}
	if name == codecLocate {
		wanted = len(all)
	}
	if blocks != wanted || threads != codecThreads {
		return fmt.Errorf("%d blocks of %d threads for %d: %w", blocks, threads, wanted, ErrLaunch)
	}
	for i := range all {
		c := &all[i]
		c.words = wordsAt(scratch, codec.Chunks(c.bytes))
		if err := work(c, modes); err != nil {
			return err
		}
		scratch += 8 * uint64(len(c.words))
	}
	return nil
}

// Look-back marks the sum of a block and of all before it with this bit.
const lookBackSum = 2 << 62

// encode writes the tables and payloads of a container, its length, and the words of the look-back, which have to be zero before.
func (c *container) encode(k codec.Kind, modes codec.Modes) error {
	for i, word := range c.words {
		if word != 0 {
			return fmt.Errorf("the word of chunk %d is %#x: %w", i, word, ErrLaunch)
		}
	}
	dst := make([]byte, codec.Bound(c.bytes))
	n, err := codec.Encode(dst, text(c.plain, int64(c.bytes)), c.former(), codec.Options{Kind: k, Modes: modes})
	if err != nil {
		return err
	}
	at, payloads := text(c.at, int64(n)), codec.PayloadsAt(c.bytes)
	copy(at[containerHeader:c.tables()], dst[containerHeader:])
	copy(at[payloads:], dst[payloads:n])
	c.sums(dst, func(i int, before, length uint64) { c.words[i] = lookBackSum | (before + length) })
	*(*uint64)(pointer(c.result)) = uint64(n)
	return nil
}

// sums visits the chunks with the sum of the lengths of earlier payloads, and the length of theirs, each rounded up.
func (c *container) sums(bytes []byte, visit func(i int, before, length uint64)) {
	lengths, before := bytes[containerHeader+8*len(c.words):], uint64(0)
	for i := range c.words {
		length := (uint64(binary.LittleEndian.Uint16(lengths[2*i:])) + 15) &^ 15
		visit(i, before, length)
		before += length
	}
}

// locate writes where payloads begin.
func (c *container) locate(codec.Modes) error {
	at := uint64(codec.PayloadsAt(c.bytes))
	c.sums(text(c.at, int64(at)), func(i int, before, _ uint64) { c.words[i] = at + before })
	return nil
}

// decode writes the plain bytes, and 1 to the result of a damaged container. The payloads must have been located.
func (c *container) decode(k codec.Kind, modes codec.Modes) error {
	if least := codec.PayloadsAt(c.bytes); c.length < least {
		return fmt.Errorf("a container of %d bytes with tables of %d: %w", c.length, least, ErrLaunch)
	}
	opened, err := codec.OpenTables(text(c.at, int64(c.length)), k, c.bytes)
	for i := 0; err == nil && i < len(c.words); i++ {
		if at := opened.Payload(i); uint64(at) != c.words[i] {
			return fmt.Errorf("the payload of chunk %d is said to begin at %d, and begins at %d: %w", i, c.words[i], at, ErrLaunch)
		}
		if m := opened.Entry(i).Mode; !modes.Has(m) {
			err = fmt.Errorf("chunk %d has mode %v: %w", i, m, codec.ErrCorrupt)
		}
	}
	if err == nil {
		err = opened.Decode(text(c.plain, int64(c.bytes)), c.former(), 1)
	}
	if err != nil {
		*(*uint64)(pointer(c.result)) = 1
	}
	return nil
}

// codecTouches is Touches for the codec's kernels; false if the name is no such kernel's.
func codecTouches(name string, b []byte) (reads, writes []Range, known bool) {
	if codecTwin(name) == nil {
		return nil, nil, false
	}
	if name == codecClear {
		if len(b) == clearSize {
			writes = []Range{{device.Address(binary.LittleEndian.Uint64(b)), 8 * int64(binary.LittleEndian.Uint64(b[8:]))}}
		}
		return nil, writes, true
	}
	all, _, scratch, blocks, err := parsed(name, b)
	if err != nil {
		return nil, nil, true
	}
	words := Range{device.Address(scratch), 8 * int64(blocks)}
	for _, c := range all {
		plain, result := Range{device.Address(c.plain), int64(c.bytes)}, Range{device.Address(c.result), 8}
		whole := Range{device.Address(c.at), int64(c.length)}
		if c.reference != 0 {
			reads = append(reads, Range{device.Address(c.reference), int64(c.bytes)})
		}
		switch {
		case name == codecLocate:
			tables := containerHeader + tableBytes*int64(codec.Chunks(c.bytes))
			reads = append(reads, Range{whole.At, tables})
		case strings.HasPrefix(name, codecEncode):
			reads = append(reads, plain)
			whole.Bytes = int64(codec.Bound(c.bytes))
			writes = append(writes, whole, result)
		default:
			reads = append(reads, whole)
			writes = append(writes, plain, result)
		}
	}
	if strings.HasPrefix(name, codecDecode) {
		return append(reads, words), writes, true
	}
	return reads, append(writes, words), true
}
