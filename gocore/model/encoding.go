package model

import (
	"errors"
	"fmt"
)

// ErrEncoding marks an encoding that cannot be that of the regions.
var ErrEncoding = errors.New("impossible encoding")

// Bounds of an encoding.
const (
	// PartGrain divides the plain bytes of a container. It is the length of a leaf of the checksums, so that a leaf lies in one container.
	PartGrain = 256 << 10
	// MostPart bounds the plain bytes of a container, and with them the memory of a reader.
	MostPart = 1 << 30
	// ContainerAlign divides the length of a container.
	ContainerAlign = 16
)

// Lengths of the parts of a container in docs/reduction-format.md.
const (
	containerHead  = 64
	containerChunk = 16 << 10 // plain bytes of a chunk
	containerEntry = 11       // bytes of the tables for a chunk
)

// ContainerBound is the largest length of a container of so many plain bytes. It equals codec.Bound, which this package cannot import.
func ContainerBound(plain int64) int64 {
	chunks := (plain + containerChunk - 1) / containerChunk
	return alignUp(containerHead+containerEntry*chunks) + alignUp(plain)
}

func alignUp(n int64) int64 { return (n + ContainerAlign - 1) / ContainerAlign * ContainerAlign }

// Encoding says where the regions of an encoded checkpoint lie: in containers of package codec, one behind the other, region by region. A container has
// Part bytes of one region before they were encoded, the last of a region the rest. An empty region has none. It is immutable.
type Encoding struct {
	Part    int64    // bytes, a multiple of PartGrain
	Lengths []uint32 // of the containers, in their order: bytes, multiples of ContainerAlign
	// Sections: the containers are of the version that has sections. No device decodes them.
	Sections bool
}

// Containers is the number of containers of a region of so many bytes.
func Containers(bytes, part int64) int64 { return (bytes + part - 1) / part }

// Check returns an error unless the encoding can be that of these regions.
func (e *Encoding) Check(regions []Span) error {
	if e.Part < PartGrain || e.Part > MostPart || e.Part%PartGrain != 0 {
		return fmt.Errorf("containers of %d bytes: %w", e.Part, ErrEncoding)
	}
	want := int64(0)
	for _, s := range regions {
		if want += Containers(s.Bytes, e.Part); want > int64(len(e.Lengths)) {
			break
		}
	}
	if want != int64(len(e.Lengths)) {
		return fmt.Errorf("%d containers, the regions have another number: %w", len(e.Lengths), ErrEncoding)
	}
	next := 0
	for _, s := range regions {
		for from := int64(0); from < s.Bytes; from += e.Part {
			plain := min(e.Part, s.Bytes-from)
			if n := e.Lengths[next]; n == 0 || n%ContainerAlign != 0 || int64(n) > ContainerBound(plain) {
				return fmt.Errorf("container %d of %d plain bytes has %d bytes: %w", next, plain, n, ErrEncoding)
			}
			next++
		}
	}
	return nil
}

// Bytes is the length of all containers.
func (e *Encoding) Bytes() (n int64) {
	for _, length := range e.Lengths {
		n += int64(length)
	}
	return n
}

// Container is the place of one container.
type Container struct {
	Region int
	Plain  Span // in the slot of the checkpoint, before the encoding
	At     Span // behind one another from 0 on
}

// Containers are all of them. The encoding has passed Check for these regions.
func (e *Encoding) Containers(regions []Span) (all []Container) {
	e.Each(regions, func(c Container) bool {
		all = append(all, c)
		return true
	})
	return all
}

// Each calls f for the containers in their order, until f returns false. The encoding has passed Check for these regions.
func (e *Encoding) Each(regions []Span, f func(c Container) bool) {
	at, next := int64(0), 0
	for i, s := range regions {
		for from := int64(0); from < s.Bytes; from += e.Part {
			c := Container{i, Span{s.Offset + from, min(e.Part, s.Bytes-from)}, Span{at, int64(e.Lengths[next])}}
			if !f(c) {
				return
			}
			at, next = c.At.End(), next+1
		}
	}
}
