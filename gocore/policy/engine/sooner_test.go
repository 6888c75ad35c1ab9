package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/evict"
	"velocpy/gocore/policy/fragment"
)

const mb = int64(1e6) // takes a millisecond over the links here

// crowded is a host of 100 MB, full of unflushed checkpoints of the given sizes (MB), over a disk.
type crowded struct {
	*Engine
	t   *testing.T
	h   *History
	now int64
}

func newCrowded(t *testing.T, workers int, sizes ...int64) *crowded {
	return newCrowdedOver(t, hostOfHundred(workers), sizes...)
}

func hostOfHundred(workers int) Config {
	return Config{Workers: workers, Tiers: []TierConfig{
		{Name: "host", Capacity: 100 * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000 * mb, Remote: true},
	}}
}

func newCrowdedOver(t *testing.T, cfg Config, sizes ...int64) *crowded {
	c := crowd(t, cfg, sizes...)
	for _, l := range c.links { // the links have the rates that were assumed
		for !l.down.Trusted() {
			l.down.Observe(20*mb, l.down.Predict(20*mb))
		}
	}
	return c
}

// crowd is newCrowdedOver with links that have not been measured.
func crowd(t *testing.T, cfg Config, sizes ...int64) *crowded {
	c := &crowded{Engine: New(cfg), t: t}
	c.h = c.History("h")
	for k, mbs := range sizes {
		c.now += 1000 * mb // slowly: the link could carry all of it
		x := c.begin(int64(k), mbs)
		if x.Phase != Ready || x.Tier != 0 {
			t.Fatalf("capture %d: phase %d in tier %d", k, x.Phase, x.Tier)
		}
		c.EndCapture(c.now, x, true)
	}
	c.takeBack()
	return c
}

// takeBack cancels, a second later, the flushes that lazy flushing has begun. Later flushes are then those that room depends on.
func (c *crowded) takeBack() {
	c.now += 1000 * mb
	for _, l := range c.links {
		c.h.Each(func(r *Record) {
			if c.unqueue(c.now, l, &r.own) {
				c.updateCopy(c.now, &r.own, l.upper)
			}
		})
		l.backlog = c.now
	}
}

