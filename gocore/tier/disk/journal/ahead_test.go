package journal

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/vfs"
)

// newestFile returns the name and the length of the newest file.
func newestFile(t testing.TB, o Options) (name string, size int64) {
	t.Helper()
	numbers, err := o.files()
	must(t, err)
	name = o.path(numbers[len(numbers)-1])
	info, err := o.FS.Stat(name)
	must(t, err)
	return name, info.Size
}

func change(t testing.TB, o Options, name string, at int64, p []byte) {
	t.Helper()
	file, err := o.FS.Open(name, true, false)
	must(t, err)
	_, err = file.WriteAt(p, at)
	must(t, err, file.Close())
}

// While a file is written, it is longer than its frames by at most one preallocation; when it is closed, it ends after them. Unused room is no frame, not
// torn, and not counted.
func TestRoomIsMadeAhead(t *testing.T) {
	o := options(disk(t))
	l := Open(o, &State{})
	var want []string
	sizes := map[int64]bool{}
	for i := range 500 {
		want = append(want, strings.Repeat(fmt.Sprint(i, " "), 40))
		must(t, l.Append([]byte(want[i]), nil))
		_, size := newestFile(t, o)
		sizes[size] = true
		if size <= l.Bytes() || size > l.Bytes()+aheadMost || size != l.Bytes()+l.Ahead() {
			t.Fatalf("%d bytes of frames, and %d ahead, in a file of %d", l.Bytes(), l.Ahead(), size)
		}
	}
	if len(sizes) > 10 {
		t.Errorf("500 batches have made the file longer %d times", len(sizes))
	}
	if state := holds(t, o, want...); state.Torn != 0 || state.Bytes != l.Bytes() {
		t.Errorf("%d bytes are torn, %d counted of %d", state.Torn, state.Bytes, l.Bytes())
	}
	must(t, l.Close())
	state := holds(t, o, want...)
	if _, size := newestFile(t, o); size != state.Bytes || !state.Closed {
		t.Errorf("a closed file has %d bytes, %d of them in frames", size, state.Bytes)
	}
}

// Without room for preallocation, the log works without it.
func TestNoRoomAhead(t *testing.T) {
	m := disk(t)
	full := &vfs.Rule{Ops: vfs.OpWrite, Err: unix.ENOSPC, Short: true, ShortBytes: 1000, Skip: 2, Times: 1}
	o := options(vfs.NewFaulty(m, full))
	l := Open(o, &State{})
	must(t, l.Append([]byte("one"), nil), l.Append([]byte("two"), nil))
	if _, size := newestFile(t, o); size != l.Bytes() || l.Ahead() != 0 {
		t.Errorf("a file of %d bytes, %d of them in frames, %d ahead", size, l.Bytes(), l.Ahead())
	}
	must(t, l.Close())
	holds(t, options(m), "one", "two")
}

// A record may end with the filler word.
func TestRecordThatEndsLikeRoom(t *testing.T) {
	for n := range 3 * grain {
		o := options(disk(t))
		l := Open(o, &State{})
		record := strings.Repeat("x", n) + strings.Repeat(unused, 3)
		must(t, l.Append([]byte(record), nil))
		holds(t, o, record)
		must(t, l.Append([]byte(record), nil))
		holds(t, o, record, record)
		must(t, l.Close())
		holds(t, o, record, record)
	}
}

// Damage to the room loses no record, but is reported, as a batch may have been there. A zeroed sector in it is reported too.
func TestRoomThatIsDamaged(t *testing.T) {
	for _, at := range []int64{0, 1, grain, 100, 4000} {
		o := options(disk(t))
		l := Open(o, &State{})
		must(t, l.Append([]byte("one"), nil))
		name, _ := newestFile(t, o)
		change(t, o, name, l.Bytes()+at, make([]byte, 512))
		if state := holds(t, o, "one"); state.Torn < 512 {
			t.Errorf("%d bytes are torn", state.Torn)
		}
		must(t, l.Close())
	}
}

// A log counts as unchanged exactly as long as nothing was done to it.
func TestUnchanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := disk(t)
		o := options(m)
		l := Open(o, &State{})
		must(t, l.Append([]byte("first"), nil))
		closed := false
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			_, seen := found(t, o)
			if same, err := seen.Unchanged(o); err != nil || !same {
				rt.Fatalf("nothing was done: %v, %v", same, err)
			}
			switch step := rapid.IntRange(0, 4).Draw(rt, "step"); {
			case closed || step == 0:
				if !closed {
					must(t, l.Close())
				}
				closed = false
				_, state := found(t, o)
				l = Open(o, state)
				must(t, l.Resume(), l.Append([]byte("more"), nil))
			case step == 1:
				must(t, l.Compact(func(give func([]byte) error) error { return give([]byte("all")) }))
			case step == 2:
				must(t, l.Close())
				closed = true
			default:
				must(t, l.Append([]byte(rapid.StringN(0, 9000, -1).Draw(rt, "record")), nil))
			}
			if same, err := seen.Unchanged(o); err != nil || same {
				rt.Fatalf("something was done: %v, %v", same, err)
			}
		}
		if !closed {
			must(t, l.Close())
		}
	})
}
