package record

import (
	"slices"
	"testing"

	"velocpy/gocore/reduction/digest"
)

// Several checkpoints are forgotten as one after the other, and the record knows which are left.
func TestForgetSeveral(t *testing.T) {
	together, apart := New(Memory(500)), New(Memory(500))
	for i := range uint64(400) {
		p := Place{Checkpoint: uint32(i % 7), Offset: i, Bytes: 1}
		together.Insert(digest.Digest{Lo: i * i}, p)
		apart.Insert(digest.Digest{Lo: i * i}, p)
	}
	together.Forget(2, 5, 100)
	apart.Forget(5)
	apart.Forget(2)
	for i := range uint64(400) {
		d := digest.Digest{Lo: i * i}
		if together.Has(d) != apart.Has(d) || together.Has(d) == slices.Contains([]uint64{2, 5}, i%7) {
			t.Fatalf("entry %d is there: %v, and apart: %v", i, together.Has(d), apart.Has(d))
		}
	}
	if left := together.Checkpoints(); !slices.Equal(left, []uint32{0, 1, 3, 4, 6}) || together.Len() != apart.Len() {
		t.Errorf("left are %d", left)
	}
}
