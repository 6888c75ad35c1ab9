package host

import (
	"slices"
	"testing"
)

// A touched byte makes a whole huge page resident. The part of it behind a smaller budget is given back, although no record has ever lain there.
func TestAHugePageReachesBehindTheBudget(t *testing.T) {
	p := newChunks(5 << 20)
	p.take(3<<20, 1000)
	if p.resident != chunkBytes {
		t.Errorf("%d bytes may be resident", p.resident)
	}
	p.setLimit(3<<20 + smallChunk)
	var given []int
	discard := func(off, n int64) error {
		given = append(given, int(off/smallChunk))
		return nil
	}
	for _, i := range p.due(-1) {
		if err := p.giveBack(i, -1, discard); err != nil {
			t.Fatal(err)
		}
	}
	var want []int
	for i := 3<<20/smallChunk + 1; i < 4<<20/smallChunk; i++ {
		want = append(want, i)
	}
	if !slices.Equal(given, want) || p.hasExcess() {
		t.Errorf("chunks %v were given back, wanted %v", given, want)
	}
	p.take(4<<20+1, 1000) // no huge page fits between there and the end of the memory
	if p.resident != 3<<20+smallChunk-2<<20+smallChunk {
		t.Errorf("%d bytes may be resident", p.resident)
	}
}
