package plan

import (
	"slices"

	"velocpy/gocore/model"
)

// Options of an Order.
type Options struct {
	// Guess makes the order guess the next restores while no hints are queued. It costs the key's place in Keys, and at most 256 KiB for the last
	// restores. Default: off.
	Guess bool
	// Lookahead is how many restores a guess predicts. Default: 32.
	Lookahead int
	// Patience is how often restores queued behind a queued restore may overtake it before it is withdrawn. Default: 8. Negative: the first
	// overtaking withdraws it.
	Patience int
}

func (o Options) withDefaults() Options {
	if o.Lookahead <= 0 {
		o.Lookahead = 32
	}
	if o.Patience == 0 {
		o.Patience = 8
	}
	o.Patience = max(o.Patience, 0)
	return o
}

// Order is the restore order of one history: the queued hints, or a guess while there are none. It is not safe for concurrent use.
//
// Expected restores are numbered along the order. Numbers never go back and are never used for two restores. Restores with a number below the head's
// are past.
type Order struct {
	keys  Keys // the written ones, the recently restored ones if it guesses, and those that its owner holds
	hints queue
	guess *guess // nil: never guesses
	lost  losses // expectations of a guess that ended between two restores, for the next Verdict
	last  likely // the last restore
}

// Verdict is what an Order reports about a restore.
type Verdict struct {
	Expected bool  // the restore was queued, or guessed
	Guessed  bool  // … guessed
	Last     bool  // a hint announced it as the key's final one
	Ahead    int64 // how many expected restores it overtook
	// Withdrawn are the keys that are not expected any more although their last expectation was not met. It was overtaken too often, or its guess was
	// given up.
	Withdrawn []model.Key
	// Deferred are the keys whose next expectation was overtaken too often, and that are expected once more. That may be later, or it was withdrawn
	// too.
	Deferred []model.Key
	Drops    []model.Key // drops that became due: no restore queued before them is left
}

// New returns an empty Order.
func New(opts Options) *Order {
	opts = opts.withDefaults()
	o := &Order{hints: queue{patience: opts.Patience}}
	if opts.Guess {
		o.guess = newGuess(&o.keys, opts.Lookahead)
	}
	return o
}

// Keys is the table of the history's keys. The order's owner may hold keys in it too.
func (o *Order) Keys() *Keys { return &o.keys }

// Append queues hints behind the queued ones. They end any guess: the next Restored reports the keys that only the guess expected as withdrawn. It
// ignores unknown operations, and Advance without a positive number of steps. Amortised O(1) per hint.
func (o *Order) Append(hints ...Hint) {
	if len(hints) > 0 {
		o.endGuess()
	}
	for _, h := range hints {
		switch h.Op {
		case Restore, Last:
			o.hints.push(h.Key, h.Op == Last)
		case Drop:
			o.hints.pushDrop(h.Key)
		case Advance:
			o.hints.advance(h.Steps)
		}
	}
	if o.guess != nil && o.hints.size() == 0 {
		o.guess.ahead.stale = true
	}
}

// endGuess ends the guess before hints are queued; their numbers follow those of the guess.
func (o *Order) endGuess() {
	if o.guess == nil || o.hints.size() > 0 {
		return
	}
	w := &o.guess.ahead
	o.lost.add(w.expected()...)
	o.hints.renumber(w.tail)
	w.reset(w.tail)
	w.stale = false
}

// Clear withdraws every queued hint, including drops and advances. No later Verdict reports them.
func (o *Order) Clear() {
	from := o.hints.tail
	if o.guess != nil {
		from = max(from, o.guess.ahead.tail)
		o.guess.ahead.stale = true
	}
	o.hints.reset(from)
}

// Len returns the number of queued restores. Guessed ones do not count.
func (o *Order) Len() int { return o.hints.size() }

// Distinct is the number of different keys among the queued restores. O(1).
func (o *Order) Distinct() int { return o.hints.index.n }

