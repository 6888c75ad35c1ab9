package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
)

// walker is a client that makes random calls on a history of its own and predicts their results with a model.
type walker struct {
	*client
	r         *rand.Rand
	reference map[int64][]byte // the bytes of each key
	leases    []lent
	faulty    bool // the disk may fail: then calls may fail, but no bytes may differ
	tight     bool // an accepted checkpoint may be lost for lack of room
	stays     []unread
}

type lent struct {
	lease  *operation.Lease
	want   []byte
	hidden int64 // key of a checkpoint that returns when the lease is released, if the model has no newer version; -1: none
}

// unread is the borrowed source of a checkpoint.
type unread struct {
	ticket uint64
	key    int64
	bytes  []byte
}

func (w *walker) size() int {
	switch w.r.IntN(10) {
	case 0:
		return 0
	case 1, 2:
		return w.r.IntN(300_000)
	case 3:
		return 4096 * w.r.IntN(40)
	default:
		return w.r.IntN(5000)
	}
}

// fine tells whether an operation succeeded. An error that is not allowed fails the test.
func (w *walker) fine(err error, allowed ...status.Code) bool {
	w.t.Helper()
	if err == nil {
		return true
	}
	code := status.CodeOf(err)
	for _, c := range allowed {
		if c == code {
			return false
		}
	}
	if !w.faulty || code != status.IO || !errors.Is(err, syscall.EIO) {
		w.t.Errorf("%v: %v", code, err)
	}
	return false
}

func (w *walker) step() {
	k := w.r.Int64N(30)
	switch x := w.r.IntN(100); {
	case x < 30:
		w.write(k)
	case x < 50:
		w.restore(k)
	case x < 62:
		w.lend(k)
	case x < 72:
		w.letGo()
	case x < 78:
		w.dropKey(k)
	case x < 79:
		w.clear()
	case x < 86:
		w.hint()
	case x < 90:
		w.someRegions(k)
	case x < 94:
		w.giveUp(k)
	case x < 96:
		w.fine(w.wait(0, []int{status.TierNone, status.TierDisk}[w.r.IntN(2)]), status.TierFull, status.Unavailable)
	case x < 98:
		if _, err := w.s.Stats(); err != nil {
			w.t.Error(err)
		}
		w.s.Timeline()
	default:
		w.look()
	}
	w.settleSources(false)
}

func (w *walker) write(k int64) {
	p := random(w.size(), w.r.Uint64())
	a := operation.CheckpointArgs{Tier: status.TierNone, SourceStays: w.r.IntN(4) == 0}
	if w.s.Disk != nil && w.r.IntN(3) == 0 {
		a.Tier = status.TierDisk
	}
	out, err := w.putArgs(k, p, a)
	if !w.fine(err, status.TierFull) {
		return
	}
	w.reference[k] = p
	w.replaced(k)
	if a.SourceStays {
		w.stays = append(w.stays, unread{out.Ticket, k, p})
	}
}

// settleSources overwrites the sources that are captured or gone. On a failing disk, a checkpoint may turn out to be lost.
func (w *walker) settleSources(all bool) {
	rest := w.stays[:0]
	for _, x := range w.stays {
		if all {
			w.fine(w.wait(x.ticket, status.TierNone), status.Dropped, status.TierFull)
		}
		st, err := w.s.Ticket(x.ticket)
		switch {
		case err != nil:
			w.t.Error(err)
		case st.Failed != 0 && st.Gone:
			if !w.faulty && !w.tight {
				w.t.Error("a checkpoint was lost")
			}
			if p, ok := w.reference[x.key]; ok && len(p) == len(x.bytes) && bytes.Equal(p, x.bytes) {
				delete(w.reference, x.key)
			}
		case st.Captured || st.Gone:
			if p, ok := w.reference[x.key]; ok && len(p) > 0 && len(x.bytes) > 0 && &p[0] == &x.bytes[0] {
				w.reference[x.key] = bytes.Clone(p)
			}
			clear(x.bytes)
		default:
			rest = append(rest, x)
		}
	}
	w.stays = rest
}

func (w *walker) compare(what string, k int64, got, want []byte) {
	w.t.Helper()
	if !bytes.Equal(got, want) {
		w.t.Errorf("%s of %d differs", what, k)
	}
}

// known tells whether a restore of k may succeed. A key that the model does not have must not be found.
func (w *walker) known(k int64, err error) bool {
	w.t.Helper()
	_, ok := w.reference[k]
	if !ok {
		wants(w.t, err, status.NotFound)
	}
	return ok
}

func (w *walker) restore(k int64) {
	want := w.reference[k]
	got, _, err := w.get(k, len(want), operation.RestoreArgs{Last: w.r.IntN(5) == 0, Peek: w.r.IntN(5) == 0})
	w.after("restore", k, got, err)
}

