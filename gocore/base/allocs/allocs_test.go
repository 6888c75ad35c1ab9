package allocs

import "testing"

var kept []byte // so that the allocation is on the heap

func TestACallThatAllocatesEachTimeIsFound(t *testing.T) {
	calls := 0
	took := Least(1<<20, func() { kept, calls = make([]byte, 4<<20), calls+1 })
	if took < 4<<20 || calls != tries {
		t.Errorf("%d bytes in %d calls", took, calls)
	}
}

func TestWhatIsAllocatedBesideOneCallIsNotCounted(t *testing.T) {
	calls := 0
	took := Least(1<<20, func() {
		if calls++; calls == 1 {
			kept = make([]byte, 4<<20)
		}
	})
	if took > 1<<20 || calls != 2 {
		t.Errorf("%d bytes in %d calls", took, calls)
	}
}
