package codec

import (
	"fmt"
	"strings"
)

// Kind is how the bytes of a region are to be read. It decides the ratio; any bytes can be encoded with any kind.
type Kind struct {
	Word     uint8 // bytes of a word: 1, 2, 4 or 8
	Exponent uint8 // bits of a float's exponent; 0 for integers
}

// The kinds.
var (
	Int8     = Kind{Word: 1}
	Int16    = Kind{Word: 2}
	Int32    = Kind{Word: 4}
	Int64    = Kind{Word: 8}
	Float16  = Kind{Word: 2, Exponent: 5}
	BFloat16 = Kind{Word: 2, Exponent: 8}
	Float32  = Kind{Word: 4, Exponent: 8}
	Float64  = Kind{Word: 8, Exponent: 11}
)

// Float tells whether the words are floats.
func (k Kind) Float() bool { return k.Exponent != 0 }

// Valid tells whether the kind is one of the list.
func (k Kind) Valid() bool { return k.check() == nil }

// check returns ErrKind for a kind that is none of the list.
func (k Kind) check() error {
	switch k {
	case Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64:
		return nil
	}
	return fmt.Errorf("%w: words of %d B with %d bits of exponent", ErrKind, k.Word, k.Exponent)
}

// KindOf returns the kind of a region's elements. dtype is a text as in docs/format.md: that of NumPy, or the name of a type that NumPy does not know, behind
// an equals sign. Words of complex numbers are their parts. What has no words in the order of this machine is taken as bytes.
func KindOf(dtype string) Kind {
	switch dtype {
	case "<f2", "=complex32":
		return Float16
	case "=bfloat16":
		return BFloat16
	case "<f4", "<c8":
		return Float32
	case "<f8", "<c16":
		return Float64
	case "<i2", "<u2":
		return Int16
	case "<i4", "<u4":
		return Int32
	case "<i8", "<u8":
		return Int64
	}
	switch {
	case strings.HasPrefix(dtype, "<U"): // texts of 4 bytes a character
		return Int32
	case strings.HasPrefix(dtype, "<M8"), strings.HasPrefix(dtype, "<m8"): // times of 8 bytes
		return Int64
	}
	return Int8
}
