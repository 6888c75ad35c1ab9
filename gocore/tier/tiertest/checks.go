package tiertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier"

	"go.uber.org/atomic"
)

// far is an offset outside of any room.
const far = 1 << 40

// capabilities compares each capability with what the tier does. Durable and Shared are compared by the model too.
func capabilities(b *bench) {
	finds := func(what string, said, found bool) {
		if said != found {
			b.Errorf("%s: the capabilities say %v, the tier %v", what, said, found)
		}
	}
	o := b.object(b.size(10_000))
	sink := b.begin(o)
	finds("addressable sinks", b.can.Addressable, sink.Bytes() != nil)
	if p := sink.Bytes(); p != nil {
		fill(p, o.ID, 0)
	} else {
		b.write(sink, o, 0, o.Bytes)
	}
	b.check(sink.Commit(), "commit")
	b.has(b, o)
	source, err := b.Open(o)
	b.check(err, "open")
	finds("addressable sources", b.can.Addressable, source.Bytes() != nil)

	listed := false
	b.check(b.List(func(x tier.Object) error {
		listed = listed || x == o
		return nil
	}), "list")
	finds("listed", b.can.Listed, listed)

	b.last++
	outside := tier.Object{ID: b.last, Offset: far, Bytes: 1}
	s, err := b.Create(outside, nil)
	finds("assigned", b.can.Assigned, err != nil)
	if err == nil {
		b.write(s, outside, 0, 1)
		b.check(s.Commit(), "commit")
		b.has(b, outside)
		b.drop(outside)
	}
	if b.can.Assigned && b.can.Grain > 1 {
		b.last++
		_, err := b.Create(tier.Object{ID: b.last, Offset: b.can.Grain * 3 / 2, Bytes: 1}, nil)
		finds("grain", true, err != nil)
	}

	b.last++
	_, err = b.Open(tier.Object{ID: b.last, Offset: o.Offset, Bytes: o.Bytes})
	finds("tracked", b.can.Tracked, errors.Is(err, tier.ErrAbsent))

	finds("conditional", b.can.Conditional, errors.Is(b.again(o), tier.ErrExists))
	b.same2(o)

	finds("durable", b.can.Durable, b.survives())
	finds("shared", b.can.Shared, b.isShared())
}

// same2 checks the object of a conditional tier, which another one must not have replaced.
func (b *bench) same2(o tier.Object) {
	if b.can.Conditional {
		b.has(b, o)
	}
}

// again creates an object a second time, with other bytes, and returns the error.
func (b *bench) again(o tier.Object) error {
	s, err := b.Create(o, nil)
	if err != nil {
		return err
	}
	if !b.can.Conditional { // its bytes lie where the first ones do
		return s.Abort()
	}
	p := make([]byte, o.Bytes)
	fill(p, o.ID+1, 0)
	return errors.Join(s.Write(0, p), s.Commit())
}

// survives tells whether a synced object survives the process.
func (b *bench) survives() bool {
	if b.Crash == nil {
		return false
	}
	o := b.put(b.size(5000))
	b.check(b.Sync(), "sync")
	next, err := b.Crash()
	b.check(err, "crash")
	b.Tier = next
	s, err := next.Open(o)
	return err == nil && read(s, o, 0, o.Bytes, func(int64) bool { return true }) == nil
}

// isShared tells whether another process reads a synced object.
func (b *bench) isShared() bool {
	if b.Other == nil {
		return false
	}
	o := b.put(b.size(5000))
	b.check(b.Sync(), "sync")
	other, err := b.Other()
	b.check(err, "open in another process")
	s, err := other.Open(o)
	return err == nil && read(s, o, 0, o.Bytes, func(int64) bool { return true }) == nil
}

func emptyObjects(b *bench) {
	o := b.put(0)
	b.has(b, o)
	s := b.begin(b.object(0))
	b.check(s.Commit(), "commit an object that nothing was written to")
	b.drop(o)
}

