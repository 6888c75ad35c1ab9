package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const hang = 10 * time.Second

func faulty(t *testing.T, rules ...*Rule) (*Faulty, File) {
	t.Helper()
	f := NewFaulty(NewMem(8<<20), rules...)
	file, err := f.OpenScratch("/", false)
	if err != nil {
		t.Fatal(err)
	}
	return f, file
}

func TestRuleSelects(t *testing.T) {
	buf := make([]byte, 100)
	for _, c := range []struct {
		name string
		rule *Rule
		want []bool // which of the writes at 0, 100, 200, 300 fail
	}{
		{"all", &Rule{Ops: OpWrite}, []bool{true, true, true, true}},
		{"another kind", &Rule{Ops: OpRead | OpSync}, []bool{false, false, false, false}},
		{"any kind", &Rule{Ops: OpAny, File: 1}, []bool{true, true, true, true}},
		{"from the third", &Rule{Ops: OpWrite, Skip: 2}, []bool{false, false, true, true}},
		{"the second alone", &Rule{Ops: OpWrite, Skip: 1, Times: 1}, []bool{false, true, false, false}},
		{"a range", &Rule{Ops: OpWrite, From: 150, To: 210}, []bool{false, true, true, false}},
		{"a range's borders", &Rule{Ops: OpWrite, From: 100, To: 200}, []bool{false, true, false, false}},
		{"without end", &Rule{Ops: OpWrite, From: 200}, []bool{false, false, true, true}},
		{"another file", &Rule{Ops: OpWrite, File: 2}, []bool{false, false, false, false}},
	} {
		c.rule.Err = unix.EIO
		// Added after the open, so that OpAny does not match the open.
		f, file := faulty(t)
		f.Add(c.rule)
		fired := int64(0)
		for i, want := range c.want {
			n, err := file.WriteAt(buf, int64(i)*100)
			if errors.Is(err, unix.EIO) != want || want && n != 0 || !want && n != len(buf) {
				t.Errorf("%s: write %d gives %d, %v", c.name, i, n, err)
			}
			if want {
				fired++
			}
		}
		if c.rule.Fired() != fired || f.Calls(OpWrite) != 4 || f.Calls(OpWrite|OpOpen) != 5 {
			t.Errorf("%s: fired %d, %d writes counted", c.name, c.rule.Fired(), f.Calls(OpWrite))
		}
	}
}

func TestEveryKindCanFail(t *testing.T) {
	rule := &Rule{Err: unix.EIO}
	rule.Disable()
	f, file := faulty(t, rule)
	calls := map[Op]func() error{
		OpMkdir:    func() error { return f.MkdirAll("/x") },
		OpStat:     func() error { _, err := f.Stat("/"); return err },
		OpFree:     func() error { _, err := f.Free("/"); return err },
		OpOpen:     func() error { _, err := f.OpenScratch("/", false); return err },
		OpRead:     func() error { _, err := file.ReadAt(make([]byte, 1), 0); return err },
		OpWrite:    func() error { _, err := file.WriteAt(make([]byte, 1), 0); return err },
		OpAllocate: func() error { return file.Allocate(0, 10) },
		OpPunch:    func() error { return file.PunchHole(0, 1) },
		OpSize:     func() error { _, err := file.Size(); return err },
		OpSync:     func() error { return file.Sync() },
		OpTruncate: func() error { return file.Truncate(1) },
		OpRemove:   func() error { f.inner.(*Mem).PutFile("/gone"); return f.Remove("/gone") },
		OpList:     func() error { _, err := f.List("/"); return err },
		OpSyncDir:  func() error { return f.SyncDir("/") },
		OpLock: func() error {
			l, err := f.Lock("/lock")
			if err == nil {
				err = l.Close()
			}
			return err
		},
		OpHold: func() error {
			held, err := f.HoldDir("/")
			if err == nil {
				err = held.Close()
			}
			return err
		},
		OpClose: func() error { return file.Close() },
	}
	if want := bits.OnesCount(uint(OpAny)); len(calls) != want {
		t.Fatalf("%d kinds tested, %d exist", len(calls), want)
	}
	if err := calls[OpWrite](); err != nil {
		t.Fatal(err)
	}
	for op := Op(1); op < OpAny; op <<= 1 {
		before := f.Calls(op)
		if op != OpClose {
			if err := calls[op](); err != nil {
				t.Errorf("kind %b while disabled: %v", op, err)
			}
		}
		rule.Enable()
		if err := calls[op](); !errors.Is(err, unix.EIO) {
			t.Errorf("kind %b: %v", op, err)
		}
		rule.Disable()
		if want := before + 2; op != OpClose && f.Calls(op) != want {
			t.Errorf("kind %b: %d calls counted, want %d", op, f.Calls(op), want)
		}
	}
	if err := calls[OpRead](); err == nil {
		t.Error("a failing close must close all the same")
	}
}

