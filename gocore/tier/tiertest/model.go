package tiertest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"velocpy/gocore/tier"

	"pgregory.net/rapid"
)

// againstModel runs random sequences of calls on a tier, and compares it with a model of it.
func againstModel(t *testing.T, open func(t TB, seed uint64) *Tier) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			bench: newBench(t, open(t, rapid.Uint64().Draw(t, "seed"))), written: map[uint64]*held{}, kept: map[uint64]*held{}, gone: map[uint64]tier.Object{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"create":     m.create,
			"put":        m.putWhole,
			"put more":   m.putWhole,
			"write":      m.write,
			"write more": m.write,
			"commit":     m.commit,
			"abort":      seldom(m.abort),
			"read":       m.read,
			"delete":     seldom(m.delete),
			"sync":       m.sync,
			"list":       m.list,
			"absent":     m.absent,
			"crash":      seldom(m.crash),
			"other":      m.other,
			"fail":       seldom(m.fail),
			"":           func(t *rapid.T) { m.TB = t },
		})
		m.TB = t
		for _, o := range sorted(m.kept) {
			m.all(m, o)
		}
		m.close()
	})
}

// seldom lets an action that takes objects away happen less often than those that add some.
func seldom(act func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "instead of nothing") == 0 {
			act(t)
		}
	}
}

// model is what a tier has to have.
type model struct {
	*bench
	written map[uint64]*held       // that have a sink
	kept    map[uint64]*held       // that are committed
	gone    map[uint64]tier.Object // that cannot be opened, and may still have room
}

// held is an object of the model.
type held struct {
	tier.Object
	sink   tier.Sink
	end    int64  // of the last write
	parts  []part // that were written, ascending
	synced bool
}

type part struct{ from, end int64 }

// gap is how many bytes may be passed over between two writes so that a read of them does not fail.
const gap = 4 << 10

// readable are the ranges of which a read does not fail: written parts, and short gaps between them.
func (o *held) readable() (all []part) {
	for _, p := range o.parts {
		if last := len(all) - 1; last >= 0 && p.from-all[last].end < gap {
			all[last].end = p.end
			continue
		}
		all = append(all, p)
	}
	return all
}

// known tells whether a byte was written.
func (o *held) known(at int64) bool {
	i, found := slices.BinarySearchFunc(o.parts, at, func(p part, at int64) int { return int(p.from - at) })
	return found || i > 0 && at < o.parts[i-1].end
}

func sorted(all map[uint64]*held) []*held {
	return slices.SortedFunc(maps.Values(all), func(a, b *held) int { return int(a.ID) - int(b.ID) })
}

// draw returns one of the objects; the action is skipped when there is none.
func draw(t *rapid.T, all map[uint64]*held) *held {
	if len(all) == 0 {
		t.Skip("there is no object")
	}
	return all[rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "object")]
}

func (m *model) create(t *rapid.T) { m.created(t) }

func (m *model) created(t *rapid.T) *held {
	unit := max(m.can.Grain, 512)
	bytes := rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, unit - 1, unit, unit + 1, 2 * unit, m.Most}),
		rapid.Int64Range(0, 8*unit),
		rapid.Int64Range(0, m.Most),
	).Draw(t, "bytes")
	o, ok := m.assign(min(bytes, m.Most), func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") })
	if !ok {
		t.Skip("there is no room")
	}
	x := &held{Object: o, sink: m.begin(o)}
	m.written[o.ID] = x
	return x
}

// putWhole creates an object, writes some of it, and commits it.
func (m *model) putWhole(t *rapid.T) {
	o := m.created(t)
	if o.Bytes > 0 {
		m.writeTo(t, o)
	}
	m.commitIt(o)
}

func (m *model) write(t *rapid.T) {
	o := draw(t, m.written)
	if o.end == o.Bytes {
		t.Skip("the object is full")
	}
	m.writeTo(t, o)
}

func (m *model) writeTo(t *rapid.T, o *held) {
	from, left := o.end, o.Bytes-o.end
	at := from + rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, min(100, left-1)), rapid.Int64Range(0, left-1)).Draw(t, "gap")
	n := rapid.OneOf(rapid.Just(o.Bytes-at), rapid.Int64Range(0, o.Bytes-at)).Draw(t, "bytes")
	if p := o.sink.Bytes(); p != nil && rapid.Bool().Draw(t, "in place") {
		fill(p[at:at+n], o.ID, at)
	} else {
		skew := rapid.IntRange(0, 3).Draw(t, "skew")
		p := make([]byte, int64(skew)+n)[skew:]
		fill(p, o.ID, at)
		m.check(o.sink.Write(at, p), "write %d at %d of %+v", n, at, o.Object)
		clear(p)
	}
	if o.end = at + n; n > 0 {
		o.parts = append(o.parts, part{at, at + n})
	}
}

func (m *model) commit(t *rapid.T) {
	m.commitIt(draw(t, m.written))
}

func (m *model) commitIt(o *held) {
	m.check(o.sink.Commit(), "commit %+v", o.Object)
	delete(m.written, o.ID)
	m.kept[o.ID] = o
	m.all(m, o)
}

func (m *model) abort(t *rapid.T) {
	o := draw(t, m.written)
	m.check(o.sink.Abort(), "abort %+v", o.Object)
	delete(m.written, o.ID)
	m.leave(o.Object)
}

