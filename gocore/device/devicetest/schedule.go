package devicetest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/hazard"
)

// Memory is the memory of schedules: an area of Size bytes at Area that lanes can read and write, and host memory at Host, of which Bytes is a view.
// The host memory holds the bytes written to the area and read from it.
type Memory struct {
	Area, Host device.Address
	Size       int64
	Bytes      []byte
	// Launches says that lanes can also gather and scatter.
	Launches bool
}

// Schedule queues random reads and writes of random ranges in random lanes, each after the waits that hazard.Tracker requires. It returns whether
// every read, and the final content, equals a sequential execution. careless omits all waits.
func Schedule(random *rand.Rand, m Memory, lanes []device.Lane, steps int, careless bool) (right bool, err error) {
	s := &schedule{random: random, Memory: m, careless: careless, model: make([]byte, m.Size)}
	defer s.tracker.Close()
	if err := s.clear(lanes[0]); err != nil {
		return false, err
	}
	for range steps {
		if err := s.step(lanes[random.IntN(len(lanes))]); err != nil {
			return false, err
		}
	}
	return s.end(lanes)
}

type schedule struct {
	Memory
	random   *rand.Rand
	careless bool
	tracker  hazard.Tracker
	model    []byte
	used     int64 // part of Bytes in use
	reads    []found
	sums     []device.Sums // of captures; freed at the end
}

// found is the host memory that a read fills, and its expected content.
type found struct{ got, want []byte }

// room allocates n bytes of host memory for one use in this schedule.
func (s *schedule) room(n int64) ([]byte, device.Address) {
	at := s.used
	s.used += n
	return s.Bytes[at:s.used], s.Host + device.Address(at)
}

func (s *schedule) clear(l device.Lane) error {
	zeroes, at := s.room(s.Size)
	clear(zeroes)
	return s.work(l, -1, 0, 0, s.Size, func() error { return l.Copy(s.Area, at, s.Size) })
}

// step reads, writes, or moves a range within the area.
func (s *schedule) step(l device.Lane) error {
	n := 1 + s.random.Int64N(s.Size/4)
	if s.used+n > int64(len(s.Bytes)) {
		return nil
	}
	from := s.random.Int64N(s.Size - n + 1)
	to := s.random.Int64N(s.Size - n + 1)
	if s.Launches { // slots are multiples of 64
		from, to = from&^63, to&^63
	}
	switch kind := s.random.IntN(5); {
	case kind < 2:
		got, at := s.room(n)
		s.reads = append(s.reads, found{got, bytes.Clone(s.model[from : from+n])})
		if s.launches() {
			return s.work(l, from, n, -1, 0, func() error { return l.Scatter(s.piece(from, at, n)) })
		}
		return s.work(l, from, n, -1, 0, func() error { return l.Copy(at, s.Area+device.Address(from), n) })
	case kind < 4 || max(from, to)-min(from, to) < n:
		data, at := s.room(n)
		for i := range data {
			data[i] = byte(s.random.Uint32())
		}
		copy(s.model[to:], data)
		if s.launches() {
			return s.work(l, -1, 0, to, n, func() error { return s.gather(l, to, at, n) })
		}
		return s.work(l, -1, 0, to, n, func() error { return l.Copy(s.Area+device.Address(to), at, n) })
	}
	copy(s.model[to:to+n], s.model[from:from+n])
	return s.work(l, from, n, to, n, func() error { return l.Copy(s.Area+device.Address(to), s.Area+device.Address(from), n) })
}

func (s *schedule) launches() bool { return s.Launches && s.random.IntN(2) == 0 }

// piece is two pieces: the bytes before the rounded middle, and the rest.
func (s *schedule) piece(slot int64, mem device.Address, n int64) []device.Piece {
	half := (n / 2) &^ 63
	at := s.Area + device.Address(slot)
	return []device.Piece{
		{Slot: at, Bytes: half, Mem: dense(mem)},
		{Slot: at + device.Address(half), Bytes: n - half, Mem: dense(mem + device.Address(half))},
	}
}

func (s *schedule) gather(l device.Lane, slot int64, mem device.Address, n int64) error {
	sums, err := l.Gather(s.piece(slot, mem, n), s.random.IntN(2) == 0)
	if sums != nil {
		s.sums = append(s.sums, sums)
	}
	return err
}

// work queues work in a lane after the events that it has to wait for, and records it.
func (s *schedule) work(l device.Lane, from, read, to, written int64, do func() error) error {
	before := s.tracker.BeforeRead(nil, from, read)
	before = s.tracker.BeforeWrite(before, to, written)
	for _, m := range before {
		if !s.careless {
			if err := l.After(m); err != nil {
				return err
			}
		}
		m.Drop()
	}
	if err := do(); err != nil {
		return err
	}
	m, err := l.Event()
	if err != nil {
		return err
	}
	defer m.Drop()
	s.tracker.Read(from, read, m)
	s.tracker.Wrote(to, written, m)
	return nil
}

// end waits for the events of Quiet, and compares.
func (s *schedule) end(lanes []device.Lane) (bool, error) {
	if s.careless {
		err := finishAll(lanes)
		return s.right(), err
	}
	for _, m := range s.tracker.Quiet(nil, 0, s.Size) {
		if err := m.Wait(); err != nil {
			return false, err
		}
		m.Drop()
	}
	last, at := s.Bytes[:s.Size], s.Host // the zeroes are not needed any more
	if err := lanes[0].Copy(at, s.Area, s.Size); err != nil {
		return false, err
	}
	if err := finishAll(lanes); err != nil {
		return false, err
	}
	for _, sums := range s.sums {
		sums.Discard()
	}
	s.reads = append(s.reads, found{last, s.model})
	return s.right(), nil
}

func finishAll(lanes []device.Lane) error {
	for _, l := range lanes {
		m, err := l.Event()
		if err != nil {
			return err
		}
		err = m.Wait()
		if m.Drop(); err != nil {
			return err
		}
	}
	return nil
}

func (s *schedule) right() bool {
	for _, r := range s.reads {
		if !bytes.Equal(r.got, r.want) {
			return false
		}
	}
	return true
}

// rounds is how many schedules the suite runs.
func rounds() int {
	if testing.Short() {
		return 10
	}
	return 30
}

func schedules(b *bench) {
	lanes := []device.Lane{b.newLane(), b.newLane(), b.newLane(), b.dev.Borrow(0)}
	for i := range rounds() {
		m := Memory{Area: b.at(0), Size: 1 + b.rand.Int64N(1<<18) + 8, Host: b.hostAt(0), Bytes: b.host.Bytes(0, 8<<20),
			Launches: true}
		right, err := Schedule(b.rand, m, lanes, 40, false)
		b.must(err)
		if !right {
			b.Fatalf("schedule %d: bytes differ from a sequential execution", i)
		}
	}
}
