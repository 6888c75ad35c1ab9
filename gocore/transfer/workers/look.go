package workers

import (
	"bytes"
	"math/rand/v2"

	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
)

// lookAt is how many chunks are compared to learn whether differences may pay: 64 KiB by default, which took 0.05 to 0.2 ms.
const lookAt = 64

// looked compares some chunks of a checkpoint in slot with those of the checkpoint that b reads, at the same places of regions with the same names, and ends b. It
// returns the part of them that is equal; known is false if no chunk can be compared.
func (b *beside) looked(l *model.Layout, slot []byte, chunk int) (equal float64, known bool) {
	defer b.close()
	if !b.enter() {
		return 0, false
	}
	defer b.leave()
	var mine, theirs, common []int64 // offsets in both slots, and bytes that both regions have
	total := int64(0)
	for i, name := range description.Names(l) {
		before, own := b.spans[name], l.Spans[i]
		if n := min(before.Bytes, own.Bytes); n >= int64(chunk) {
			mine, theirs, common = append(mine, own.Offset), append(theirs, before.Offset), append(common, n)
			total += n
		}
	}
	if total == 0 {
		return 0, false
	}
	// The places are random, since what changes may lie at regular distances.
	places, same := rand.New(rand.NewPCG(b.id, uint64(total))), 0
	for range lookAt {
		at, i := places.Int64N(total), 0
		for at >= common[i] {
			at, i = at-common[i], i+1
		}
		at = min(at/int64(chunk)*int64(chunk), common[i]-int64(chunk)) // aligned, as the chunks of a tree are, but for the last one
		x, y := mine[i]+at, theirs[i]+at
		if bytes.Equal(slot[x:x+int64(chunk)], b.slot[y:y+int64(chunk)]) {
			same++
		}
	}
	return float64(same) / lookAt, true
}
