package durable

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/segment"
)

// staging is a space with bytes, and a stage that reads it.
func staging(t *rapid.T, fs vfs.FS, content []byte, buffer int64) (*stage, *segment.Space) {
	space, err := segment.Open(segment.Options{FS: fs, Dir: "/d", Capacity: int64(len(content)), SegmentBytes: 64 << 10, PieceBytes: 16 << 10})
	if err == nil {
		err = space.Write(0, content)
	}
	s := &stage{data: space}
	if err = errors.Join(err, s.open(buffer)); err != nil {
		t.Fatal(err)
	}
	return s, space
}

func TestReadAheadHasTheBytesOfTheSpace(t *testing.T) {
	before := memory.InUse("backup buffer")
	rapid.Check(t, func(t *rapid.T) {
		content := make([]byte, 256<<10)
		for i := range content {
			content[i] = byte(i>>12 ^ i)
		}
		s, space := staging(t, vfs.NewMem(1<<30), content, rapid.SampledFrom([]int64{0, 4 << 10, 20 << 10, 100 << 10}).Draw(t, "buffer"))
		var queue []source
		for at := int64(0); at < int64(len(content)); {
			n := rapid.Int64Range(0, min(60<<10, int64(len(content))-at)).Draw(t, "bytes")
			queue = append(queue, source{from: at, bytes: n})
			at += n + rapid.SampledFrom([]int64{0, 0, 1, 100 << 10}).Draw(t, "gap")
		}
		read := func(off, n int64) {
			p := make([]byte, min(n, int64(len(content))-off))
			if err := s.Read(off, p); err != nil || !bytes.Equal(p, content[off:][:len(p)]) {
				t.Fatalf("%d bytes at %d: %v", n, off, err)
			}
		}
		for len(queue) > 0 {
			s.reach(queue)
			x := queue[0]
			queue = queue[1:]
			each := rapid.Int64Range(1, 30<<10).Draw(t, "at once")
			for off := x.from; off < x.from+x.bytes; off += each {
				read(off, min(each, x.from+x.bytes-off))
				if rapid.IntRange(0, 7).Draw(t, "elsewhere") == 0 { // an object that a difference needs
					read(rapid.Int64Range(0, int64(len(content))-1).Draw(t, "off"), 5000)
				}
			}
		}
		if err := errors.Join(s.close(), space.Close()); err != nil {
			t.Fatal(err)
		}
	})
	if n := memory.InUse("backup buffer") - before; n != 0 {
		t.Fatalf("%d KiB of buffers stay", n>>10)
	}
}

func TestAFailureOfReadAheadIsThatOfItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const length, each = 64 << 10, 4 << 10
		from := rapid.Int64Range(0, length-1).Draw(t, "from")
		failing := &vfs.Rule{Ops: vfs.OpRead, From: from, To: from + 1, Err: unix.EIO}
		content := bytes.Repeat([]byte{7}, length)
		s, space := staging(t, vfs.NewFaulty(vfs.NewMem(1<<30), failing), content, rapid.SampledFrom([]int64{each, 10 << 10, 100 << 10}).Draw(t, "buffer"))
		s.reach([]source{{from: 0, bytes: length}})
		for off := int64(0); off < length; off += each {
			p := make([]byte, each)
			err := s.Read(off, p)
			if bad := off <= from && from < off+each; errors.Is(err, unix.EIO) != bad || err != nil && !bad || !bad && !bytes.Equal(p, content[:each]) {
				t.Fatalf("%d bytes at %d, of which that at %d cannot be read: %v", each, off, from, err)
			}
		}
		if err := errors.Join(s.close(), space.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
