package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
	"velocpy/gocore/policy/plan"
)

// need lets a copy need another one.
func (w *world) need(t *rapid.T) {
	var all []*Object
	tier := rapid.IntRange(0, len(w.e.tiers)-1).Draw(t, "tier")
	for _, o := range w.live() {
		if o.copies[tier] != fragment.None {
			all = append(all, o)
		}
	}
	if len(all) < 2 {
		t.Skip("nothing")
	}
	o, of := rapid.SampledFrom(all).Draw(t, "object"), rapid.SampledFrom(all).Draw(t, "other")
	before := o.Related(tier)
	if begun := w.e.Need(w.now, o, of, tier); begun != (before == nil && o.Source(tier) == of) || before != nil && o.Related(tier) != before {
		w.fatalf("%v needs %v in tier %d", name(o), name(o.Source(tier)), tier)
	}
}

// needParts lets a copy need several others, other ones than before, or none any more.
func (w *world) needParts(t *rapid.T) {
	var all []*Object
	tier := rapid.IntRange(0, len(w.e.tiers)-1).Draw(t, "tier")
	for _, r := range w.born {
		if o := &r.own; o.home != nil && o.copies[tier] != fragment.None {
			all = append(all, o)
		}
	}
	if len(all) < 2 {
		t.Skip("nothing")
	}
	o := rapid.SampledFrom(all).Draw(t, "object")
	of := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 4, func(o *Object) *Object { return o }).Draw(t, "others")
	before := slices.Clone(o.Sources(tier))
	if w.e.NeedParts(w.now, o, of, tier) {
		before = of
	}
	if gone := o.copies[tier] == fragment.None && len(o.Sources(tier)) == 0; !gone && !slices.Equal(o.Sources(tier), before) || len(before) > 1 && o.Source(tier) != nil {
		w.fatalf("%v needs %d others in tier %d, not %d", name(o), len(o.Sources(tier)), tier, len(before))
	}
}

func (w *world) needNoMore(t *rapid.T) {
	for _, r := range w.born {
		for tier := range w.e.tiers {
			if r.own.home != nil && (r.own.Related(tier) != nil || len(r.own.Sources(tier)) > 0) {
				w.e.NeedNoMore(w.now, &r.own, tier)
				return
			}
		}
	}
	t.Skip("nothing")
}

// checkNeeds compares what is needed with a recount.
func (w *world) checkNeeds() {
	type copyOf struct {
		o *Object
		t int
	}
	count := map[copyOf]int{}
	for _, r := range w.born {
		for t := range w.e.tiers {
			if loose := r.own.Related(t); r.own.Source(t) == nil && loose != nil && !slices.Contains(loose.users(), &r.own) {
				w.fatalf("tier %d: %v was forgotten by %v", t, name(&r.own), name(loose))
			}
			for _, of := range r.own.Sources(t) {
				chain := r.own.needsParts() && of.Source(t) != nil || !r.own.needsParts() && len(of.Sources(t)) > 0
				if count[copyOf{of, t}]++; r.own.copies[t] == fragment.None || !w.e.complete(of, t) || chain {
					w.fatalf("tier %d: %v needs %v%s", t, name(&r.own), name(of), w.state())
				}
				if f := w.e.row(of, t); f.Class == fragment.Free {
					w.fatalf("tier %d: %v is needed, and may be evicted", t, name(of))
				}
			}
			if o := &r.own; o.gone && len(o.Sources(t)) > 0 && o.needsParts() && w.e.row(o, t).Pins == 0 && w.e.row(o, t).Transfers == 0 {
				w.fatalf("tier %d: %v is gone, read by nobody, and still needs others", t, name(o))
			}
		}
	}
	if len(w.e.unneeded) > 0 {
		w.fatalf("%d copies that others need no more were not looked at", len(w.e.unneeded))
	}
	hard := make([]int, len(w.e.tiers))
	for x, n := range count {
		hard[x.t] += n
	}
	for t, n := range hard {
		if w.e.tiers[t].needs != n {
			w.fatalf("tier %d: %d copies need others, counted %d", t, n, w.e.tiers[t].needs)
		}
	}
	for _, r := range w.born {
		for t := range w.e.tiers {
			if o := &r.own; o.gone && o.hasNeed() && o.more.needs.loose {
				w.fatalf("%v is gone, and has a loose need", name(o))
			}
			if o := &r.own; o.more != nil && o.more.needs != nil && users(o, t) != count[copyOf{o, t}] {
				w.fatalf("tier %d: %v is needed by %d, counted %d", t, name(o), users(o, t), count[copyOf{o, t}])
			}
		}
	}
}

