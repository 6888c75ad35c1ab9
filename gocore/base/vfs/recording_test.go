package vfs

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func recordedOf(t interface {
	Helper()
	Fatal(...any)
}, r *Recorder) FS {
	t.Helper()
	fs, err := Replay(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// Whatever was read, or could not be, comes out of the recording as it was; what nobody read does not.
func TestARecordingAnswersAsTheFileSystemDid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := NewMem(1 << 20)
		if err := mem.MkdirAll("/d"); err != nil {
			t.Fatal(err)
		}
		content := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 255}), 0, 300).Draw(t, "content")
		file, err := mem.Create("/d/a", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
		bad := rapid.Int64Range(0, 300).Draw(t, "bad from")
		recorder := NewRecorder(NewFaulty(mem, &Rule{Ops: OpRead, From: bad, To: bad + 20, Err: unix.EIO}))
		held, err := recorder.HoldDir("/d")
		if err != nil {
			t.Fatal(err)
		}
		type ask struct{ from, n int64 }
		type answer struct {
			p   []byte
			err error
		}
		read := func(f File, q ask) answer {
			p := make([]byte, q.n)
			n, err := f.ReadAt(p, q.from)
			return answer{p[:n], err}
		}
		asks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ask {
			return ask{rapid.Int64Range(0, 320).Draw(t, "from"), rapid.Int64Range(1, 100).Draw(t, "n")}
		}), 0, 8).Draw(t, "asks")
		opened, err := held.Open("/d/a", false, false)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]bool, 500)
		var was []answer
		for _, q := range asks {
			a := read(opened, q)
			was = append(was, a)
			for i := range a.p {
				seen[q.from+int64(i)] = true
			}
		}
		_, missing := held.Stat("/d/none")
		names, _ := held.List("/d")
		info, _ := held.Stat("/d/a")

		again := recordedOf(t, recorder)
		if _, err := again.Stat("/d/none"); !errors.Is(err, unix.ENOENT) || !errors.Is(missing, unix.ENOENT) {
			t.Fatalf("what does not exist: %v, and it was %v", err, missing)
		}
		if got, err := again.List("/d"); err != nil || !slices.Equal(got, names) {
			t.Fatalf("%v %v", got, err)
		}
		if got, err := again.Stat("/d/a"); err != nil || got != info {
			t.Fatalf("%v %v", got, err)
		}
		dir, err := again.HoldDir("/d")
		if err != nil {
			t.Fatal(err)
		}
		replayed, err := dir.Open("/d/a", false, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range asks {
			got := read(replayed, q)
			if (got.err == nil) != (was[i].err == nil) || got.err == nil && !bytes.Equal(got.p, was[i].p) {
				t.Fatalf("read %v: %v %v, and it was %v %v", q, got.p, got.err, was[i].p, was[i].err)
			}
		}
		for at := range int64(len(content)) {
			if got := read(replayed, ask{at, 1}); got.err == nil && (!seen[at] || got.p[0] != content[at]) {
				t.Fatalf("byte %d comes out, and was never read, or was another one", at)
			}
		}
	})
}