// leave notes that an object is gone.
func (m *model) leave(o tier.Object) {
	m.isGone(o)
	m.free(o)
	m.gone[o.ID] = o
}

// all checks all that was written of an object.
func (m *model) all(in tier.Objects, o *held) {
	s, err := in.Open(o.Object)
	m.check(err, "open %+v", o.Object)
	if (s.Bytes() != nil) != m.can.Addressable {
		m.Fatalf("%+v is addressable: %v", o.Object, s.Bytes() != nil)
	}
	for _, p := range o.readable() {
		m.check(read(s, o.Object, p.from, p.end-p.from, o.known), "read all of %+v", o.Object)
	}
	for i, x := range s.Bytes() {
		if o.known(int64(i)) && x != content(o.ID, int64(i)) {
			m.Fatalf("byte %d of %+v is %#x where it lies", i, o.Object, x)
		}
	}
}

func (m *model) read(t *rapid.T) {
	o := draw(t, m.kept)
	s, err := m.Open(o.Object)
	m.check(err, "open %+v", o.Object)
	can := o.readable()
	if len(can) == 0 {
		m.check(read(s, o.Object, rapid.Int64Range(0, o.Bytes).Draw(t, "at"), 0, o.known), "read nothing of %+v", o.Object)
		return
	}
	p := rapid.SampledFrom(can).Draw(t, "part")
	unit := max(m.can.Grain, 512)
	inside := rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, unit - 1, unit, unit + 1}),
		rapid.Int64Range(0, p.end-p.from),
	)
	at := p.from + min(inside.Draw(t, "at"), p.end-p.from)
	n := min(inside.Draw(t, "bytes"), p.end-at)
	m.check(read(s, o.Object, at, n, o.known), "read %d at %d of %+v", n, at, o.Object)
}

func (m *model) delete(t *rapid.T) {
	o := draw(t, m.kept)
	m.check(m.Delete(o.Object), "delete %+v", o.Object)
	delete(m.kept, o.ID)
	m.leave(o.Object)
}

func (m *model) sync(*rapid.T) {
	m.check(m.Sync(), "sync")
	for _, o := range m.kept {
		o.synced = true
	}
}

func (m *model) list(*rapid.T) {
	left := maps.Clone(m.kept)
	m.check(m.List(func(o tier.Object) error {
		if x := left[o.ID]; x == nil || x.Object != o {
			m.Fatalf("%+v is listed, and is not there", o)
		}
		delete(left, o.ID)
		return nil
	}), "list")
	if m.can.Listed && len(left) > 0 || !m.can.Listed && len(left) < len(m.kept) {
		m.Fatalf("%d objects of %d are not listed", len(left), len(m.kept))
	}
}

// absent looks for objects that are not there, and creates ones that are.
func (m *model) absent(t *rapid.T) {
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		m.isGone(m.gone[id])
	}
	for _, o := range sorted(m.written) {
		m.isGone(o.Object)
	}
	if !m.can.Conditional {
		return
	}
	o := draw(t, m.kept)
	m.fails(m.again(o.Object), tier.ErrExists, "create %+v again", o.Object)
	m.all(m, o)
}

// crash loses the process.
func (m *model) crash(t *rapid.T) {
	if m.Crash == nil {
		t.Skip("nothing simulates a crash")
	}
	if rapid.Bool().Draw(t, "after a sync") {
		m.sync(t)
	}
	next, err := m.Crash()
	m.check(err, "crash")
	m.Tier = next
	if can := next.Capabilities(); can != m.can {
		m.Fatalf("the capabilities were %+v, and are %+v", m.can, can)
	}
	for _, o := range sorted(m.written) {
		delete(m.written, o.ID)
		m.leave(o.Object)
	}
	for _, o := range sorted(m.kept) {
		_, err := m.Open(o.Object)
		switch {
		case !m.can.Durable:
			delete(m.kept, o.ID)
			m.leave(o.Object)
		case o.synced || err == nil: // what was not synced is there or not, but never in part
			m.all(m, o)
			o.synced = true
		case !errors.Is(err, tier.ErrAbsent):
			m.Fatalf("open %+v, which was not synced before a crash: %v", o.Object, err)
		default:
			delete(m.kept, o.ID)
			m.leave(o.Object)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		m.isGone(m.gone[id])
	}
	m.list(t)
}

// other looks at the tier as another process sees it.
func (m *model) other(t *rapid.T) {
	if m.Other == nil {
		t.Skip("no other process sees the tier")
	}
	in, err := m.Other()
	m.check(err, "open in another process")
	for _, o := range sorted(m.kept) {
		if o.synced {
			m.all(in, o)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		_, err := in.Open(m.gone[id])
		m.fails(err, tier.ErrAbsent, "open %+v, which is not there, in another process", m.gone[id])
	}
}

// fail lets an object fail.
func (m *model) fail(t *rapid.T) {
	if m.Fail == nil {
		t.Skip("nothing fails")
	}
	o := draw(t, m.written)
	if o.end == o.Bytes {
		t.Skip("the object is full")
	}
	m.Fail(true)
	err := o.sink.Write(o.Bytes-1, []byte{1})
	m.fails(o.sink.Commit(), err, "commit %+v after a write has failed with %v", o.Object, err)
	m.Fail(false)
	delete(m.written, o.ID)
	m.leave(o.Object)
}