func (c *crowded) begin(key, mbs int64) *Capture {
	c.t.Helper()
	x, err := c.BeginCapture(c.now, c.h, model.NumberKey(key), mbs*mb, 1, nil, CaptureOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return x
}

// next is the next downward transfer.
func (c *crowded) next(kind TransferKind, key int64) *Transfer {
	c.t.Helper()
	x := c.Next(c.now, anyDown)
	if x == nil || x.Kind != kind || x.Rec.Key.Number != key {
		c.t.Fatalf("the next transfer is %+v, wanted kind %d of %d", x, kind, key)
	}
	return x
}

// The only possible room is that of 20 MB that have to be flushed first. Writing 10 MB to the disk takes half of that time. The flush follows.
func TestACaptureGoesDownWhereThatIsSooner(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	x := c.begin(9, 10)
	if x.Tier != 1 || !x.Spill || x.Phase != Waiting {
		t.Fatalf("it goes to tier %d, spill %v, phase %d", x.Tier, x.Spill, x.Phase)
	}
	spill := c.next(Spill, 9)
	c.next(Flush, 1)
	c.now += 10 * mb
	c.Done(c.now, spill, nil)
	if x.Phase != Ended || x.Err != nil || !c.Complete(x.Rec, 1) || c.h.Get(x.Rec.Key) != x.Rec {
		t.Errorf("phase %d, %v", x.Phase, x.Err)
	}
}

// As many bytes have to be flushed as are captured. Waiting and then copying takes as long, and the capture ends in the fast tier.
func TestACaptureWaitsWhereThatIsNotSlower(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	x := c.begin(9, 20)
	if x.Tier != 0 || x.Spill || x.Phase != Waiting {
		t.Fatalf("it goes to tier %d, spill %v, phase %d", x.Tier, x.Spill, x.Phase)
	}
	flush := c.next(Flush, 1)
	c.now += 20 * mb
	c.Done(c.now, flush, nil)
	if x.Phase != Ready || x.Tier != 0 {
		t.Errorf("there is room, and it is in phase %d in tier %d", x.Phase, x.Tier)
	}
}

// A flush that will soon have made room is waited for, although it carries more bytes than the capture.
func TestACaptureWaitsForAFlushThatEndsSoon(t *testing.T) {
	for _, passed := range []int64{2, 15} { // of 20 ms
		c := newCrowded(t, 2, 60, 20, 20)
		c.Await(c.now, []*Record{c.h.Get(model.NumberKey(1))}, 1)
		c.next(Flush, 1)
		c.now += passed * mb
		x := c.begin(9, 10)
		if down := x.Tier == 1; down != (passed == 2) {
			t.Errorf("%d ms after the flush has begun it goes to tier %d", passed, x.Tier)
		}
	}
}

// Without an idle worker, a capture that goes down would also wait for the flush.
func TestABusyLinkIsBusyForCapturesToo(t *testing.T) {
	for _, workers := range []int{1, 2} {
		c := newCrowded(t, workers, 100)
		c.Await(c.now, []*Record{c.h.Get(model.NumberKey(0))}, 1)
		c.next(Flush, 0)
		if x := c.begin(9, 10); (x.Tier == 1) != (workers == 2) {
			t.Errorf("beside one flush of 100 MB and %d workers it goes to tier %d", workers, x.Tier)
		}
	}
}

// A disk that is slower for captures than predicted costs the time of one of them. The next one waits for room.
func TestAWrongPredictionCostsTimeOnly(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	x := c.begin(9, 10)
	spill := c.next(Spill, 9)
	c.now += 500 * mb
	c.Done(c.now, spill, nil)
	if x.Phase != Ended || x.Err != nil {
		t.Fatalf("phase %d, %v", x.Phase, x.Err)
	}
	if x := c.begin(10, 10); x.Tier != 0 {
		t.Errorf("a capture takes half a second on the disk, and the next one goes there, too")
	}
}

var errFullDisk = errors.New("no space")

// A capture whose write to the disk fails is an error of its caller and leaves nothing behind.
func TestACaptureThatFailsBelow(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	x := c.begin(9, 10)
	c.Done(c.now, c.next(Spill, 9), errFullDisk)
	if x.Phase != Ended || !errors.Is(x.Err, errFullDisk) || c.h.Get(x.Rec.Key) != nil || c.Use(1).Used != 0 {
		t.Errorf("phase %d, %v; %+v", x.Phase, x.Err, c.Use(1))
	}
}

// The assumed rate of an unmeasured link is no prediction: the capture stays.
func TestACaptureStaysAboveAnUnmeasuredLink(t *testing.T) {
	c := crowd(t, hostOfHundred(2), 60, 20, 20)
	c.links[0].down.Observe(20*mb, 20*mb) // once is not enough
	if x := c.begin(9, 10); x.Tier != 0 {
		t.Errorf("it goes to tier %d", x.Tier)
	}
}

// Transfers that take a fifth less or more than the link's rate predicts are no reason to go down. Checkpoints of one size wait for room, since going
// down takes as long.
func TestNoiseIsNoGain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCrowded(t, 2, 20, 20, 20, 20, 20)
		noise := func() int64 { return rapid.Int64Range(16, 24).Draw(rt, "ms") * mb }
		for range 20 {
			c.links[0].down.Observe(20*mb, noise())
			c.links[0].observeStraight(20*mb, noise())
		}
		ends := map[*Transfer]int64{}
		start := func() {
			for x := c.Next(c.now, anyDown); x != nil; x = c.Next(c.now, anyDown) {
				ends[x] = c.now + noise()
				if len(ends) == 2 {
					return
				}
			}
		}
		endBefore := func(until int64) bool { // the transfer that ends first, if it ends before until
			var first *Transfer
			for x, at := range ends {
				if first == nil || at < ends[first] || at == ends[first] && x.Rec.written < first.Rec.written {
					first = x
				}
			}
			if first == nil || ends[first] > until {
				return false
			}
			c.now = ends[first]
			delete(ends, first)
			c.Done(c.now, first, nil)
			if len(ends) < 2 {
				start()
			}
			return true
		}
		for key := range int64(8) {
			x := c.begin(100+key, 20)
			if x.Tier != 0 {
				rt.Fatalf("capture %d goes to tier %d", key, x.Tier)
			}
			if len(ends) < 2 {
				start()
			}
			for x.Phase == Waiting {
				if !endBefore(math.MaxInt64) {
					rt.Fatal("nothing moves, and there is no room")
				}
			}
			c.EndCapture(c.now, x, true)
			until := c.now + rapid.Int64Range(0, 30).Draw(rt, "pause")*mb
			for endBefore(until) {
			}
			c.now = until
		}
	})
}

