// Package engine is the policy of the checkpoint cache: which tier holds which checkpoint, and which transfers run when (Maurya et al., HPDC'23,
// section 4). It decides flushes, prefetches and evictions. It is a pure state machine: every call takes the time as an argument. Next hands
// transfers out, Done reports them back. The engine never sleeps, locks, allocates buffers or touches bytes. The store drives it with real memory and
// disks, the simulator with a virtual clock; both run this same code.
//
// The caller serialises all calls.
//
// The engine consists of parts. Most have state of their own, which their own methods write; the others keep theirs in the tiers, links, histories and
// objects.
//
//	part          files                                   state of its own
//	captures      capture.go, sooner.go, blocker.go       how many captures are being copied
//	checkpoints   record.go, records.go, owned.go         the records by their slots, the owners of objects without a checkpoint
//	copies        copy.go                                 none: that of tiers and objects
//	objects       object.go                               none: that of objects
//	dependencies  need.go                                 copies that no other copy needs any more
//	forms         form.go                                 none: that of objects and links
//	rooms         room.go                                 that claims have to be served again; a buffer
//	predictions   predict.go                              a buffer
//	budgets       resize.go, reserve.go, retire.go        how many releases of room are under way
//	flushes       flush.go, refused.go                    none: that of links (dirty.go has their heaps)
//	forecasts     forecast.go                             how many bytes are still to be captured
//	loads         load.go                                 none: that of links
//	prefetches    prefetch.go, turns.go, evictable.go     the histories whose prefetchers may have work
//	orders        order.go, pace.go                       the places and paces of the restore orders, by lane
//	restores      restore.go, pin.go                      the restores that wait, how many copy out
//	readings      reading.go                              how many readings and verifications are under way
//	verifications verification.go                         the histories with copies to verify
//	relocations   relocate.go                             none: that of objects
//	transfers     transfer.go, want.go, aside.go          the transfers past the faster tiers, how many are running
//	waiters       wait.go, giveup.go                      the waits for tiers, why captures were lost
//
// What all parts share is in engine.go (tiers, links, histories), stats.go, catalog.go and errors.go.
package engine

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/bandwidth"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/plan"
)

// MaxTiers bounds the hierarchy: several devices side by side, then host, disk, archive.
const MaxTiers = 8

// FlushMode says when a checkpoint is flushed to the next tier.
type FlushMode uint8

// Eager flushes every checkpoint as soon as it is captured. Lazy flushes only as much as space will demand: it keeps a part of each tier evictable.
// It begins with the checkpoints that the restore order needs last.
const (
	Lazy FlushMode = iota
	Eager
)

// TierConfig describes one tier and its link to the tier below.
type TierConfig struct {
	Name     string
	Capacity int64 // bytes; a hard budget
	Grain    int64 // sizes are rounded up to multiples of this, offsets aligned to it; 0: 1
	// The attributes. The engine decides by them, never by the place of a tier in the list.
	//
	// Remote: callers cannot address its bytes. Captures into it and restores from it go by transfers.
	Remote bool
	// Durable: the tier outlives the engine, and Config.Catalog lists the checkpoints in it. Every tier below a durable one is durable too: the copy
	// in the upper one may be evicted when the lower one has the bytes.
	Durable bool
	// Referring: copies in the tier may need the bytes of others there, also of checkpoints that are gone. Config.Catalog tells which room is needed. A durable
	// tier with a catalog is asked the same.
	Referring bool
	// Private: it takes only checkpoints whose top tier it is, as the memory of one of several devices does. Every other tier is shared. The tier
	// below a tier is the next shared one of the list.
	Private bool
	// Device: the memory of a device. The call that captures queues the copy in the order of the caller's work on the device, also from a source that
	// stays. The host does not read the bytes: a transfer moves them to a shared memory before a remote tier can have them, and only loads verify them.
	Device bool
	// WriteRate and ReadRate are the assumed rates (bytes/s) of the link to the next tier down, until the engine has measured them.
	WriteRate, ReadRate float64
}

// Config is fixed for the life of an Engine.
type Config struct {
	Tiers  []TierConfig // fastest first
	Flush  FlushMode
	Policy evict.Kind
	// Workers is how many transfers the caller runs at once over a link, per direction; 0: 1.
	Workers  int
	Prefetch bool
	Guess    bool
	// Stay makes captures wait for room in their tier even where a lower tier would take them sooner; for comparisons.
	Stay bool
	// VerifyFrom is the least size (bytes) of copies that are verified ahead of leases (verification.go); 0: none are.
	VerifyFrom int64
	// Forget tells that a record is gone and no tier holds bytes of it any more; may be nil.
	Forget func(*Record)
	// Room tells that an object has been given room in tier t, or has given it back; may be nil. It must not call the engine.
	Room func(t int, off, n int64, taken bool)
	// Expect predicts how many bytes a record will have in a form, when a flush asks for room for it: otherwise it gets that of the bound, and
	// leaves a gap behind what it needs. It must not call the engine; nil: no prediction.
	Expect  func(r *Record, f Form) int64
	Catalog Catalog     // of the durable tiers; nil: none
	Trace   func(Event) // every event, called while the caller holds its lock; nil: none
}

