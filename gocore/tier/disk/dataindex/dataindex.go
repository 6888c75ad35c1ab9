// Package dataindex encodes the index and the commit area of a data file: sequences of frames in areas at the file's front.
//
// The payload of an index frame is a record of the catalog (package catalog) with all definitions that it relies on. So damage to a frame costs only its
// own record. Index frames repeat the catalog, and are read when the catalog is lost. A frame of a commit area is a batch that the catalog does not have
// yet.
//
// The package is pure: bytes in, bytes out. docs/format.md describes them.
package dataindex

import (
	"encoding/binary"
	"iter"

	"github.com/zeebo/xxh3"
)

// Area is the kind of area that has the frames.
type Area string

const (
	Index   Area = "VELOCIDX"
	Commits Area = "VELOCCMT"
)

const (
	headBytes = 64
	headSum   = 56 // offset of the checksum in a head
	grain     = 8  // alignment of frames
)

// File identifies an area of a data file. The checksum of a frame covers this identity and the frame's offset, so a misplaced copy is not a frame.
type File struct {
	Area   Area
	Store  [16]byte
	Number uint64 // from 1
}

// Frame is a frame that was found.
type Frame struct {
	Generation uint64 // of an index: counts its rewrites, which alternate between the halves. Of a commit area: the last batch of the catalog
	From, End  int64  // in the area
	Payload    []byte // a part of the buffer that was read
}

// Length is the length of a frame by that of its payload.
func Length(payload int) int64 { return headBytes + (int64(payload)+grain-1)/grain*grain }

// Append appends the frame of a payload for offset at of the area, a multiple of 8.
func (f File) Append(to []byte, generation uint64, at int64, payload []byte) []byte {
	start := len(to)
	to = append(to, f.Area...)
	to = binary.LittleEndian.AppendUint64(to, generation)
	to = append(to, f.Store[:]...)
	to = binary.LittleEndian.AppendUint64(to, f.Number)
	to = binary.LittleEndian.AppendUint64(to, uint64(len(payload)))
	to = binary.LittleEndian.AppendUint64(to, xxh3.Hash(payload))
	to = binary.LittleEndian.AppendUint64(to, sumOf(to[start:], at))
	to = append(to, payload...)
	return append(to, make([]byte, Length(len(payload))-headBytes-int64(len(payload)))...)
}

// sumOf is the checksum of a head at an offset.
func sumOf(head []byte, at int64) uint64 {
	var p [headSum + 8]byte
	copy(p[:], head[:headSum])
	binary.LittleEndian.PutUint64(p[headSum:], uint64(at))
	return xxh3.Hash(p[:])
}

// mostHashed bounds the bytes hashed for invalid payloads, as a multiple of the input: forged heads may each claim all of it.
const mostHashed = 16

// Frames yields the complete frames in a part of an area that begins at offset from, ascending. They do not overlap: the search continues after each frame.
func (f File) Frames(p []byte, from int64) iter.Seq[Frame] {
	return func(yield func(Frame) bool) {
		wasted := int64(0)
		for at := 0; at+headBytes <= len(p); {
			if string(p[at:at+len(f.Area)]) != string(f.Area) {
				at += grain
				continue
			}
			found, n := f.frame(p[at:], from+int64(at))
			if found.Payload == nil {
				if wasted += n; wasted > mostHashed*int64(len(p)) {
					return
				}
				at += grain
				continue
			}
			if !yield(found) {
				return
			}
			at += int(found.End - found.From)
		}
	}
}

// Begun tells whether a frame of a generation was begun at the start of p, complete or not, whatever its checksums.
func (f File) Begun(p []byte, generation uint64) bool {
	return len(p) >= headBytes && string(p[:len(f.Area)]) == string(f.Area) && f.owns(p) && binary.LittleEndian.Uint64(p[8:]) == generation
}

// owns tells whether a head names the file.
func (f File) owns(head []byte) bool {
	return [16]byte(head[16:32]) == f.Store && binary.LittleEndian.Uint64(head[32:]) == f.Number
}

// frame parses the frame at the beginning of p. It has no payload if there is none; hashed is then the number of bytes that were hashed.
func (f File) frame(p []byte, at int64) (found Frame, hashed int64) {
	length := binary.LittleEndian.Uint64(p[40:])
	switch {
	case binary.LittleEndian.Uint64(p[headSum:]) != sumOf(p, at), !f.owns(p):
		return found, headBytes
	case length > uint64(len(p)-headBytes):
		return found, headBytes
	}
	payload := p[headBytes : headBytes+length : headBytes+length]
	if binary.LittleEndian.Uint64(p[48:]) != xxh3.Hash(payload) {
		return found, headBytes + int64(length)
	}
	end := at + min(Length(len(payload)), int64(len(p)))
	return Frame{Generation: binary.LittleEndian.Uint64(p[8:]), From: at, End: end, Payload: payload}, 0
}
