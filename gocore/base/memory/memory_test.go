package memory

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mustMap(t *testing.T, n int64) *Mapping {
	t.Helper()
	m, err := Map(t.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmap(); err != nil && !errors.Is(err, ErrUnmapped) {
			t.Error(err)
		}
	})
	return m
}

func TestMapIsZeroedAlignedAndAccounted(t *testing.T) {
	for _, n := range []int64{0, 1, 4095, 4096, 4097, hugePage - 1, hugePage, 3*hugePage + 5} {
		m := mustMap(t, n)
		if m.Size() != n || InUse(t.Name()) != n {
			t.Errorf("%d bytes: size %d, in use %d", n, m.Size(), InUse(t.Name()))
		}
		align := uintptr(4096)
		if n >= hugePage {
			align = hugePage
		}
		if n > 0 && uintptr(m.Base())%align != 0 || m.Base() == nil {
			t.Errorf("%d bytes: base %p", n, m.Base())
		}
		p := m.Bytes(0, n)
		if int64(len(p)) != n || bytes.Count(p, []byte{0}) != int(n) && n > 0 {
			t.Errorf("%d bytes are not all zero", n)
		}
		for i := range p {
			p[i] = byte(i)
		}
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		if InUse(t.Name()) != 0 {
			t.Errorf("%d bytes stay accounted", InUse(t.Name()))
		}
	}
}

func TestMapSparse(t *testing.T) {
	const n = 1 << 42 // more than any machine has
	m, err := MapSparse(t.Name(), n)
	if err != nil {
		t.Skipf("the kernel counts memory before it is touched: %v", err)
	}
	p := m.Bytes(n-4096, 4096)
	p[0] = 7
	if at := resident(t, m, n-8192, 8192); at != 1 || m.Size() != n || InUse(t.Name()) != n {
		t.Errorf("%d pages resident, size %d, in use %d", at, m.Size(), InUse(t.Name()))
	}
	if err := m.Unmap(); err != nil || InUse(t.Name()) != 0 {
		t.Errorf("unmapped: %v, %d in use", err, InUse(t.Name()))
	}
	if m, err := MapSparse(t.Name(), 0); err != nil || m.Unmap() != nil {
		t.Error("no bytes")
	}
}

func TestDoubleUnmapIsAnError(t *testing.T) {
	for _, n := range []int64{0, 100} {
		m := mustMap(t, n)
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		if err := m.Unmap(); !errors.Is(err, ErrUnmapped) {
			t.Errorf("second Unmap: %v", err)
		}
		if m.Bytes(0, n) != nil || InUse(t.Name()) != 0 {
			t.Error("a view of a mapping given back")
		}
		if err := m.Populate(0, n); n > 0 && !errors.Is(err, ErrUnmapped) {
			t.Errorf("Populate after Unmap: %v", err)
		}
	}
}

func TestBadSizesAndRanges(t *testing.T) {
	for _, n := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if _, err := Map("bad", n); !errors.Is(err, ErrRange) {
			t.Errorf("Map(%d): %v", n, err)
		}
	}
	if _, err := Map("bad", 1<<60); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("2^60 bytes: %v", err)
	}
	if InUse("bad") != 0 {
		t.Error("a failed Map stays accounted")
	}
	m := mustMap(t, 100)
	for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, 101}, {101, 0}, {50, 51}, {math.MaxInt64, 1}, {1, math.MaxInt64}} {
		if m.Bytes(r[0], r[1]) != nil {
			t.Errorf("Bytes%v is a view", r)
		}
		if err := m.Populate(r[0], r[1]); !errors.Is(err, ErrRange) {
			t.Errorf("Populate%v: %v", r, err)
		}
	}
	if len(m.Bytes(100, 0)) != 0 || len(m.Bytes(40, 60)) != 60 {
		t.Error("good ranges refused")
	}
}

