// Package store drives the engine with real memory, real disks and real time: it copies the bytes, runs the transfers, and
// gives every caller an operation that never waits inside the core.
//
// One mutex guards the engine; it is held for microseconds and never during a copy or I/O. Memory that holds checkpoints is
// mapped, never Go heap.
package store

import (
	"sync"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
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
	// Devices, by the engine's number of their tiers: these come first.
	deviceTiers []*devicememory.Memory
	disk        *segment.Space // nil without a disk tier
	durable        *durableTier          // nil: the disk tier goes with the store
	pool        *copier.Pool
	tiers       []int // the contract's number of each of the engine's tiers

	mu        sync.Mutex
	eng       *engine.Engine
	layouts   layouts
	orphans    orphans
	pools     []*workerPool
	ops       map[*Op]struct{}
	histories map[string]*History
	numbers   []uint64 // handles of histories
	workers   int      // running
	users     int      // workers, operations that touch memory, leases: while there are any, the memory stays
	resizing  int      // operations that wait for devices to give memory back
	closing   bool
	freed     bool     // the workers have gone, and the disk space
	ended     []func() // to be called then
	empty     bool     // so has everybody else, and the memory
	freeErr   error
	undone    error // what Close has to tell once
	room      diskRoom
	line      timeline
	counters  Counters
	causes    Causes // of the captures' waits in calls
	roomless  map[*Op]struct{}
	deferred   deferredVerification
	watchdog     diskWatchdog
	verifier    backgroundVerifier

	unhook  func() // takes the poison callback back
	unwatch func() // ends WatchDevices
}

// diskGrain is the unit of room on disk: what O_DIRECT demands of every device in use.
const diskGrain = 4096

// hostGrain keeps regions on cache lines.
const hostGrain = 64

// Assumed until the link has been measured: a middling NVMe drive.
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
	s := &Store{room: diskRoom{segments: map[int64]*segmentUse{}}, set: set, began: time.Now(), layouts: newLayouts(set.Describes), ops: map[*Op]struct{}{}, roomless: map[*Op]struct{}{}, histories: map[string]*History{}, watchdog: newWatchdog()}
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
	cfg := engine.Config{Workers: s.set.Workers, Flush: s.set.flush, Policy: s.set.policy, Prefetch: s.set.Prefetch, Guess: s.set.Guess, Forget: s.forgetRecord, Removed: s.recordRemoved}
	if s.verifiesAhead() {
		cfg.ProveFrom = verifyAheadFrom
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

// openDisk opens the disk tier, if there is to be one.
func (s *Store) openDisk(cfg *engine.Config) error {
	switch {
	case s.set.Durable:
		if err := s.openDurable(); err != nil {
			return err
		}
		cfg.Keep, cfg.Find = s.keepsRoom, s.loadRow
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
	cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: "disk", Capacity: s.disk.Capacity(), Grain: diskGrain, Remote: true})
	return nil
}

// now is the time since the store was opened: the engine's clock.
func (s *Store) now() int64 { return time.Since(s.began).Nanoseconds() }

// clock tells the time of day, which may jump.
func (s *Store) clock() time.Time {
	if s.set.Clock != nil {
		return s.set.Clock()
	}
	return time.Now()
}

// enter takes the lock for a call from outside; it fails when the store is closed or the core has panicked.
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

// enterToWrite is enter for what changes what the store holds.
func (s *Store) enterToWrite() error {
	if s.set.ReadOnly {
		return status.New(status.ReadOnly, "the store in %q is open for reading only", s.set.Path)
	}
	return s.enter()
}

// leave tells those whose operations have moved, sends workers to new work, and gives the lock back. Every section that changes the engine
// ends with it, by defer: a panic must not leave the lock behind.
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
	if s.host != nil {
		s.host.Follow()
	}
	for _, a := range s.deviceTiers {
		a.Follow()
	}
	s.wakeVerifier()
}

// History is one of a store's histories. There is one value for each name.
type History struct {
	s      *Store
	h      *engine.History
	number uint64

	retention *retention // nil: everything stays
}

// Number is the handle of the history: what name returned when it was asked for first.
func (h *History) Number(name func(*History) uint64) uint64 {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.number == 0 {
		h.number = name(h)
		h.s.numbers = append(h.s.numbers, h.number)
	}
	return h.number
}

// Ended returns the handles of the histories once the store is closed and its workers have gone: no handle is good for anything then, and the table that
// has them would keep the store for as long as the process lives. Leases need none.
func (s *Store) Ended() (histories []uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers, s.closing && s.freed
}

// WhenEnded calls f once Ended says so: at once, or in a goroutine of its own.
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

// Store is the store that the history belongs to.
func (h *History) Store() *Store { return h.s }

// History returns the history of this name and creates it when there is none.
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
	Ticket, Layout      uint64
	Slot, Payload, Meta int64
	Time                int64 // when it was captured, in ns since 1970 (UTC); 0: not known
	Tiers               int32 // bit t: a complete copy in tier t of the contract
	Ready               bool  // a restore would find it in the fastest tier
}

// Lookup describes the checkpoint of a key.
func (h *History) Lookup(k model.Key) (Info, error) {
	s := h.s
	if err := s.enter(); err != nil {
		return Info{}, err
	}
	defer s.mu.Unlock()
	r := h.h.Get(k)
	if r == nil || r.Lent() {
		return Info{}, h.notFound(k)
	}
	b := r.Body.(*body)
	i := Info{Ticket: r.ID, Layout: b.layout.id, Slot: b.layout.Slot, Payload: b.layout.payload, Meta: int64(len(b.meta)), Time: b.time}
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

// Len is the number of checkpoints.
func (h *History) Len() (int64, error) {
	if err := h.s.enter(); err != nil {
		return 0, err
	}
	defer h.s.mu.Unlock()
	return int64(h.s.len(h.h)), nil
}

// len is how many checkpoints of a history can be restored. The lock is held.
func (s *Store) len(h *engine.History) int {
	if s.durable == nil {
		return h.Len()
	}
	return h.Len() + s.durable.notLoaded[h.Name]
}

// Keys lists the keys in the order of their latest writing. The lock is not held while they are sorted.
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

// Drop removes a checkpoint. It owes no flush afterwards; leases of it stay exact.
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

// Hint appends to the restore order and returns how far ahead it is known now: HintsLeft of an Outcome.
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

// NextDue takes the next restore of the plan for a loop over it, and the number that ReturnDue takes. ok=false: the plan has none.
func (h *History) NextDue() (k model.Key, last bool, number int64, ok bool, err error) {
	if err := h.s.enter(); err != nil {
		return k, false, 0, false, err
	}
	defer h.s.leave()
	k, last, number, ok = h.h.Due().Take()
	return k, last, number, ok, nil
}

// ReturnDue makes a restore due again that NextDue gave and that did not happen.
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

// Layout returns the description that checkpoints of this layout came with.
func (s *Store) Layout(id uint64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.layouts.byID[id]; l != nil {
		return l.Text, l.undescribed()
	}
	return "", status.New(status.NotFound, "no checkpoint or lease has layout %d any more", id)
}

func (s *Store) forgetRecord(r *engine.Record) {
	b := r.Body.(*body)
	s.orphanCapture(r.ID, b)
	s.deferred.forget(r)
	s.layouts.give(b.layout)
}
