package segment

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
)

const (
	benchBytes  = 1 << 30
	benchObject = 64 << 20 // size of one write of the engine
)

func mapped(b *testing.B, n int64) []byte {
	b.Helper()
	m, err := memory.Map("bench", n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Unmap() })
	p := m.Bytes(0, n)
	for i := range p {
		p[i] = byte(i >> 3)
	}
	return p
}

// raw is the baseline: goroutines that take blocks in order from one preallocated file.
func raw(b *testing.B, call func(p []byte, off int64) (int, error), buf []byte, goroutines int, block int64) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				off := next.Add(block) - block
				if off >= benchBytes {
					return
				}
				if _, err := call(buf[off%benchObject:][:block], off); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
}

// transfers calls Read or Write for one object after the other.
func transfers(b *testing.B, call func(off int64, p []byte) error, buf []byte) {
	for off := int64(0); off < benchBytes; off += benchObject {
		if err := call(off, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSustained writes and reads 1 GiB through the space, alternating with the raw file: first writes into new files, rewrites, reads. It reports
// medians, and the ratio to the best raw variant.
func BenchmarkSustained(b *testing.B) {
	dir := b.TempDir()
	buf := mapped(b, benchObject+Block)
	type way struct{ first, again, read []time.Duration }
	results := map[string]*way{}
	var order []string
	note := func(name string) *way {
		if results[name] == nil {
			results[name] = &way{}
			order = append(order, name)
		}
		return results[name]
	}
	clock := func(into *[]time.Duration, run func()) {
		start := time.Now()
		run()
		*into = append(*into, time.Since(start))
	}
	for b.Loop() {
		for _, c := range []struct {
			goroutines int
			block      int64
		}{{4, 4 << 20}, {8, 4 << 20}} {
			w := note(fmt.Sprintf("raw-%dx%dMiB", c.goroutines, c.block>>20))
			file, err := vfs.OS().OpenScratch(dir, true)
			if err != nil {
				b.Fatal(err)
			}
			if !file.Direct() {
				b.Skip("no direct I/O here")
			}
			if err := file.Allocate(0, benchBytes); err != nil {
				b.Fatal(err)
			}
			clock(&w.first, func() { raw(b, file.WriteAt, buf, c.goroutines, c.block) })
			clock(&w.again, func() { raw(b, file.WriteAt, buf, c.goroutines, c.block) })
			clock(&w.read, func() { raw(b, file.ReadAt, buf, c.goroutines, c.block) })
			_ = file.Close()
		}
		for _, c := range []struct {
			parallel int
			piece    int64
			skew     int // of the buffer's address, in bytes
		}{{4, 1 << 20, 0}, {4, 4 << 20, 0}, {4, 8 << 20, 0}, {8, 8 << 20, 0}, {8, 8 << 20, 16}} {
			w := note(fmt.Sprintf("space-%dx%dMiB+%d", c.parallel, c.piece>>20, c.skew))
			s, err := Open(Options{FS: vfs.OS(), Dir: dir, Capacity: benchBytes, Direct: true, Parallel: c.parallel, PieceBytes: c.piece})
			if err != nil {
				b.Fatal(err)
			}
			object := buf[c.skew:][:benchObject]
			clock(&w.first, func() { transfers(b, s.Write, object) })
			clock(&w.again, func() { transfers(b, s.Write, object) })
			clock(&w.read, func() { transfers(b, s.Read, object) })
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	rate := func(d []time.Duration) float64 {
		slices.Sort(d)
		return benchBytes / 1e6 / d[len(d)/2].Seconds()
	}
	var table strings.Builder // one text: the testing package keeps only a few lines of a benchmark
	for _, name := range order {
		w := results[name]
		fmt.Fprintf(&table, "\n%-18s first write %6.0f MB/s, rewrite %6.0f MB/s, read %6.0f MB/s", name, rate(w.first), rate(w.again), rate(w.read))
	}
	b.Log(table.String())
}

// BenchmarkFirstWrites fills new files with checkpoints of a length, one after the other.
func BenchmarkFirstWrites(b *testing.B) {
	dir, buf := b.TempDir(), mapped(b, 128<<20)
	for _, n := range []int64{64 << 10, 128 << 20} {
		b.Run(fmt.Sprintf("%d KiB", n>>10), func(b *testing.B) {
			b.SetBytes(benchBytes)
			for b.Loop() {
				s, err := Open(Options{FS: vfs.OS(), Dir: dir, Capacity: benchBytes, Direct: true})
				if err != nil {
					b.Fatal(err)
				}
				for off := int64(0); off < benchBytes; off += n {
					if err := s.Write(off, buf[:n]); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