// users is how many copies in tier t need that of o.
func users(o *Object, t int) (n int) {
	for _, u := range o.users() {
		if slices.Contains(u.Sources(t), o) {
			n++
		}
	}
	return n
}

// ofThreeTiers is an engine of a device, a host and a disk that flushes at once, and a function that captures a checkpoint of 30 bytes.
func ofThreeTiers(t *testing.T) (e *Engine, h *History, capture func(k int64) *Object) {
	e = New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 100, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true},
	}})
	h = e.History("h")
	return e, h, func(k int64) *Object {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 30, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(k, err, c)
		}
		e.EndCapture(0, c, true)
		return c.Rec.Objects()[0]
	}
}

// A copy that another needs is kept, even when its checkpoint has been dropped, until the other one goes.
func TestANeededCopyIsKept(t *testing.T) {
	for _, last := range []string{"drop", "need no more", "evict"} {
		e, h, capture := ofThreeTiers(t)
		write := func(k int64) *Object {
			o := capture(k)
			run(t, e, 10)
			return o
		}
		of, o, other := write(0), write(1), write(2)
		if !e.Need(0, o, of, 1) || e.Need(0, other, o, 1) || e.Need(0, of, other, 1) || e.Need(0, o, of, 0) {
			t.Fatal("a chain, or a need in the fastest tier, or none at all")
		}
		e.Drop(0, h, model.NumberKey(0))
		if !of.Gone() || e.Use(1).Used != 90 || of.isNeeded(2) {
			t.Fatalf("dropped: %+v", e.Use(1))
		}
		switch last {
		case "drop":
			e.Drop(0, h, model.NumberKey(1))
		case "need no more":
			e.NeedNoMore(0, o, 1)
		case "evict":
			for k := range int64(6) {
				write(10 + k)
			}
		}
		if id := of.copies[1]; id != fragment.None || o.Source(1) != nil {
			t.Errorf("%s: the copy that nobody needs is at %d", last, id)
		}
		if len(e.unneeded) > 0 || len(of.users()) > 0 {
			t.Errorf("%s: %v, and it is needed by %d", last, e.unneeded, len(of.users()))
		}
	}
}

// A need is loose once a flush has brought the copy to a tier that has all that it needs: it holds nothing any more, also when the copy is loaded again, and ends with its
// object. It can be ended before.
func TestALooseNeed(t *testing.T) {
	for _, fails := range []bool{false, true} {
		e, h, write := ofThreeTiers(t)
		of := write(0)
		run(t, e, 10)
		o := write(1)
		e.Done(0, e.Next(0, anyDown), nil)
		if !e.Need(0, o, of, 1) {
			t.Fatal("no need")
		}
		x := e.Next(0, anyDown)
		if x.Loosen(); fails {
			e.Done(0, x, errFullDisk)
		} else {
			e.Done(0, x, nil)
		}
		if o.Related(1) != of || (o.Source(1) != nil) != fails || of.isNeeded(1) != fails {
			t.Fatalf("failed %v: needed %v", fails, of.isNeeded(1))
		}
		if fails {
			continue
		}
		for k := range int64(6) {
			write(10 + k)
			run(t, e, 10)
		}
		if of.copies[1] != fragment.None || o.copies[1] != fragment.None || o.Related(1) != of {
			t.Fatal("both were to be evicted")
		}
		e.Drop(0, h, model.NumberKey(1))
		if len(of.users()) > 0 || o.Related(1) != nil {
			t.Error("it is gone, and still related")
		}
	}
}