// A late source, which no worker carries until it is filled, keeps no worker busy. Its waiting does not count for the link's rate.
func TestALateSourceDoesNotBusyTheLink(t *testing.T) {
	for _, aside := range []bool{false, true} {
		c := newCrowded(t, 1, 60, 20, 20)
		late, err := c.BeginCapture(c.now, c.h, model.NumberKey(8), 50*mb, 1, nil, CaptureOptions{SourceStays: true})
		if err != nil || late.Tier != 1 || !late.Spill {
			t.Fatalf("%+v, %v", late, err)
		}
		spill := c.next(Spill, 8)
		c.now += 5 * mb
		if aside {
			c.PutAside(spill)
		}
		if x := c.begin(9, 10); (x.Tier == 1) != aside {
			t.Errorf("put aside: %v; it goes to tier %d", aside, x.Tier)
		}
		c.now += 500 * mb
		if aside {
			c.TakeUp(c.now, spill)
			if free := c.workers(c.now, c.links[0]); free[0] != c.now+50*mb {
				t.Errorf("taken up now, its worker is free in %d ns", free[0]-c.now)
			}
		}
		c.now += 50 * mb
		c.Done(c.now, spill, nil)
		if ns := c.links[0].straightTime(50 * mb); aside && ns > 51*mb {
			t.Errorf("it took 50 ms, and the next is predicted to take %d ns", ns)
		}
	}
}

// Workers report, without the lock, when a transfer's bytes begin to move. Concurrent predictions do not read that.
func TestPredictionsBesideWorkers(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	c.Await(c.now, []*Record{c.h.Get(model.NumberKey(0))}, 1)
	x := c.next(Flush, 0)
	c.now += 10 * mb
	before := c.links[0].endOf(c.now, x)
	var worker sync.WaitGroup
	worker.Go(func() {
		x.Begun(c.now)
		x.Rested(100 * mb)
	})
	for range 100 {
		if end := c.links[0].endOf(c.now, x); end != before {
			t.Errorf("predicted to end at %d, then at %d", before, end)
		}
	}
	worker.Wait()
}

// A worker that carries many small transfers counts as one worker.
func TestABatchTakesOneWorker(t *testing.T) {
	c := newCrowded(t, 2, 10, 10, 10, 70)
	for k := range int64(3) {
		c.Await(c.now, []*Record{c.h.Get(model.NumberKey(k))}, 1)
		c.next(Flush, k)
	}
	if free := c.workers(c.now, c.links[0]); len(free) != 2 || free[0] != c.now+20*mb || free[1] != c.now+10*mb {
		t.Errorf("at %d the workers are free at %v", c.now, free)
	}
}

// queuedUp is a host with n checkpoints of 1 MB whose flushes are urgent, and one of 10 MB whose flush would make room.
func queuedUp(t testing.TB, n int64) (*Engine, *Capture, evict.Window) {
	e := New(Config{Workers: 2, Tiers: []TierConfig{
		{Name: "host", Capacity: (n + 10) * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 4 * (n + 10) * mb, Remote: true},
	}})
	h := e.History("h")
	take := func(key, size int64) *Record {
		c, err := e.BeginCapture(0, h, model.NumberKey(key), size, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatalf("phase %d, %v", c.Phase, err)
		}
		e.EndCapture(0, c, true)
		return c.Rec
	}
	for key := range n {
		e.Await(0, []*Record{take(key, mb)}, 1)
	}
	large := take(n, 10*mb)
	w := evict.Window{First: large.own.copies[0], Last: large.own.copies[0]}
	for !e.links[0].down.Trusted() {
		e.links[0].down.Observe(20*mb, 20*mb)
	}
	return e, &Capture{Rec: e.newRecord(h, model.NumberKey(n+1), 2*mb, 1, nil), quiet: true}, w
}

