// Package plan keeps the restore order of one history: the queue of hints from the application, or, without hints, a guess from its restores so far.
//
// The package is pure: no goroutines, no clock, no locks. Its caller serialises the calls. All its answers are advice: the application may restore
// any key at any time, and a wrong answer cannot make that restore wrong.
package plan

import (
	"hash/maphash"
	"math/bits"

	"velocpy/gocore/model"
)

var textSeed = maphash.MakeSeed()

// tagOf condenses a key to 32 bits, never zero. A table uses all but the lowest bit as the key's slot.
func tagOf(k model.Key) uint32 {
	if k.IsText {
		return uint32(maphash.String(textSeed, k.Text)>>32) | 1
	}
	// Multiplying into 128 bits and folding them spreads runs and strides of numbers alike.
	hi, lo := bits.Mul64(uint64(k.Number)^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return uint32((hi^lo)>>32) | 1
}
