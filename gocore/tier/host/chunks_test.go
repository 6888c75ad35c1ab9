package host

import (
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
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
		given = append(given, int((off+n)/smallChunk)-1)
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

// The kernel joins the small pages of a huge page again while a record lies in it. What had been given back before is resident then, and goes with the rest.
func TestAHugePageThatWasJoinedAgainIsGivenBack(t *testing.T) {
	const bytes = 4 << 20
	m, err := memory.Map("test", bytes)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	p := newChunks(bytes)
	give := func() {
		t.Helper()
		for _, i := range p.due(-1) {
			if err := p.giveBack(i, -1, m.Discard); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.take(0, bytes)
	if err := m.Populate(0, bytes); err != nil {
		t.Fatal(err)
	}
	p.setLimit(0)
	p.drop(0, bytes, 0)
	p.take(3<<20, 1<<20)
	give()
	if err := unix.Madvise(m.Bytes(2<<20, 2<<20), unix.MADV_COLLAPSE); err != nil {
		t.Skipf("this kernel joins no pages on demand: %v", err)
	}
	if got := resident(t, m); got != 2<<20 {
		t.Fatalf("%d bytes are resident after the join", got)
	}
	p.drop(3<<20, 1<<20, 0)
	give()
	if got := resident(t, m); got != 0 {
		t.Errorf("%d bytes stay resident", got)
	}
}

// resident is how many bytes of a mapping are resident.
func resident(t *testing.T, m *memory.Mapping) (bytes int) {
	t.Helper()
	seen := make([]byte, m.Size()/int64(unix.Getpagesize()))
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(m.Base()), uintptr(m.Size()), uintptr(unsafe.Pointer(&seen[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, s := range seen {
		bytes += int(s&1) * unix.Getpagesize()
	}
	return bytes
}
