package description

import "testing"

func TestInt64sAreDescribed(t *testing.T) {
	for _, count := range []int{0, 1, 1000} {
		l := Int64s("ranks", count)
		if err := Check(&l); err != nil {
			t.Errorf("%d: %v", count, err)
		}
		if l.Slot != int64(8*count) || Dtypes(&l)[0] != "<i8" || Names(&l)[0] != "ranks" {
			t.Errorf("%d: %+v", count, l)
		}
	}
}
