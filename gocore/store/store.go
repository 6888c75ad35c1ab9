// Package store drives the engine with real memory, real disks and real time. It copies the bytes, runs the transfers, and returns to every caller an
// operation (Op) that never waits inside the core.
//
// One mutex guards the engine. It is held for microseconds and never during a copy or I/O. Memory that holds checkpoints is mapped, never Go heap.
package store

import (
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/disk/segment"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/copier"
)

// Store is one open instance: tiers, budgets, background work. All methods are safe for concurrent use.
type Store struct {
	set   settings
	began time.Time
	host  *host.Memory // nil without a host tier
	// Memories of the device tiers. The index is the engine's number of the tier: device tiers precede host and disk.
	deviceTiers []*devicememory.Memory
	disk        *segment.Space // nil without a disk tier
	durable     *durableTier   // nil: the disk tier's files vanish when the store closes
	pool        *copier.Pool
	tiers       []int // for each of the engine's tiers: its number in the C contract

	mu        sync.Mutex
	eng       *engine.Engine
	layouts   checkpoint.Layouts
	orphans   orphans
	pools     []*workerPool
	ops       map[*Op]struct{}
	histories map[string]*History
	numbers   []uint64 // handles of histories
	workers   int      // running
	users     int      // workers, operations that access memory, leases, other goroutines; while above zero, the memory stays mapped
	resizing  int      // resize operations that have not ended
	closing   bool
	freed     bool     // the last worker has ended and the disk tier is closed
	ended     []func() // callbacks to run when freed is set
	empty     bool     // users has reached zero after the close, and the memory is being unmapped
	freeErr   error
	undone    error // the error about drops and rules that did not become durable; Close returns it once
	room      diskRoom
	line      timeline
	counters  Counters
	causes    Causes // time that captures waited inside their calls, by cause
	roomless  map[*Op]struct{}
	deferred  deferredVerification
	watchdog  diskWatchdog
	verifier  backgroundVerifier

	unhook  func() // removes the poison callback
	unwatch func() // ends WatchDevices
}

// diskGrain is the unit of space on disk. O_DIRECT requires this alignment on every device in use.
const diskGrain = 4096

// hostGrain aligns regions to cache lines.
const hostGrain = 64

// Assumed rates until the link has been measured: those of a mid-range NVMe drive.
const (
	assumedWriteRate = 1.0e9
	assumedReadRate  = 1.5e9
)

// Open maps the memory and opens the disk space of a new store and starts its workers.
func Open(c Config) (*Store, error) {
	set, err := c.check()
	if err != nil {
		return nil, err
	}
	s := &Store{room: diskRoom{segments: map[int64]*segmentUse{}}, set: set, began: time.Now(), layouts: checkpoint.NewLayouts(set.Describes), ops: map[*Op]struct{}{}, roomless: map[*Op]struct{}{}, histories: map[string]*History{}, watchdog: newWatchdog()}
	s.line.limit = set.Timeline
	if err := s.openTiers(); err != nil {
		s.free()
		return nil, err
	}
	s.pool = copier.NewPool(helpers(set.Copiers))
	s.start()
	return s, nil
}

func (s *Store) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools = s.newPools()
	for _, c := range s.pools {
		for range c.size {
			s.users++
			s.workers++
			safego.Go("transfer worker", func() { s.run(c) })
		}
	}
	if s.host != nil {
		s.host.Start(hostCache{tierCache{s, s.hostTier()}})
	}
	s.startSizing()
	s.askLinks()
	s.startWatching()
	s.startWatchdog()
	s.startVerifier()
	s.unhook = safego.OnPoison(s.notifyAll)
}

func (s *Store) openTiers() error {
	cfg := engine.Config{Workers: s.set.Workers, Flush: s.set.flush, Policy: s.set.policy, Prefetch: s.set.Prefetch, Guess: s.set.Guess, Forget: s.forgetRecord, Catalog: catalogRows{s}}
	if s.verifiesAhead() {
		cfg.VerifyFrom = verifyAheadFrom
	}
	if s.set.Timeline > 0 {
		cfg.Trace = s.note
	}
	if err := s.openDevices(&cfg); err != nil {
		return err
	}
	if s.set.Host != nil {
		if err := s.openHost(); err != nil {
			return err
		}
		cfg.Room = s.roomChanged
		s.tiers = append(s.tiers, status.TierHost)
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{
			Name: "host", Capacity: *s.set.Host, Grain: hostGrain, WriteRate: assumedWriteRate, ReadRate: assumedReadRate,
		})
	}
	if err := s.openDisk(&cfg); err != nil {
		return err
	}
	s.eng = engine.New(cfg)
	if s.disk != nil && s.durable == nil {
		s.room.budget = s.disk.Capacity()
	}
	if s.durable != nil {
		s.recover()
	}
	return nil
}