// Zeros at the end of what was read take no room in a recording, and a recording from which bytes are missing is an error.
func TestZerosInARecording(t *testing.T) {
	mem := NewMem(1 << 20)
	file, err := mem.Create("/a", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(append([]byte("content"), make([]byte, 9000)...), 0); err != nil {
		t.Fatal(err)
	}
	recorder := NewRecorder(mem)
	opened, err := recorder.Open("/a", false, false)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := opened.ReadAt(make([]byte, 8000), 0); n != 8000 || err != nil {
		t.Fatal(n, err)
	}
	recorded := recorder.Bytes()
	if len(recorded) > 40 {
		t.Errorf("7 bytes and zeros are recorded by %d bytes", len(recorded))
	}
	for n := range recorded {
		if _, err := Replay(recorded[:n]); !errors.Is(err, errRecording) {
			t.Errorf("%d bytes of %d: %v", n, len(recorded), err)
		}
	}
	if _, err := Replay(append(recorded, 0)); !errors.Is(err, errRecording) {
		t.Errorf("a byte more: %v", err)
	}
	again, err := recordedOf(t, recorder).Open("/a", false, false)
	if err != nil {
		t.Fatal(err)
	}
	p := bytes.Repeat([]byte{1}, 9000)
	if n, err := again.ReadAt(p, 3); n != 7997 || !errors.Is(err, ErrUnrecorded) || string(p[:4]) != "tent" || bytes.ContainsAny(p[4:n], "\x01") {
		t.Errorf("%d bytes come out: %v", n, err)
	}
}

// The errors of reads are those that there were.
func TestErrorsInARecording(t *testing.T) {
	mem := NewMem(1 << 20)
	file, err := mem.Create("/a", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 300), 0); err != nil {
		t.Fatal(err)
	}
	recorder := NewRecorder(NewFaulty(mem, &Rule{Ops: OpRead, From: 100, To: 120, Err: unix.EIO}))
	for _, fs := range []func() FS{func() FS { return recorder }, func() FS { return recordedOf(t, recorder) }} {
		opened, err := fs().Open("/a", false, false)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := opened.ReadAt(make([]byte, 50), 0); n != 50 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		if _, err := opened.ReadAt(make([]byte, 50), 90); !Unreadable(err) {
			t.Error(err)
		}
		if n, err := opened.ReadAt(make([]byte, 20), 290); n != 10 || !errors.Is(err, io.EOF) {
			t.Errorf("%d %v", n, err)
		}
		if size, err := opened.Size(); size != 300 || err != nil {
			t.Errorf("%d %v", size, err)
		}
	}
	opened, err := recordedOf(t, recorder).Open("/a", false, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.ReadAt(make([]byte, 1), 60); !errors.Is(err, ErrUnrecorded) {
		t.Errorf("what nobody read: %v", err)
	}
}

// Nothing can be changed in a recording, and what nobody asked has no answer.
func TestARecordingIsReadOnly(t *testing.T) {
	fs := recordedOf(t, NewRecorder(NewMem(1<<20)))
	_, opened := fs.Open("/x", false, false)
	_, listed := fs.List("/x")
	_, stated := fs.Stat("/x")
	for what, err := range map[string]error{"open": opened, "list": listed, "stat": stated} {
		if !errors.Is(err, ErrUnrecorded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, created := fs.Create("/x", false)
	_, scratch := fs.OpenScratch("/", false)
	_, locked := fs.Lock("/x")
	for what, err := range map[string]error{
		"create": created, "scratch": scratch, "lock": locked, "remove": fs.Remove("/x"), "make": fs.MkdirAll("/x"), "sync": fs.SyncDir("/"),
	} {
		if !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A recording that was changed on its way is an error, or one that answers: nothing else happens.
func FuzzReplay(f *testing.F) {
	mem := NewMem(1 << 20)
	recorder := NewRecorder(mem)
	if file, err := mem.Create("/a", false); err == nil {
		_, _ = file.WriteAt([]byte("content"), 0)
	}
	if file, err := recorder.Open("/a", false, false); err == nil {
		_, _ = file.ReadAt(make([]byte, 20), 0)
	}
	_, _ = recorder.List("/")
	f.Add(recorder.Bytes())
	f.Fuzz(func(t *testing.T, p []byte) {
		fs, err := Replay(p)
		if err != nil {
			return
		}
		_, _ = fs.List("/")
		if file, err := fs.Open("/a", false, false); err == nil {
			into := make([]byte, 64)
			for _, at := range []int64{0, 3, 1 << 40} {
				if n, err := file.ReadAt(into, at); n < len(into) && err == nil {
					t.Fatal("a short read without an error")
				}
			}
		}
	})
}
