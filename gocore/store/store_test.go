package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/copier"
	"velocpy/gocore/plan"
	"velocpy/gocore/status"
)

// client drives a store as the shim does.
type client struct {
	t  testing.TB
	s  *Store
	h  *History
	fd int32
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, s) })
	return s
}

func shut(t testing.TB, s *Store) {
	t.Helper()
	fd := eventfd(t)
	op := s.Close(fd)
	drive(t, op, status.Pending, fd, &Outcome{})
}

func newClient(t testing.TB, s *Store, name string) *client {
	h, err := s.History(name)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, s: s, h: h, fd: eventfd(t)}
}

func eventfd(t testing.TB) int32 {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

// drive steps an operation until it ends; nothing may take longer than the hang guard.
func drive(t testing.TB, op *Op, code status.Code, fd int32, out *Outcome) error {
	t.Helper()
	var err error
	end := time.Now().Add(30 * time.Second)
	for code == status.Pending || code == status.Again {
		if code == status.Pending {
			p := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
			_, _ = unix.Poll(p, 100)
			var buf [8]byte
			_, _ = unix.Read(int(fd), buf[:])
		}
		if time.Now().After(end) {
			t.Fatal("an operation hangs")
		}
		code, err = op.Step(out)
	}
	return err
}

func region(p []byte, offset int64) Region {
	return Region{Mem: copier.Strided{Base: unsafe.Pointer(unsafe.SliceData(p))}, Offset: offset, Bytes: int64(len(p))}
}

func slotOf(p []byte) int64 { return int64(len(p)) }

func (c *client) put(k int64, p []byte) (Outcome, error) { return c.putArgs(k, p, CheckpointArgs{}) }

func (c *client) putArgs(k int64, p []byte, a CheckpointArgs) (Outcome, error) {
	var out Outcome
	a.Key, a.Regions, a.Layout, a.Slot, a.FD = plan.Key{Number: k}, []Region{region(p, 0)}, []byte(fmt.Sprint(len(p))), slotOf(p), c.fd
	if a.Tier == 0 {
		a.Tier = status.TierNone
	}
	op, code, err := c.h.Checkpoint(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out, err
}

func (c *client) get(k int64, n int, a RestoreArgs) ([]byte, Outcome, error) {
	var out Outcome
	p := make([]byte, n)
	a.Key, a.FD, a.Into = plan.Key{Number: k}, c.fd, []Region{region(p, 0)}
	op, code, err := c.h.Restore(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return p, out, err
}

func (c *client) lease(k int64, a RestoreArgs) (*Lease, error) {
	var out Outcome
	a.Key, a.FD, a.Lease = plan.Key{Number: k}, c.fd, true
	op, code, err := c.h.Restore(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out.Lease, err
}

func budget(n int64) *int64 { return &n }

func random(n int, seed uint64) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(p)
	return p
}

func TestHistoryLargerThanTheHostComesBackExactly(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 64 << 10, 100_001, 1<<20 + 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := open(t, Config{Host: budget(4 << 20), Disk: budget(256 << 20), Path: t.TempDir(), Checksum: true, Prefetch: true, Guess: true, Direct: true})
			c := newClient(t, s, "h")
			n := 64
			for k := range n {
				if _, err := c.put(int64(k), random(size, uint64(k))); err != nil {
					t.Fatal(err)
				}
			}
			for k := n - 1; k >= 0; k-- {
				got, _, err := c.get(int64(k), size, RestoreArgs{Last: true})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, random(size, uint64(k))) {
					t.Fatalf("checkpoint %d differs", k)
				}
			}
			st, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if st.Tiers["host"].Used != 0 || st.Tiers["disk"].Used != 0 || st.Restores.Count != int64(n) {
				t.Fatalf("left behind: %+v", st)
			}
			t.Logf("hits %d/%d, distance %.1f", st.Restores.Hits, st.Restores.Count, st.Restores.Distance)
		})
	}
}
