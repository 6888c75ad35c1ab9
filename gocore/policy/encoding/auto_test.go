package encoding

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/codec"
)

// history plays the flushes of a history by Auto.
type history struct {
	cost      func(i int, w Way) float64 // ns of each plain byte
	news      func(i int) float64        // part that is new in a difference with the checkpoint before
	encoded   int64                      // bytes that a sample of 1000 becomes
	loads     bool
	removable bool
}

// outcome is what the flushes came to.
type outcome struct {
	went  [ways]int
	spent float64 // ns of each plain byte, all flushes together
	raw   float64 // the same, had all been plain
	best  float64 // the same, had each gone the way that costs least

	after          [ways]int // of the second half
	late, lateBest float64
}

// play flushes so many checkpoints.
func (h history) play(count int) (o outcome) {
	const plain = 1 << 20
	p, since := New(Auto, codec.NoCompression), 0
	for i := range count {
		since++
		likely := p.Likely(Checkpoint{Layout: 1, Removable: h.removable})
		x, sampled := planned(p, 1, h.removable, h.encoded)
		if x.Way != likely && !sampled {
			panic(fmt.Sprintf("checkpoint %d goes %d and not %d", i, x.Way, likely))
		}
		cost := h.cost(i, x.Way)
		if x.Way == Difference {
			part := min(1, h.news(i)*float64(since))
			if o.went[Difference] == 0 {
				part = 1
			}
			since = 0
			p.Removed(plain, int64(part*plain), int64(cost*plain))
		} else {
			p.Flushed(x.Way, plain, int64(cost*plain))
		}
		if h.loads {
			p.Loaded(x.Way, plain, int64(cost*plain))
		}
		o.went[x.Way]++
		least := h.cost(i, Plain)
		for w := range Deduplicated {
			if w != Difference || h.removable {
				least = min(least, h.cost(i, w))
			}
		}
		o.spent, o.raw, o.best = o.spent+cost, o.raw+h.cost(i, Plain), o.best+least
		if i >= count/2 {
			o.after[x.Way]++
			o.late, o.lateBest = o.late+cost, o.lateBest+least
		}
	}
	return o
}

// noisy varies costs by a factor of two and more, and lets one of 50 take ten times as long, as fsync does.
func noisy(seed uint64, cost ...float64) func(int, Way) float64 {
	r := rand.New(rand.NewPCG(seed, 5))
	return func(_ int, w Way) float64 {
		x := cost[w] * (0.7 + r.ExpFloat64()*0.3)
		if r.IntN(50) == 0 {
			x *= 10
		}
		return x
	}
}

func always(part float64) func(int) float64 { return func(int) float64 { return part } }

// Whichever way costs least, the history goes it. Beyond what the first trials cost, it loses at most 3 % against plain bytes, and 4 % against the best way: 2 % for
// the room that others save, and the trials that follow.
func TestAutoLosesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := [ways]float64{1, rapid.Float64Range(0.1, 10).Draw(t, "encoded"), rapid.Float64Range(0.1, 10).Draw(t, "difference")}
		h := history{
			cost: func(_ int, w Way) float64 { return costs[w] }, news: always(rapid.Float64Range(0.01, 1).Draw(t, "news")),
			encoded: 500, loads: rapid.Bool().Draw(t, "loads"), removable: rapid.Bool().Draw(t, "removable"),
		}
		o := h.play(512)
		firstTrials := func(best float64) float64 { // plain bytes are tried twice
			x := (1+2*trial)*max(0, costs[Plain]-best) + trial*max(0, costs[Encoded]-best)
			if h.removable {
				x += trial * max(0, costs[Difference]-best)
			}
			return x
		}
		if o.spent > 1.03*o.raw+firstTrials(1) {
			t.Fatalf("%g where plain bytes take %g: %v", o.spent, o.raw, o.went)
		}
		if few := h.news(0) < 0.1; few || !h.removable { // with more the ways change: what is new adds up while others are tried
			if o.spent > 1.04*o.best+firstTrials(o.best/512) {
				t.Fatalf("%g where the best takes %g: %v", o.spent, o.best, o.went)
			}
		}
	})
}