// openDisk opens the disk tier, if the configuration has one.
func (s *Store) openDisk(cfg *engine.Config) error {
	switch {
	case s.set.Durable:
		if err := s.openDurable(); err != nil {
			return err
		}
	case s.set.Disk == nil:
		return nil
	default:
		capacity := *s.set.Disk / diskGrain * diskGrain
		d, err := segment.Open(segment.Options{FS: s.set.FS, Dir: s.set.Path, Capacity: capacity, Direct: s.set.Direct})
		if err != nil {
			return s.diskError(err)
		}
		s.disk = d
	}
	s.tiers = append(s.tiers, status.TierDisk)
	cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: "disk", Capacity: s.disk.Capacity(), Grain: diskGrain, Remote: true, Durable: s.durable != nil})
	return nil
}

// now is the time since the store was opened, ns. It is the engine's clock.
func (s *Store) now() int64 { return time.Since(s.began).Nanoseconds() }

// clock returns the time of day, which may jump.
func (s *Store) clock() time.Time {
	if s.set.Clock != nil {
		return s.set.Clock()
	}
	return time.Now()
}

// enter takes the lock for a call from outside the package. It fails when the store is closed or the core has panicked.
func (s *Store) enter() error {
	if text, bad := safego.Poisoned(); bad {
		return status.New(status.Poisoned, "%s", text)
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return status.New(status.Closed, "the store is closed")
	}
	return nil
}

// enterToWrite is enter for calls that change the contents of the store. It also fails when the store is open for reading only.
func (s *Store) enterToWrite() error {
	if s.set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only", s.set.Path)
	}
	return s.enter()
}

// leave wakes the callers whose operations have progressed, wakes workers for new transfers, and releases the lock. Every section that changes the
// engine ends with a deferred leave, so that a panic does not leave the lock held.
func (s *Store) leave() {
	defer s.unlock()
	s.notify()
}

func (s *Store) notify() {
	for _, x := range s.eng.TakeWoken() {
		x.(*Op).notifier.notify()
	}
	for _, c := range s.pools {
		if c.resting > 0 && c.pending(s.eng) {
			c.wake.Signal()
		}
	}
	s.lookAtBlocked()
	s.followSizes()
	s.wakeVerifier()
}

// followSizes lets the memories of the tiers follow a change. A store that closes gives them back, without the lock.
func (s *Store) followSizes() {
	if s.closing {
		return
	}
	if s.host != nil {
		s.host.Follow()
	}
	for _, a := range s.deviceTiers {
		a.Follow()
	}
}

// History is one of a store's histories. A store has one value for each name.
type History struct {
	s      *Store
	h      *engine.History
	number uint64

	retention *retention // nil: the history has no rule, and no checkpoint is pruned
}

// Number returns the handle of the history. The first call obtains it from name; later calls return the same handle.
func (h *History) Number(name func(*History) uint64) uint64 {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.number == 0 {
		h.number = name(h)
		h.s.numbers = append(h.s.numbers, h.number)
	}
	return h.number
}

// Ended returns the handles of the histories. ok is true once the store is closed and its workers have ended. No call accepts these handles any more,
// and the handle table would otherwise reference the store until the process exits. Leases do not need them.
func (s *Store) Ended() (histories []uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers, s.closing && s.freed
}

// WhenEnded calls f once Ended returns ok. It calls f directly if the store has ended already, otherwise from a separate goroutine later.
func (s *Store) WhenEnded(f func()) {
	s.mu.Lock()
	ended := s.closing && s.freed
	if !ended {
		s.ended = append(s.ended, f)
	}
	s.mu.Unlock()
	if ended {
		f()
	}
}

// Store returns the store that the history belongs to.
func (h *History) Store() *Store { return h.s }

// History returns the history of this name and creates it if it does not exist.
func (s *Store) History(name string) (*History, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.named(name), nil
}

func (s *Store) named(name string) *History {
	h := s.histories[name]
	if h == nil {
		h = &History{s: s, h: s.eng.History(name)}
		s.histories[name] = h
	}
	return h
}

// Info describes one checkpoint.
type Info struct {
	Ticket              uint64 // 0: the checkpoint is only in the catalog; it is durable, and nothing of it is in progress
	Layout              uint64
	Slot, Payload, Meta int64
	Time                int64 // time of capture, ns since 1970 (UTC); 0: unknown
	Tiers               int32 // bit t is set when tier t of the contract has a complete copy
	Ready               bool  // the fastest tier has a complete copy, so a restore is a hit
}

