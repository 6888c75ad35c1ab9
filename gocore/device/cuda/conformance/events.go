package conformance

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/device"
)

// events passes bytes from lane to lane, each of which overwrites its slot as soon as the next has copied it, and waits on several threads.
func marks(t *testing.T, m Machine) {
	b := newBench(t, m, 20*mib)
	const n = 3*mib + 1
	const lanes = 4
	var all []device.Lane
	var rooms []device.Address
	for i := range lanes {
		all = append(all, got(b.dev.Lane(device.Priority(i%3)))(t))
		rooms = append(rooms, b.room(n, 0))
	}
	source, end := b.room(n, 0), b.room(n, 0)
	r := rand.New(rand.NewPCG(10, 10))
	for round := range uint64(20) {
		want := pattern(round, n)
		b.put(source, want)
		from := source
		var passed []device.Event
		for _, i := range r.Perm(lanes) {
			for _, mark := range passed {
				must(t, all[i].After(mark))
			}
			must(t, all[i].Copy(rooms[i], from, n))
			passed = append(passed, got(all[i].Event())(t))
			from = rooms[i]
		}
		last := passed[len(passed)-1]
		must(t, b.lane.After(last))
		must(t, b.lane.Copy(end, from, n))
		final := got(b.lane.Event())(t)
		together(3, func(int) {
			runtime.LockOSThread()
			mark := final.Keep()
			defer mark.Drop()
			if err := mark.Wait(); err != nil {
				t.Error(err)
			}
			for _, earlier := range append(passed, mark) {
				if done, err := earlier.Passed(); err != nil || !done {
					t.Errorf("a mark before one that was waited for: %v, %v", done, err)
				}
			}
		})
		final.Drop()
		for _, mark := range passed {
			mark.Drop()
		}
		same(t, "handed on", b.get(end, n), want)
	}
	for _, l := range all {
		must(t, l.Close())
	}
	b.close()
}

// borrowed queues work in the callers' streams.
func borrowed(t *testing.T, m Machine) {
	b := newBench(t, m, 16*mib)
	c := newCaller(t, m) // stream 2 is the per-thread stream
	const n = mib + 5
	here, there := b.room(n, 0), b.room(n, 0)
	for i, stream := range []uint64{0, 1, 2, uint64(c.stream)} {
		want := pattern(uint64(i), n)
		b.put(here, want)
		l := b.dev.Borrow(stream)
		must(t, l.Copy(there, here, n))
		mark := got(l.Event())(t)
		must(t, b.lane.After(mark))
		same(t, "in a borrowed stream", b.get(there, n), want)
		mark.Drop()
		must(t, l.Close())
	}
	c.leave()
	b.close()
}

// recording queues no work in a stream that is being captured, and does not break the graph.
func recording(t *testing.T, m Machine) {
	b := newBench(t, m, 16*mib)
	c := newCaller(t, m)
	l := b.dev.Borrow(uint64(c.stream))
	mark := got(b.lane.Event())(t)
	slot := []device.Piece{{Slot: b.room(100, 0), Bytes: 100, Mem: array{region: 100, item: 1}.strided(b.room(100, 0))}}
	b.put(slot[0].Slot, make([]byte, 100))
	end, err := m.Capture(c.context, c.stream)
	must(t, err)
	_, gathered := l.Gather(slot, true)
	_, hashed := l.Hash(slot)
	_, marked := l.Event()
	for what, err := range map[string]error{
		"Copy": l.Copy(slot[0].Slot, slot[0].Slot+50, 50), "Gather": gathered, "Scatter": l.Scatter(slot), "Hash": hashed,
		"Mark": marked, "After": l.After(mark),
	} {
		if !errors.Is(err, device.ErrRecording) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, end())
	must(t, l.Copy(slot[0].Slot, slot[0].Slot+50, 50)) // it is a normal stream again
	b.settle(l)
	mark.Drop()
	c.leave()
	b.close()
}

// besideRecording runs all operations of the tier while the application captures a graph, on this thread and on others.
func besideRecording(t *testing.T, m Machine) {
	b := newBench(t, m, 16*mib)
	c := newCaller(t, m)
	h := host(t, mib)
	end, err := m.Capture(c.context, c.stream)
	must(t, err)
	if err := everything(b, h, b.lane, b.room(mib, 0)); err != nil {
		t.Errorf("on the thread that captures: %v", err)
	}
	l := got(b.dev.Lane(device.Behind))(t)
	at := b.room(mib, 0)
	together(1, func(int) {
		if err := everything(b, h, l, at); err != nil {
			t.Errorf("on another thread: %v", err)
		}
	})
	if err := end(); err != nil {
		t.Errorf("the graph is broken: %v", err)
	}
	must(t, l.Close())
	c.leave()
	b.close()
}

func everything(b *bench, h *memory.Mapping, l device.Lane, at device.Address) error {
	n := h.Size()
	if err := b.dev.Pin(h, 0, n); err != nil {
		return err
	}
	if err := l.Copy(at, address(h), n); err != nil {
		return err
	}
	sums, err := l.Hash([]device.Piece{{Slot: at, Bytes: n}})
	if err != nil {
		return err
	}
	mark, err := l.Event()
	if err != nil {
		return err
	}
	defer mark.Drop()
	if _, err := mark.Passed(); err != nil {
		return err
	}
	if err := errors.Join(l.After(mark), mark.Wait()); err != nil {
		return err
	}
	sums.Discard()
	if _, _, err := b.dev.Memory(); err != nil {
		return err
	}
	a, err := b.dev.Reserve(4 * mib)
	if err != nil {
		return err
	}
	if _, err := a.Grow(4 * mib); err != nil {
		return err
	}
	return errors.Join(a.Free(), b.dev.Unpin(h, 0, n))
}