// Flushes queued behind those that a prediction looks at are assumed to be like them.
func TestPredictionsOfLongQueues(t *testing.T) {
	for _, n := range []int64{1, foresight, foresight + 1, 100, 1000} {
		e, c, w := queuedUp(t, n)
		wait, known := e.roomIn(0, 0, c.Rec.Size, w)
		if want := n*mb/2 + 10*mb; !known || max(wait-want, want-wait) > mb {
			t.Errorf("behind %d flushes: %d ns, known %v; it takes %d", n, wait, known, want)
		}
	}
}

// A window of many fragments takes as long as all of their flushes.
func TestPredictionsOfWideWindows(t *testing.T) {
	for _, n := range []int64{1, 2, foresight, foresight + 1, 200} {
		e := New(Config{Workers: 2, Tiers: []TierConfig{
			{Name: "host", Capacity: n * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 4 * n * mb, Remote: true},
		}})
		h := e.History("h")
		w := none
		for key := range n {
			c, err := e.BeginCapture(0, h, model.NumberKey(key), mb, 1, nil, CaptureOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e.EndCapture(0, c, true)
			if w.Last = c.Rec.own.copies[0]; key == 0 {
				w.First = w.Last
			}
		}
		wait, known := e.roomIn(0, 0, n*mb, w)
		if want := (n + 1) / 2 * mb; !known || max(wait-want, want-wait) > mb {
			t.Errorf("%d fragments: %d ns, known %v; it takes %d", n, wait, known, want)
		}
	}
}

// BenchmarkSooner measures how long a capture without room takes to predict whether it ends sooner below, with so many flushes queued.
func BenchmarkSooner(b *testing.B) {
	for _, n := range []int64{1, 16, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, c, w := queuedUp(b, n)
			e.tiers[0].inflow = inflow{between: 1e12}
			for b.Loop() {
				e.soonerBelow(0, c, w)
			}
		})
	}
}

// Captures wait in turn: a small one does not go down before one that has waited longer.
func TestACaptureOvertakesNone(t *testing.T) {
	c := newCrowded(t, 2, 60, 20, 20)
	first := c.begin(8, 60)
	if first.Phase != Waiting || first.Tier != 0 {
		t.Fatalf("phase %d in tier %d", first.Phase, first.Tier)
	}
	if x := c.begin(9, 10); x.Tier != 0 {
		t.Errorf("it goes to tier %d before one that waits", x.Tier)
	}
}