func ranges(b *bench) {
	o := b.put(b.size(9001))
	s, err := b.Open(o)
	b.check(err, "open")
	for _, r := range [][2]int64{{-1, 1}, {o.Bytes, 1}, {o.Bytes + 1, 0}, {0, o.Bytes + 1}, {1, o.Bytes}, {1 << 62, 1}} {
		p := make([]byte, r[1])
		b.fails(s.Read(r[0], p, func(int64, int64) { b.Errorf("an arrival is told of %v", r) }), tier.ErrRange, "read %v of %+v", r, o)
		if q, ok := s.(tier.Prover); ok {
			b.fails(q.Holds(r[0], r[1]), tier.ErrRange, "holds %v of %+v", r, o)
			b.fails(q.Proves(r[0], r[1]), tier.ErrRange, "proves %v of %+v", r, o)
		}
	}
	b.reads(s, o, o.Bytes, 0)
	for _, bytes := range []int64{-1, -far} {
		b.last++
		_, err := b.Create(tier.Object{ID: b.last, Bytes: bytes}, nil)
		b.fails(err, nil, "create an object of %d bytes", bytes)
	}
	if !b.can.Assigned {
		return
	}
	room := b.Room / b.can.Grain * b.can.Grain
	for _, x := range []tier.Object{{Offset: -b.can.Grain, Bytes: 1}, {Offset: room, Bytes: 1}, {Offset: room - b.can.Grain, Bytes: b.can.Grain + 1}, {Bytes: far}} {
		b.last++
		x.ID = b.last
		_, err := b.Create(x, nil)
		b.fails(err, nil, "create %+v in a room of %d", x, room)
		if _, err := b.Open(x); err == nil {
			b.Errorf("%+v is opened in a room of %d", x, room)
		}
	}
}

func orderOfWrites(b *bench) {
	size := b.size(8192) // a multiple of all grains
	end := tier.Grains(size, b.can.Grain)
	for _, bad := range [][2]int64{{0, 1}, {99, 1}, {99, 2}, {-1, 1}, {end, 1}, {end + 1, 0}, {100, end - 99}, {1 << 62, 1}} {
		o := b.object(size)
		s := b.begin(o)
		b.write(s, o, 0, 50)
		b.write(s, o, 50, 50)
		b.fails(s.Write(bad[0], make([]byte, bad[1])), tier.ErrRange, "write %v after 100 bytes, of %d", bad, size)
		b.fails(s.Commit(), tier.ErrRange, "commit after a write of %v has failed", bad)
		b.isGone(o)
		b.free(o)
	}
	o := b.object(size - 100)
	s := b.begin(o)
	p := make([]byte, tier.Grains(o.Bytes, b.can.Grain))
	fill(p, o.ID, 0)
	b.check(s.Write(0, p), "write %d, which are whole grains, to %+v", len(p), o)
	b.check(s.Commit(), "commit")
	b.has(b, o)
	s = b.begin(b.object(100))
	b.fails(s.Write(0, make([]byte, tier.Grains(100, b.can.Grain)+1)), tier.ErrRange, "write behind the last grain")
	b.check(s.Abort(), "abort")
}

// isGone checks that nothing of an object can be opened, where the tier can know.
func (b *bench) isGone(o tier.Object) {
	b.Helper()
	if b.can.Tracked {
		_, err := b.Open(o)
		b.fails(err, tier.ErrAbsent, "open %+v, which is not there", o)
	}
	b.check(b.List(func(x tier.Object) error {
		if x.ID == o.ID {
			return fmt.Errorf("%+v is listed, and is not there", x)
		}
		return nil
	}), "list")
}

