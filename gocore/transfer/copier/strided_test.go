package copier

import (
	"testing"

	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// Contiguous compared with the offsets of all bytes. A plain copy may move only contiguous bytes, and should move all of them.
func TestContiguous(t *testing.T) {
	both := map[bool]bool{}
	rapid.Check(t, func(t *rapid.T) {
		a := drawArray(t, 200, true)
		offsets := a.offsets()
		if len(offsets) == 0 {
			t.Skip("empty")
		}
		together := true
		for i, at := range offsets {
			together = together && at == offsets[0]+i
		}
		if a.Contiguous() != together {
			t.Fatalf("shape %v, strides %v, elements of %d bytes: %v", a.Shape, a.Strides, a.Item, !together)
		}
		both[together && len(a.Shape) > 0] = true
	})
	if !both[true] || !both[false] {
		t.Errorf("drew only arrays of one kind: %v", both)
	}
}

func TestContiguousByExample(t *testing.T) {
	for _, c := range []struct {
		what           string
		shape, strides []int64
		want           bool
	}{
		{"no axes", nil, nil, true},
		{"one axis", []int64{5}, []int64{4}, true},
		{"rows", []int64{3, 5}, []int64{20, 4}, true},
		{"an axis of one element may step anywhere", []int64{3, 1, 5}, []int64{20, -7, 4}, true},
		{"a halo", []int64{3, 5}, []int64{28, 4}, false},
		{"columns", []int64{3, 5}, []int64{4, 12}, false},
		{"backwards", []int64{5}, []int64{-4}, false},
		{"every second", []int64{5}, []int64{8}, false},
		{"one element again and again", []int64{5}, []int64{0}, false},
		{"a halo around whole planes", []int64{2, 3, 5}, []int64{80, 20, 4}, false},
	} {
		a := model.Strided{Shape: c.shape, Strides: c.strides, Item: 4}
		if a.Contiguous() != c.want {
			t.Errorf("%s: %v", c.what, !c.want)
		}
	}
}