// lowWater is the part of a tier (as a divisor of its capacity) that lazy flushing keeps evictable or empty while bytes come in. It is room for a
// burst of captures. Its price is as many bytes flushed that might have been consumed in the tier. If bytes come in faster than the link takes them
// away, every idle moment of the link becomes a wait later. Then flushing begins at rushWater already.
const (
	lowWater  = 4
	rushWater = 2
)

// With fewer fragments than wholeTable, an eviction decision is algorithm 1 (Maurya et al., HPDC'23) over the whole table. Beyond, it looks at
// scanLimit fragments where room was made last, and goes on only if it finds none evictable there. So its cost does not grow with the store.
const (
	wholeTable = 4096
	scanLimit  = 128
)

// These bound, per link, the prefetches that have room reserved but have not ended. Either a few of them are allowed, or as many small ones as a slow
// tier delivers at its full rate. They cannot be evicted before they have ended, so most of the tier stays free for other claims.
const (
	fewLoads  = 8
	loadBytes = 16 << 20
	loadShare = 8 // the prefetches of a link may occupy this part of the tier (as a divisor)
	mostLoads = 512
)

// Engine holds all the state of one store's cache. What it does is done by its parts, each of them one concern; the package comment lists them.
type Engine struct {
	*state
	*captures
	*checkpoints
	*copies
	*objects
	*dependencies
	*forms
	*rooms
	*predictions
	*budgets
	*flushes
	*forecasts
	*loads
	*prefetches
	*orders
	*restores
	*readings
	*verifications
	*relocations
	*transfers
	*waiters
}

// state is what the parts share, and how they reach one another.
type state struct {
	cfg       Config
	tiers     []*tier
	links     []*link    // by their upper tier
	histories []*History // by lane
	byName    map[string]*History
	outlives  bool  // a catalog lists the checkpoints of a tier
	count     int64 // operations so far: the clock of staleness
	woken     []any
	Stats     Stats

	captures      *captures
	checkpoints   *checkpoints
	copies        *copies
	objects       *objects
	dependencies  *dependencies
	forms         *forms
	rooms         *rooms
	predictions   *predictions
	budgets       *budgets
	flushes       *flushes
	forecasts     *forecasts
	loads         *loads
	prefetches    *prefetches
	orders        *orders
	restores      *restores
	readings      *readings
	verifications *verifications
	relocations   *relocations
	transfers     *transfers
	waiters       *waiters
}

// tier is one level of the hierarchy.
type tier struct {
	TierConfig
	index     int
	table     *fragment.Table[*Object]
	bytes     [fragment.Held + 1]int64 // by class
	claims    fifo[*claim]
	version   uint64 // grows when a fragment became evictable or free
	hand      fragment.ID
	captured  int64 // size of the largest recent capture: prefetches leave headroom for it
	captures  int64 // state.count at the last capture
	inflow    inflow
	verifying int   // verifications and readings under way in this tier
	arriving  int   // captures, flushes and spills into this tier, under way
	copying   int   // restores under way that copy out of this tier, once for each copy that they pin
	needs     int   // copies in it that need another one there
	pinned    int64 // bytes of fragments that are pinned
	leaving   leaving
	reserved  reserved
	listed    bool // a catalog lists the checkpoints in it
	retired   []span
	idle      reserved // the reserved part of retired
	// idleBytes is the size of idle.
	idleBytes int64
	// Released bytes of retired become idle only while the tier has more than allotted bytes that are not idle. At 0 all of them become idle.
	allotted int64
}

// inflow estimates how fast bytes come into a tier from the tiers above or from callers.
type inflow struct {
	count          int64   // state.count at the last arrival
	at             int64   // its time
	bytes, between float64 // moving averages: bytes of an arrival, ns between two arrivals
}

// arrived records an arrival of that many bytes.
func (f *inflow) arrived(now, count, bytes int64) {
	if f.between == 0 {
		f.bytes, f.between = float64(bytes), float64(max(now-f.at, 1))
	}
	const weight = 0.2
	f.bytes += weight * (float64(bytes) - f.bytes)
	f.between += weight * (float64(now-f.at) - f.between)
	f.at, f.count = now, count
}

