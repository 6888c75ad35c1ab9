// Package description checks the description of a checkpoint by a client: the text of a layout, which names and types the regions, and the meta.
// docs/format.md defines both.
//
// A store may come from an untrusted source. The client builds arrays over mapped memory from a description, so a wrong size in it is an access
// outside of the mapping. The store, the check of a directory and its inspection all call this package before a client reads a description.
//
// The package is pure. Its memory is proportional to the text, its time to the text and the depth of nesting.
package description

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"velocpy/gocore/model"
)

// ErrMalformed: the text does not describe the layout, or the meta is invalid.
var ErrMalformed = errors.New("the description is malformed")

const (
	magic   = 'L'
	version = 2
	// regionBytes is the least size of a region: all its fields, with an empty name, an empty dtype and no axes.
	regionBytes = 4 + 1 + 4 + 4 + 8 + 1 + 1 + 8 + 8
	mostAxes    = 64      // NumPy's limit
	mostPlace   = 1 << 16 // from the contract (velocpy_abi.h)
	mostItem    = math.MaxInt32
	alignment   = 64      // of regions in the slot: libraries load several elements at once, from addresses that must be multiples of their total size
	mostEmpty   = 1 << 24 // elements without bytes in one region: a client may visit each
)

// Libraries of arrays; see docs/format.md.
const (
	numpy  = 0
	torch  = 1
	newest = 4
)

// Kinds of a description: how its regions are named, and how a client presents them.
const (
	mappingKind  = 0 // by their names
	sequenceKind = 1 // by their numbers
	treeKind     = 2 // by their names; the text of a structure follows them
)

// Orders of the elements.
const (
	orderC       = 0
	orderFortran = 1
	orderListed  = 2
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrMalformed)
}

// Check tells whether the text of a layout describes its regions. Package catalog must have accepted the layout itself.
func Check(l *model.Layout) error {
	f := fields{p: l.Text}
	if f.u8() != magic || f.u8() != version {
		return malformed("the text does not begin as a description of version %d", version)
	}
	kind, count := f.u8(), f.u32()
	switch {
	case f.short || kind > treeKind:
		return malformed("the head is cut off, or says %d where 0 to %d are known", kind, treeKind)
	case int64(count) != int64(len(l.Spans)):
		return malformed("%d regions are described, and the layout has %d", count, len(l.Spans))
	case int64(count) > int64(len(f.p)/regionBytes):
		return malformed("%d bytes are too few for %d regions", len(f.p), count)
	}
	names := map[string]bool{}
	for i, span := range l.Spans {
		name, err := f.region(span)
		switch {
		case err != nil:
		case kind == sequenceKind && name != "":
			err = malformed("it has the name %.80q in a sequence", name)
		case kind != sequenceKind && names[name]:
			err = malformed("another region has the name %.80q too", name)
		}
		if err != nil {
			return fmt.Errorf("region %d: %w", i, err)
		}
		if kind != sequenceKind {
			names[name] = true
		}
	}
	if kind == treeKind {
		_, err := checkTree(f.p, len(l.Spans))
		return err
	}
	if len(f.p) > 0 {
		return malformed("%d bytes are left over", len(f.p))
	}
	return nil
}

// region reads a region, which must be at a span of the slot, and returns its name.
func (f *fields) region(span model.Span) (name string, err error) {
	name = f.text()
	library := f.u8()
	place := int32(f.u32())
	dtype := f.text()
	item := int64(f.u64())
	axes := int(f.u8())
	lengths := f.take(8 * axes)
	order := f.u8()
	listed := ""
	if order == orderListed {
		listed = f.take(axes)
	}
	offset, bytes := int64(f.u64()), int64(f.u64())
	switch {
	case f.short:
		return name, malformed("it is cut off")
	case !wellFormed(name):
		return name, malformed("the name %.80q is no UTF-8", name)
	case library > newest:
		return name, malformed("its library is %d", library)
	case place < 0 || place > mostPlace:
		return name, malformed("its place is %d", place)
	case axes > mostAxes:
		return name, malformed("it has %d axes", axes)
	case order > orderListed || order == orderListed && !permutation(listed):
		return name, malformed("the order of its axes is none")
	case offset%alignment != 0:
		return name, malformed("it begins at %d, which is no multiple of %d", offset, alignment)
	case offset != span.Offset || bytes != span.Bytes:
		return name, malformed("%d bytes at %d are described, and the layout has %d at %d", bytes, offset, span.Bytes, span.Offset)
	}
	size, err := itemBytes(dtype, library)
	if err != nil {
		return name, err
	}
	if size >= 0 && item != size || size < 0 && (item < 1 || item > mostNamedBytes) {
		return name, malformed("an element of dtype %.80q cannot have %d bytes", dtype, item)
	}
	return name, checkBytes(item, lengths, bytes, library)
}

// permutation tells whether each axis occurs once.
func permutation(axes string) bool {
	seen := [mostAxes]bool{}
	for i := range len(axes) {
		a := int(axes[i])
		if a >= len(axes) || a >= mostAxes || seen[a] {
			return false
		}
		seen[a] = true
	}
	return true
}

// checkBytes tells whether as many elements of that size as the axes have take that many bytes.
func checkBytes(item int64, lengths string, bytes int64, library uint8) error {
	product, empty, fits := max(item, 1), false, true
	for ; len(lengths) > 0; lengths = lengths[8:] {
		n := int64(le64(lengths))
		switch {
		case n < 0:
			return malformed("an axis has the length %d", n)
		case n == 0:
			empty = true
		case product > math.MaxInt64/n:
			fits = false
		default:
			product *= n
		}
	}
	if item == 0 && !empty && fits {
		fits, empty = product <= mostEmpty, true
	}
	switch {
	case !fits && !(empty && library == torch): // torch has tensors without elements whose other axes have any length
		return malformed("its axes give too many elements")
	case empty && bytes != 0, !empty && bytes != product:
		return malformed("its %d bytes are not those of its elements", bytes)
	}
	return nil
}

// fields reads numbers and texts from the front. A read beyond the end sets short and returns a zero value.
type fields struct {
	p     string
	short bool
}

func (f *fields) take(n int) string {
	if n > len(f.p) {
		f.short, f.p = true, ""
		return ""
	}
	p := f.p[:n]
	f.p = f.p[n:]
	return p
}

func (f *fields) u8() uint8 {
	if p := f.take(1); p != "" {
		return p[0]
	}
	return 0
}

func (f *fields) u32() uint32 {
	if p := f.take(4); p != "" {
		return le32(p)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if p := f.take(8); p != "" {
		return le64(p)
	}
	return 0
}

// text reads a length and that many bytes.
func (f *fields) text() string {
	n := f.u32()
	if uint64(n) > uint64(len(f.p)) {
		f.short, f.p = true, ""
		return ""
	}
	return f.take(int(n))
}

func le32(p string) uint32 { return binary.LittleEndian.Uint32([]byte(p[:4])) }
func le64(p string) uint64 { return binary.LittleEndian.Uint64([]byte(p[:8])) }
