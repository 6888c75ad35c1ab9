package vfs

import (
	"io"
	"path/filepath"
	"sync"
	"time"
)

// Op is a set of kinds of calls.
type Op int

const (
	OpMkdir Op = 1 << iota
	OpStat
	OpFree
	OpOpen
	OpRead
	OpWrite
	OpAllocate
	OpPunch
	OpSize
	OpSync
	OpTruncate
	OpRemove
	OpList
	OpSyncDir
	OpLock
	OpHold
	OpClose

	OpAny = OpClose<<1 - 1
)

// Rule selects calls of a Faulty, and the fault that they get. Set the exported fields before use, and do not change them afterwards; the methods are
// safe for concurrent use at any time.
//
// Conditions: all that are not zero must hold.
type Rule struct {
	Ops      Op     // kinds of calls
	File     int    // number of the file: 1 is the first one opened
	Name     string // last part of the name under which the file was opened
	From, To int64  // only calls whose range overlaps [From, To); To 0 means unbounded
	Skip     int64  // number of matching calls that pass first
	Times    int64  // number of calls that get the fault; 0: unlimited

	// Faults, applied in this order; zero fields have no effect.
	Delay time.Duration // delays the call
	Block bool          // blocks the call until Release
	Err   error         // fails the call
	Short bool          // with Err (io.ErrUnexpectedEOF if nil): a read or write transfers its first ShortBytes bytes
	// ShortBytes is the length of a short transfer.
	ShortBytes int
	// Flip lists bits that a successful read or write flips, counted from the start of the transfer and modulo its length. The buffer of a write is not
	// changed.
	Flip []int64

	mu      sync.Mutex
	off     bool
	seen    int64
	fired   int64
	blocked int
	gate    chan struct{}
	open    bool
}

// Disable lets all further calls pass. Blocked calls stay blocked until Release.
func (r *Rule) Disable() { r.set(true) }

// Enable undoes Disable. A rule starts enabled.
func (r *Rule) Enable() { r.set(false) }

func (r *Rule) set(off bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = off
}

// Release unblocks all blocked calls, and stops the rule from blocking further ones.
func (r *Rule) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		r.open = true
		close(r.gateLocked())
	}
}

// Seen counts the calls that met the conditions while the rule was enabled, Fired those of them that got the fault.
func (r *Rule) Seen() int64  { return r.read(func() int64 { return r.seen }) }
func (r *Rule) Fired() int64 { return r.read(func() int64 { return r.fired }) }

// Blocked is the number of calls that wait for Release.
func (r *Rule) Blocked() int { return int(r.read(func() int64 { return int64(r.blocked) })) }

func (r *Rule) read(get func() int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return get()
}

func (r *Rule) gateLocked() chan struct{} {
	if r.gate == nil {
		r.gate = make(chan struct{})
	}
	return r.gate
}

// fires counts the call and tells whether it gets the fault.
func (r *Rule) fires(op Op, file int, name string, off, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.off, r.Ops != 0 && r.Ops&op == 0, r.File != 0 && r.File != file, r.Name != "" && r.Name != name,
		off+n <= r.From && r.From > 0, r.To > 0 && off >= r.To:
		return false
	}
	r.seen++
	if r.seen <= r.Skip || r.Times > 0 && r.fired >= r.Times {
		return false
	}
	r.fired++
	return true
}

func (r *Rule) stall() {
	if r.Delay > 0 {
		time.Sleep(r.Delay)
	}
	if !r.Block {
		return
	}
	r.mu.Lock()
	gate := r.gateLocked()
	r.blocked++
	r.mu.Unlock()
	<-gate
	r.mu.Lock()
	r.blocked--
	r.mu.Unlock()
}

// Faulty passes calls to another file system, except those that a rule selects. It counts all calls.
type Faulty struct {
	inner FS
	*faults
}

// faults are the rules and counts that a Faulty shares with its held directories.
type faults struct {
	mu    sync.Mutex
	rules []*Rule
	calls map[Op]int64
	files int
}

// NewFaulty wraps inner. The first rule that fires applies.
func NewFaulty(inner FS, rules ...*Rule) *Faulty {
	return &Faulty{inner: inner, faults: &faults{rules: rules, calls: map[Op]int64{}}}
}

// Add appends a rule and returns it.
func (f *faults) Add(r *Rule) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
	return r
}

// Calls counts the calls of the given kinds.
func (f *faults) Calls(ops Op) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum int64
	for op, n := range f.calls {
		if op&ops != 0 {
			sum += n
		}
	}
	return sum
}

// meet counts a call, blocks it if a rule says so, and returns the rule.
func (f *faults) meet(op Op, file int, name string, off, n int64) *Rule {
	f.mu.Lock()
	f.calls[op]++
	rules := f.rules
	f.mu.Unlock()
	for _, r := range rules {
		if r.fires(op, file, name, off, n) {
			r.stall()
			return r
		}
	}
	return nil
}

// plain handles calls that transfer no bytes.
func (f *faults) plain(op Op, file int, name string, off, n int64) error {
	if r := f.meet(op, file, name, off, n); r != nil {
		return r.Err
	}
	return nil
}

