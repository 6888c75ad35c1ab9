// Package engine is the policy of the checkpoint cache: which checkpoint lies in which tier, what is flushed, prefetched and
// evicted, and when (seed 000, section 4). It is a pure state machine. Every call takes the time; transfers are handed out by
// Next and reported back by Done; nothing here sleeps, locks, allocates buffers or touches bytes. The store drives it with real
// memory and disks, the simulator with a virtual clock: both run this same code.
//
// The caller serialises all calls.
package engine

import (
	"velocpy/gocore/model"
	"velocpy/gocore/policy/bandwidth"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/plan"
)

// MaxTiers bounds the hierarchy: several devices beside each other, then host, disk, archive.
const MaxTiers = 8

// FlushMode says when a checkpoint is written down a tier.
type FlushMode uint8

// Eager writes everything down as soon as it is captured. Lazy writes only what space will demand: it keeps a part of each
// tier evictable, beginning with what the restore order needs last.
const (
	Lazy FlushMode = iota
	Eager
)

// TierConfig describes one tier and its link to the tier below.
type TierConfig struct {
	Name     string
	Capacity int64 // bytes: a hard budget
	Grain    int64 // sizes are rounded up to, and places aligned to, multiples of this; 0: 1
	Remote   bool  // callers cannot address its bytes: what they write to or read from it goes by transfers
	// Front marks a tier for the checkpoints that name it alone: the memory of one of several devices. Fronts come first; below each of them
	// is the first tier that is none.
	Front bool
	// WriteRate and ReadRate are what the link to the next tier down is assumed to do (bytes/s) until it has been measured.
	WriteRate, ReadRate float64
}

// Config is fixed for the life of an Engine.
type Config struct {
	Tiers     []TierConfig // fastest first
	Flush     FlushMode
	Policy    evict.Kind
	Workers   int // transfers at once over a link, each way: what the caller will ask for; 0: 1
	Prefetch  bool
	Guess     bool
	Stay      bool                                  // captures wait for room in their tier although a lower one is sooner: to compare
	ProveFrom int64                                 // bytes: copies of so many are compared ahead of leases (proof.go); 0: none are
	Forget    func(*Record)                         // a record has gone and no tier holds bytes of it any more; nil: nobody wants to know
	Removed   func(r, by *Record)                   // a version is about to be dropped, consumed, or replaced by another one; in it no call of the engine, but Owe for more
	Room      func(t int, off, n int64, taken bool) // a record has been given room in tier t, or has given it back; nil: nobody wants to know. In it no call of the engine
	// For a last tier that outlives the engine (reserve.go); nil where none does. In them no call of the engine, but Adopt in Find, and Owe for more.
	Keep  func(*Record, int64) bool             // asked of a record that gives its room at an offset there back: whether the catalog counts on it
	Find  func(h *History, k model.Key) *Record // adopts the checkpoint of a key that has no record, if the catalog has one and Removed did not tell that it was replaced
	Trace func(Event)                           // every event, while the caller's lock is held; nil: none
}

// lowWater is the part of a tier that lazy flushing keeps evictable or empty while something comes in (as a divisor of the capacity): room for
// a burst of captures, at the price of that many bytes written down that might have died in the tier. When more comes in than the
// link can take away, every moment that the link rests will be waited for later: then flushing begins at rushWater.
const (
	lowWater  = 4
	rushWater = 2
)

// With fewer fragments than wholeTable, an eviction decision is algorithm 1 over the whole table. Beyond, it looks at scanLimit of them, where
// room was made last, and further only when it finds nothing evictable there: its cost does not grow with the store.
const (
	wholeTable = 4096
	scanLimit  = 128
)

// The prefetches that have room reserved but have not ended are bounded, per link: a few of them, or as many small ones as a slow tier brings at its full rate. They
// cannot be evicted before they have ended: of small ones most of the tier is free, whoever needs room meanwhile.
const (
	fewLoads  = 8
	loadBytes = 16 << 20
	loadShare = 8 // of the tier, this part (as a divisor)
	mostLoads = 512
)

// loadsEnough tells whether no more prefetches should begin.
func (e *Engine) loadsEnough(l *link) bool {
	return l.loads >= fewLoads && (l.loading >= min(loadBytes, e.tiers[l.upper].Capacity/loadShare) || l.loads >= mostLoads)
}

