package store

import (
	"fmt"
	"runtime"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// fullOfLeases returns a store whose host tier is full of leases, with checkpoint 1 on disk.
func fullOfLeases(t *testing.T) (*client, []*operation.Lease) {
	t.Helper()
	s := open(t, cached(1<<20, 16<<20, vfs.NewMem(64<<20)))
	h := newClient(t, s, "h")
	h.putDown(1, random(piece, 1))
	h.evict(1, piece)
	var leases []*operation.Lease
	for k := int64(1000); len(leases) < 10; k++ {
		if _, err := h.h.Lookup(model.Key{Number: k}); err != nil {
			h.mustPut(k, random(piece, uint64(k)))
		}
		l, _, err := h.lease(k, operation.RestoreArgs{})
		if err != nil {
			wants(t, err, status.TierFull)
			break
		}
		leases = append(leases, l)
	}
	return h, leases
}

func TestHostFullOfLeases(t *testing.T) {
	h, leases := fullOfLeases(t)
	h.mustGet(1, random(piece, 1), operation.RestoreArgs{}) // into arrays, past the cache
	_, _, err := h.lease(1, operation.RestoreArgs{})
	wants(t, err, status.TierFull)
	_, err = h.put(5, random(piece, 5))
	wants(t, err, status.TierFull)
	h.mustGet(1, random(piece, 1), operation.RestoreArgs{})

	// One capture waits patiently. A capture without patience still fails at once.
	p, w := newClient(t, h.s, "h"), newClient(t, h.s, "h")
	patient, code, err := p.pending(6, random(piece, 6), operation.CheckpointArgs{Patient: true}, &operation.Outcome{})
	if err != nil || code != status.Pending {
		t.Fatal(code, err)
	}
	waiting, codeW, err := w.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: 1}, Lease: true, Patient: true, FD: w.fd}, &operation.Outcome{})
	if err != nil || codeW != status.Pending {
		t.Fatal(codeW, err)
	}
	_, err = h.put(5, random(piece, 5))
	wants(t, err, status.TierFull)
	_, _, err = h.lease(1, operation.RestoreArgs{})
	wants(t, err, status.TierFull)
	release(t, leases[0])
	release(t, leases[1])
	if err := drive(t, patient, code, p.fd, &operation.Outcome{}); err != nil {
		t.Fatal(err)
	}
	var out operation.Outcome
	if err := drive(t, waiting, codeW, w.fd, &out); err != nil {
		t.Fatal(err)
	}
	for _, l := range append(leases[2:], out.Lease) {
		release(t, l)
	}
	h.mustGet(6, random(piece, 6), operation.RestoreArgs{})
	drained(t, h.s)
}

func TestStoresLeaveNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 20 {
		c := cached(1<<20, 16<<20, vfs.NewMem(32<<20))
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		newClient(t, s, fmt.Sprint(i)).mustPut(1, random(piece, 1))
		shut(t, s)
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}
