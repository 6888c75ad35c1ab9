package store

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// A panic lasts for the rest of the process, so each of these cases runs in a process of its own.
func TestPanicFailsEverythingCleanly(t *testing.T) {
	for name := range panics {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestPanicInThisProcess$", "-test.timeout=60s", "-test.v")
			child.Env = append(os.Environ(), "VELOCPY_TEST_PANIC="+name)
			text, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(text), "as it should") {
				t.Fatalf("%v\n%s", err, text)
			}
		})
	}
}

// guarded does what every export does.
func guarded(where string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			safego.Poison(where, v)
		}
	}()
	f()
}

// panics are ways to make the core panic, each with a stalled disk.
var panics = map[string]func(s *Store, h *client, disk *vfs.Rule){
	"in a goroutine that holds nothing": func(s *Store, h *client, disk *vfs.Rule) { safego.Go("test", func() { panic("deliberate") }) },
	"in a call that holds the lock": func(s *Store, h *client, disk *vfs.Rule) {
		guarded("checkpoint", func() {
			broken := &client{t: h.t, s: s, h: &History{s: s}, fd: h.fd}
			_, _ = broken.putArgs(1, nil, operation.CheckpointArgs{AutoKey: true})
		})
	},
	"while callers are told": func(s *Store, h *client, disk *vfs.Rule) {
		guarded("drop", func() {
			s.Lock()
			defer s.Leave()
			s.Blocked[puzzling{}] = struct{}{}
		})
		s.Lock()
		defer s.Unlock()
		clear(s.Blocked)
	},
	"in the copy of a call": func(s *Store, h *client, disk *vfs.Rule) {
		guarded("restore", func() {
			r := h.h.h.Get(model.Key{Number: 2})
			r.Version.Layout.Spans = []model.Span{{Offset: 1 << 40, Bytes: 10}}
			_, _, _ = h.get(2, 10, operation.RestoreArgs{})
		})
	},
	"in a transfer": func(s *Store, h *client, disk *vfs.Rule) {
		h.h.h.Get(model.Key{Number: 1}).Version.Sums = []uint64{} // there should be one
		disk.Release()
	},
	"in the report of a transfer": func(s *Store, h *client, disk *vfs.Rule) {
		s.Lock()
		h.h.h.Get(model.Key{Number: 1}).Hist = nil
		s.Unlock()
		disk.Release()
	},
}

func TestPanicInThisProcess(t *testing.T) {
	cause, ok := panics[os.Getenv("VELOCPY_TEST_PANIC")]
	if !ok {
		t.Skip("only as a child")
	}
	fs, disk := blocked(vfs.OpRead, 64<<20)
	s, err := Open(cached(1<<20, 16<<20, fs))
	if err != nil {
		t.Fatal(err)
	}
	h := newClient(t, s, "h")
	h.putDown(1, random(piece, 1))
	h.evict(1, piece)
	h.mustPut(2, random(10, 2))
	lease := h.mustLease(2, operation.RestoreArgs{})
	disk.Enable()

	type waiting struct {
		op *operation.Op
		fd int32
	}
	var all []waiting
	for i := range 6 { // more loads than there are workers, so that some have not begun
		c := newClient(t, s, "h")
		op, code, err := c.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Lease: i%2 == 0, Into: []model.Region{region(make([]byte, piece), 0)}, FD: c.fd}, &operation.Outcome{})
		if err != nil || code != status.Pending {
			t.Fatal(code, err)
		}
		all = append(all, waiting{op, c.fd})
	}
	began := time.Now()
	cause(s, h, disk)
	for _, w := range all {
		code, err := status.Pending, error(nil)
		for code == status.Pending || code == status.Again {
			if !rung(w.fd, 5000) {
				t.Fatal("nobody is told")
			}
			code, err = w.op.Step(&operation.Outcome{})
			if time.Since(began) > 5*time.Second {
				t.Fatal("too late")
			}
		}
		if code != status.OK { // the disk may have been faster than the panic
			wants(t, err, status.Poisoned)
		}
		written := foreign(t, w.fd)
		if written() {
			t.Fatal("a descriptor is written to after the end")
		}
	}
	eventually(t, "the panic is known", func() bool { _, bad := safego.Poisoned(); return bad })
	_, err = h.put(5, nil)
	wants(t, err, status.Poisoned)
	_, _, err = h.get(2, 10, operation.RestoreArgs{})
	wants(t, err, status.Poisoned)
	wants(t, h.wait(0, status.TierDisk), status.Poisoned)
	wants(t, h.h.Drop(model.Key{Number: 2}), status.Poisoned)
	wants(t, h.h.Clear(), status.Poisoned)
	_, err = s.Stats()
	wants(t, err, status.Poisoned)
	_, err = s.History("new")
	wants(t, err, status.Poisoned)
	if string(view(lease, 10)) != string(random(10, 2)) {
		t.Fatal("a lease is not what it was")
	}
	free := make(chan struct{})
	go func() {
		s.Lock()
		close(free)
		s.Unlock()
	}()
	select {
	case <-free:
	case <-time.After(hang):
		t.Fatal("a panic keeps the lock")
	}
	t.Log("as it should")
}

// puzzling is a capture whose cause for waiting cannot be told.
type puzzling struct{}

func (puzzling) UpdateCause(int64)     { panic("it is not known what the capture waits for") }
func (puzzling) Cause() engine.Blocker { return engine.ByOther }
