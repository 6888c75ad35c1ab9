package difference

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// Layout of the metadata (docs/deduplication-format.md).
const (
	magic       = "VELOCDIF"
	version     = 1
	headerBytes = 80
	regionBytes = 24
	firstBytes  = 8
	shiftBytes  = 16
	sumBytes    = 8
	flagBase    = 1

	extentBits = 24 // of an entry; the position has the other 40
	offsetBits = 48 // of a source; the index of the reference has 15
	repeatBit  = 1 << 15
)

func padded(n uint64) uint64 { return (n + 7) &^ 7 }

// MetadataBytes is the length of the serialised metadata, where the first occurrences begin.
func (d *Difference) MetadataBytes() uint64 {
	names := 0
	for i := range d.Regions {
		names += len(d.Regions[i].Name)
	}
	return headerBytes + regionBytes*uint64(len(d.Regions)) + padded(uint64(names)) + padded(4*uint64(len(d.References))) +
		padded(uint64(len(d.Changed))) + firstBytes*uint64(len(d.First)) + shiftBytes*uint64(len(d.Shifted)) + sumBytes
}

// Append appends the serialised difference. It fails with ErrLimit or ErrFormat if Parse would refuse the result.
func (d *Difference) Append(to []byte) ([]byte, error) {
	if err := d.check(uint64(len(d.Data))); err != nil {
		return to, err
	}
	to = slices.Grow(to, int(d.MetadataBytes())+len(d.Data))
	to, err := d.appendMetadata(to)
	if err != nil {
		return to, err
	}
	return append(to, d.Data...), nil
}

// AppendMetadata is Append without the first occurrences, also for a difference that they were left out of.
func (d *Difference) AppendMetadata(to []byte) ([]byte, error) {
	if err := d.check(d.lengthOfData()); err != nil {
		return to, err
	}
	return d.appendMetadata(slices.Grow(to, int(d.MetadataBytes())))
}

func (d *Difference) appendMetadata(to []byte) ([]byte, error) {
	start := len(to)
	to = d.appendHeader(to)
	to = d.appendRegions(to)
	for _, c := range d.References {
		to = binary.LittleEndian.AppendUint32(to, c)
	}
	to = pad(to, start)
	to = pad(append(to, d.Changed...), start)
	for _, e := range d.First {
		to = binary.LittleEndian.AppendUint64(to, e.Position<<extentBits|uint64(e.Extent))
	}
	for i := range d.Shifted {
		s := &d.Shifted[i]
		index := uint64(0) // this checkpoint
		if s.Checkpoint != d.Checkpoint {
			at, ok := slices.BinarySearch(d.References, s.Checkpoint)
			if !ok {
				return to[:start], fmt.Errorf("%w: a source in checkpoint %d, which is no reference", ErrFormat, s.Checkpoint)
			}
			index = uint64(at + 1)
		}
		if s.Repeat {
			index |= repeatBit
		}
		to = binary.LittleEndian.AppendUint64(to, s.Position<<extentBits|uint64(s.Extent))
		to = binary.LittleEndian.AppendUint64(to, index<<offsetBits|s.Offset)
	}
	return binary.LittleEndian.AppendUint64(to, xxh3.Hash(to[start:])), nil
}

func pad(to []byte, start int) []byte {
	for (len(to)-start)%8 != 0 {
		to = append(to, 0)
	}
	return to
}

func (d *Difference) appendHeader(to []byte) []byte {
	le := binary.LittleEndian
	var flags byte
	if d.HasBase {
		flags = flagBase
	}
	names := 0
	for i := range d.Regions {
		names += len(d.Regions[i].Name)
	}
	to = le.AppendUint32(append(to, magic...), version)
	to = append(to, byte(d.Method), byte(d.Kind), chunkShift(d.Chunk), flags)
	to = le.AppendUint32(to, d.Checkpoint)
	to = le.AppendUint32(to, d.Base)
	to = le.AppendUint32(to, uint32(len(d.Regions)))
	to = le.AppendUint32(to, uint32(len(d.References)))
	to = le.AppendUint64(to, uint64(len(d.First)))
	to = le.AppendUint64(to, uint64(len(d.Shifted)))
	to = le.AppendUint64(to, d.lengthOfData())
	to = le.AppendUint64(to, d.MetadataBytes())
	to = le.AppendUint64(to, d.Seed)
	return le.AppendUint64(to, uint64(names))
}

func (d *Difference) appendRegions(to []byte) []byte {
	names := make([]byte, 0, 64)
	for i := range d.Regions {
		r := &d.Regions[i]
		to = binary.LittleEndian.AppendUint64(to, r.Size)
		to = binary.LittleEndian.AppendUint64(to, r.Checksum)
		to = binary.LittleEndian.AppendUint64(to, uint64(len(r.Name)))
		names = append(names, r.Name...)
	}
	return pad(append(to, names...), len(to))
}

func chunkShift(chunk int) byte {
	shift := byte(0)
	for 1<<shift < chunk {
		shift++
	}
	return shift
}
