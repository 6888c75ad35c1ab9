package segment

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"velocpy/gocore/base/vfs"
)

// A space of many files keeps only a few open, for reads and for synced writes, in any order, and loses no bytes.
func TestFewFilesAreOpen(t *testing.T) {
	const files, length, most, workers = 60, 64 << 10, 5, 4
	fs := vfs.NewMem(64 << 20)
	if err := fs.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	o := Options{FS: fs, Dir: "/d", Capacity: files * length, SegmentBytes: length, Direct: true, Named: true, OpenFiles: most}
	open := func(o Options) *Space {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	few := func(more int) {
		t.Helper()
		if n := fs.OpenFiles(); n > most+more {
			t.Fatalf("%d files are open", n)
		}
	}
	content := func(number int64) []byte {
		p := make([]byte, length)
		_, _ = rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)}).Read(p)
		return p
	}
	s := open(o)
	for number := range int64(files) {
		if err := errors.Join(s.Write(number*length, content(number)), s.Sync(number)); err != nil {
			t.Fatal(err)
		}
		few(0)
	}
	for number := range int64(2 * most) { // unsynced writes keep their files open, so that their errors reach the sync
		if err := s.Write(number*length, content(number)); err != nil {
			t.Fatal(err)
		}
	}
	if n := fs.OpenFiles(); n < 2*most {
		t.Fatalf("%d files are open of %d with writes that were not synced", n, 2*most)
	}
	for number := range int64(2 * most) {
		if err := s.Sync(number); err != nil {
			t.Fatal(err)
		}
	}
	var busy sync.WaitGroup
	for w := range workers {
		busy.Add(1)
		go func() {
			defer busy.Done()
			r := rand.New(rand.NewPCG(uint64(w), 1))
			p := make([]byte, length)
			for range 200 {
				number := r.Int64N(files/workers)*workers + int64(w)
				if r.IntN(4) == 0 {
					if err := errors.Join(s.Write(number*length, content(number)), s.Sync(number)); err != nil {
						t.Error(err)
					}
				}
				if err := s.Read(number*length, p); err != nil || !bytes.Equal(p, content(number)) {
					t.Errorf("file %d: %v", number, err)
				}
			}
		}()
	}
	busy.Wait()
	for number := range int64(files) { // each open closes another file, including those that were busy before
		if err := s.Read(number*length, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	few(workers)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
	o.ReadOnly = true
	s = open(o)
	for number := range int64(files) {
		if err := errors.Join(s.Holds(number*length, length), s.Read(number*length, make([]byte, 10))); err != nil {
			t.Fatal(err)
		}
		few(0)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Holds refuses ranges that the files do not have, before memory is mapped for them.
func TestHolds(t *testing.T) {
	const length = 64 << 10
	fs := vfs.NewMem(64 << 20)
	if err := fs.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	o := Options{FS: fs, Dir: "/d", Capacity: 2 * length, SegmentBytes: length, Named: true}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Write(0, make([]byte, 2*length)), s.Close()); err != nil {
		t.Fatal(err)
	}
	o.Capacity, o.ReadOnly = 1<<60, true
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		off, n int64
		want   error
	}{
		{0, 0, nil}, {0, 2 * length, nil}, {5, 2*length - 5, nil}, {length, length + 1, ErrUnwritten}, {0, 1 << 50, ErrUnwritten}, {4 * length, 1, ErrUnwritten},
		{0, 1 << 62, ErrRange}, {-1, 1, ErrRange}, {1, -1, ErrRange}, {1 << 60, 1, ErrRange},
	} {
		if err := s.Holds(c.off, c.n); !errors.Is(err, c.want) {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, err)
		}
	}
	file, err := fs.Open("/d/"+FileName(2), true, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(length/2), file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Holds(0, 2*length); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that is too short: %v", err)
	}
	if err := errors.Join(s.Holds(0, length+length/2), s.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Holds(0, 1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