// MkdirAll implements FS.
func (f *Faulty) MkdirAll(dir string) error {
	if err := f.plain(OpMkdir, 0, "", 0, 0); err != nil {
		return err
	}
	return f.inner.MkdirAll(dir)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (Info, error) {
	if err := f.plain(OpStat, 0, "", 0, 0); err != nil {
		return Info{}, err
	}
	return f.inner.Stat(name)
}

// Free implements FS.
func (f *Faulty) Free(dir string) (int64, error) {
	if err := f.plain(OpFree, 0, "", 0, 0); err != nil {
		return 0, err
	}
	return f.inner.Free(dir)
}

// OpenScratch implements FS.
func (f *Faulty) OpenScratch(dir string, direct bool) (File, error) {
	return f.opened("", func() (File, error) { return f.inner.OpenScratch(dir, direct) })
}

// Create implements FS.
func (f *Faulty) Create(name string, direct bool) (File, error) {
	return f.opened(name, func() (File, error) { return f.inner.Create(name, direct) })
}

// Open implements FS.
func (f *Faulty) Open(name string, write, direct bool) (File, error) {
	return f.opened(name, func() (File, error) { return f.inner.Open(name, write, direct) })
}

func (f *Faulty) opened(name string, open func() (File, error)) (File, error) {
	f.mu.Lock()
	number := f.files + 1
	f.mu.Unlock()
	base := filepath.Base(name)
	if err := f.plain(OpOpen, number, base, 0, 0); err != nil {
		return nil, err
	}
	inner, err := open()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files++
	return &faultyFile{File: inner, fs: f.faults, number: f.files, name: base}, nil
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.plain(OpRemove, 0, "", 0, 0); err != nil {
		return err
	}
	return f.inner.Remove(name)
}

// List implements FS.
func (f *Faulty) List(dir string) ([]string, error) {
	if err := f.plain(OpList, 0, "", 0, 0); err != nil {
		return nil, err
	}
	return f.inner.List(dir)
}

// Lock implements FS.
func (f *Faulty) Lock(name string) (Lock, error) {
	if err := f.plain(OpLock, 0, "", 0, 0); err != nil {
		return nil, err
	}
	return f.inner.Lock(name)
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(dir string) error {
	if err := f.plain(OpSyncDir, 0, "", 0, 0); err != nil {
		return err
	}
	return f.inner.SyncDir(dir)
}

// HoldDir implements FS.
func (f *Faulty) HoldDir(dir string) (HeldDir, error) {
	if err := f.plain(OpHold, 0, "", 0, 0); err != nil {
		return nil, err
	}
	inner, err := f.inner.HoldDir(dir)
	if err != nil {
		return nil, err
	}
	return &faultyDir{Faulty{inner, f.faults}, inner}, nil
}

type faultyDir struct {
	Faulty
	dir HeldDir
}

func (f *faultyDir) Whereabouts() Whereabouts { return f.dir.Whereabouts() }
func (f *faultyDir) Close() error             { return f.dir.Close() }

type faultyFile struct {
	File
	fs     *faults
	number int
	name   string
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	r := f.fs.meet(OpRead, f.number, f.name, off, int64(len(p)))
	if r == nil {
		return f.File.ReadAt(p, off)
	}
	if r.Short {
		return r.short(f.File.ReadAt, p, off)
	}
	if r.Err != nil {
		return 0, r.Err
	}
	n, err := f.File.ReadAt(p, off)
	r.flip(p[:n])
	return n, err
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	r := f.fs.meet(OpWrite, f.number, f.name, off, int64(len(p)))
	if r == nil {
		return f.File.WriteAt(p, off)
	}
	if r.Short {
		return r.short(f.File.WriteAt, p, off)
	}
	if r.Err != nil {
		return 0, r.Err
	}
	n, err := f.File.WriteAt(p, off)
	if len(r.Flip) == 0 || err != nil {
		return n, err
	}
	return n, f.corrupt(r, off, n)
}

// corrupt flips bits in the written range, in units that direct files allow.
func (f *faultyFile) corrupt(r *Rule, off int64, n int) error {
	for _, bit := range r.Flip {
		if n == 0 {
			return nil
		}
		at := off + bit/8%int64(n)
		align := int64(f.Align())
		block := alignedBlock(int(align))
		start := at &^ (align - 1)
		got, err := f.File.ReadAt(block, start)
		if err != nil && err != io.EOF {
			return err
		}
		block[at-start] ^= 1 << (bit % 8)
		if !f.Direct() {
			block = block[:got]
		}
		if _, err := f.File.WriteAt(block, start); err != nil {
			return err
		}
	}
	return nil
}

// short transfers the first bytes, rounded down to the unit of a direct file.
func (r *Rule) short(call func([]byte, int64) (int, error), p []byte, off int64) (int, error) {
	n, err := call(p[:min(len(p), r.ShortBytes)], off)
	if err == nil {
		err = r.Err
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (r *Rule) flip(p []byte) {
	for _, bit := range r.Flip {
		if len(p) > 0 {
			p[bit/8%int64(len(p))] ^= 1 << (bit % 8)
		}
	}
}

func (f *faultyFile) Allocate(off, n int64) error {
	if err := f.fs.plain(OpAllocate, f.number, f.name, off, n); err != nil {
		return err
	}
	return f.File.Allocate(off, n)
}

func (f *faultyFile) PunchHole(off, n int64) error {
	if err := f.fs.plain(OpPunch, f.number, f.name, off, n); err != nil {
		return err
	}
	return f.File.PunchHole(off, n)
}

func (f *faultyFile) Size() (int64, error) {
	if err := f.fs.plain(OpSize, f.number, f.name, 0, 0); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.plain(OpTruncate, f.number, f.name, 0, 0); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync with a fault counts as attempted by the system: no later Sync makes the earlier writes durable.
func (f *faultyFile) Sync() error {
	if err := f.fs.plain(OpSync, f.number, f.name, 0, 0); err != nil {
		if m, ok := f.File.(*memFile); ok {
			m.node.leaveBehind()
		}
		return err
	}
	return f.File.Sync()
}

// Close closes the inner file even when it returns an error, as the real one does.
func (f *faultyFile) Close() error {
	failed := f.fs.plain(OpClose, f.number, f.name, 0, 0)
	if err := f.File.Close(); err != nil {
		return err
	}
	return failed
}
