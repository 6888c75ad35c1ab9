package device

import (
	"errors"
	"fmt"

	"velocpy/gocore/reduction/codec"
)

// ErrCodec marks a device that has no kernels of the codec. The text says why and what to do. Everything else works: the caller encodes on the host.
var ErrCodec = errors.New("the accelerator cannot encode")

// ErrContainer marks a Container that no device takes: an error of the caller.
var ErrContainer = errors.New("not a container for a device")

// MostContainer is the largest number of plain bytes of a Container.
const MostContainer = 64 << 20

// containerAlign is the unit in which containers begin, and payloads in them.
const containerAlign = 16

// scratchAlign is the unit of CodecScratch.
const scratchAlign = 256

// Container is a container of package codec in device memory, and the plain bytes that belong to it. The two must not overlap.
type Container struct {
	Plain  Address     // any address; a multiple of 16 is faster
	Bytes  int64       // plain bytes, 1 to MostContainer
	Kind   codec.Kind  // of the elements
	Modes  codec.Modes // Encode: those that are tried. Without a reference its modes are left out
	At     Address     // a multiple of 16; Encode: with room for codec.Bound(Bytes)
	Length int64       // Decode: of the container, codec.PayloadsAt(Bytes) to codec.Bound(Bytes). Nothing behind it is read

	// Reference are as many plain bytes, at any address, with which the container is encoded; 0: none. Decode: a container that was encoded with others is damaged. They
	// may be at Plain, and are replaced then, also if the container is damaged. Apart from that, no container of the same call writes them.
	Reference Address
}

// Lengths are the lengths of containers in bytes, once an event behind the Encode has passed. Either Take or Discard is called then, once; both free
// their memory.
type Lengths interface {
	Take() []int64 // by container
	Discard()
}

// Faults are the containers that a Decode found damaged, once an event behind it has passed. Either Take or Discard is called then, once; both free
// their memory.
type Faults interface {
	Take() (bad []int) // their indices, ascending
	Discard()
}

// CodecScratch is how many bytes of device memory the Encode or Decode of so many containers needs besides, which have so many plain bytes together:
// a multiple of 256, below 0.1 % of the plain bytes for containers of 1 MiB.
func CodecScratch(plain int64, containers int) int64 {
	chunks := plain/codec.ChunkBytes + int64(containers)
	return (8*chunks + scratchAlign - 1) / scratchAlign * scratchAlign
}

// ScratchFor is CodecScratch of these containers.
func ScratchFor(all []Container) int64 {
	plain := int64(0)
	for i := range all {
		plain += all[i].Bytes
	}
	return CodecScratch(plain, len(all))
}

// CheckEncode returns ErrContainer unless all containers can be encoded with this scratch memory. Implementations of Lane call it.
func CheckEncode(all []Container, scratch Address) error {
	return checkContainers(all, scratch, func(c *Container) error {
		if c.Reference != 0 && overlap(c.Reference, c.Bytes, c.At, int64(codec.Bound(int(c.Bytes)))) {
			return fmt.Errorf("%w: its reference at %#x, and it is written at %#x", ErrContainer, c.Reference, c.At)
		}
		return nil
	})
}

// CheckDecode does so for decoding.
func CheckDecode(all []Container, scratch Address) error {
	return checkContainers(all, scratch, func(c *Container) error {
		if least, most := codec.PayloadsAt(int(c.Bytes)), codec.Bound(int(c.Bytes)); c.Length < int64(least) || c.Length > int64(most) {
			return fmt.Errorf("%w: its length %d is not from %d to %d", ErrContainer, c.Length, least, most)
		}
		if c.Reference != 0 && c.Reference != c.Plain && overlap(c.Reference, c.Bytes, c.Plain, c.Bytes) {
			return fmt.Errorf("%w: its reference at %#x is a part of its plain bytes at %#x", ErrContainer, c.Reference, c.Plain)
		}
		return nil
	})
}

// overlap tells whether n bytes at a and m bytes at b have some in common.
func overlap(a Address, n int64, b Address, m int64) bool {
	return a < b+Address(m) && b < a+Address(n)
}

func checkContainers(all []Container, scratch Address, more func(*Container) error) error {
	if scratch%containerAlign != 0 || scratch == 0 && len(all) > 0 {
		return fmt.Errorf("%w: scratch memory at %#x", ErrContainer, scratch)
	}
	for i := range all {
		c := &all[i]
		err := more(c)
		switch {
		case c.Bytes < 1 || c.Bytes > MostContainer:
			err = fmt.Errorf("%w: %d plain bytes are not from 1 to %d", ErrContainer, c.Bytes, MostContainer)
		case !c.Kind.Valid():
			err = fmt.Errorf("%w: %w", ErrContainer, codec.ErrKind)
		case c.At%containerAlign != 0 || c.At == 0 || c.Plain == 0:
			err = fmt.Errorf("%w: at %#x, its plain bytes at %#x", ErrContainer, c.At, c.Plain)
		}
		if err != nil {
			return fmt.Errorf("container %d: %w", i, err)
		}
	}
	return nil
}
