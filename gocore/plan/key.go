// Package plan keeps the restore order of one history: the queue of hints that the application gave, or, when it gave none,
// a guess from what it restored so far.
//
// The package is pure: no goroutines, no clock, no locks. Its caller serialises the calls. Everything it says is advice:
// the application may restore what it likes, whenever it likes, and no answer given here can make that wrong.
package plan

import (
	"hash/maphash"
	"math/bits"
	"strconv"
)

// Key names a checkpoint within its history: a number, or a text when IsText. The field which is not used stays zero, so that
// keys compare with ==.
type Key struct {
	Text   string
	Number int64
	IsText bool
}

// Number returns the key of a numbered checkpoint.
func Number(n int64) Key { return Key{Number: n} }

// Text returns the key of a named checkpoint.
func Text(s string) Key { return Key{Text: s, IsText: true} }

// String is the key as it appears in messages: 7, or "wave speed" in quotes.
func (k Key) String() string {
	if k.IsText {
		return strconv.Quote(k.Text)
	}
	return strconv.FormatInt(k.Number, 10)
}

var textSeed = maphash.MakeSeed()

// tag condenses a key to 32 bits, never zero, of which a table uses all but the lowest to place it.
func (k Key) tag() uint32 {
	if k.IsText {
		return uint32(maphash.String(textSeed, k.Text)>>32) | 1
	}
	// Multiplying into 128 bits and folding them spreads runs and strides of numbers alike.
	hi, lo := bits.Mul64(uint64(k.Number)^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return uint32((hi^lo)>>32) | 1
}
