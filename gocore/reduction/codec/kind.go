package codec

import "fmt"

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

// check returns ErrKind for a kind that is none of the list.
func (k Kind) check() error {
	switch k {
	case Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64:
		return nil
	}
	return fmt.Errorf("%w: words of %d B with %d bits of exponent", ErrKind, k.Word, k.Exponent)
}