// faster tells whether bytes come in faster than a rate (bytes/s).
func (f *inflow) faster(rate float64) bool { return f.bytes*1e9 > rate*f.between }

// pressing is faster with the time since the last arrival counted as well.
func (f *inflow) pressing(now int64, rate float64) bool {
	return f.bytes*1e9 > rate*max(f.between, float64(now-f.at))
}

// link joins a tier to the one below it: links[t] is the one below tier t.
type link struct {
	upper, lower int
	down, up     *bandwidth.Estimator
	straight     *bandwidth.Estimator // captures that cross it from the caller's memory; nil until one was measured
	crossing     []*Transfer          // downward, under way
	ratios
	encode   encoderCosts
	dirty    dirty // complete only in the upper tier, without a queued flush
	urgent   fifo[*Object]
	normal   fifo[*Object]
	demand   fifo[*Object] // loads that a restore waits for
	ahead    fifo[*Object] // prefetches, which no restore waits for yet
	queued   int           // flushes queued (urgent or normal), each counted once
	flushing int           // of these, running
	backlog  int64         // time at which the flushes queued so far are predicted to end
	loads    int           // loads with room reserved that have not ended
	loading  int64         // their bytes
	refused  refused       // needs that the lower tier had no room for
	passable int64         // upper bound of the dirty bytes that could be flushed although some flushes are refused; unknown: not counted
	paused   uint64        // version of the lower tier plus one, when the next flush had to wait for a flush further down
	stuck    int           // objects whose flush failed and that no caller has asked to retry
	err      error         // why the latest flush failed
}

// New returns the engine of an empty store.
func New(cfg Config) *Engine {
	cfg.Workers = max(cfg.Workers, 1)
	e := assemble(&state{cfg: cfg, byName: map[string]*History{}})
	for i, c := range cfg.Tiers {
		t := &tier{TierConfig: c, index: i, table: fragment.New[*Object](c.Capacity), hand: fragment.None, listed: c.Durable && cfg.Catalog != nil}
		t.bytes[fragment.Gap] = c.Capacity
		e.tiers = append(e.tiers, t)
		e.outlives = e.outlives || c.Durable && cfg.Catalog != nil
	}
	e.join()
	e.transfers.init()
	return e
}

// assemble makes the parts of an engine, each with the state that all share.
func assemble(s *state) *Engine {
	s.captures = &captures{state: s}
	s.checkpoints = &checkpoints{state: s}
	s.copies = &copies{state: s}
	s.objects = &objects{state: s}
	s.dependencies = &dependencies{state: s}
	s.forms = &forms{state: s}
	s.rooms = &rooms{state: s, wholeTable: wholeTable, scanLimit: scanLimit}
	s.predictions = &predictions{state: s}
	s.budgets = &budgets{state: s}
	s.flushes = &flushes{state: s}
	s.forecasts = &forecasts{state: s, forecast: forecast{surprise: -confidence}}
	s.loads = &loads{state: s}
	s.prefetches = &prefetches{state: s}
	s.orders = &orders{state: s}
	s.restores = &restores{state: s, waiting: map[*Record][]*Restore{}, streamFrom: leastStreamed}
	s.readings = &readings{state: s}
	s.verifications = &verifications{state: s}
	s.relocations = &relocations{state: s}
	s.transfers = &transfers{state: s}
	s.waiters = &waiters{state: s, durable: map[*Record][]*Wait{}, lost: map[uint64]error{}}
	return &Engine{
		state: s, captures: s.captures, checkpoints: s.checkpoints, copies: s.copies, objects: s.objects, dependencies: s.dependencies, forms: s.forms,
		rooms: s.rooms, predictions: s.predictions, budgets: s.budgets, flushes: s.flushes, forecasts: s.forecasts, loads: s.loads,
		prefetches: s.prefetches, orders: s.orders, restores: s.restores, readings: s.readings, verifications: s.verifications,
		relocations: s.relocations, transfers: s.transfers, waiters: s.waiters,
	}
}

// join links every tier to the next shared one.
func (s *state) join() {
	for i, c := range s.cfg.Tiers {
		below := slices.IndexFunc(s.cfg.Tiers[i+1:], func(c TierConfig) bool { return !c.Private })
		if below < 0 {
			return // nor has any later tier one
		}
		l := &link{upper: i, lower: i + 1 + below, down: bandwidth.New(c.WriteRate), up: bandwidth.New(c.ReadRate), passable: unknown, ratios: ratios{sends: 1, writes: 1}}
		if c.Durable && !s.tiers[l.lower].Durable {
			panic("engine: " + c.Name + " is durable, and the tier below it is not")
		}
		l.dirty.link, l.dirty.below, l.dirty.least = i, s.tiers[l.lower], boundless
		s.links = append(s.links, l)
	}
}

