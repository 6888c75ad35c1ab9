// Package dataindex is what a data file says of what lies in it: frames, one behind the other in areas at the file's front.
//
// A frame of an index stands alone: its payload is a record of the catalog (package catalog) with all definitions that it relies on, so that damage to a frame
// costs what that one says. Such frames repeat what the catalog says. They are read when that is lost. A frame of a commit area is a batch that the catalog
// does not have yet.
//
// The package is pure: bytes in, bytes out. docs/format.md describes them.
package dataindex

import (
	"encoding/binary"
	"iter"

	"github.com/zeebo/xxh3"
)

// Area is what frames stand in.
type Area string

const (
	Index   Area = "VELOCIDX"
	Commits Area = "VELOCCMT"
)

const (
	headBytes = 64
	headSum   = 56 // where the checksum of a head stands
	grain     = 8  // frames begin at multiples of it
)

// File is an area of a data file. A frame vouches for it, and for where in the area it stands: what got there from elsewhere is no frame.
type File struct {
	Area   Area
	Store  [16]byte
	Number uint64 // from 1 on
}

// Frame is one that was found.
type Frame struct {
	Generation uint64 // of the index: it is written anew in turns, in one half and in the other. In a commit area, the last batch of the catalog
	From, End  int64  // in the area
	Payload    []byte // part of what was read
}

// Length is that of the frame of a payload.
func Length(payload int) int64 { return headBytes + (int64(payload)+grain-1)/grain*grain }

// Append appends the frame of a payload that is to stand at an offset, a multiple of 8, in the area.
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

// sumOf is the checksum of a head that stands at an offset.
func sumOf(head []byte, at int64) uint64 {
	var p [headSum + 8]byte
	copy(p[:], head[:headSum])
	binary.LittleEndian.PutUint64(p[headSum:], uint64(at))
	return xxh3.Hash(p[:])
}

// mostHashed is how often as many bytes as there are may be hashed for payloads that are not right: heads may be made so that each asks for all of them.
const mostHashed = 16

// Frames are the whole frames in a part of an area that begins at an offset, ascending. They share nothing: the next one is looked for behind the one before.
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

// Begun tells whether a frame of a generation was written to the beginning of p, whether or not it is whole, and its checksums right.
func (f File) Begun(p []byte, generation uint64) bool {
	return len(p) >= headBytes && string(p[:len(f.Area)]) == string(f.Area) && f.owns(p) && binary.LittleEndian.Uint64(p[8:]) == generation
}

// owns tells whether a head names the file.
func (f File) owns(head []byte) bool {
	return [16]byte(head[16:32]) == f.Store && binary.LittleEndian.Uint64(head[32:]) == f.Number
}

// frame is the one at the beginning of p, without a payload if there is none, and how many bytes were hashed to see that.
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