// Engine holds all the state of one store's cache.
type Engine struct {
	cfg       Config
	tiers     []*tier
	fronts    int        // how many of the tiers, from the first on, are fronts
	links     []*link    // by their upper tier
	histories []*History // by lane
	byName    map[string]*History
	heads     []int64    // by lane
	places    []int64    // by lane: where the heads stand on the axis of intervals
	intervals []int64    // by lane: what an interval counts, so that those of several histories compare
	moved     []*History // whose restore orders may have changed since they were looked at
	paced     bool       // a pace has changed since intervals were compared
	slots     []*Record
	vacant    []uint32
	count     int64 // operations so far: the clock of staleness
	waiting   map[*Record][]*Restore
	passing   [2]ways // by direction: transfers past the faster tiers
	woken     []any
	durable   map[*Record][]*Wait
	lost      map[uint64]error
	stirred   []*History // those whose prefetcher may have something to do
	resting   []*History // the list's other buffer
	turns     turns      // buffer of prefetchTier
	victims   []*Record  // buffer of evict
	doneAt    []int64    // buffer of workers
	running   int        // transfers handed out by Next
	capturing int        // captures that have room and are being copied
	forecast  forecast
	copying   int        // restores that end by themselves (into the caller's arrays)
	owed      int        // releases of room that the caller has under way
	proofs    int        // under way
	lagging   []*History // those that proofs may be behind in
	Stats     Stats

	wholeTable, scanLimit int  // the constants, but in tests
	alwaysDown            bool // tests: captures go down whenever they may
}

// tier is one level of the hierarchy.
type tier struct {
	TierConfig
	index    int
	table    *fragment.Table[*Record]
	bytes    [fragment.Held + 1]int64 // by class
	claims   fifo[*claim]
	version  uint64 // grows when something became evictable or free
	hand     fragment.ID
	captured int64 // size of the largest recent capture, for the headroom that prefetches leave
	captures int64 // e.count at the last capture
	inflow   inflow
	proofs   int   // under way
	arriving int   // flushes and spills to it, under way
	lent     int64 // bytes of fragments that are pinned
	leaving  leaving
	reserved reserved
	retired  []span
	idle     reserved // what of it is reserved
	// idleBytes is how many bytes that is.
	idleBytes int64
	// allotted: released bytes of retired become idle only while the tier has more bytes than these that are not idle; 0: all of them do.
	allotted int64
}

// inflow estimates how fast bytes come into a tier from above.
type inflow struct {
	count          int64   // e.count at the last arrival
	at             int64   // its time
	bytes, between float64 // moving averages: of an arrival, of the ns between two
}

// arrived notes that so many bytes have come.
func (f *inflow) arrived(now, count, bytes int64) {
	if f.between == 0 {
		f.bytes, f.between = float64(bytes), float64(max(now-f.at, 1))
	}
	const weight = 0.2
	f.bytes += weight * (float64(bytes) - f.bytes)
	f.between += weight * (float64(now-f.at) - f.between)
	f.at, f.count = now, count
}

// faster tells whether more comes than leaves at a rate (bytes/s).
func (f *inflow) faster(rate float64) bool { return f.bytes*1e9 > rate*f.between }

// pressing is faster, but that nothing has come since the last arrival counts, too.
func (f *inflow) pressing(now int64, rate float64) bool {
	return f.bytes*1e9 > rate*max(f.between, float64(now-f.at))
}

// link joins a tier to the one below it: links[t] is the one below tier t.
type link struct {
	upper, lower int
	down, up     *bandwidth.Estimator
	straight     *bandwidth.Estimator // captures that cross it from the caller's memory; nil until one was seen
	crossing     []*Transfer          // downward, under way
	dirty        dirty                // complete only in the upper tier, no flush queued
	urgent       fifo[*Record]
	normal       fifo[*Record]
	demand       fifo[*Record] // loads that a restore waits for
	ahead        fifo[*Record] // loads of what will be wanted
	queued       int           // flushes queued (urgent or normal), each counted once
	flushing     int           // of these, running
	backlog      int64         // time at which the flushes queued so far are predicted to end
	loads        int           // loads with room reserved that have not ended
	loading      int64         // their bytes
	refused      refused       // what the lower tier had no room for
	passable     int64         // an upper bound of the dirty bytes that could go down while something is refused; unknown: not counted
	paused       uint64        // the lower tier's version, plus one, when the next flush had to wait for one further down
	stuck        int           // records whose flush failed and that nobody has asked to retry
	err          error         // why the latest flush failed
}

