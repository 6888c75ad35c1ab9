package segment

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// streamable is a space that has been written, and its bytes.
func streamable(t *testing.T, fsys vfs.FS, direct bool) (*Space, []byte) {
	t.Helper()
	opt := Options{FS: fsys, Dir: "/d", Capacity: 4 << 20, SegmentBytes: 900 << 10, PieceBytes: 512 << 10, Direct: direct}
	if _, real := fsys.(*vfs.Mem); !real {
		opt.Dir = t.TempDir()
	}
	s := mustOpen(t, opt)
	p := random(make([]byte, 4<<20))
	if err := s.Write(0, p); err != nil {
		t.Fatal(err)
	}
	return s, p
}

// Streams of any ranges, also over the ends of segments, several beside each other, are compared with what was written.
func TestStreamAgainstModel(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"mem": vfs.NewMem(8 << 20), "os": vfs.OS()} {
		for _, direct := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", direct"}[direct], func(t *testing.T) {
				s, want := streamable(t, fsys, direct)
				rapid.Check(t, func(t *rapid.T) {
					type span struct{ off, n int64 }
					var all sync.WaitGroup
					for range rapid.IntRange(1, 3).Draw(t, "streams") {
						spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
							off := rapid.Int64Range(0, 4<<20).Draw(t, "off")
							return span{off, rapid.Int64Range(0, min(MostStreamed, 4<<20-off)).Draw(t, "n")}
						}), 0, 9).Draw(t, "spans")
						all.Add(1)
						go func() {
							defer all.Done()
							taken := make([]atomic.Int32, len(spans))
							err := s.Stream(len(spans), func(i int) (off, n int64) { return spans[i].off, spans[i].n }, func(i int, p []byte) error {
								taken[i].Inc()
								if !bytes.Equal(p, want[spans[i].off:spans[i].off+spans[i].n]) {
									t.Errorf("%+v differs", spans[i])
								}
								clear(p) // the buffer is read anew
								return nil
							})
							if err != nil {
								t.Error(err)
							}
							for i := range taken {
								if n := taken[i].Load(); n != 1 {
									t.Errorf("%+v was taken %d times", spans[i], n)
								}
							}
						}()
					}
					all.Wait()
				})
				if n := memory.InUse(StreamPurpose); n > 9<<20 {
					t.Errorf("buffers of %d bytes", n)
				}
			})
		}
	}
}

// A stream ends with the first error: of a read, of what takes the bytes, and of a range that the space does not have. The buffers come back.
func TestStreamsThatFail(t *testing.T) {
	rule := &vfs.Rule{Ops: vfs.OpRead, Err: unix.EIO, Skip: 2, Times: 1}
	rule.Disable()
	s, _ := streamable(t, vfs.NewFaulty(vfs.NewMem(8<<20), rule), true)
	each := func(n int64) func(i int) (int64, int64) {
		return func(i int) (int64, int64) { return int64(i) * n, n }
	}
	fine := func(int, []byte) error { return nil }
	wrong := errors.New("wrong")
	for range 2 * streamBuffers {
		if err := s.Stream(8, each(256<<10), func(i int, _ []byte) error {
			if i == 3 {
				return wrong
			}
			return nil
		}); err != wrong {
			t.Fatal(err)
		}
		if err := s.Stream(2, each(MostStreamed+1), fine); !errors.Is(err, ErrRange) {
			t.Fatal(err)
		}
		if err := s.Stream(9, each(MostStreamed), fine); !errors.Is(err, ErrRange) {
			t.Fatal(err)
		}
	}
	rule.Enable()
	if err := s.Stream(8, each(256<<10), fine); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	if err := s.Stream(8, each(256<<10), fine); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Stream(1, each(1), fine); err != ErrClosed {
		t.Error(err)
	}
	if n := memory.InUse(StreamPurpose); n != 0 {
		t.Errorf("%d bytes stay mapped", n)
	}
}

// Nothing is mapped before a stream, and a distant file system has none.
func TestStreamsOfADistantDisk(t *testing.T) {
	opt := small(vfs.NewMem(4<<20), true)
	opt.PieceBytes, opt.ReadBytes = 8<<20, 8<<20
	if mustOpen(t, opt).Streams() {
		t.Error("requests are cut")
	}
	if !mustOpen(t, small(vfs.NewMem(4<<20), true)).Streams() || memory.InUse(StreamPurpose) != 0 {
		t.Error("a disk has none, or buffers are there already")
	}
}
