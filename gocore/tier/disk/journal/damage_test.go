package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// compacted is a log of one file, which has a snapshot of many parts and no batch after it, with its records.
func compacted(t testing.TB, m *vfs.Mem) (name string, records []string) {
	t.Helper()
	l := Open(options(m), &State{})
	for i := range 50 {
		record := fmt.Sprint(i, strings.Repeat("-", i*97))
		must(t, l.Append([]byte(record), nil))
		records = append(records, record)
	}
	must(t, l.Compact(all(records)))
	names, err := m.List("/s")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return names[0], records
}

func all(records []string) func(give func([]byte) error) error {
	return func(give func([]byte) error) error {
		for _, record := range records {
			if err := give([]byte(record)); err != nil {
				return err
			}
		}
		return nil
	}
}

func overwrite(t testing.TB, m *vfs.Mem, name string, at int64, p []byte) {
	t.Helper()
	f, err := m.Open("/s/"+name, true, false)
	must(t, err)
	_, err = f.WriteAt(p, at)
	must(t, err, f.Close())
}

// If both complete frames of a snapshot are lost, the absence of older files proves that it was complete; if there is an older file, that one counts.
func TestASnapshotOfWhichNothingSaysThatItIsComplete(t *testing.T) {
	m := disk(t)
	name, records := compacted(t, m)
	end := int64(len(whole(t, m, "/s/"+name)))
	for _, at := range []int64{completeAt, end - completeBytes} {
		overwrite(t, m, name, at, []byte("damage"))
	}
	got, state := found(t, options(m))
	if !slices.Equal(got, records) || !harm(state) || state.Last != 50 {
		t.Errorf("%d records, %+v", len(got), state)
	}
	older, err := m.Create("/s/"+fileName(1), false)
	must(t, err)
	p := appendFrame(nil, place{store, 1, 0}, kindBegin, 0, begin{}.bytes())
	p = appendFrame(p, place{store, 1, int64(len(p))}, kindBatch, 1, appendRecord(nil, []byte("older")))
	_, err = older.WriteAt(p, 0)
	must(t, err, older.Close())
	if got, state := found(t, options(m)); !slices.Equal(got, []string{"older"}) || state.Torn > 0 {
		t.Errorf("%q, %+v", got, state)
	}
}

// The first version wrote one complete frame: if it is lost and nothing follows, the same holds.
func TestAnOldSnapshotOfWhichNothingSaysThatItIsComplete(t *testing.T) {
	m := disk(t)
	f, err := m.Create("/s/"+fileName(2), false)
	must(t, err)
	p := whole(t, vfs.OS(), "testdata/version-1/"+fileName(2))
	_, err = f.WriteAt(p[:112], 0)
	must(t, err, f.Close())
	if got, state := found(t, options(m)); !slices.Equal(got, []string{"one", "two"}) || !harm(state) {
		t.Errorf("%q, %+v", got, state)
	}
}

// A truncated file counts as damaged, wherever it ends.
func TestASnapshotThatEndsEarly(t *testing.T) {
	m := disk(t)
	name, records := compacted(t, m)
	full := whole(t, m, "/s/"+name)
	for size := int64(len(full)) - completeBytes; size > partsAt; size -= 1000 {
		f, err := m.Open("/s/"+name, true, false)
		must(t, err, f.Truncate(size), f.Close())
		got, state := found(t, options(m))
		if complete := size == int64(len(full))-completeBytes; harm(state) == complete || complete != (len(got) == len(records)) {
			t.Fatalf("%d of %d bytes: %d of %d records, %+v", size, len(full), len(got), len(records), state)
		}
		if !slices.Equal(got, records[:len(got)]) || state.Torn > 0 {
			t.Fatalf("%d of %d bytes: %+v", size, len(full), state)
		}
	}
}

// An unreadable end of the log is damage, not an unfinished write; all other frames are read.
func TestAnEndThatCannotBeRead(t *testing.T) {
	m := disk(t)
	l := Open(options(m), &State{})
	var ends []int64 // of batches
	for i := range 30 {
		must(t, l.Append([]byte(strings.Repeat(string(rune('a'+i%26)), 300)), nil))
		ends = append(ends, l.Bytes())
	}
	must(t, l.Close())
	size := l.Bytes()
	for from := int64(0); from < size; from += mediumUnit {
		fs := vfs.NewFaulty(m, &vfs.Rule{Ops: vfs.OpRead, From: max(from, 1), Err: unix.EIO})
		var got int
		state, err := Read(options(fs), func([]byte) error { got++; return nil })
		if from == 0 {
			if !errors.Is(err, unix.EIO) {
				t.Error(err)
			}
			continue
		}
		must(t, err)
		want, _ := slices.BinarySearch(ends, from+1) // batches that end before
		if got != want || !harm(state) || state.Torn > 0 {
			t.Fatalf("without what is behind byte %d: %d of %d batches, %+v", from, got, want, state)
		}
		if d := state.Damage[len(state.Damage)-1]; d.From != uint64(want)+1 || d.To != Unknown || !strings.Contains(d.String(), "cannot be read") {
			t.Fatalf("without what is behind byte %d: %v", from, d)
		}
	}
}

// A newest file that cannot be read at all is damage too.
func TestANewestFileThatCannotBeRead(t *testing.T) {
	m, byBatch := small(t)
	fs := vfs.NewFaulty(m, &vfs.Rule{Ops: vfs.OpRead, Name: fileName(3), Err: unix.EIO})
	got, state := found(t, options(fs))
	if want := slices.Concat(byBatch[0], byBatch[3], byBatch[4]); !slices.Equal(got, want) || !harm(state) || state.Torn > 0 {
		t.Errorf("%q, %+v", got, state)
	}
}

// A disk that fails all reads is not asked for every sector, and its own error is returned.
func TestADiskThatIsGone(t *testing.T) {
	m := disk(t)
	l := Open(options(m), &State{})
	must(t, l.Append(make([]byte, 20<<20), nil), l.Close())
	fs := vfs.NewFaulty(m, &vfs.Rule{Ops: vfs.OpRead, Err: unix.EIO})
	if _, err := Read(options(fs), nil); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	if n := fs.Calls(vfs.OpRead); n > 2*mostProbes {
		t.Errorf("%d reads", n)
	}
}

// Other errors end the read.
func TestAnErrorThatIsNoMediums(t *testing.T) {
	m, _ := small(t)
	for skip := range int64(20) {
		rule := &vfs.Rule{Ops: vfs.OpRead | vfs.OpOpen | vfs.OpSize | vfs.OpList, Skip: skip, Err: unix.EACCES}
		_, err := Read(options(vfs.NewFaulty(m, rule)), func([]byte) error { return nil })
		if rule.Fired() > 0 != errors.Is(err, unix.EACCES) {
			t.Errorf("call %d: %v", skip, err)
		}
	}
}