func resident(t *testing.T, m *Mapping, off, n int64) int {
	t.Helper()
	vec := make([]byte, (n+4095)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(m.base)+uintptr(off), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	count := 0
	for _, v := range vec {
		count += int(v & 1)
	}
	return count
}

// Both ways of populating: the requested pages are resident, and contents stay, including those that another goroutine writes meanwhile.
func TestPopulate(t *testing.T) {
	unsupported := func([]byte) error { return unix.EINVAL }
	tries := 0
	interrupted := func(p []byte) error {
		if tries++; tries%2 == 1 {
			return unix.EINTR
		}
		return unix.Madvise(p, unix.MADV_POPULATE_WRITE)
	}
	for name, way := range map[string]func(*Mapping, int64, int64) error{
		"madvise":     (*Mapping).Populate,
		"touch":       func(m *Mapping, off, n int64) error { return m.populate(off, n, unsupported) },
		"interrupted": func(m *Mapping, off, n int64) error { return m.populate(off, n, interrupted) },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 2*populateStep + 12345
			m := mustMap(t, n)
			p := m.Bytes(0, n)
			for i := 0; i < n; i += 4096 {
				if i%3 == 0 {
					p[i] = byte(i>>12) | 1
				}
			}
			var all sync.WaitGroup
			all.Add(1)
			go func() {
				defer all.Done()
				for i := 8; i < n; i += 4096 {
					p[i] = 0xA5
				}
			}()
			if err := way(m, 5000, n-5000); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			if got, want := resident(t, m, 4096, n-4096), (n-4096+4095)/4096; got != want {
				t.Fatalf("%d of %d pages resident", got, want)
			}
			for i := 0; i < n; i++ {
				want := byte(0)
				switch {
				case i%4096 == 0 && i%3 == 0:
					want = byte(i>>12) | 1
				case i%4096 == 8:
					want = 0xA5
				}
				if p[i] != want {
					t.Fatalf("byte %d is %#x, want %#x", i, p[i], want)
				}
			}
		})
	}
}

func TestPopulateReportsErrors(t *testing.T) {
	m := mustMap(t, 4096)
	if err := m.populate(0, 4096, func([]byte) error { return unix.ENOMEM }); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("%v", err)
	}
}

func TestGoHeapStaysSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := mustMap(t, 1<<30)
	m.Bytes(0, 1<<30)[rand.IntN(1<<30)] = 1
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the Go heap grew by %d bytes", grown)
	}
}

func TestConcurrentMapsBalance(t *testing.T) {
	var all sync.WaitGroup
	for g := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 50 {
				m, err := Map(t.Name(), int64(g*1000+i))
				if err != nil {
					t.Error(err)
					return
				}
				if err := m.Unmap(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if InUse(t.Name()) != 0 {
		t.Errorf("%d bytes in use", InUse(t.Name()))
	}
}

func BenchmarkPopulate(b *testing.B) {
	const n = 256 << 20
	b.SetBytes(n)
	for b.Loop() {
		m, err := Map("bench", n)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Populate(0, n); err != nil {
			b.Fatal(err)
		}
		if err := m.Unmap(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSharedMemoryIsMappedByADescriptor(t *testing.T) {
	const n = 3 << 20
	m, descriptor, err := MapShared(t.Name(), n)
	if err != nil {
		t.Fatal(err)
	}
	other, err := unix.Mmap(descriptor, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		err = unix.Close(descriptor)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := m.Bytes(0, n)
	p[0], other[n-1] = 1, 2
	if other[0] != 1 || p[n-1] != 2 || InUse(t.Name()) != n {
		t.Fatalf("%d, %d, %d bytes in use", other[0], p[n-1], InUse(t.Name()))
	}
	if err := m.Release(); err != nil || other[0] != 0 || p[n-1] != 0 {
		t.Fatal(err, other[0], p[n-1])
	}
	if p[0] = 3; other[0] != 3 {
		t.Fatal("the memory is not shared any more")
	}
	if err := errors.Join(m.Unmap(), unix.Munmap(other)); err != nil || InUse(t.Name()) != 0 {
		t.Fatal(err, InUse(t.Name()))
	}
}