// Transfers whose times vary by a factor of two and more around a way's cost do not mislead the decision for long, where the ways differ by a fifth.
func TestNoiseOfTwoWays(t *testing.T) {
	for _, cheap := range []Way{Plain, Encoded} {
		sum, worst := 0, 9999
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 5))
			o := history{cost: func(_ int, w Way) float64 {
				x := 0.7 + r.ExpFloat64()/2
				if w != cheap {
					x *= 1.25
				}
				return x
			}, encoded: 500}.play(4000)
			sum, worst = sum+o.went[cheap], min(worst, o.went[cheap])
		}
		if t.Logf("way %d: of 4000 checkpoints %d went it on average, and %d at worst", cheap, sum/40, worst); sum < 40*4000*9/10 || worst < 4000*8/10 {
			t.Fail()
		}
	}
}

// Costs that vary, and single ones of ten times as much, seldom mislead the history where the ways differ by a fifth.
func TestNoiseIsOutvoted(t *testing.T) {
	for _, cheap := range []Way{Plain, Encoded, Difference} {
		right, count := 0, 0
		for seed := range uint64(20) {
			cost := []float64{1.25, 1.25, 1.25}
			cost[cheap] = 1
			o := history{cost: noisy(seed, cost...), news: always(0.03), encoded: 500, removable: true}.play(4000)
			right, count = right+o.went[cheap], count+4000
		}
		if right < count*9/10 {
			t.Errorf("%d of %d checkpoints went the cheaper way, %d", right, count, cheap)
		}
	}
}

// The first flushes of a history take longer, whatever their way. What they say of the ways is corrected soon: beyond what the first trials cost while flushes are
// slow, at most 3 % are lost.
func TestASlowBeginningIsForgotten(t *testing.T) {
	for slow := range 12 {
		o := history{cost: func(i int, w Way) float64 {
			cost := []float64{1, 1.5, 2}[w]
			if i < slow {
				cost *= 8
			}
			return cost
		}, news: always(0.03), encoded: 500, removable: true}.play(512)
		if trials := float64(8 * trial * (0.5 + 1)); o.spent > 1.03*o.raw+trials {
			t.Errorf("after %d slow flushes %v, %g where plain bytes take %g", slow, o.went, o.spent, o.raw)
		}
	}
}

// What changes is noticed: the costs of a disk that becomes slow or fast, and how much is new.
func TestChangesAreNoticed(t *testing.T) {
	turn := func(before, after []float64) func(int, Way) float64 {
		return func(i int, w Way) float64 {
			if i < 500 {
				return before[w]
			}
			return after[w]
		}
	}
	few, much := always(0.03), always(1)
	for name, x := range map[string]struct {
		history
		want Way
	}{
		"the disk becomes slow":  {history{cost: turn([]float64{1, 1.5, 1.6}, []float64{4, 1.5, 1.6}), news: few}, Encoded},
		"the disk becomes fast":  {history{cost: turn([]float64{4, 1.5, 1.6}, []float64{1, 1.5, 1.6}), news: few}, Plain},
		"little becomes new":     {history{cost: turn([]float64{1, 1.1, 1.2}, []float64{1, 1.1, 0.3}), news: few}, Difference},
		"hashing is in vain":     {history{cost: turn([]float64{1, 1.1, 1.5}, []float64{1, 1.1, 1.5}), news: much}, Plain},
		"duplicates have an end": {history{cost: turn([]float64{1, 0.9, 0.3}, []float64{1, 0.9, 1.9}), news: few}, Encoded},
	} {
		x.encoded, x.removable = 500, true
		if o := x.play(4000); o.after[x.want] < 1800 || o.late > 1.02*o.lateBest {
			t.Errorf("%s: of 2000 checkpoints later %v, %g where the best takes %g", name, o.after, o.late, o.lateBest)
		}
	}
}

