// Package encoding decides which checkpoints of a history are encoded on their way to a lower tier, and in which modes of package codec.
//
// A planner learns from what it is told: a sample of a layout's chunks says which modes pay for a region, and the times of flushes and loads say whether
// encoding pays at all. It has no clock, no bytes and no lock.
package encoding

import (
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// Method is what the application asks for.
type Method uint8

// The methods.
const (
	Raw     Method = iota // nothing is encoded
	Codec                 // what becomes smaller is encoded
	Auto                  // what becomes smaller is encoded or de-duplicated, unless flushes and loads take longer for it
	Lineage               // all checkpoints are de-duplicated, and what is new is encoded as by Codec
)

// Way is how a checkpoint goes down.
type Way uint8

// The ways.
const (
	Plain        Way = iota // as it is
	Encoded                 // encoded, by itself
	Difference              // without what earlier checkpoints of its lineage have; from a device: encoded with another one
	Deduplicated            // the same, found by the device that it leaves. The other ways are chosen at the flush, this one at the capture
	ways
)

// Planner plans for one history. The caller serializes the calls.
type Planner struct {
	method  Method
	host    codec.Compression // compressor of the host
	layouts map[uint64]*known
	costs   costs
	news    news
	removal removals
}

// known is what is known of a layout.
type known struct {
	choices []regions.Choice // nil: no sample was taken yet
	age     int              // checkpoints that were planned since the last sample
	again   int              // so many are planned before the next one is taken
	pays    bool             // the sample became smaller by more than leastGain
	doubt   bool             // the latest sample did not, and those before did: the next checkpoint is sampled too
	part    float64          // of its plain bytes that a checkpoint becomes, lately the most; 0: none was encoded yet
	related float64          // the same of one that was encoded with another, on a device
	failed  int              // checkpoints since the last one that a compressor of the host made smaller
}

// mostLayouts bounds the memory. With more, everything is learnt again.
const mostLayouts = 64

// So many checkpoints of a layout are planned with one sample. If it says that encoding does not pay, the next one is taken after twice as many, up to the most.
const (
	sampleEvery = 32
	mostPlanned = 256
)

// New returns a planner that knows nothing. A compressor works on the host, and beside the codec.
func New(m Method, c codec.Compression) *Planner {
	return &Planner{method: m, host: c, layouts: map[uint64]*known{}, removal: removals{news: news{ignore: true}}}
}

// OnDevice tells whether a device encodes its checkpoints: one compresses nothing, and a lineage needs the plain bytes.
func (p *Planner) OnDevice() bool {
	return p.host == codec.NoCompression && (p.method == Codec || p.method == Auto)
}

// GoesDeeper tells that checkpoints of a device go on to a slower link, which takes so many ns for each byte that it gets. From now on a way costs that at least, and so
// it would have before.
func (p *Planner) GoesDeeper(ns float64) {
	parts := [ways]float64{Plain: 1, Deduplicated: p.removal.news.part}
	for _, k := range p.layouts {
		parts[Encoded], parts[Difference] = max(parts[Encoded], k.part), max(parts[Difference], k.related)
	}
	for w := range ways {
		p.costs.each[down][w].raise(ns * parts[w])
		p.costs.old[w].raise(ns * parts[w])
		p.costs.each[up][w] = median{}
	}
}

// Method is what New was given.
func (p *Planner) Method() Method { return p.method }

// PrefersRemoval tells whether checkpoints of a device are de-duplicated there, but for a few.
func (p *Planner) PrefersRemoval() bool {
	if p.method != Auto {
		return p.method == Lineage
	}
	return p.removal.better(&p.costs, p.costs.bestOther(p.news.few())) == duplicates
}

// Plan is how one checkpoint goes down.
type Plan struct {
	Way     Way
	Look    bool             // some chunks are to be compared with those of the checkpoint before, if its bytes are at hand: Looked has the plan then
	Sample  bool             // a sample is to be taken first: Resume has the plan then
	Choices []regions.Choice // by region, of what is encoded, and of what is new in a difference; nil: that stays as it is
	Follows bool             // it was planned by Follow: its time says no more than that of the other

	// Compression is of what is encoded. It is there also where Choices is nil: all objects of a lineage have containers of one version.
	Compression codec.Compression
}

// Checkpoint is what a planner has to know of one.
type Checkpoint struct {
	Layout    uint64 // identifies it
	Removable bool   // it can become a difference
	Queued    bool   // it leaves a device, whose copies wait for each other in a queue
	Captured  bool   // it was captured to be de-duplicated by its device: that may do so, and what has left the device goes on as a difference
}

// Deduplicates decides whether a checkpoint of a device that is captured now is to be de-duplicated there. Each call counts as a checkpoint.
func (p *Planner) Deduplicates() bool {
	switch p.method {
	case Lineage:
		return true
	case Auto:
		return p.removal.next(&p.costs, p.news.few()) == duplicates
	}
	return false
}

// Next plans a checkpoint.
func (p *Planner) Next(c Checkpoint) Plan {
	plan := p.plan(c)
	if k := p.layouts[c.Layout]; k != nil {
		k.age++
	}
	return plan
}

// Follow plans a checkpoint that moves together with one of the same layout, for which there is a plan.
func (p *Planner) Follow(plan Plan, layout uint64) Plan {
	if k := p.layouts[layout]; k != nil {
		k.age++
	}
	plan.Follows = true
	return plan
}

func (p *Planner) plan(c Checkpoint) Plan {
	plan, k := Plan{Compression: p.host}, p.layouts[c.Layout]
	stale := k == nil || k.age >= k.again
	plan.Way = p.way(stale || k.pays, c, p.costs.next)
	if plan.Way == Deduplicated {
		return plan
	}
	if plan.Way == Difference && p.method == Auto && !c.Captured && p.costs.tried[Difference] == 1 {
		p.news, plan.Look = news{ignore: true}, true
	}
	if plan.Way == Plain {
		return plan
	}
	if plan.Sample = stale; !stale && k.pays {
		plan.Choices = k.choices
	}
	return plan
}

// Looked goes on with a plan for which chunks have been compared, of which a part was equal. Where few are, differences are not tried.
func (p *Planner) Looked(plan Plan, layout uint64, equal float64) Plan {
	if 1-equal <= mostNew {
		plan.Look = false
		return plan
	}
	p.costs.skip(Difference)
	return p.plan(Checkpoint{Layout: layout})
}

// Likely tells which way the next checkpoint goes, if it is like this one.
func (p *Planner) Likely(c Checkpoint) Way {
	k := p.layouts[c.Layout]
	return p.way(k == nil || k.age >= k.again || k.pays, c, p.costs.soon)
}

// way decides; by says what costs least, which counts for Auto. encodes: the checkpoint may become smaller when it is encoded.
func (p *Planner) way(encodes bool, c Checkpoint, by func(may can, few, queued bool) Way) Way {
	switch {
	case c.Captured && c.Queued:
		return Deduplicated
	case c.Captured && c.Removable:
		return Difference
	case p.method == Auto && !c.Captured:
		return by(can{Plain: true, Encoded: encodes, Difference: c.Removable}, p.news.few(), c.Queued)
	case p.method == Lineage && c.Removable:
		return Difference
	case p.method != Raw && encodes:
		return Encoded
	}
	return Plain
}

// Removed tells what a difference came to: of the checkpoint's plain bytes so many were new, and its flush cost so many ns.
func (p *Planner) Removed(plain, first, ns int64) {
	p.costs.observe(down, Difference, plain, ns)
	if plain > 0 {
		p.news.removed(float64(first) / float64(plain))
	}
}

// Deduplicated tells what a device made of a checkpoint that it has de-duplicated: of its plain bytes so many were new, and its flush cost so many ns.
func (p *Planner) Deduplicated(plain, first, ns int64) {
	if plain > 0 && p.removal.removed(float64(first)/float64(plain)) {
		p.costs.observe(down, Deduplicated, plain, ns)
	}
}

// NotDeduplicated tells that a device has not de-duplicated a checkpoint after all for which Deduplicates had said so.
func (p *Planner) NotDeduplicated() { p.removal.notRemoved(&p.costs) }

// Relates tells whether checkpoints of a layout may become differences, so that it is worth keeping one for them.
func (p *Planner) Relates(layout uint64) bool {
	return p.method == Lineage || p.method == Auto && (p.costs.awaits(Difference) || p.Likely(Checkpoint{Layout: layout, Removable: true, Queued: true}) == Difference)
}

// Related tells what a checkpoint of a layout came to that a device has encoded with another: so many bytes, for ns.
func (p *Planner) Related(layout uint64, plain, encoded, ns int64) {
	p.Removed(plain, encoded, ns)
	if plain <= 0 {
		return
	}
	part, alone := float64(encoded)/float64(plain), 1.0
	if k := p.layouts[layout]; k != nil {
		k.related = lately(k.related, part)
		if k.pays && k.part > 0 {
			alone = k.part
		}
	}
	if part > mostNew || part >= leastRelated*alone {
		p.costs.skip(Difference)
	}
}

// NotRelated tells that a checkpoint was not encoded with another after all, for which Next had planned that: there was none any more. If it was the first one, another
// one is the first.
func (p *Planner) NotRelated() {
	if p.costs.each[down][Difference].count == 0 {
		p.costs.tried[Difference] = 0
	}
}

// leastRelated is the part of an encoded checkpoint's bytes from which on one that was encoded with another saves too little: its loads read that other one, too.
const leastRelated = 0.9

// lately is a moving average that follows what is larger at once.
func lately(average, x float64) float64 {
	const weight = 0.1
	return max(x, average+weight*(x-average))
}

// Resume goes on with a plan for which a sample has been taken.
func (p *Planner) Resume(plan Plan, layout uint64) Plan {
	k := p.layouts[layout]
	if plan.Sample = false; k != nil && k.pays {
		plan.Choices = k.choices
	} else if plan.Way == Encoded {
		plan.Way = Plain
	}
	return plan
}

// Sampled tells what a sample said, of a layout whose plan asked for one. Checkpoints that are planned before the first sample is there are sampled as well. Of such
// samples one that pays is enough, since checkpoints of a layout differ.
func (p *Planner) Sampled(layout uint64, c []regions.Choice, plain, encoded int64) {
	if len(p.layouts) >= mostLayouts && p.layouts[layout] == nil {
		clear(p.layouts)
	}
	k := p.layouts[layout]
	if k == nil {
		k = &known{}
		p.layouts[layout] = k
	}
	pays, due := p.host != codec.NoCompression || float64(encoded) < leastGain*float64(plain), k.age >= k.again
	switch {
	case pays:
		k.choices, k.pays, k.doubt, k.again = c, true, false, sampleEvery
	case due && k.pays && !k.doubt: // it may be one that differs from the others
		k.doubt = true
		return
	case due:
		k.choices, k.pays, k.doubt, k.again = c, false, false, max(sampleEvery, min(2*k.again, mostPlanned))
	}
	if due {
		k.age = 1
	}
}

// Became tells how many bytes a checkpoint of a layout became that was encoded.
func (p *Planner) Became(layout uint64, plain, encoded int64) {
	k := p.layouts[layout]
	if k == nil || plain <= 0 {
		return
	}
	x := float64(encoded) / float64(plain)
	k.part = lately(k.part, x)
	if p.host == codec.NoCompression {
		return
	}
	if k.failed++; x < leastGain {
		k.failed = 0
	}
	k.rest()
}

// GaveUp tells that a checkpoint of a layout did not become smaller, so that its plain bytes went down.
func (p *Planner) GaveUp(layout uint64) {
	if k := p.layouts[layout]; k != nil && p.host != codec.NoCompression {
		k.failed++
		k.rest()
	}
}

// mostFailures is how many checkpoints in a row a compressor of the host is tried on. The sample of a layout was none of the compressor.
const mostFailures = 3

// rest lets checkpoints go as they are until the next sample, where a compressor has failed on many.
func (k *known) rest() {
	if k.failed >= mostFailures {
		k.pays, k.failed = false, 0
	}
}

// Expect predicts how much room a checkpoint needs that takes so much in memory. One that needs more is written again, so it is predicted generously.
func (p *Planner) Expect(c Checkpoint, room int64) int64 {
	k := p.layouts[c.Layout]
	if k == nil {
		return room
	}
	part := k.part
	switch way := p.Likely(c); {
	case way == Difference && k.related > 0:
		part = growing * k.related
	case way != Encoded || !k.pays || part == 0:
		return room
	}
	return min(room, int64(generous*part*float64(room))+least)
}

// A prediction is so many times what is expected, and so many bytes more.
const (
	generous = 1.05
	least    = 4096
	// growing is for what is encoded with another: the later one has less and less in common with it.
	growing = 2
)

// leastGain is the part of its plain bytes that a sample must not exceed. Encoding what gains less costs more time than it saves room.
const leastGain = 0.97

// Flushed tells that a checkpoint of so many plain bytes went down, not as a difference, and what that cost in ns.
func (p *Planner) Flushed(w Way, plain, ns int64) { p.costs.observe(down, w, plain, ns) }

// Loaded tells that a checkpoint of so many plain bytes came up that was flushed on a way, and what that cost in ns.
func (p *Planner) Loaded(w Way, plain, ns int64) { p.costs.observe(up, w, plain, ns) }

// Choose returns how a region is to be encoded, from a survey of its chunks, and the bytes that these chunks take in a container then.
func Choose(k codec.Kind, s *codec.Plan) (c regions.Choice, encoded int64) {
	c.Kind = k
	if float64(s.Container) >= leastGain*float64(s.Plain) {
		return c, s.Plain
	}
	c.Modes = s.Modes(closeTo)
	return c, s.Container
}

// closeTo is the part by which payloads may be longer for modes that take less time.
const closeTo = 0.01