// A capture whose source stays waits for room in its tier, since its caller does not wait for it. The same capture with a waiting caller goes down.
func TestASourceThatStaysDoesNotGoDown(t *testing.T) {
	for _, stays := range []bool{false, true} {
		c := newCrowdedOver(t, Config{Workers: 2, Tiers: []TierConfig{
			{Name: "device", Capacity: 100 * mb, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "host", Capacity: 100 * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "far host", Capacity: 1000 * mb, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: 1000 * mb, Remote: true},
		}})
		begin := func(key, mbs int64, o CaptureOptions) *Capture {
			x, err := c.BeginCapture(c.now, c.h, model.NumberKey(key), mbs*mb, 1, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		for key, mbs := range []int64{60, 20, 20} {
			c.now += 1000 * mb
			c.EndCapture(c.now, begin(int64(key), mbs, CaptureOptions{Top: 1}), true)
		}
		c.takeBack()
		top := 1
		if stays {
			top = 0 // it bypasses the device
		}
		x := begin(9, 10, CaptureOptions{Top: top, SourceStays: stays})
		if wanted := map[bool]int{false: 2, true: 1}[stays]; x.Tier != wanted || stays && x.Phase != Waiting {
			t.Errorf("source stays %v: it goes to tier %d, phase %d", stays, x.Tier, x.Phase)
		}
	}
}

// If the disk has no room either, a capture waits as before.
func TestACaptureStaysAboveAFullDisk(t *testing.T) {
	c := newCrowdedOver(t, Config{Workers: 2, Tiers: []TierConfig{
		{Name: "host", Capacity: 100 * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 100 * mb, Remote: true},
	}}, 60, 20, 20)
	c.Await(c.now, []*Record{c.h.Get(model.NumberKey(0)), c.h.Get(model.NumberKey(1))}, 1)
	for x := c.Next(c.now, anyDown); x != nil; x = c.Next(c.now, anyDown) {
		c.Done(c.now, x, nil)
	}
	for _, mbs := range []int64{60, 20} { // takes the places above; 20 MB are left below
		c.EndCapture(c.now, c.begin(10+mbs, mbs), true)
	}
	if x := c.begin(9, 25); x.Tier != 0 {
		t.Errorf("it goes to tier %d, which has 20 MB", x.Tier)
	}
}

// twoDevices are two devices of 100 MB over a host, over a disk.
func twoDevices(t *testing.T, sizes ...int64) *crowded {
	return newCrowdedOver(t, Config{Workers: 2, Tiers: []TierConfig{
		{Name: "device 0", Capacity: 100 * mb, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "device 1", Capacity: 100 * mb, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "host", Capacity: 1000 * mb, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 10_000 * mb, Remote: true},
	}}, sizes...)
}

// From a device, the caller itself copies to the host, and the copy counts as one over that link. The device's copies are flushed meanwhile.
func TestADevicesCaptureGoesToTheHost(t *testing.T) {
	c := twoDevices(t, 100)
	x := c.begin(9, 10)
	if x.Tier != 2 || x.Spill || x.Phase != Ready {
		t.Fatalf("it goes to tier %d, spill %v, phase %d", x.Tier, x.Spill, x.Phase)
	}
	c.next(Flush, 0)
	c.now += 400 * mb
	c.EndCapture(c.now, x, true)
	if !c.Complete(x.Rec, 2) || x.Rec.Top() != 0 || c.h.sweep.top != 0 {
		t.Errorf("complete %v, top %d; the sweep is expected in tier %d", c.Complete(x.Rec, 2), x.Rec.Top(), c.h.sweep.top)
	}
	if ns := c.links[0].straightTime(10 * mb); ns < 300*mb {
		t.Errorf("a copy took 400 ms, the next is predicted to take %d", ns)
	}
}

// A capture does not wait to the end for a flush that takes much longer than predicted: a device's capture may go down later, too.
func TestADevicesCaptureGoesDownLater(t *testing.T) {
	c := twoDevices(t, 85, 15)
	flushes := []*Record{c.h.Get(model.NumberKey(0)), c.h.Get(model.NumberKey(1))}
	c.Await(c.now, flushes, 2)
	large, small := c.next(Flush, 0), c.next(Flush, 1)
	x := c.begin(9, 14)
	if x.Tier != 0 || x.Phase != Waiting {
		t.Fatalf("tier %d, phase %d", x.Tier, x.Phase)
	}
	c.now += 15 * mb
	lease, err := c.BeginRestore(c.now, c.h, model.NumberKey(1), RestoreOptions{}) // holds the copy that was to make room
	if err != nil || lease.Phase != Ready {
		t.Fatalf("phase %d, %v", lease.Phase, err)
	}
	c.Done(c.now, small, nil) // 70 ms of the large one are left
	if x.Phase != Ready || x.Tier != 2 {
		t.Errorf("phase %d in tier %d", x.Phase, x.Tier)
	}
	c.Done(c.now, large, nil)
}

// While callers hold all of a device, its captures go to the host, whatever moves in other tiers.
func TestALentDeviceDoesNotWaitForOthers(t *testing.T) {
	c := twoDevices(t, 100)
	if r, err := c.BeginRestore(c.now, c.h, model.NumberKey(0), RestoreOptions{}); err != nil || r.Phase != Ready {
		t.Fatalf("phase %d, %v", r.Phase, err)
	}
	other, err := c.BeginCapture(c.now, c.h, model.NumberKey(5), 50*mb, 1, nil, CaptureOptions{Top: 1})
	if err != nil || other.Phase != Ready {
		t.Fatalf("phase %d, %v", other.Phase, err)
	}
	c.EndCapture(c.now, other, true)
	c.Await(c.now, []*Record{other.Rec}, 2)
	c.next(Flush, 5)
	if x := c.begin(9, 10); x.Phase != Ready || x.Tier != 2 {
		t.Errorf("phase %d in tier %d", x.Phase, x.Tier)
	}
}

// A device over a disk alone: a transfer would read the source, and no worker has waited for its stream.
func TestADevicesCaptureNeverGoesToADisk(t *testing.T) {
	c := newCrowdedOver(t, Config{Workers: 2, Tiers: []TierConfig{
		{Name: "device", Capacity: 100 * mb, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "disk", Capacity: 1000 * mb, Remote: true},
	}}, 100)
	if x := c.begin(9, 10); x.Tier != 0 || x.Spill {
		t.Errorf("tier %d, spill %v", x.Tier, x.Spill)
	}
}

// If transfers take as long as the link's estimate says, room appears exactly when it is predicted.
func TestRoomIsThereWhenPredicted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 3).Draw(rt, "workers")
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 12), 2, 8).Draw(rt, "sizes")
		c := newCrowded(t, workers, sizes...)
		recs := make([]*Record, len(sizes))
		for k := range recs {
			recs[k] = c.h.Get(model.NumberKey(int64(k)))
		}
		for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(recs)-1), 0, len(recs), rapid.ID).Draw(rt, "awaited") {
			c.Await(c.now, recs[k:k+1], 1)
		}
		ends := map[*Transfer]int64{}
		start := func() {
			for len(ends) < workers {
				x := c.Next(c.now, anyDown)
				if x == nil {
					return
				}
				ends[x] = c.now + c.links[0].down.Predict(x.Rec.Size)
			}
		}
		end := func() { // the transfer that ends first; of several, the one queued first
			var first *Transfer
			for x, at := range ends {
				if first == nil || at < ends[first] || at == ends[first] && x.Rec.written < first.Rec.written {
					first = x
				}
			}
			c.now = ends[first]
			delete(ends, first)
			c.Done(c.now, first, nil)
			start()
		}
		start()
		for range rapid.IntRange(0, len(ends)).Draw(rt, "ended") {
			end()
		}
		from := rapid.IntRange(0, len(recs)-1).Draw(rt, "from")
		to := rapid.IntRange(from, len(recs)-1).Draw(rt, "to")
		w := evict.Window{First: recs[from].own.copies[0], Last: recs[to].own.copies[0]}
		if w.First == fragment.None || w.Last == fragment.None {
			rt.Skip("gone")
		}
		bytes := int64(0) // of the window
		for _, r := range recs[from : to+1] {
			bytes += r.Size
		}
		waits := func(r *Record) bool { return c.Fragment(r, 0).Class != fragment.Free }
		hasRoom := func() bool {
			return !slices.ContainsFunc(recs[from:to+1], waits) || slices.ContainsFunc(recs, func(r *Record) bool { return r.Size >= bytes && !waits(r) })
		}
		if hasRoom() {
			rt.Skip("there is room")
		}
		wait, known := c.roomIn(c.now, 0, bytes, w)
		if !known {
			rt.Fatal("the disk has room")
		}
		predicted := c.now + wait
		c.flushUrgently(c.now, 0, w)
		start()
		for !hasRoom() {
			if len(ends) == 0 {
				rt.Fatal("nothing moves, and there is no room")
			}
			end()
		}
		if off := c.now - predicted; off < -1000 || off > 1000 { // every duration is rounded to whole ns, and the estimates learn from it
			rt.Fatalf("room is there at %d, predicted %d", c.now, predicted)
		}
	})
}