// Encoding that costs a little more time is chosen for the room that it saves. Small transfers say nothing, nor does the first flush.
func TestTheWaysCompared(t *testing.T) {
	both := can{Plain: true, Encoded: true}
	for _, x := range []struct {
		plain, encoded int64
		want           Way
	}{{1000, 1000, Encoded}, {1000, 1019, Encoded}, {1000, 1030, Plain}, {1000, 100, Encoded}} {
		c := costs{}
		c.observe(down, Plain, 1<<20, 1<<40)
		for range trial {
			c.observe(down, Plain, 1<<20, x.plain)
			c.observe(down, Encoded, 1<<20, x.encoded)
			c.observe(down, Encoded, 1<<10, 1)
		}
		if got := c.best(both, false); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
	c := costs{begun: true}
	for range trial {
		c.observe(down, Plain, 1<<20, 100)
		c.observe(down, Encoded, 1<<20, 80)
		c.observe(up, Plain, 1<<20, 50)
	}
	if c.best(both, false) != Encoded {
		t.Error("loads of one way alone count")
	}
	for range trial {
		c.observe(up, Encoded, 1<<20, 100)
	}
	for _, may := range []can{both, {Plain: true, Encoded: true, Difference: true}} { // differences that were never tried have no loads
		if c.best(may, true) != Plain {
			t.Error("loads do not count")
		}
	}
}

// Where few chunks are equal to those of the checkpoint before, differences are not tried, and the next look is soon; where many are, they are, as without a look.
func TestALookSparesTrials(t *testing.T) {
	for equal, want := range map[float64]bool{0: false, 0.2: false, 0.3: true, 1: true} {
		p, looks, went := New(Auto, codec.NoCompression), 0, [ways]int{}
		for range 1000 {
			x := p.Next(Checkpoint{Layout: 1, Removable: true})
			if x.Look {
				looks++
				x = p.Looked(x, 1, equal)
			}
			if x.Sample {
				p.Sampled(1, choices, 1000, 990)
				x = p.Resume(x, 1)
			}
			went[x.Way]++
			if x.Way == Difference {
				p.Removed(1<<20, 1<<18, 1<<18)
			} else {
				p.Flushed(x.Way, 1<<20, 1<<20)
			}
		}
		if tried := went[Difference] > 900; tried != want || !want && (went[Difference] > 0 || looks < 1000/firstWait/2) {
			t.Errorf("%g are equal: %v after %d looks", equal, went, looks)
		}
	}
}

// A trial of differences compares its first checkpoint with one of long ago: that says nothing.
func TestWhatIsNew(t *testing.T) {
	for _, x := range []struct {
		parts []float64
		few   bool
	}{{nil, false}, {[]float64{0.1}, false}, {[]float64{1, 0.1}, true}, {[]float64{0.1, 1}, false}, {[]float64{1, 0.1, 1, 1, 1, 1}, false}} {
		n := news{ignore: true}
		for _, part := range x.parts {
			n.removed(part)
		}
		if n.few() != x.few {
			t.Errorf("%+v", x)
		}
	}
}

// A difference that was planned in vain is planned again.
func TestADifferenceInVain(t *testing.T) {
	const plain = 1 << 20
	p := New(Auto, codec.NoCompression)
	differences := 0
	for range 40 {
		switch x := p.Next(Checkpoint{Layout: 1, Removable: true, Queued: true}); {
		case x.Sample:
			p.Sampled(1, nil, plain, plain/2)
			p.Flushed(x.Way, plain, 2*plain)
		case x.Way != Difference:
			p.Flushed(x.Way, plain, 2*plain)
		case differences == 0: // there is no anchor
			differences++
			p.NotRelated()
			p.Flushed(Encoded, plain, 2*plain)
		default:
			differences++
			p.Related(1, plain, plain/10, plain)
		}
	}
	if differences < 20 {
		t.Errorf("%d differences", differences)
	}
}

// A device keeps no checkpoint for later ones while they have nothing in common with it, but it tries again from time to time: they may come to have more.
func TestADeviceTriesDifferencesAgain(t *testing.T) {
	const plain, layout = 1 << 20, 1
	p := New(Auto, codec.NoCompression)
	play := func(count int, part float64) (went [ways]int) {
		anchor := false
		for range count {
			x := p.Next(Checkpoint{Layout: layout, Removable: anchor, Queued: true})
			if x.Sample {
				p.Sampled(layout, nil, plain, plain/2)
			}
			switch went[x.Way]++; x.Way {
			case Difference:
				p.Related(layout, plain, int64(part*plain), int64((0.2+part)*plain))
			case Encoded:
				p.Flushed(x.Way, plain, plain/2)
				p.Became(layout, plain, plain/2)
			default:
				p.Flushed(x.Way, plain, plain)
			}
			anchor = x.Way != Difference && p.Relates(layout) || anchor && x.Way == Difference
		}
		return went
	}
	if went := play(1000, 0.9); went[Difference] == 0 || went[Difference] > 1000/firstWait {
		t.Errorf("with nothing in common: %v", went)
	}
	play(mostWait, 0.1)
	if went := play(1000, 0.1); went[Difference] < 950 {
		t.Errorf("with much in common: %v", went)
	}
}

// What the ways have cost counts as if the slower link had been there before: the way with fewer bytes is the best one at once, without another trial.
func TestASlowerLinkBelow(t *testing.T) {
	const plain = 1 << 20
	p := New(Auto, codec.NoCompression)
	on := Checkpoint{Layout: 1, Removable: true, Queued: true}
	cost := [ways]int64{Plain: plain, Encoded: 2 * plain, Difference: 3 * plain}
	play := func(count int, least int64) (went [ways]int) {
		for range count {
			x := p.Next(on)
			if x.Sample {
				p.Sampled(1, nil, plain, plain/2)
			}
			switch went[x.Way]++; x.Way {
			case Difference:
				p.Related(1, plain, plain/10, max(cost[x.Way], least/10))
			case Encoded:
				p.Flushed(x.Way, plain, max(cost[x.Way], least/2))
				p.Became(1, plain, plain/2)
			default:
				p.Flushed(x.Way, plain, max(cost[x.Way], least))
			}
		}
		return went
	}
	play(200, 0)
	if went := play(10, 0); went[Plain] < 9 {
		t.Fatalf("%v", went)
	}
	p.GoesDeeper(50)
	if went := play(10, 50*plain); went[Difference] < 9 {
		t.Errorf("%v", went)
	}
}

// Other methods decide nothing by cost.
func TestOnlyAutoWeighsCosts(t *testing.T) {
	for method, want := range map[Method]Way{Raw: Plain, Codec: Encoded, Lineage: Difference} {
		p := New(method, codec.NoCompression)
		for range 100 {
			if x, _ := planned(p, 1, true, 500); x.Way != want || p.Likely(Checkpoint{Layout: 1, Removable: true}) != want {
				t.Fatalf("method %d goes %d", method, x.Way)
			}
			p.Removed(1<<20, 1<<20, 1<<40)
			p.Flushed(want, 1<<20, 1<<40)
		}
	}
	for encoded, want := range map[int64]string{500: "1 [{", 1000: "0 []"} { // what no lineage can take is encoded
		x, _ := planned(New(Lineage, codec.NoCompression), 1, false, encoded)
		if got := fmt.Sprint(x.Way, x.Choices); got[:len(want)] != want {
			t.Errorf("%s", got)
		}
	}
}

func TestMedians(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, all := median{}, rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 40).Draw(t, "values")
		for _, x := range all {
			m.add(x)
		}
		latest := all[max(0, len(all)-len(m.latest)):]
		less, more := 0, 0
		for _, x := range latest {
			if x < m.value {
				less++
			}
			if x > m.value {
				more++
			}
		}
		if half := len(latest) / 2; less > half || more > half || m.count != len(all) {
			t.Fatalf("%g of %v", m.value, latest)
		}
	})
}