// New returns the engine of an empty store.
func New(cfg Config) *Engine {
	cfg.Workers = max(cfg.Workers, 1)
	e := &Engine{
		cfg:     cfg,
		byName:  map[string]*History{},
		waiting: map[*Record][]*Restore{},
		durable: map[*Record][]*Wait{},
		lost:    map[uint64]error{},

		forecast: forecast{surprise: -confidence},

		wholeTable: wholeTable, scanLimit: scanLimit,
	}
	for i, c := range cfg.Tiers {
		t := &tier{TierConfig: c, index: i, table: fragment.New[*Record](c.Capacity), hand: fragment.None}
		t.bytes[fragment.Gap] = c.Capacity
		e.tiers = append(e.tiers, t)
		if c.Front {
			e.fronts = i + 1
		}
	}
	for i, c := range cfg.Tiers[:max(len(cfg.Tiers)-1, 0)] {
		l := &link{upper: i, lower: max(i+1, e.fronts), down: bandwidth.New(c.WriteRate), up: bandwidth.New(c.ReadRate), passable: unknown}
		l.dirty.link, l.dirty.below, l.dirty.least = i, e.tiers[l.lower], boundless
		e.links = append(e.links, l)
	}
	for d := range e.passing {
		e.passing[d] = make(ways, max(len(e.links), 1))
	}
	return e
}

// Tiers is the number of tiers.
func (e *Engine) Tiers() int { return len(e.tiers) }

// Capacity is the budget of a tier in bytes.
func (e *Engine) Capacity(t int) int64 { return e.tiers[t].Capacity }

// TakeWoken returns the Notify values of the operations whose state has changed since the last call. The slice is
// valid until the next call of any method.
func (e *Engine) TakeWoken() []any {
	w := e.woken
	e.woken = e.woken[:0]
	return w
}

// IsMemory tells whether callers can address the bytes of tier t.
func (e *Engine) IsMemory(t int) bool { return !e.tiers[t].Remote }

// below is the tier below tier t, or -1.
func (e *Engine) below(t int) int {
	if t >= len(e.links) {
		return -1
	}
	return e.links[t].lower
}

func (e *Engine) wake(notify any) {
	if notify != nil {
		e.woken = append(e.woken, notify)
	}
}

// History is one named sequence of checkpoints with its own restore order.
type History struct {
	Name    string
	find    func(*History, model.Key) *Record
	lane    int32
	order   *plan.Order
	due     *plan.Due
	records records
	lent    int // of the records, those that Lend hides
	auto    int64
	sweep   sweep
	pace    pace
	stirs   bool // in Engine.stirred
	stopped bool // its prefetcher has not got to the end of what is expected
	started bool // prefetching has been allowed: by a restore or by the application
	// promised[t]: everything expected before this place of the order has been looked at by the prefetcher of tier t.
	promised  [MaxTiers]int64
	proven    int64            // the same of proofs
	proofSize int64            // of the checkpoint restored last
	proves    bool             // which was lent
	lags      bool             // in Engine.lagging
	moved     bool             // in Engine.moved
	overtaken bool             // the latest proof came too late
	stuck     [MaxTiers]uint64 // the tier's version when a prefetch found no room
	readyTo   int64            // everything expected before this place was in the fastest tier
	assigned  int64            // everything guessed before this place has been noted in the records
	Stats     HistoryStats
}

// History returns the history of this name and creates it when there is none.
func (e *Engine) History(name string) *History {
	if h := e.byName[name]; h != nil {
		return h
	}
	h := &History{
		Name: name, find: e.cfg.Find, lane: int32(len(e.histories)), order: plan.New(plan.Options{Guess: e.cfg.Guess}), due: plan.NewDue(),
	}
	h.records.keys = h.order.Keys()
	e.histories = append(e.histories, h)
	e.heads, e.places, e.intervals = append(e.heads, h.order.Head()), append(e.places, h.order.Now()), append(e.intervals, alike)
	e.byName[name] = h
	return h
}

// Histories lists the histories in the order of their creation.
func (e *Engine) Histories() []*History { return e.histories }

// Len is the number of records of checkpoints that can be restored.
func (h *History) Len() int { return h.records.n - h.lent }

// Queued is the number of restores in the plan.
func (h *History) Queued() int { return h.order.Len() }

// Due are the restores of the plan that a loop has yet to do.
func (h *History) Due() *plan.Due { return h.due }

// HintsLeft is how far ahead the plan is known. Restores beside a loop take hints out of the order that stay due for the loop: a caller that reads
// its plan only by the order would read it without end.
func (h *History) HintsLeft() int { return max(h.order.Len(), (h.due.Len()+1)/2) }

// Get returns the checkpoint of this key, or nil.
func (h *History) Get(k model.Key) *Record {
	r := h.records.get(k)
	if r == nil && h.find != nil {
		r = h.find(h, k)
	}
	return r
}

// Has tells whether there is a record of this key.
func (h *History) Has(k model.Key) bool { return h.records.get(k) != nil }

// Each calls f for every record of a checkpoint, in no particular order. f may remove the one that it is called for.
func (h *History) Each(f func(*Record)) { h.records.each(f) }