func TestShortTransfers(t *testing.T) {
	data := random(make([]byte, 100))
	_, file := faulty(t,
		&Rule{Ops: OpWrite, Skip: 1, Times: 1, Short: true, ShortBytes: 40, Err: unix.ENOSPC},
		&Rule{Ops: OpRead, Times: 1, Short: true, ShortBytes: 30})
	if _, err := file.WriteAt(make([]byte, 100), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := file.WriteAt(data, 0); n != 40 || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write: %d, %v", n, err)
	}
	got := make([]byte, 100)
	if n, err := file.ReadAt(got, 0); n != 30 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read: %d, %v", n, err)
	}
	want := append(append([]byte{}, data[:40]...), make([]byte, 60)...)
	if n, err := file.ReadAt(got, 0); n != 100 || err != nil || !bytes.Equal(got, want) {
		t.Errorf("read back: %d, %v", n, err)
	}
}

func TestFlippedBits(t *testing.T) {
	for _, direct := range []bool{false, true} {
		f := NewFaulty(NewMem(1<<20), &Rule{Ops: OpRead, Times: 1, Flip: []int64{3, 8*DefaultAlign + 8}})
		file, err := f.OpenScratch("/", direct)
		if err != nil {
			t.Fatal(err)
		}
		data := random(blockAligned(DefaultAlign))
		if _, err := file.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
		got := blockAligned(DefaultAlign)
		for round, want := range []map[int]byte{{0: 8, 1: 1}, {}} {
			if _, err := file.ReadAt(got, 0); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if got[i]^data[i] != want[i] {
					t.Fatalf("round %d, byte %d: %#x flipped, want %#x", round, i, got[i]^data[i], want[i])
				}
			}
		}
		kept := bytes.Clone(data)
		f.Add(&Rule{Ops: OpWrite, Flip: []int64{17}})
		if _, err := file.WriteAt(data, DefaultAlign); err != nil || !bytes.Equal(data, kept) {
			t.Fatalf("%v, or the caller's buffer was changed", err)
		}
		if _, err := file.ReadAt(got, DefaultAlign); err != nil {
			t.Fatal(err)
		}
		if got[2]^data[2] != 2 || !bytes.Equal(got[3:], data[3:]) || !bytes.Equal(got[:2], data[:2]) {
			t.Error("not exactly bit 17 was flipped on the medium")
		}
	}
}

func TestBlockUntilRelease(t *testing.T) {
	rule := &Rule{Ops: OpWrite, Block: true}
	_, file := faulty(t, rule)
	var all sync.WaitGroup
	for i := range 3 {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := file.WriteAt([]byte{1}, int64(i)); err != nil {
				t.Error(err)
			}
		}()
	}
	for deadline := time.Now().Add(hang); rule.Blocked() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls blocked", rule.Blocked())
		}
	}
	if _, err := file.ReadAt(make([]byte, 1), 0); err != io.EOF {
		t.Errorf("something was written: %v", err)
	}
	rule.Release()
	rule.Release()
	all.Wait()
	if _, err := file.WriteAt([]byte{1}, 0); err != nil || rule.Blocked() != 0 {
		t.Errorf("%v, %d blocked", err, rule.Blocked())
	}
}

func TestDelay(t *testing.T) {
	_, file := faulty(t, &Rule{Ops: OpSync, Delay: 30 * time.Millisecond})
	start := time.Now()
	if err := file.Sync(); err != nil || time.Since(start) < 30*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestFilesAreNumbered(t *testing.T) {
	f := NewFaulty(NewMem(1<<20), &Rule{Ops: OpWrite, File: 2, Err: unix.EIO})
	for want := 1; want <= 3; want++ {
		file, err := f.OpenScratch("/", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt([]byte{1}, 0); errors.Is(err, unix.EIO) != (want == 2) {
			t.Errorf("file %d: %v", want, err)
		}
	}
}