// Room that only a needed copy can give is waited for: what needs it is flushed.
func TestRoomThatIsNeeded(t *testing.T) {
	for _, fails := range []bool{false, true} {
		e := New(Config{Tiers: []TierConfig{
			{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 70, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: 1000, Remote: true},
		}})
		h := e.History("h")
		write := func(k, size int64) *Capture {
			shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded, Encoded}, Sizes: [MaxTiers]int64{0, size, size}}
			c, err := e.BeginCapture(0, h, model.NumberKey(k), size, 1, nil, CaptureOptions{Shape: shape, Down: 1})
			if err != nil || c.Phase != Ready {
				t.Fatal(k, err, c)
			}
			e.EndCapture(0, c, true)
			return c
		}
		carry := func(wrote int64, err error) {
			for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
				if x.Wrote(wrote); x.From == 1 && x.Obj.Source(1) != nil {
					x.Loosen()
				}
				if e.Done(0, x, map[bool]error{true: err}[x.From == 1]); x.From == 1 && err != nil {
					return
				}
			}
		}
		of := write(0, 50)
		carry(50, nil)
		o := write(1, 20)
		carry(20, nil)
		if !e.Need(0, &o.Rec.own, &of.Rec.own, 1) {
			t.Fatal("no need")
		}
		e.Drop(0, h, model.NumberKey(0))
		write(2, 40)
		if fails {
			carry(40, errFullDisk)
		} else {
			carry(40, nil)
		}
		r := h.Get(model.NumberKey(2))
		if e.Complete(r, 1) == fails {
			t.Errorf("failing %v: on the host %v: %+v", fails, e.Complete(r, 1), e.Use(1))
		}
	}
}

// What is needed loosely is prefetched, to the tier of the copies and to the one above.
func TestWhatIsNeededLooselyIsPrefetched(t *testing.T) {
	e := New(Config{Flush: Eager, Prefetch: true, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 120, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 10000, Remote: true, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	var all []*Object
	for k := range int64(30) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 20, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(k, err, c)
		}
		e.EndCapture(0, c, true)
		o := c.Rec.Objects()[0]
		for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
			if x.Obj == o && x.From == 1 && k%10 > 0 && e.Need(0, o, all[k/10*10], 1) {
				x.Loosen()
			}
			e.Done(0, x, nil)
		}
		if all = append(all, o); k%10 > 0 && o.Related(1) == nil {
			o.extra().needing().of, o.more.needs.tier, o.more.needs.loose = []*Object{all[k/10*10]}, 1, true
			m := all[k/10*10].extra().needing()
			m.users = append(m.users, o)
		}
	}
	var hints []plan.Hint
	for k := int64(29); k >= 0; k-- {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Last})
	}
	e.Hint(0, h, hints)
	e.StartPrefetch(0, h)
	host, times := map[int]int{}, 0
	carry := func() {
		for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
			if k := slices.Index(all, x.Obj); x.To == 1 {
				if host[k]++; k%10 > 0 && host[k/10*10] == 0 {
					times++
				}
			}
			e.Done(0, x, nil)
		}
	}
	for k := int64(29); k >= 0; k-- {
		carry()
		r, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{Into: true})
		if err != nil {
			t.Fatal(err)
		}
		if carry(); r.Phase != Ready {
			t.Fatalf("checkpoint %d: phase %v", k, r.Phase)
		}
		e.HandOver(0, r)
		e.EndRestore(0, r)
	}
	if times > 3 {
		t.Errorf("%d checkpoints came to the host before what they need: %v", times, host)
	}
}