func ends(b *bench) {
	o := b.put(b.size(3000))
	s := b.begin(b.object(100))
	b.check(s.Commit(), "commit")
	b.fails(s.Commit(), tier.ErrEnded, "commit twice")
	b.fails(s.Write(0, []byte{1}), tier.ErrEnded, "write after the commit")
	b.check(s.Abort(), "abort after the commit")
	aborted := b.object(b.size(5000))
	s = b.begin(aborted)
	b.write(s, aborted, 0, aborted.Bytes/2)
	b.isGone(aborted)
	b.check(s.Abort(), "abort")
	b.check(s.Abort(), "abort twice")
	b.fails(s.Commit(), tier.ErrEnded, "commit after the abort")
	b.fails(s.Write(aborted.Bytes/2, []byte{1}), tier.ErrEnded, "write after the abort")
	b.isGone(aborted)
	b.write(b.begin(aborted), aborted, 0, aborted.Bytes) // the ID was not used up
	b.has(b, o)

	kept := b.object(100)
	s = b.begin(kept)
	b.write(s, kept, 0, 100)
	b.check(s.Commit(), "commit")
	b.check(s.Abort(), "abort after the commit")
	b.has(b, kept)
}

// arrivals reads large and small ranges at all kinds of offsets.
func arrivals(b *bench) {
	o := b.put(b.Most)
	s, err := b.Open(o)
	b.check(err, "open")
	grain := max(b.can.Grain, 512)
	for _, at := range []int64{0, 1, grain - 1, grain, grain + 1, 3 * grain, b.Most / 2} {
		for _, n := range []int64{0, 1, grain - 1, grain, grain + 1, 5*grain + 3, b.Most} {
			if at <= o.Bytes {
				b.reads(s, o, at, min(n, o.Bytes-at))
			}
		}
	}
}

func immutable(b *bench) {
	if !b.can.Conditional {
		return
	}
	o := b.put(b.size(7000))
	b.fails(b.again(o), tier.ErrExists, "create %+v again", o)
	b.has(b, o)
	b.check(b.Sync(), "sync")
	b.fails(b.again(o), tier.ErrExists, "create %+v again, when it is synced", o)
	b.has(b, o)
	if b.Wrong != nil {
		_, err := b.Open(b.Wrong(o))
		b.fails(err, tier.ErrAbsent, "open %+v instead of %+v", b.Wrong(o), o)
	}
}

// racesToCreate: of many sinks for one object one commits, and that one's bytes are the object's.
func racesToCreate(b *bench) {
	if !b.can.Conditional {
		return
	}
	for range 20 {
		o := b.object(b.size(6000))
		var won atomic.Int64
		var winner atomic.Int64
		together(8, func(i int) {
			p := make([]byte, o.Bytes)
			fill(p, o.ID+uint64(i), 0)
			err := func() error {
				s, err := b.Create(o, nil)
				if err != nil {
					return err
				}
				return errors.Join(s.Write(0, p), s.Commit())
			}()
			switch {
			case err == nil:
				won.Inc()
				winner.Store(int64(i))
			case !errors.Is(err, tier.ErrExists):
				b.Errorf("sink %d of %+v: %v", i, o, err)
			}
		})
		if won.Load() != 1 {
			b.Fatalf("%d sinks have committed %+v", won.Load(), o)
		}
		s, err := b.Open(o)
		b.check(err, "open")
		p := make([]byte, o.Bytes)
		b.check(s.Read(0, p, nil), "read")
		b.same(p, tier.Object{ID: o.ID + uint64(winner.Load())}, 0)
		b.last += 8
		b.drop(o)
	}
}

// together calls f in so many goroutines, and waits for them.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		safego.Go("suite", func() {
			defer all.Done()
			f(i)
		})
	}
	all.Wait()
}

func deleted(b *bench) {
	o, kept := b.put(b.size(9000)), b.put(b.size(9000))
	s, err := b.Open(o)
	b.check(err, "open")
	b.check(b.Delete(o), "delete")
	b.isGone(o)
	if b.can.Tracked {
		b.fails(s.Read(0, make([]byte, o.Bytes), nil), tier.ErrAbsent, "read a deleted object")
	}
	b.check(b.Delete(o), "delete again")
	b.last++
	b.check(b.Delete(tier.Object{ID: b.last, Offset: o.Offset, Bytes: o.Bytes}), "delete what never was")
	b.free(o)
	b.has(b, b.put(o.Bytes)) // in the same room
	b.has(b, kept)
}

