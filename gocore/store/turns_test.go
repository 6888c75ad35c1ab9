package store

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// meeting records the results of the goroutines that step and cancel one operation.
type meeting struct {
	mu     sync.Mutex
	ends   int // goroutines that got the operation's end
	leases []*operation.Lease
	wrong  []string
}

func (m *meeting) step(op *operation.Op) (ended bool) {
	var out operation.Outcome
	code, err := op.Step(&out)
	if code == status.Pending || code == status.Again {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case code == status.OK && err == nil:
		m.ends++
		if out.Lease != nil {
			m.leases = append(m.leases, out.Lease)
		}
	case code != status.Stale:
		m.wrong = append(m.wrong, fmt.Sprint(code, err))
	}
	return true
}

// Whatever the operation, goroutines may step and cancel it at the same time. It ends once, and leaves nothing behind. The test is meant for the race
// detector, too.
func TestStepAndCancelMeet(t *testing.T) {
	const size = 300_000
	kinds := map[string]func(h *client, mem []byte, rule *vfs.Rule) (*operation.Op, status.Code, error){
		"lease": func(h *client, _ []byte, _ *vfs.Rule) (*operation.Op, status.Code, error) {
			return h.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, FD: h.fd, Lease: true}, &operation.Outcome{})
		},
		"into": func(h *client, into []byte, _ *vfs.Rule) (*operation.Op, status.Code, error) {
			return h.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, FD: h.fd, Into: []model.Region{region(into, 0)}}, &operation.Outcome{})
		},
		"ticket": func(h *client, _ []byte, _ *vfs.Rule) (*operation.Op, status.Code, error) {
			out := h.mustPut(10, random(size, 10))
			return h.s.Wait(h.h, out.Ticket, status.TierDisk, h.fd)
		},
		"checkpoint": func(h *client, from []byte, _ *vfs.Rule) (*operation.Op, status.Code, error) {
			for k := int64(10); ; k++ {
				if op, code, err := h.pending(k, from, operation.CheckpointArgs{}, &operation.Outcome{}); err != nil || code == status.Pending {
					return op, code, err
				}
			}
		},
		"close": func(h *client, _ []byte, rule *vfs.Rule) (*operation.Op, status.Code, error) {
			h.mustPut(10, random(size, 10))
			flushed, _, err := h.s.Wait(h.h, 0, status.TierDisk, h.fd)
			if err != nil {
				return nil, 0, err
			}
			flushed.Cancel()
			eventually(h.t, "the flush runs", func() bool { return rule.Blocked() > 0 })
			op := h.s.Close(h.fd)
			code, err := op.Step(&operation.Outcome{})
			return op, code, err
		},
	}
	for name, begin := range kinds {
		for round := range 25 {
			t.Run(fmt.Sprint(name, round), func(t *testing.T) { meet(t, begin, round%2 == 0) })
		}
	}
}

// meet begins an operation on a stalled disk. It lets the disk go on while goroutines step and, if cancels is set, cancel the operation.
func meet(t *testing.T, begin func(h *client, mem []byte, rule *vfs.Rule) (*operation.Op, status.Code, error), cancels bool) {
	const size = 300_000
	fs, rule := blocked(vfs.OpRead|vfs.OpWrite, 64<<20)
	s := open(t, cached(1<<20, 32<<20, fs))
	defer rule.Release()
	h := newClient(t, s, "h")
	p := random(size, 1)
	h.putDown(1, p)
	h.evict(1, size)
	rule.Enable()
	mem := random(size, 2)
	op, code, err := begin(h, mem, rule)
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	var m meeting
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 3 {
		all.Add(1)
		go func() {
			defer all.Done()
			for <-start; !m.step(op); {
			}
		}()
	}
	if cancels {
		for range 2 {
			all.Add(1)
			go func() {
				defer all.Done()
				<-start
				op.Cancel()
			}()
		}
	}
	close(start)
	rule.Release()
	all.Wait()
	if m.wrong != nil || m.ends > 1 || !cancels && m.ends == 0 {
		t.Fatalf("ended %d times, and %v", m.ends, m.wrong)
	}
	for _, l := range m.leases {
		if !bytes.Equal(view(l, size), p) {
			t.Error("the lease differs")
		}
		release(t, l)
	}
	if s.Closing {
		return
	}
	other := newClient(t, s, "h")
	other.mustGet(1, p, operation.RestoreArgs{})
	drained(t, s)
}
