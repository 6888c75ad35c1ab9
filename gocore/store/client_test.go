package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// hang is the time after which a test reports that an operation hangs.
const hang = 8 * time.Second

// client drives a store as the shim does. One goroutine uses it.
type client struct {
	t  testing.TB
	s  *Store
	h  *History
	fd int32
}

// open opens a store, and checks at the end of the test that it has released all memory and files.
func open(t testing.TB, c config.Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shut(t, s)
		gone(t, c)
	})
	return s
}

// durably makes the disk tiers of all tests outlive their stores, unless a test decides otherwise.
var durably = flag.Bool("durably", false, "durable disk tiers")

// reduced makes all tests reduce the checkpoints of their histories by a method. Their bytes then can be compressed.
var reduced = flag.String("reduced", "raw", "method by which histories are reduced, and behind a plus sign a compressor")

// reduction reads a method, and behind a plus sign a compressor.
func reduction(text string) Reduction {
	method, compressor, _ := strings.Cut(text, "+")
	return Reduction{Method: method, Compressor: compressor}
}

// countsDiskBytes skips a test that knows how many bytes of a checkpoint the disk has, where they are encoded.
func countsDiskBytes(t *testing.T) {
	t.Helper()
	if *reduced != "raw" {
		t.Skip("it counts on plain bytes on the disk")
	}
}

// cached returns a configuration whose disk is in memory.
func cached(host, disk int64, fs vfs.FS) config.Config {
	c := config.Config{Path: "/d", Checksum: true, Prefetch: true, Guess: true, Together: true, Direct: true, FS: fs}
	if host > 0 {
		c.Host = &host
	}
	if disk > 0 {
		_, faulty := fs.(*vfs.Faulty) // its rules expect a scratch file
		c.Disk, c.Durable = &disk, *durably && !faulty
	}
	return c
}

func shut(t testing.TB, s *Store) {
	t.Helper()
	fd := eventfd(t)
	if err := driveClose(t, s.Close(fd), fd); err != nil {
		t.Errorf("close: %v", err)
	}
}

func driveClose(t testing.TB, op *operation.Op, fd int32) error {
	t.Helper()
	var out operation.Outcome
	code, err := op.Step(&out)
	if err == nil {
		err = drive(t, op, code, fd, &out)
	}
	return err
}

// leaked is the number of bytes that failed tests have left mapped.
var leaked int64

// mapped returns the mapped memory, without the memory that the driver's double keeps to detect use after free.
func mapped() int64 { return memory.Total() - memory.InUse(double.Purpose) }

// gone checks that no memory is mapped and no file is open any more.
func gone(t testing.TB, c config.Config) {
	t.Helper()
	before := leaked
	defer func() { leaked = mapped() }() // so that only the test that leaks fails
	eventually(t, "memory is given back", func() bool { return mapped() <= before })
	fs := c.FS
	if f, ok := fs.(*vfs.Faulty); ok && f != nil {
		return
	}
	if m, ok := fs.(*vfs.Mem); ok && m.OpenFiles() != 0 {
		t.Errorf("%d files are open", m.OpenFiles())
	}
}

// eventually waits until a condition holds that must come true without further calls.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !so(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("it never happens that %s", what)
		}
	}
}

