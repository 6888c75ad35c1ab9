// Package plan keeps the restore order of one history: the queue of hints that the application gave, or, when it gave none,
// a guess from what it restored so far.
//
// The package is pure: no goroutines, no clock, no locks. Its caller serialises the calls. Everything it says is advice:
// the application may restore what it likes, whenever it likes, and no answer given here can make that wrong.
package plan

import (
	"hash/maphash"
	"math/bits"

	"velocpy/gocore/model"
)

var textSeed = maphash.MakeSeed()

// tagOf condenses a key to 32 bits, never zero, of which a table uses all but the lowest to place it.
func tagOf(k model.Key) uint32 {
	if k.IsText {
		return uint32(maphash.String(textSeed, k.Text)>>32) | 1
	}
	// Multiplying into 128 bits and folding them spreads runs and strides of numbers alike.
	hi, lo := bits.Mul64(uint64(k.Number)^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return uint32((hi^lo)>>32) | 1
}
