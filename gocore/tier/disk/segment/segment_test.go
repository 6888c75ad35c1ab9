package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

const hang = 20 * time.Second

// buffer returns n bytes whose address is skew bytes after a multiple of Block.
func buffer(n, skew int) []byte {
	p := make([]byte, n+2*Block)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(p)))&(Block-1)) + skew
	return p[at : at+n : at+n]
}

func random(p []byte) []byte {
	seed := [32]byte{}
	binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
	_, _ = rand.NewChaCha8(seed).Read(p)
	return p
}

func mustOpen(t *testing.T, opt Options) *Space {
	t.Helper()
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func small(fsys vfs.FS, direct bool) Options {
	return Options{FS: fsys, Dir: "/d", Capacity: 1 << 20, SegmentBytes: 256 << 10, PieceBytes: 64 << 10, Direct: direct}
}

// readInPieces reads, and verifies each piece when it is reported.
func readInPieces(t *rapid.T, s *Space, off int64, p []byte) {
	came := make([]byte, len(p))
	var mu sync.Mutex
	told := int64(0)
	err := s.ReadPieces(off, p, func(from, n int64) {
		mu.Lock()
		defer mu.Unlock()
		told += n
		copy(came[from:from+n], p[from:])
	})
	if err != nil || told != int64(len(p)) || !bytes.Equal(came, p) {
		t.Fatalf("%d of %d bytes were told of, or they came later: %v", told, len(p), err)
	}
}

// Writes at block boundaries, of any length and address, and reads of any range are compared with a plain slice. After an unaligned end, the contents up to
// the block boundary are unknown.
func TestSpaceAgainstModel(t *testing.T) {
	const capacity = 1<<20 - 8192
	for _, direct := range []bool{false, true} {
		for name, base := range map[string]Options{
			"mem": {FS: vfs.NewMem(8 << 20), Dir: "/d"},
			"os":  {FS: vfs.OS(), Dir: t.TempDir()},
		} {
			base.Direct = direct
			base.Capacity, base.SegmentBytes, base.PieceBytes = capacity, 300<<10, 40<<10
			s := mustOpen(t, base)
			model, known := make([]byte, capacity), make([]bool, capacity)
			// All ranges are written once, so that reads are allowed everywhere.
			copy(model, random(model))
			if err := s.Write(0, model); err != nil {
				t.Fatal(err)
			}
			for i := range known {
				known[i] = true
			}
			t.Run(name+map[bool]string{true: "-direct"}[direct], func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					skew := rapid.SampledFrom([]int{0, 0, 1, 512, 4095}).Draw(t, "skew")
					if rapid.Bool().Draw(t, "write") {
						off := rapid.IntRange(0, capacity/Block-1).Draw(t, "block") * Block
						n := rapid.IntRange(0, capacity-off).Draw(t, "n")
						p := random(buffer(n, skew))
						if err := s.Write(int64(off), p); err != nil {
							t.Fatal(err)
						}
						copy(model[off:], p)
						for i := off; i < int(Blocks(int64(off+n))); i++ {
							known[i] = i < off+n
						}
						return
					}
					off := rapid.IntRange(0, capacity).Draw(t, "off")
					if rapid.Bool().Draw(t, "blocks as in the file") { // only the ends need a bounce buffer then
						skew = off % Block
					}
					p := buffer(rapid.IntRange(0, capacity-off).Draw(t, "n"), skew)
					if rapid.Bool().Draw(t, "in pieces") {
						readInPieces(t, s, int64(off), p)
					} else if err := s.Read(int64(off), p); err != nil {
						t.Fatal(err)
					}
					for i := range p {
						if known[off+i] && p[i] != model[off+i] {
							t.Fatalf("byte %d is %#x, want %#x", off+i, p[i], model[off+i])
						}
					}
				})
			})
		}
	}
}

// Bytes before an unaligned offset keep their value, also with direct I/O.
func TestWriteKeepsWhatLiesBefore(t *testing.T) {
	for _, direct := range []bool{false, true} {
		s := mustOpen(t, small(vfs.NewMem(4<<20), direct))
		want := random(make([]byte, 3*Block))
		if err := s.Write(0, want); err != nil {
			t.Fatal(err)
		}
		patch := random(make([]byte, 2*Block-100))
		if err := s.Write(100, patch); err != nil {
			t.Fatal(err)
		}
		copy(want[100:], patch)
		got := make([]byte, 2*Block)
		if err := s.Read(0, got); err != nil || !bytes.Equal(got, want[:2*Block]) {
			t.Errorf("direct %v: %v", direct, err)
		}
	}
}