// Tiers is the number of tiers.
func (s *state) Tiers() int { return len(s.tiers) }

// Capacity is the budget of a tier in bytes.
func (s *state) Capacity(t int) int64 { return s.tiers[t].Capacity }

// TakeWoken returns the Notify values of the operations whose state has changed since the last call. The slice is valid until the next call of any
// method.
func (s *state) TakeWoken() []any {
	w := s.woken
	s.woken = s.woken[:0]
	return w
}

// IsMemory tells whether callers can address the bytes of tier t.
func (s *state) IsMemory(t int) bool { return !s.tiers[t].Remote }

// Below is the tier below tier t, or -1.
func (s *state) Below(t int) int {
	if t >= len(s.links) {
		return -1
	}
	return s.links[t].lower
}

func (s *state) wake(notify any) {
	if notify != nil {
		s.woken = append(s.woken, notify)
	}
}

// History is one named sequence of checkpoints with its own restore order.
type History struct {
	Name       string
	catalog    Catalog
	anonymous  bool // its records own objects without a checkpoint
	lane       int32
	order      *plan.Order
	due        *plan.Due
	records    records
	hidden     int // records that Lend hides
	auto       int64
	sweep      sweep
	pace       pace
	inPrefetch bool // in prefetches.toPrefetch
	stopped    bool // its prefetcher has not reached the end of the expected restores
	started    bool // prefetching has been allowed: by a restore or by the application
	// promised[t]: the prefetcher of tier t has looked at every expected restore before this place of the order.
	promised   [MaxTiers]int64
	verifiedTo int64            // the same for verifications
	verifySize int64            // of the checkpoint restored last
	verifies   bool             // the checkpoint restored last was lent
	inVerify   bool             // in verifications.toVerify
	moved      bool             // in orders.moved
	overtaken  bool             // the latest verification ended too late
	stuck      [MaxTiers]uint64 // the tier's version when a prefetch found no room
	readyTo    int64            // every expected checkpoint before this place was in the fastest tier
	assigned   int64            // the records know of every guessed restore before this place
	Stats      HistoryStats
}

// History returns the history of this name. It creates the history if there is none.
func (s *state) History(name string) *History {
	if h := s.byName[name]; h != nil {
		return h
	}
	h := newHistory(name, int32(len(s.histories)), s.cfg.Guess)
	h.catalog = s.cfg.Catalog
	s.histories = append(s.histories, h)
	s.orders.add(h)
	s.byName[name] = h
	return h
}

func newHistory(name string, lane int32, guess bool) *History {
	h := &History{Name: name, lane: lane, order: plan.New(plan.Options{Guess: guess}), due: plan.NewDue()}
	h.records.keys = h.order.Keys()
	return h
}

// Histories lists the histories in the order of their creation.
func (s *state) Histories() []*History { return s.histories }

// Len is the number of records of checkpoints that can be restored.
func (h *History) Len() int { return h.records.n - h.hidden }

// Queued is the number of restores in the plan.
func (h *History) Queued() int { return h.order.Len() }

// Due holds the restores of the plan that a loop has yet to do.
func (h *History) Due() *plan.Due { return h.due }

// HintsLeft is how far ahead the plan is known. Restores beside a loop take hints out of the order that stay due for the loop. A caller that read its
// plan by the length of the order alone would read it without end.
func (h *History) HintsLeft() int { return max(h.order.Len(), (h.due.Len()+1)/2) }

// Get returns the record of a key's checkpoint for an operation that needs it, or nil. It makes the record of a checkpoint that only the catalog has.
func (h *History) Get(k model.Key) *Record {
	r := h.records.get(k)
	if r == nil && h.catalog != nil {
		r = h.catalog.Find(h, k)
	}
	return r
}

// Lookup tells whether there is a checkpoint of a key, also one that Lend hides, and the size of its slot. It makes no record.
func (h *History) Lookup(k model.Key) (size int64, ok bool) {
	if r := h.records.get(k); r != nil {
		return r.Size, true
	}
	if h.catalog != nil {
		return h.catalog.Lookup(h, k)
	}
	return 0, false
}

// Has tells whether the history has a record of this key.
func (h *History) Has(k model.Key) bool { return h.records.get(k) != nil }

// Each calls f for every record of a checkpoint, in no particular order. f may remove the record that it is called with.
func (h *History) Each(f func(*Record)) { h.records.each(f) }