// Lookup describes the checkpoint of a key. It makes no record of one that only the catalog has, unless it is the first of its layout: the caller may
// ask for the layout next.
func (h *History) Lookup(k model.Key) (Info, error) {
	s := h.s
	if err := s.enter(); err != nil {
		return Info{}, err
	}
	defer s.mu.Unlock()
	if i, ok := h.lookupRow(k); ok {
		return i, nil
	}
	r := h.h.Get(k)
	if r == nil || r.Lent() {
		return Info{}, h.notFound(k)
	}
	b := r.Version
	i := Info{Ticket: r.ID, Layout: b.Layout.ID, Slot: b.Layout.Slot, Payload: b.Layout.Payload, Meta: int64(len(b.Meta)), Time: b.Time}
	for t, number := range s.tiers {
		if a := s.deviceTier(t); s.eng.Complete(r, t) && (a == nil || a.Device.Lost() == nil) {
			i.Tiers |= 1 << number
			i.Ready = i.Ready || t == r.Top()
		}
	}
	return i, nil
}

func (h *History) notFound(k model.Key) error {
	return status.New(status.NotFound, "history %q has no checkpoint %s: it was never written, or dropped, or consumed", h.h.Name, k)
}

// Len returns the number of checkpoints.
func (h *History) Len() (int64, error) {
	if err := h.s.enter(); err != nil {
		return 0, err
	}
	defer h.s.mu.Unlock()
	return int64(h.s.len(h.h)), nil
}

// len returns how many checkpoints of a history can be restored. The lock is held.
func (s *Store) len(h *engine.History) int {
	if s.durable == nil {
		return h.Len()
	}
	return h.Len() + s.durable.notLoaded[h.Name]
}

// Keys returns the keys in the order of their latest write. The lock is not held during the sort.
func (h *History) Keys() ([]model.Key, error) {
	all, err := h.written()
	if err != nil {
		return nil, err
	}
	return inWritingOrder(all), nil
}

func (h *History) written() ([]written, error) {
	if err := h.s.enter(); err != nil {
		return nil, err
	}
	defer h.s.mu.Unlock()
	all := make([]written, 0, h.h.Len())
	h.h.Each(func(r *engine.Record) {
		if !r.Lent() {
			all = append(all, written{r.Written(), r.Key})
		}
	})
	if h.s.durable != nil {
		h.s.durable.eachNotLoaded(h.h, func(k model.Key, serial uint64) { all = append(all, written{int64(serial), k}) })
	}
	return all, nil
}

// Drop removes a checkpoint and cancels its pending flushes. The bytes of existing leases stay exact.
func (h *History) Drop(k model.Key) error {
	if err := h.s.enterToWrite(); err != nil {
		return err
	}
	defer h.s.leave()
	r := h.h.Get(k)
	hidden := r != nil && r.Lent()
	if !h.s.eng.Drop(h.s.now(), h.h, k) || hidden {
		return h.notFound(k)
	}
	return nil
}

// Clear removes every checkpoint and the plan.
func (h *History) Clear() error {
	if err := h.s.enterToWrite(); err != nil {
		return err
	}
	defer h.s.leave()
	h.s.clear(h.h, func() { h.s.eng.Clear(h.s.now(), h.h) })
	return nil
}

// Hint appends to the restore order. It returns how many hints ahead the order is known now, as Outcome.HintsLeft does.
func (h *History) Hint(hints []plan.Hint) (int64, error) {
	if err := h.s.enter(); err != nil {
		return 0, err
	}
	defer h.s.leave()
	if len(hints) > 0 {
		h.s.eng.Hint(h.s.now(), h.h, hints)
	}
	return int64(h.h.HintsLeft()), nil
}

// NextDue takes the next restore of the plan for a loop over the plan. number identifies it for ReturnDue. ok is false when the plan has none.
func (h *History) NextDue() (k model.Key, last bool, number int64, ok bool, err error) {
	if err := h.s.enter(); err != nil {
		return k, false, 0, false, err
	}
	defer h.s.leave()
	k, last, number, ok = h.h.Due().Take()
	return k, last, number, ok, nil
}

// ReturnDue makes a restore due again that NextDue returned and that the caller did not carry out.
func (h *History) ReturnDue(number int64, k model.Key, last bool) error {
	if err := h.s.enter(); err != nil {
		return err
	}
	defer h.s.leave()
	h.h.Due().Return(number, k, last)
	return nil
}

// ClearHints withdraws the restore order.
func (h *History) ClearHints() error {
	if err := h.s.enter(); err != nil {
		return err
	}
	defer h.s.leave()
	h.s.eng.ClearHints(h.s.now(), h.h)
	return nil
}

// Prefetch starts prefetching before the first restore.
func (h *History) Prefetch() error {
	if err := h.s.enter(); err != nil {
		return err
	}
	defer h.s.leave()
	h.s.eng.StartPrefetch(h.s.now(), h.h)
	return nil
}

// Layout returns the description that the caller gave with checkpoints of this layout.
func (s *Store) Layout(id uint64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.layouts.ByID(id); l != nil {
		return l.Text, l.Undescribed()
	}
	return "", status.New(status.NotFound, "no checkpoint or lease has layout %d any more", id)
}

func (s *Store) forgetRecord(r *engine.Record) {
	b := r.Version
	s.orphanCapture(r.ID, b)
	s.deferred.forget(r)
	s.layouts.Give(b.Layout)
}