// Concurrent writes of neighbours, with unaligned ends and addresses, do not damage each other.
func TestConcurrentNeighbours(t *testing.T) {
	for _, direct := range []bool{false, true} {
		opt := small(vfs.OS(), direct)
		opt.Dir, opt.Capacity = t.TempDir(), 4<<20
		s := mustOpen(t, opt)
		const slot = 37 * Block
		var all sync.WaitGroup
		for i := range opt.Capacity / slot {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 20 {
					p := random(buffer(slot-1-rand.IntN(Block), int(i)%3*8))
					got := buffer(len(p), int(i)%2*16)
					if err := s.Write(i*slot, p); err != nil {
						t.Error(err)
					}
					if err := s.Read(i*slot, got); err != nil || !bytes.Equal(p, got) {
						t.Errorf("slot %d: other bytes than written (%v)", i, err)
					}
				}
			}()
		}
		all.Wait()
	}
}

func TestNothingIsAllocatedUpFront(t *testing.T) {
	mem := vfs.NewMem(1 << 30)
	s := mustOpen(t, small(mem, true))
	if free, _ := mem.Free("/d"); free != 1<<30 || mem.OpenFiles() != 0 {
		t.Fatalf("%d free, %d files", free, mem.OpenFiles())
	}
	if err := s.Write(300<<10, make([]byte, Block)); err != nil {
		t.Fatal(err)
	}
	if free, _ := mem.Free("/d"); free != 1<<30-256<<10 || mem.OpenFiles() != 1 {
		t.Errorf("after one write: %d taken, %d files", 1<<30-free, mem.OpenFiles())
	}
	for off, want := range map[int64]error{0: ErrUnwritten, 255 << 10: ErrUnwritten, 256 << 10: nil, 511 << 10: ErrUnwritten} {
		if err := s.Read(off, make([]byte, 2048)); !errors.Is(err, want) {
			t.Errorf("read at %d: %v, want %v", off, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if free, _ := mem.Free("/d"); free != 1<<30 || mem.OpenFiles() != 0 {
		t.Errorf("after closing: %d taken, %d files", 1<<30-free, mem.OpenFiles())
	}
}

func TestClose(t *testing.T) {
	before := memory.InUse(Purpose)
	s := mustOpen(t, small(vfs.NewMem(1<<20), true))
	if memory.InUse(Purpose) <= before {
		t.Error("buffers are not accounted")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"close": s.Close(), "write": s.Write(0, make([]byte, 1)), "read": s.Read(0, make([]byte, 1)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if memory.InUse(Purpose) != before {
		t.Error("buffers are not given back")
	}
}

func TestCloseWaitsForTransfers(t *testing.T) {
	block := &vfs.Rule{Ops: vfs.OpWrite, Block: true}
	s := mustOpen(t, small(vfs.NewFaulty(vfs.NewMem(4<<20), block), true))
	written, closed := make(chan error, 1), make(chan error, 1)
	go func() { written <- s.Write(0, make([]byte, 512<<10)) }()
	await(t, func() bool { return block.Blocked() > 1 })
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
		t.Fatal("closed with writes in flight")
	case <-time.After(50 * time.Millisecond):
	}
	block.Release()
	for what, c := range map[string]chan error{"write": written, "close": closed} {
		select {
		case err := <-c:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(hang):
			t.Fatalf("%s hangs", what)
		}
	}
}

func await(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("hangs")
		}
	}
}

func TestBadRanges(t *testing.T) {
	s := mustOpen(t, small(vfs.NewMem(1<<20), false))
	for _, c := range []struct {
		off int64
		n   int
	}{{-1, 1}, {1 << 20, 1}, {1<<20 - 5, 6}, {math.MaxInt64, 1}, {math.MinInt64, 0}} {
		if err := s.Read(c.off, make([]byte, c.n)); !errors.Is(err, ErrRange) {
			t.Errorf("read %d at %d: %v", c.n, c.off, err)
		}
		if err := s.Write(c.off, make([]byte, c.n)); !errors.Is(err, ErrRange) {
			t.Errorf("write %d at %d: %v", c.n, c.off, err)
		}
	}
	if err := s.Write(1<<20, nil); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	mem := vfs.NewMem(1 << 20)
	for _, opt := range []Options{
		{Dir: "/"}, {FS: mem, Dir: "/", Capacity: -1}, {FS: mem, Dir: "/", Capacity: math.MaxInt64}, {FS: mem, Dir: "/", SegmentBytes: -1},
		{FS: mem, Dir: "/", Parallel: -1}, {FS: mem, Dir: "/", Parallel: 1 << 20}, {FS: mem, Dir: "/", PieceBytes: -4096},
	} {
		if _, err := Open(opt); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	s := mustOpen(t, Options{FS: mem, Dir: "/", Capacity: 5000})
	if s.Capacity() != 8192 {
		t.Errorf("capacity %d", s.Capacity())
	}
	empty := mustOpen(t, Options{FS: mem, Dir: "/"})
	if err := empty.Write(0, []byte{1}); !errors.Is(err, ErrRange) {
		t.Errorf("%v", err)
	}
}

func TestDirectory(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mem := vfs.NewMem(1 << 20)
	mem.PutFile("/file")
	for name, opt := range map[string]Options{
		"os": {FS: vfs.OS(), Dir: file}, "os below": {FS: vfs.OS(), Dir: file + "/x"},
		"mem": {FS: mem, Dir: "/file"}, "mem below": {FS: mem, Dir: "/file/x"},
	} {
		opt.Capacity = 1 << 20
		if _, err := Open(opt); !errors.Is(err, ErrNotDirectory) || !strings.Contains(err.Error(), opt.Dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := filepath.Join(root, "a", "b")
	mustOpen(t, Options{FS: vfs.OS(), Dir: deep, Capacity: 1 << 20})
	if info, err := os.Stat(deep); err != nil || !info.IsDir() {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(deep); len(entries) != 0 {
		t.Errorf("files with names: %v", entries)
	}
	if _, err := Open(Options{FS: vfs.NewFaulty(mem, &vfs.Rule{Ops: vfs.OpMkdir, Err: unix.EACCES}), Dir: "/new"}); !errors.Is(err, unix.EACCES) {
		t.Errorf("%v", err)
	}
	if _, err := Open(Options{FS: vfs.NewFaulty(mem, &vfs.Rule{Ops: vfs.OpOpen, Err: unix.EROFS}), Dir: "/"}); !errors.Is(err, unix.EROFS) {
		t.Errorf("%v", err)
	}
}

// A full disk is an error with its errno. When there is room again the same write works, and no earlier write is lost.
func TestDiskFull(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpAllocate, vfs.OpWrite, vfs.OpOpen} {
		fsys := vfs.NewFaulty(vfs.NewMem(4 << 20))
		s := mustOpen(t, small(fsys, true))
		first := random(make([]byte, 100<<10))
		if err := s.Write(0, first); err != nil {
			t.Fatal(err)
		}
		full := fsys.Add(&vfs.Rule{Ops: op, Err: unix.ENOSPC})
		second := random(make([]byte, 100<<10))
		err := s.Write(512<<10, second)
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "(segment file 2, offset ") {
			t.Errorf("%b: %v", op, err)
		}
		full.Disable()
		if err := s.Write(512<<10, second); err != nil {
			t.Errorf("%b: %v", op, err)
		}
		for off, want := range map[int64][]byte{0: first, 512 << 10: second} {
			got := make([]byte, len(want))
			if err := s.Read(off, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%b: at %d: %v", op, off, err)
			}
		}
	}
}

// When a piece fails, the call returns only after its other pieces: no I/O uses the buffer then.
func TestFailureWaitsForOtherPieces(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpRead, vfs.OpWrite} {
		fsys := vfs.NewFaulty(vfs.NewMem(4 << 20))
		s := mustOpen(t, small(fsys, true))
		if err := s.Write(0, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		slow := fsys.Add(&vfs.Rule{Ops: op, From: 64 << 10, To: 128 << 10, Block: true})
		fails := fsys.Add(&vfs.Rule{Ops: op, From: 1, To: 64 << 10, Block: true, Err: unix.EIO})
		done := make(chan error, 1)
		go func() {
			if op == vfs.OpRead {
				done <- s.Read(0, buffer(256<<10, 0))
			} else {
				done <- s.Write(0, buffer(256<<10, 0))
			}
		}()
		await(t, func() bool { return slow.Blocked() == 1 && fails.Blocked() == 1 })
		fails.Release()
		select {
		case err := <-done:
			t.Fatalf("returned with a piece in flight: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		slow.Release()
		select {
		case err := <-done:
			if !errors.Is(err, unix.EIO) {
				t.Errorf("%v", err)
			}
		case <-time.After(hang):
			t.Fatal("hangs")
		}
	}
}

func TestShortReadIsAnError(t *testing.T) {
	fsys := vfs.NewFaulty(vfs.NewMem(4 << 20))
	for _, direct := range []bool{false, true} {
		s := mustOpen(t, small(fsys, direct))
		if err := s.Write(0, make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		for _, cause := range []error{nil, io.EOF} {
			rule := fsys.Add(&vfs.Rule{Ops: vfs.OpRead, Short: true, Err: cause})
			for _, n := range []int{64 << 10, 5000} {
				if err := s.Read(0, buffer(n, 0)); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%d bytes, %v: %v", n, cause, err)
				}
			}
			rule.Disable()
		}
	}
}

// panicky is a file system whose files panic.
type panicky struct{ vfs.FS }

func (p panicky) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(p), nil }

type panickyFile struct{ vfs.File }

func (f panicky) OpenScratch(dir string, direct bool) (vfs.File, error) {
	file, err := f.FS.OpenScratch(dir, direct)
	return panickyFile{file}, err
}

func (panickyFile) WriteAt([]byte, int64) (int, error) { panic("deliberate") }

func TestPanicInAPieceEndsTheTransfer(t *testing.T) {
	s := mustOpen(t, small(panicky{vfs.NewMem(4 << 20)}, false))
	done := make(chan error, 1)
	go func() { done <- s.Write(0, make([]byte, 1<<20)) }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "deliberate") {
			t.Errorf("%v", err)
		}
	case <-time.After(hang):
		t.Fatal("hangs")
	}
}

// With more callers of unaligned buffers than bounce buffers, no caller starves.
func TestManyCallersShareTheBuffers(t *testing.T) {
	fsys := vfs.NewFaulty(vfs.NewMem(8<<20), &vfs.Rule{Ops: vfs.OpWrite, Delay: time.Millisecond})
	s := mustOpen(t, small(fsys, true))
	var all sync.WaitGroup
	for i := range 64 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := s.Write(int64(i)*2*Block, random(buffer(Block+1, 1))); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

func TestCloseReportsFailure(t *testing.T) {
	fsys := vfs.NewFaulty(vfs.NewMem(4 << 20))
	s := mustOpen(t, small(fsys, false))
	if err := s.Write(0, make([]byte, 512<<10)); err != nil {
		t.Fatal(err)
	}
	fsys.Add(&vfs.Rule{Ops: vfs.OpClose, Times: 1, Err: unix.EIO})
	if err := s.Close(); !errors.Is(err, unix.EIO) {
		t.Errorf("%v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) || errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A capacity far beyond any disk is cheap to open, and its ranges can be used.
func TestGenerousCapacity(t *testing.T) {
	opt := small(vfs.NewMem(1<<20), true)
	opt.Capacity = 1 << 60
	s := mustOpen(t, opt)
	want := random(make([]byte, 5000))
	const off = 1<<60 - 2*Block
	if err := s.Write(off, want); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if err := s.Read(off, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v", err)
	}
}

func TestALargeReadIsCutAsOptionsSay(t *testing.T) {
	for _, c := range []struct{ piece, read, want int64 }{{64 << 10, 0, 16}, {64 << 10, 256 << 10, 4}, {8 << 20, 0, 1}, {8 << 20, 128 << 10, 8}} {
		s, err := Open(Options{FS: vfs.NewMem(1 << 30), Dir: "/d", Capacity: 1 << 20, PieceBytes: c.piece, ReadBytes: c.read})
		p := make([]byte, 1<<20)
		if err = errors.Join(err, s.Write(0, p)); err != nil {
			t.Fatal(err)
		}
		before, _ := s.Answers()
		if err := s.Read(0, p); err != nil {
			t.Fatal(err)
		}
		if after, _ := s.Answers(); after-before != c.want {
			t.Errorf("pieces of %d and reads of %d: %d pieces, not %d", c.piece, c.read, after-before, c.want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