// A copy that is kept is in the way when its checkpoint goes or is lent for the last time, when its tier shrinks, and when a claim waits for its room and no flush makes
// any; not when a flush does.
func TestWhatIsKeptIsInTheWay(t *testing.T) {
	for _, x := range []struct {
		name string
		act  func(e *Engine, h *History)
		want bool
	}{
		{"nothing", func(*Engine, *History) {}, false},
		{"drop", func(e *Engine, h *History) { e.Drop(0, h, model.NumberKey(0)) }, true},
		{"lend", func(e *Engine, h *History) {
			r, err := e.BeginRestore(0, h, model.NumberKey(0), RestoreOptions{Last: true})
			if err == nil {
				e.Lend(0, r)
			}
		}, true},
		{"shrink", func(e *Engine, _ *History) { e.Shrink(0, 0, 10) }, true},
		{"retire", func(e *Engine, _ *History) { e.Retire(0, 0, 10) }, true},
		{"claim", func(e *Engine, h *History) {
			_, _ = e.BeginCapture(0, h, model.NumberKey(9), 70, 1, nil, CaptureOptions{Patient: true})
		}, true},
		{"claim behind a flush", func(e *Engine, h *History) {
			c, _ := e.BeginCapture(0, h, model.NumberKey(8), 30, 1, nil, CaptureOptions{})
			e.EndCapture(0, c, true)
			_, _ = e.BeginCapture(0, h, model.NumberKey(9), 70, 1, nil, CaptureOptions{Patient: true})
		}, false},
	} {
		e := New(Config{Flush: Eager, Tiers: []TierConfig{
			{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9},
		}})
		h := e.History("h")
		c, err := e.BeginCapture(0, h, model.NumberKey(0), 40, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
		run(t, e, 10)
		kept, ok := e.Keep(0, c.Rec, 0)
		if !ok {
			t.Fatal("it is not kept")
		}
		if x.act(e, h); e.Obstructs(kept) != x.want {
			t.Errorf("%s: in the way %v", x.name, !x.want)
		}
		e.EndReading(0, kept)
	}
}

// What the next checkpoints need is prefetched before them, and once, though it is expected later than they are. Its promise ends with theirs.
func TestWhatIsNeededIsPrefetched(t *testing.T) {
	e := New(Config{Flush: Eager, Prefetch: true, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 1000, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	var all []*Object
	for k := range int64(9) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 20, 1, nil, CaptureOptions{})
		if err != nil || c.Phase != Ready {
			t.Fatal(k, err, c)
		}
		e.EndCapture(0, c, true)
		run(t, e, 10)
		all = append(all, c.Rec.Objects()[0])
		if k > 0 && !e.Need(0, all[k], all[0], 1) {
			t.Fatal("no need")
		}
	}
	var hints []plan.Hint
	for k := int64(8); k >= 0; k-- {
		hints = append(hints, plan.Hint{Key: model.NumberKey(k), Op: plan.Last})
	}
	e.Hint(0, h, hints)
	e.StartPrefetch(0, h)
	var loaded []int
	carry := func() {
		for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
			loaded = append(loaded, slices.Index(all, x.Obj))
			e.Done(0, x, nil)
		}
	}
	for k := int64(8); k >= 0; k-- {
		carry()
		r, err := e.BeginRestore(0, h, model.NumberKey(k), RestoreOptions{Into: true})
		if err != nil {
			t.Fatal(err)
		}
		if carry(); r.Phase != Ready || r.Direct {
			t.Fatalf("checkpoint %d: phase %v", k, r.Phase)
		}
		e.HandOver(0, r)
		e.EndRestore(0, r)
	}
	if want := []int{0, 3, 2, 1}; !slices.Equal(loaded, want) {
		t.Errorf("loaded %v, not %v", loaded, want)
	}
	for tier := range 2 {
		if n := e.Use(tier).Used; n != 0 {
			t.Errorf("tier %d has %d bytes", tier, n)
		}
	}
}

// A claim in another tier that can only be denied is denied when the copy is given up that seemed to be under way.
func TestWhatIsKeptDelaysNoDenial(t *testing.T) {
	e := New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 100, WriteRate: 1e9, ReadRate: 1e9},
	}})
	h := e.History("h")
	write := func(k int64, top int) *Capture {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 30, 1, nil, CaptureOptions{Top: top})
		if err != nil {
			t.Fatal(err)
		}
		if c.Phase == Ready {
			e.EndCapture(0, c, true)
			run(t, e, 10)
		}
		return c
	}
	kept, ok := e.Keep(0, write(0, 0).Rec, 0)
	if !ok {
		t.Fatal("it is not kept")
	}
	write(1, 1)
	write(2, 1)
	if e.Obstructs(kept) {
		t.Error("in the way, and nothing waits")
	}
	c := write(3, 1)
	if c.Phase != Waiting || !e.Obstructs(kept) || e.ObstructsThere(kept) {
		t.Fatalf("phase %v, in the way %v, in its own tier %v", c.Phase, e.Obstructs(kept), e.ObstructsThere(kept))
	}
	if e.EndReading(0, kept); c.Phase != Ended || c.Err == nil {
		t.Errorf("phase %v, %v", c.Phase, c.Err)
	}
}

// A copy that is read for a purpose of its own is not lent to a caller that may write to it.
func TestWhatIsReadIsNotLentToWriters(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}}})
	h := e.History("h")
	for k, keep := range []bool{false, true} {
		c, err := e.BeginCapture(0, h, model.NumberKey(int64(k)), 30, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
		if _, ok := e.Keep(0, c.Rec, 0); keep && !ok {
			t.Fatal("it is not kept")
		} else if !keep {
			e.EndReading(0, Reading{Obj: &c.Rec.own})
		}
		r, err := e.BeginRestore(0, h, model.NumberKey(int64(k)), RestoreOptions{Last: true})
		if err != nil || r.Phase != Ready {
			t.Fatal(err)
		}
		if e.Exclusive(r) == keep {
			t.Errorf("kept %v: lent to writers %v", keep, !keep)
		}
	}
}