// after compares the bytes of a restore, and removes consumed or lost keys from the model.
func (w *walker) after(what string, k int64, got []byte, err error) {
	w.t.Helper()
	if !w.known(k, err) {
		return
	}
	if c := status.CodeOf(err); (w.faulty || w.tight) && err != nil && (c == status.NotFound || c == status.TierFull) {
		w.settleSources(true) // it must be one that was lost
		if _, still := w.reference[k]; still {
			w.t.Errorf("%s: %d is not found: %v", what, k, err)
		}
		return
	}
	if w.fine(err) {
		w.compare(what, k, got, w.reference[k])
	}
	w.sync(k)
}

// sync removes a key from the model if it was consumed, by the call or because of a hint.
func (w *walker) sync(k int64) {
	if _, err := w.h.Lookup(model.Key{Number: k}); err != nil {
		delete(w.reference, k)
	}
}

func (w *walker) lend(k int64) {
	want := w.reference[k]
	l, _, err := w.untaken(k, operation.RestoreArgs{Last: w.r.IntN(5) == 0})
	if !w.known(k, err) {
		return
	}
	if err != nil && status.CodeOf(err) == status.TierFull {
		w.letGo()
		return
	}
	if err != nil {
		w.after("lease", k, nil, err)
		return
	}
	w.compare("lease", k, view(l, len(want)), want)
	want = bytes.Clone(want)
	x := lent{l, want, -1}
	if !l.Last || w.r.IntN(2) == 0 {
		w.use(&x)
	} else {
		x.hidden = k
	}
	w.leases = append(w.leases, x)
	if w.sync(k); l.Last && w.reference[k] != nil {
		w.t.Errorf("checkpoint %d is there although it was lent for the last time", k)
	}
	if len(w.leases) > 4 {
		w.letGo()
	}
}

func (w *walker) letGo() {
	if len(w.leases) == 0 {
		return
	}
	i := w.r.IntN(len(w.leases))
	x := w.leases[i]
	w.leases[i] = w.leases[len(w.leases)-1]
	w.leases = w.leases[:len(w.leases)-1]
	w.compare("an old lease", -1, view(x.lease, len(x.want)), x.want)
	if x.hidden >= 0 && w.r.IntN(3) == 0 {
		w.use(&x)
	}
	release(w.t, x.lease)
	if x.hidden >= 0 {
		w.reference[x.hidden] = x.want // the lease was not taken
		if w.faulty || w.tight {
			w.sync(x.hidden)
		}
	}
}

// use takes a lease, and writes into it where that is allowed.
func (w *walker) use(x *lent) {
	x.hidden = -1
	if err := x.lease.Take(); err != nil {
		w.t.Error(err)
	}
	if x.lease.Writable {
		for i := range view(x.lease, len(x.want)) {
			view(x.lease, len(x.want))[i], x.want[i] = 7, 7
		}
	}
}

// replaced records that a hidden checkpoint does not return.
func (w *walker) replaced(k int64) {
	for i := range w.leases {
		if x := &w.leases[i]; x.hidden == k {
			x.hidden = -1
		}
	}
}

func (w *walker) dropKey(k int64) {
	err := w.h.Drop(model.Key{Number: k})
	w.replaced(k)
	if _, ok := w.reference[k]; !ok {
		wants(w.t, err, status.NotFound)
	} else if err != nil && !w.faulty && !w.tight {
		w.t.Error(err)
	}
	delete(w.reference, k)
}

func (w *walker) clear() {
	if err := w.h.Clear(); err != nil {
		w.t.Error(err)
	}
	clear(w.reference)
	for i := range w.leases {
		w.leases[i].hidden = -1
	}
}

func (w *walker) hint() {
	if w.r.IntN(6) == 0 {
		_ = w.h.ClearHints()
		return
	}
	var hints []plan.Hint
	for range w.r.IntN(40) {
		op := []plan.Op{plan.Restore, plan.Restore, plan.Last, plan.Advance}[w.r.IntN(4)]
		hints = append(hints, plan.Hint{Op: op, Key: model.Key{Number: w.r.Int64N(35)}, Steps: w.r.Int64N(5)})
	}
	if _, err := w.h.Hint(hints); err != nil {
		w.t.Error(err)
	}
	_ = w.h.Prefetch()
}

// someRegions restores none of the regions, with and without arrays. There is nothing to compare, but nothing may leak.
func (w *walker) someRegions(k int64) {
	var out operation.Outcome
	op, code, err := w.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: k}, Select: []int32{}, FD: w.fd, Peek: true}, &out)
	if err == nil {
		err = drive(w.t, op, code, w.fd, &out)
	}
	w.after("nothing", k, w.reference[k], err)
}

