package difference

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const wordBytes = 8 // of an entry, and of a source

// Transpose returns metadata of AppendMetadata with the entries in columns, for a compressor. The length stays, and so does all before and behind the entries.
// Positions become differences, and then each byte of an entry lies beside the same byte of the next one (docs/deduplication-format.md, section Body).
func Transpose(p []byte) ([]byte, error) {
	lists, err := listsOf(p)
	if err != nil {
		return nil, err
	}
	to := slices.Clone(p)
	for _, l := range lists {
		l.columns(to, p)
	}
	return to, nil
}

// Untranspose returns the metadata that Transpose was given. Any bytes are safe: those that Transpose does not return give ErrFormat, or metadata that
// ParseMetadata refuses.
func Untranspose(p []byte) ([]byte, error) {
	lists, err := listsOf(p)
	if err != nil {
		return nil, err
	}
	to := slices.Clone(p)
	for _, l := range lists {
		l.rows(to, p)
	}
	return to, nil
}

// list is where words lie in the metadata: as rows, each stride bytes behind the one before, and as columns.
type list struct {
	n           int
	row, stride int
	column      int
	ascending   bool // the words are entries: their positions ascend
}

// listsOf returns the lists of metadata: first occurrences, shifted duplicates, and their sources.
func listsOf(p []byte) ([]list, error) {
	if len(p) < headerBytes+sumBytes {
		return nil, fmt.Errorf("%w: the metadata ends at %d", ErrFormat, len(p))
	}
	room := uint64(len(p) - headerBytes - sumBytes)
	first, shifted := binary.LittleEndian.Uint64(p[32:]), binary.LittleEndian.Uint64(p[40:])
	if first > room/firstBytes || shifted > (room-first*firstBytes)/shiftBytes {
		return nil, fmt.Errorf("%w: %d and %d entries in metadata that ends at %d", ErrFormat, first, shifted, len(p))
	}
	f, g := int(first), int(shifted)
	second := len(p) - sumBytes - g*shiftBytes
	begin := second - f*firstBytes
	return []list{
		{n: f, row: begin, stride: firstBytes, column: begin, ascending: true},
		{n: g, row: second, stride: shiftBytes, column: second, ascending: true},
		{n: g, row: second + wordBytes, stride: shiftBytes, column: second + g*wordBytes},
	}, nil
}

// columns writes the rows of p as columns.
func (l *list) columns(to, p []byte) {
	before := uint64(0)
	for i := range l.n {
		w := binary.LittleEndian.Uint64(p[l.row+i*l.stride:])
		if l.ascending {
			w, before = w-before, w&^MaxRun
		}
		for b := range wordBytes {
			to[l.column+b*l.n+i] = byte(w >> (8 * b))
		}
	}
}

// rows writes the columns of p as rows.
func (l *list) rows(to, p []byte) {
	before := uint64(0)
	for i := range l.n {
		w := uint64(0)
		for b := range wordBytes {
			w |= uint64(p[l.column+b*l.n+i]) << (8 * b)
		}
		if l.ascending {
			w += before
			before = w &^ MaxRun
		}
		binary.LittleEndian.PutUint64(to[l.row+i*l.stride:], w)
	}
}
