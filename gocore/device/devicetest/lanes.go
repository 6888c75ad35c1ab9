package devicetest

import (
	"bytes"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/device"
)

func identity(b *bench) {
	if b.dev.Name() == "" || b.dev.Ordinal() < 0 {
		b.Fatalf("device %q, number %d", b.dev.Name(), b.dev.Ordinal())
	}
	free, total, err := b.dev.Memory()
	b.must(err)
	if free < 0 || total <= 0 || free > total {
		b.Fatalf("%d of %d bytes free", free, total)
	}
	b.must(b.dev.Lost())
	for _, p := range []device.Priority{device.Waited, device.Ahead, device.Behind} {
		l, err := b.dev.Lane(p)
		b.must(err)
		b.finish(l)
		b.must(l.Close())
	}
}

// A value copied from slot to slot arrives only if every copy runs after the previous one.
func laneOrder(b *bench) {
	const n, steps = 40_000, 50
	want := b.noise(n)
	b.write(b.at(0), want)
	for i := range int64(steps) {
		b.must(b.lane.Copy(b.at((i+1)*n), b.at(i*n), n))
	}
	b.must(b.lane.Copy(b.hostAt(0), b.at(steps*n), n))
	b.finish(b.lane)
	if !bytes.Equal(b.host.Bytes(0, n), want) {
		b.Fatal("copies of one lane do not happen in order")
	}
}

func marks(b *bench) {
	one, two := b.newLane(), b.newLane()
	const n = 1 << 20
	for round := range 30 {
		want := b.noise(n)
		copy(b.host.Bytes(0, n), want)
		b.must(one.Copy(b.at(0), b.hostAt(0), n))
		b.must(one.Copy(b.at(n), b.at(0), n))
		m := b.mark(one)
		b.must(two.After(m))
		b.must(two.Copy(b.hostAt(n), b.at(n), n))
		back := b.mark(two)
		b.must(one.After(back)) // the next round overwrites the bytes that two reads
		b.wait(back)
		if passed, err := m.Passed(); !passed || err != nil {
			b.Fatal("what was waited for by another lane has not passed")
		}
		if passed, err := back.Passed(); !passed || err != nil {
			b.Fatal("a mark that was waited for has not passed")
		}
		b.wait(m)
		m.Drop()
		back.Drop()
		if !bytes.Equal(b.host.Bytes(n, n), want) {
			b.Fatalf("round %d: a lane did not wait for the mark of another", round)
		}
	}
	// A lane may wait for its own event, and for one that passed long ago, at no cost.
	m := b.mark(one)
	b.must(one.After(m))
	b.finish(one)
	b.must(two.After(m))
	b.finish(two)
	m.Drop()
}

// An event exists as long as it has a reference. A lane that waits for it needs none.
func marksAreKept(b *bench) {
	two := b.newLane()
	const n = 1 << 20
	for range 50 {
		want := b.noise(n)
		copy(b.host.Bytes(0, n), want)
		b.must(b.lane.Copy(b.at(0), b.hostAt(0), n))
		m := b.mark(b.lane)
		kept := m.Keep()
		m.Drop()
		b.must(two.After(kept))
		kept.Drop()
		b.must(two.Copy(b.hostAt(n), b.at(0), n))
		for range 20 { // memory of dropped events is reused
			b.mark(b.lane).Drop()
		}
		b.finish(two)
		if !bytes.Equal(b.host.Bytes(n, n), want) {
			b.Fatal("the wait for a dropped mark is gone")
		}
	}
}

// stamps tell how long a lane has waited for another one, once both have passed.
func stamps(b *bench) {
	const n = 1 << 20
	stamp := func(l device.Lane) device.Stamp {
		s, err := l.Stamp()
		b.must(err)
		return s
	}
	two := b.newLane()
	for range 20 {
		first := stamp(two)
		for range 8 {
			b.must(b.lane.Copy(b.at(0), b.hostAt(0), n))
		}
		begun, m := stamp(b.lane), b.mark(b.lane)
		b.must(two.After(m))
		last := stamp(two)
		m.Drop()
		b.finish(two)
		for _, s := range []struct {
			what  string
			later device.Stamp
			from  device.Stamp
		}{{"behind a wait", last, first}, {"behind another lane", last, begun}, {"itself", first, first}} {
			if ns, passed, err := s.later.Since(s.from); err != nil || !passed || ns < 0 {
				b.Fatalf("%s: %d ns, passed %v, %v", s.what, ns, passed, err)
			}
		}
		for _, s := range []device.Stamp{first, begun, last} {
			s.Drop()
		}
	}
}

func borrowed(b *bench) {
	const n = 100_000
	for _, stream := range []uint64{0, 1, 2} {
		l := b.dev.Borrow(stream)
		want := b.noise(n)
		copy(b.host.Bytes(0, n), want)
		b.must(l.Copy(b.at(0), b.hostAt(0), n))
		m := b.mark(l)
		b.must(b.lane.After(m))
		b.must(b.lane.Copy(b.hostAt(n), b.at(0), n))
		b.finish(b.lane)
		if !bytes.Equal(b.host.Bytes(n, n), want) {
			b.Fatalf("stream %d", stream)
		}
		b.wait(m)
		m.Drop()
	}
	// 0 and 1 are one stream.
	want := b.noise(n)
	copy(b.host.Bytes(0, n), want)
	b.must(b.dev.Borrow(0).Copy(b.at(0), b.hostAt(0), n))
	b.must(b.dev.Borrow(1).Copy(b.at(n), b.at(0), n))
	b.must(b.dev.Borrow(0).Copy(b.hostAt(n), b.at(n), n))
	b.finish(b.dev.Borrow(1))
	if !bytes.Equal(b.host.Bytes(n, n), want) {
		b.Fatal("the legacy stream has two orders")
	}
}

// Several goroutines, each with its own lane and part of the memory.
func lanesAtOnce(b *bench) {
	const n, workers = 200_000, 4
	var all sync.WaitGroup
	var failed [workers]error
	var wrong [workers]bool
	for w := range int64(workers) {
		want := b.noise(n)
		l := b.newLane()
		all.Add(1)
		safego.Go("devicetest", func() {
			defer all.Done()
			at, host := b.at(w*2*n), w*2*n
			for range 20 {
				copy(b.host.Bytes(host, n), want)
				clear(b.host.Bytes(host+n, n))
				m, err := handOn(l, at, b.hostAt(host), n)
				if failed[w] = err; err != nil {
					return
				}
				failed[w] = m.Wait()
				m.Drop()
				wrong[w] = wrong[w] || !bytes.Equal(b.host.Bytes(host+n, n), want)
			}
		})
	}
	all.Wait()
	for w := range workers {
		if failed[w] != nil || wrong[w] {
			b.Errorf("worker %d: %v, bytes differ %v", w, failed[w], wrong[w])
		}
	}
}

func handOn(l device.Lane, at, host device.Address, n int64) (device.Event, error) {
	if err := l.Copy(at, host, n); err != nil {
		return nil, err
	}
	if err := l.Copy(at+device.Address(n), at, n); err != nil {
		return nil, err
	}
	if err := l.Copy(host+device.Address(n), at+device.Address(n), n); err != nil {
		return nil, err
	}
	return l.Event()
}