// giveUp begins an operation and cancels it, perhaps after a step.
func (w *walker) giveUp(k int64) {
	var out operation.Outcome
	var op *operation.Op
	var code status.Code
	var err error
	p := random(w.size(), w.r.Uint64())
	capture, before := w.r.IntN(2) == 0, w.ticket(k)
	if capture {
		op, code, err = w.pending(k, p, operation.CheckpointArgs{Patient: true}, &out)
	} else {
		op, code, err = w.h.Restore(&operation.RestoreArgs{Key: model.Key{Number: k}, Lease: true, FD: w.fd, Peek: true}, &out)
	}
	if err == nil && code != status.OK && w.r.IntN(2) == 0 {
		time.Sleep(time.Duration(w.r.IntN(200)) * time.Microsecond)
		code, err = op.Step(&out)
	}
	if err == nil && code != status.OK {
		now := bytes.Clone(p)
		op.Cancel()
		clear(p)
		if after := w.ticket(k); capture && after != before && after != 0 { // captured before the cancel; 0: the version before was lost meanwhile
			w.reference[k] = now
			w.replaced(k)
		}
		if rung(w.fd, 0); w.r.IntN(4) == 0 && rung(w.fd, 1) {
			w.t.Error("a cancelled operation rings")
		}
		return
	}
	switch {
	case capture && w.fine(err, status.TierFull):
		w.reference[k] = p
		w.replaced(k)
	case !capture && err == nil:
		release(w.t, out.Lease)
	case !capture && status.CodeOf(err) != status.TierFull:
		w.after("given up", k, nil, err)
	}
}

func (w *walker) ticket(k int64) uint64 {
	i, _ := w.h.Lookup(model.Key{Number: k})
	return i.Ticket
}

func (w *walker) look() {
	if w.faulty || w.tight {
		w.settleSources(true)
	}
	n, err := w.h.Len()
	if err != nil || int(n) != len(w.reference) {
		w.t.Errorf("%d checkpoints, not %d (%v)", n, len(w.reference), err)
	}
	keys, err := w.h.Keys()
	if err != nil || len(keys) != len(w.reference) {
		w.t.Errorf("%d keys, not %d (%v)", len(keys), len(w.reference), err)
	}
}

func (w *walker) finish() {
	for len(w.leases) > 0 {
		w.letGo()
	}
	w.settleSources(true)
	for k := range w.reference {
		w.restore(k)
	}
}

// rounds returns how many steps each walker makes; VELOCPY_STEPS changes it.
func rounds(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("VELOCPY_STEPS")); err == nil {
		return n
	}
	if testing.Short() {
		return 200
	}
	return 600
}

func TestManyClientsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("VELOCPY_SEED"), 10, 64); err == nil {
		seed = n
	}
	for name, c := range map[string]struct {
		host, disk int64
		flush      string
		policy     string
		faulty     bool
		real       bool // a disk of this machine instead of one in memory
	}{
		"lazy":             {host: 1 << 20, disk: 64 << 20},
		"real":             {host: 1 << 20, disk: 64 << 20, real: true},
		"eager":            {host: 1 << 20, disk: 64 << 20, flush: "eager"},
		"tiny host":        {host: 320 << 10, disk: 64 << 20, policy: "lru"},
		"tiny disk":        {host: 1 << 20, disk: 2 << 20, policy: "fifo"},
		"host":             {host: 16 << 20},
		"disk":             {disk: 64 << 20},
		"failing":          {host: 1 << 20, disk: 64 << 20, faulty: true},
		"failing, no host": {disk: 64 << 20, faulty: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("VELOCPY_SEED=%d", seed)
			var fs vfs.FS = jitter{vfs.NewMem(256 << 20), 100 * time.Microsecond}
			if c.faulty {
				fs = moody{fs}
			}
			cfg := cached(c.host, c.disk, fs)
			if c.real {
				cfg.FS, cfg.Path = nil, t.TempDir()
			}
			cfg.Flush, cfg.Policy, cfg.Timeline, cfg.Debug = c.flush, c.policy, 1000, true
			s := open(t, cfg)
			var all sync.WaitGroup
			for g := range 4 {
				w := &walker{
					client: newClient(t, s, fmt.Sprint(g)), r: rand.New(rand.NewPCG(seed, uint64(g))), reference: map[int64][]byte{}, faulty: c.faulty, tight: c.disk == 2<<20,
				}
				all.Add(1)
				go func() {
					defer all.Done()
					for range rounds(t) {
						if w.step(); t.Failed() {
							return
						}
					}
					w.finish()
				}()
			}
			all.Wait()
			if !t.Failed() {
				drained(t, s)
			}
		})
	}
}

// moody is a disk on which calls fail occasionally.
type moody struct{ vfs.FS }

func (m moody) OpenScratch(dir string, direct bool) (vfs.File, error) {
	f, err := m.FS.OpenScratch(dir, direct)
	return moodyFile{f}, err
}

func (m moody) HoldDir(string) (vfs.HeldDir, error) { return vfs.ByName(m), nil }

type moodyFile struct{ vfs.File }

func (f moodyFile) ReadAt(p []byte, off int64) (int, error) {
	if rand.IntN(20) == 0 {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

func (f moodyFile) WriteAt(p []byte, off int64) (int, error) {
	if rand.IntN(20) == 0 {
		_, _ = f.File.WriteAt(p[:len(p)/2&^4095], off)
		return 0, syscall.EIO
	}
	if rand.IntN(20) == 0 {
		return 0, syscall.EIO
	}
	return f.File.WriteAt(p, off)
}