// Copies that have only what is new need those that have the rest. The host keeps these, also of a checkpoint that is gone, which then needs no others itself. Where there is no
// other room, copies that need others are evicted first, so that those can follow.
func TestPartsInOtherCopies(t *testing.T) {
	e, h, capture := ofThreeTiers(t)
	var all []*Object
	for k := range int64(3) {
		o := capture(k)
		all = append(all, o)
		for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
			if x.Obj == o && x.From == 0 && !e.NeedParts(0, o, all[:k], 1) {
				t.Fatalf("checkpoint %d does not need those before", k)
			}
			e.Done(0, x, nil)
		}
	}
	if a, b := all[1], all[2]; len(b.Sources(1)) != 2 || len(a.Sources(1)) != 1 || b.Source(1) != nil || b.Related(1) != nil {
		t.Fatalf("%d and %d others are needed", len(a.Sources(1)), len(b.Sources(1)))
	}
	if e.NeedParts(0, all[0], all[1:2], 1) || e.NeedParts(0, all[2], all[2:], 1) || e.NeedParts(0, all[2], all[:1], 0) || e.Need(0, all[2], all[0], 1) {
		t.Fatal("a needed copy needs others, or one itself, or of the fastest tier, or all bytes of one besides")
	}
	if !e.NeedParts(0, all[2], all[1:2], 1) || users(all[0], 1) != 1 || !e.NeedParts(0, all[2], all[:2], 1) || users(all[0], 1) != 2 || users(all[1], 1) != 1 {
		t.Fatal("the last needs one, and then both")
	}
	e.Drop(0, h, model.NumberKey(1))
	if !all[1].Gone() || len(all[1].Sources(1)) != 0 || users(all[0], 1) != 1 || all[1].copies[1] == fragment.None {
		t.Fatal("what is gone keeps what has other parts, or lost its own")
	}
	c, err := e.BeginCapture(0, h, model.NumberKey(3), 80, 1, nil, CaptureOptions{})
	if err != nil || c.Phase != Ready {
		t.Fatal(err)
	}
	e.EndCapture(0, c, true)
	run(t, e, 10)
	if !e.Complete(c.Rec, 1) || all[2].copies[1] != fragment.None || all[1].copies[1] != fragment.None || all[0].copies[1] != fragment.None {
		t.Errorf("on the host %v; the others are at %d, %d and %d: %+v", e.Complete(c.Rec, 1), all[0].copies[1], all[1].copies[1], all[2].copies[1], e.Use(1))
	}
}

// A caller that counts the rooms in each page, to give back the memory of those without any, is told of the room that an object keeps when its end is given back.
func TestTheRoomThatATrimmedCopyKeeps(t *testing.T) {
	const page = 16
	pages := map[int64]int{}
	e := New(Config{Flush: Eager, Tiers: []TierConfig{
		{Name: "device", Capacity: 100, Device: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "host", Capacity: 200, WriteRate: 1e9, ReadRate: 1e9},
	}, Room: func(tier int, off, n int64, taken bool) {
		for at := off / page; tier == 1 && at <= (off+n-1)/page; at++ {
			if pages[at]--; taken {
				pages[at] += 2
			}
		}
	}})
	h := e.History("h")
	shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded}, Sizes: [MaxTiers]int64{0, 90}}
	c, err := e.BeginCapture(0, h, model.NumberKey(0), 80, 1, nil, CaptureOptions{Shape: shape})
	if err != nil || c.Phase != Ready {
		t.Fatal(err)
	}
	e.EndCapture(0, c, true)
	for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
		x.Wrote(20)
		e.Done(0, x, nil)
	}
	if pages[0] != 1 || pages[1] != 1 || pages[2] != 0 {
		t.Errorf("rooms by page: %v", pages)
	}
	if e.Drop(0, h, model.NumberKey(0)); pages[0] != 0 || pages[1] != 0 {
		t.Errorf("dropped: %v", pages)
	}
}