// drained clears all histories and checks that the store holds none of their memory.
func drained(t testing.TB, s *Store) {
	t.Helper()
	s.Lock()
	var all []*History
	for _, h := range s.histories.byName {
		all = append(all, h)
	}
	s.Unlock()
	for _, h := range all {
		if err := h.Clear(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "an emptied store holds nothing", func() bool {
		s.Lock()
		defer s.Unlock()
		used := int64(0)
		for i := range s.Tiers {
			used += s.Engine.Use(i).Used
		}
		return used == 0 && s.Layouts.Len() == 0 && len(s.Callers) == 0
	})
}

func newClient(t testing.TB, s *Store, name string) *client {
	t.Helper()
	h, err := s.History(name)
	if err != nil {
		t.Fatal(err)
	}
	if *reduced != "raw" && !s.Set.ReadOnly {
		if err := h.Reduce(reduction(*reduced)); err != nil {
			t.Fatal(err)
		}
	}
	return &client{t: t, s: s, h: h, fd: eventfd(t)}
}

func eventfd(t testing.TB) int32 {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

// rung waits at most so long for the eventfd, and resets its counter.
func rung(fd int32, milliseconds int) bool {
	p := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
	for end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond); ; { // signals of the Go runtime interrupt the poll
		left := time.Until(end).Milliseconds()
		if _, err := unix.Poll(p, int(max(left, 0))); err != unix.EINTR || left <= 0 {
			break
		}
	}
	var buf [8]byte
	n, _ := unix.Read(int(fd), buf[:])
	return n == 8
}

// drive steps an operation until it ends. No wait may take longer than hang. After each Pending it waits for the eventfd: without a notification, the
// wake-up was lost.
func drive(t testing.TB, op *operation.Op, code status.Code, fd int32, out *operation.Outcome) error {
	t.Helper()
	var err error
	for end := time.Now().Add(hang); code == status.Pending || code == status.Again; {
		if code == status.Pending {
			woken := rung(fd, 1000)
			if code, err = op.Step(out); !woken && code != status.Pending && !rung(fd, 1000) { // it may have been woken before Step looked
				t.Errorf("an operation could end but its caller was not woken (%v, %v)", code, err)
			}
		} else {
			code, err = op.Step(out)
		}
		if time.Now().After(end) {
			t.Fatalf("an operation hangs: %+v", op)
		}
	}
	return err
}

func region(p []byte, offset int64) model.Region {
	return model.Region{Mem: model.Strided{Base: unsafe.Pointer(unsafe.SliceData(p))}, Offset: offset, Bytes: int64(len(p))}
}

// pending begins a checkpoint of one region and returns the operation.
func (c *client) pending(k int64, p []byte, a operation.CheckpointArgs, out *operation.Outcome) (*operation.Op, status.Code, error) {
	a.Key, a.Regions, a.Layout, a.Slot, a.FD = model.Key{Number: k}, []model.Region{region(p, 0)}, []byte(fmt.Sprint(len(p))), int64(len(p)), c.fd
	if a.Tier == 0 {
		a.Tier = status.TierNone
	}
	return c.h.Checkpoint(&a, out)
}

// write makes a checkpoint with any arguments.
func (c *client) write(a *operation.CheckpointArgs) (operation.Outcome, error) {
	c.t.Helper()
	var out operation.Outcome
	op, code, err := c.h.Checkpoint(a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out, err
}

func (c *client) put(k int64, p []byte) (operation.Outcome, error) {
	return c.putArgs(k, p, operation.CheckpointArgs{})
}

func (c *client) putArgs(k int64, p []byte, a operation.CheckpointArgs) (operation.Outcome, error) {
	c.t.Helper()
	var out operation.Outcome
	op, code, err := c.pending(k, p, a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out, err
}

func (c *client) mustPut(k int64, p []byte) operation.Outcome {
	c.t.Helper()
	out, err := c.put(k, p)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *client) get(k int64, n int, a operation.RestoreArgs) ([]byte, operation.Outcome, error) {
	c.t.Helper()
	var out operation.Outcome
	p := make([]byte, n)
	a.Key, a.FD, a.Into = model.Key{Number: k}, c.fd, []model.Region{region(p, 0)}
	op, code, err := c.h.Restore(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return p, out, err
}

// mustGet restores a checkpoint and compares its bytes.
func (c *client) mustGet(k int64, want []byte, a operation.RestoreArgs) {
	c.t.Helper()
	got, _, err := c.get(k, len(want), a)
	if err != nil {
		c.t.Fatalf("checkpoint %d: %v", k, err)
	}
	if !bytes.Equal(got, want) {
		c.t.Fatalf("checkpoint %d differs", k)
	}
}

// lease restores to a lease and takes it.
func (c *client) lease(k int64, a operation.RestoreArgs) (*operation.Lease, operation.Outcome, error) {
	c.t.Helper()
	l, out, err := c.untaken(k, a)
	if err == nil {
		err = l.Take()
	}
	return l, out, err
}

// untaken is lease without Take.
func (c *client) untaken(k int64, a operation.RestoreArgs) (*operation.Lease, operation.Outcome, error) {
	c.t.Helper()
	var out operation.Outcome
	a.Key, a.FD, a.Lease = model.Key{Number: k}, c.fd, true
	op, code, err := c.h.Restore(&a, &out)
	if err == nil {
		err = drive(c.t, op, code, c.fd, &out)
	}
	return out.Lease, out, err
}

func (c *client) mustLease(k int64, a operation.RestoreArgs) *operation.Lease {
	c.t.Helper()
	l, _, err := c.lease(k, a)
	if err != nil {
		c.t.Fatal(err)
	}
	return l
}

func (c *client) wait(ticket uint64, tier int) error {
	c.t.Helper()
	op, code, err := c.s.Wait(c.h, ticket, tier, c.fd)
	if err != nil {
		return err
	}
	return drive(c.t, op, code, c.fd, &operation.Outcome{})
}

func (c *client) drop(k int64) {
	c.t.Helper()
	if err := c.h.Drop(model.Key{Number: k}); err != nil {
		c.t.Fatal(err)
	}
}

// view returns the first bytes of a lease.
func view(l *operation.Lease, n int) []byte { return unsafe.Slice((*byte)(l.Base), n) }

func release(t testing.TB, l *operation.Lease) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// wants checks the code of an error, and returns it with its details.
func wants(t testing.TB, err error, code status.Code) *status.Error {
	t.Helper()
	var e *status.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("%v, not an error with status %v", err, code)
	}
	return e
}

func random(n int, seed uint64) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	_, _ = r.Read(p)
	if *reduced != "raw" {
		for i := range p {
			p[i] &= 7 // differences of neighbours have 4 bits
		}
	}
	return p
}

// jitter delays calls at random, so that their order varies.
type jitter struct {
	vfs.FS
	most time.Duration
}

func (j jitter) OpenScratch(dir string, direct bool) (vfs.File, error) {
	f, err := j.FS.OpenScratch(dir, direct)
	return jitterFile{f, j.most}, err
}

func (j jitter) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(j), nil }

type jitterFile struct {
	vfs.File
	most time.Duration
}

func (f jitterFile) pause() { time.Sleep(rand.N(f.most)) }

func (f jitterFile) ReadAt(p []byte, off int64) (int, error) {
	f.pause()
	defer f.pause()
	return f.File.ReadAt(p, off)
}

func (f jitterFile) WriteAt(p []byte, off int64) (int, error) {
	f.pause()
	defer f.pause()
	return f.File.WriteAt(p, off)
}