// current is the queue that answers: the hints if there are any, otherwise the guess.
func (o *Order) current() *queue {
	if o.guess == nil || o.hints.size() > 0 {
		return &o.hints
	}
	o.guess.refresh(o.hints.tail, &o.lost)
	if o.guess.ahead.size() == 0 {
		o.hints.renumber(o.guess.ahead.tail)
		return &o.hints
	}
	return &o.guess.ahead.queue
}

// Guessing tells whether the expectations are guessed.
func (o *Order) Guessing() bool { return o.guess != nil && o.current() != &o.hints }

// Head returns the number of the first expected restore, or of the next one to come when none is expected.
func (o *Order) Head() int64 { return o.current().head }

// Seq returns the number of the first expected restore of k. ok=false: none is expected. O(1).
func (o *Order) Seq(k model.Key) (seq int64, ok bool) { return o.current().find(k) }

// Place is the position of a queued restore on the axis of restore intervals: one per restore before it, plus those that Advance has announced.
func (o *Order) Place(seq int64) int64 { return o.current().place(seq) }

// Now is the position of the order on the axis of Place: directly behind the last restore before the head. Intervals announced next are ahead of it.
func (o *Order) Now() int64 { return o.current().now }

// Distance returns how many restore intervals precede the first expected restore of k, including those announced by Advance: the prefetch distance.
// ok=false: none is expected. O(1).
func (o *Order) Distance(k model.Key) (d int64, ok bool) {
	q := o.current()
	seq, ok := q.find(k)
	if !ok {
		return 0, false
	}
	return q.distance(seq), true
}

// Upcoming calls f for the expected restores in order, beginning at number from, or at the head if that is higher. It ends when f returns false or
// none is left. A key appears as often as it is expected. f must not change the order. O(1) per restore.
func (o *Order) Upcoming(from int64, f func(seq int64, k model.Key, last bool) bool) {
	o.current().walk(from, f)
}

// Restored records that the application restored k, and returns the verdict of the order. A restore queued further on leaves the restores before it
// queued. One exception: the same key twice in a row meets the next hint for it only at the head. Clients that load a checkpoint in two steps would
// otherwise use up hints for the distant future, and seem to overtake all restores before these. Amortised O(1), O(Lookahead) when a guess changes.
func (o *Order) Restored(k model.Key) Verdict {
	var v Verdict
	q := o.current()
	again := o.last.ok && o.last.key == k
	o.last = likely{k, true}
	if seq, ok := q.find(k); ok && (!again || seq == q.head || q != &o.hints) {
		v.Expected, v.Last, v.Ahead = true, q.isLast(seq), q.ahead(seq)
		v.Guessed = q != &o.hints
		if !v.Guessed {
			v.Withdrawn, v.Deferred = q.take(seq)
		}
	}
	if o.guess != nil {
		o.guess.observe(k)
		if q == &o.hints {
			o.guess.ahead.stale = o.hints.size() == 0
		} else {
			o.guess.met(k)
		}
	}
	v.Drops = o.hints.drops.due(o.hints.head, nil)
	v.Withdrawn = o.withdrawn(v.Withdrawn, k)
	return v
}

// withdrawn appends the expectations that a guess has lost since the last restore, except keys that are expected again or were just restored.
func (o *Order) withdrawn(keys []model.Key, restored model.Key) []model.Key {
	for _, k := range o.Withdrawn() {
		if k != restored {
			keys = append(keys, k)
		}
	}
	return keys
}

// Withdrawn returns, and removes, the keys that the next Verdict would report for a guess given up since the last restore.
func (o *Order) Withdrawn() []model.Key {
	q := o.current()
	return slices.DeleteFunc(o.lost.take(), func(k model.Key) bool {
		_, again := q.find(k)
		return again
	})
}

// Written records that a checkpoint of k was captured, as a new one or in place of an older one.
func (o *Order) Written(k model.Key) {
	if o.guess != nil {
		o.guess.wrote(k)
	}
}

// Dropped records that the checkpoint of k is gone. Hints for it stay queued: it may be written again.
func (o *Order) Dropped(k model.Key) {
	if o.guess != nil {
		o.guess.dropped(k)
	}
}