// unwanted: an object that becomes unwanted is not written to its end, and is not there.
func unwanted(b *bench) {
	kept := b.put(b.size(2000))
	size, part := b.Most, max(b.Most/16, 1)
	for after := range int64(4) {
		o := b.object(size)
		var asked atomic.Int64
		s, err := b.Create(o, func() bool { return asked.Inc() <= after })
		b.check(err, "create")
		at := int64(0)
		for ; at < size && err == nil; at += part {
			p := make([]byte, min(part, size-at))
			fill(p, o.ID, at)
			err = s.Write(at, p)
		}
		b.fails(err, tier.ErrUnwanted, "write an object that is wanted %d times", after)
		if asked.Load() > after+8 || at > (after+1)*part {
			b.Errorf("asked %d times, and written %d bytes in parts of %d, when it was wanted %d times", asked.Load(), at, part, after)
		}
		b.fails(s.Commit(), tier.ErrUnwanted, "commit what is unwanted")
		b.isGone(o)
		b.free(o)
		b.stopsWithin(after)
	}
	o := b.object(size)
	s, err := b.Create(o, func() bool { return true })
	b.check(err, "create")
	b.write(s, o, 0, size)
	b.check(s.Commit(), "commit")
	b.has(b, o)
	b.has(b, kept)
}

// stopsWithin: one long Write ends early too.
func (b *bench) stopsWithin(after int64) {
	if b.Piece == 0 {
		return
	}
	if b.Most < 8*b.Piece {
		b.Fatalf("objects of %d bytes are too small to be unwanted after a piece of %d", b.Most, b.Piece)
	}
	o := b.object(b.Most)
	var asked atomic.Int64
	s, err := b.Create(o, func() bool { return asked.Inc() <= after })
	b.check(err, "create")
	b.fails(s.Write(0, make([]byte, o.Bytes)), tier.ErrUnwanted, "write a long object that is wanted %d times", after)
	b.check(s.Abort(), "abort")
	b.isGone(o)
	b.free(o)
}

// failures: after a write or commit that has failed there is no object, and all others are untouched.
func failures(b *bench) {
	if b.Fail == nil {
		return
	}
	for _, size := range []int64{1, b.size(5000), b.Most} {
		kept := b.put(b.size(4000))
		o := b.object(size)
		s := b.begin(o)
		b.Fail(true)
		p := make([]byte, size)
		fill(p, o.ID, 0)
		failed := s.Write(0, p)
		if failed != nil {
			b.fails(s.Write(size, nil), failed, "write on after an error")
		}
		b.fails(s.Commit(), failed, "commit after writes have failed with %v", failed)
		b.isGone(o)
		b.Fail(false)
		b.isGone(o)
		b.check(b.Sync(), "sync after an object has failed")
		b.has(b, kept)
		s = b.begin(o) // the same ID
		b.write(s, o, 0, size)
		b.check(s.Commit(), "commit")
		b.has(b, o)
		b.has(b, kept)
		b.drop(o)
		b.drop(kept)
	}
}

// neighbours: objects do not disturb one another; where the caller keeps them apart, it can open and create several as one.
func neighbours(b *bench) {
	var all []tier.Object
	for _, size := range []int64{1, 700, 4096, 4097, 1, 12_000} {
		all = append(all, b.put(b.size(size)))
	}
	b.drop(all[2])
	all[2] = b.put(b.size(4096))
	for _, o := range all {
		b.has(b, o)
	}
	if b.can.Tracked || !b.can.Assigned {
		return
	}
	one := tier.Object{Offset: all[0].Offset, Bytes: all[5].Offset + all[5].Bytes - all[0].Offset}
	p := make([]byte, one.Bytes)
	s, err := b.Open(one)
	b.check(err, "open neighbours as one")
	b.check(s.Read(0, p, nil), "read neighbours as one")
	for _, o := range all {
		b.same(p[o.Offset-one.Offset:][:o.Bytes], o, 0)
	}
	for i := range all { // as other objects, all at once
		all[i].ID += 1000
		fill(p[all[i].Offset-one.Offset:][:all[i].Bytes], all[i].ID, 0)
	}
	sink := b.begin(one)
	b.check(sink.Write(0, p), "write neighbours as one")
	b.check(sink.Commit(), "commit neighbours as one")
	for _, o := range all {
		b.has(b, o)
	}
}

var errStop = errors.New("stop")

func lists(b *bench) {
	want := map[tier.Object]bool{}
	for range 5 {
		want[b.put(b.size(300))] = true
	}
	gone := b.put(b.size(300))
	b.drop(gone)
	b.begin(b.object(10))
	seen := map[tier.Object]bool{}
	b.check(b.List(func(o tier.Object) error {
		if seen[o] || !want[o] {
			b.Errorf("%+v is listed; it was seen: %v", o, seen[o])
		}
		seen[o] = true
		return nil
	}), "list")
	if !b.can.Listed {
		want = nil
	}
	if len(seen) != len(want) {
		b.Errorf("%d objects are listed of %d", len(seen), len(want))
	}
	visits := 0
	err := b.List(func(tier.Object) error {
		visits++
		return errStop
	})
	if b.can.Listed && (visits != 1 || !errors.Is(err, errStop)) {
		b.Errorf("after an error of the visit there were %d visits, and the error %v", visits, err)
	}
}

// atOnce works on different objects from several goroutines.
func atOnce(b *bench) {
	const workers, rounds = 6, 12
	together(workers, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		for range rounds {
			if err := b.life(r, min(b.Most, b.Room/workers/2)); err != nil {
				b.Errorf("worker %d: %v", i, err)
				return
			}
		}
	})
}

// life is that of one object.
func (b *bench) life(r *rand.Rand, most int64) error {
	if !b.can.Assigned {
		most = b.Most
	}
	o, ok := b.assign(r.Int64N(most), r.IntN)
	if !ok {
		return nil
	}
	defer b.free(o)
	s, err := b.Create(o, func() bool { return true })
	if err != nil {
		return err
	}
	for at := int64(0); at < o.Bytes; {
		p := make([]byte, 1+r.Int64N(o.Bytes-at))
		fill(p, o.ID, at)
		if err := s.Write(at, p); err != nil {
			return err
		}
		at += int64(len(p))
	}
	switch r.IntN(8) {
	case 0:
		return s.Abort()
	case 1:
		if err := b.Sync(); err != nil {
			return err
		}
	}
	if err := s.Commit(); err != nil {
		return err
	}
	if r.IntN(4) == 0 {
		listed := false
		err := b.List(func(x tier.Object) error {
			listed = listed || x == o
			return nil
		})
		if err != nil || listed != b.can.Listed {
			return fmt.Errorf("%+v is listed: %v, %w", o, listed, err)
		}
	}
	source, err := b.Open(o)
	if err != nil {
		return err
	}
	at := r.Int64N(o.Bytes + 1)
	if err := read(source, o, at, r.Int64N(o.Bytes-at+1), func(int64) bool { return true }); err != nil {
		return err
	}
	return b.Delete(o)
}

// readersAtOnce read one object, from one source and from several, while others are written.
func readersAtOnce(b *bench) {
	o := b.put(b.Most)
	shared, err := b.Open(o)
	b.check(err, "open")
	together(6, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 8))
		for range 6 {
			if i == 0 {
				if err := b.life(r, max(b.size(b.Room-2*b.Most), 1)); err != nil {
					b.Errorf("writer: %v", err)
				}
				continue
			}
			s := shared
			if i%2 == 0 {
				own, err := b.Open(o)
				if err != nil {
					b.Errorf("reader %d: %v", i, err)
					return
				}
				s = own
			}
			at := r.Int64N(o.Bytes)
			if err := read(s, o, at, r.Int64N(o.Bytes-at+1), func(int64) bool { return true }); err != nil {
				b.Errorf("reader %d: %v", i, err)
			}
		}
	})
}
