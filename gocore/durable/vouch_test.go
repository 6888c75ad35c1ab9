package durable

import (
	"math/rand/v2"
	"testing"
	"time"

	"velocpy/gocore/plan"
	"velocpy/gocore/segment"
	"velocpy/gocore/vfs"
)

// version is what a reader finds of a key: the serial of its version, 0 for none.
func (s *site) version(history string, key plan.Key) uint64 {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	id, _ := v.state.History(history)
	serial, _ := v.state.Serial(id, key)
	return serial
}

// A batch that vouches for its data does not count where the data is not there and nothing follows: the version before does. Check tells of it.
func TestABatchWithoutItsData(t *testing.T) {
	s := newSite(t)
	key := plan.Number(1)
	s.put("h", key, 100, 5000)
	first := s.serial
	at := s.put("h", key, 300_000)
	s.put("h", plan.Number(2), 0) // no bytes, no doubt
	if got := s.version("h", key); got != first+1 {
		t.Fatalf("version %d, not %d", got, first+1)
	}
	s.flipAt(at + 299_999) // another batch follows the one that vouches for this
	if got := s.check(Scope{Data: true}); got.Damaged != 1 || got.Torn != 0 {
		t.Errorf("%+v", got)
	}
	at = s.put("h", key, 4000)
	s.flipAt(at)
	if got := s.version("h", key); got != first+1 {
		t.Errorf("version %d, not %d", got, first+1)
	}
	if got := s.check(Scope{}); got.Torn == 0 {
		t.Errorf("nothing is told of the batch: %+v", got)
	}
	s.close() // the writer knows that its data is there
	if got := s.version("h", key); got != s.serial {
		t.Errorf("version %d, not %d", got, s.serial)
	}
}

// A writer that goes on behind such a batch leaves it out for good.
func TestAWriterBehindABatchWithoutItsData(t *testing.T) {
	s := newSite(t)
	key := plan.Number(1)
	s.put("h", key, 100)
	at := s.put("h", key, 200)
	s.flipAt(at)
	left := s.d
	defer func() { _ = left.Close() }()
	s.fs = s.fs.Crash(rand.New(rand.NewPCG(1, 2)), 1)
	s.o.FS = s.fs
	s.open()
	id, _ := s.d.state.History("h")
	if got, _ := s.d.state.Serial(id, key); got != s.serial-1 {
		t.Errorf("version %d, not %d", got, s.serial-1)
	}
	s.close()
	s.flipAt(at)
	if got := s.version("h", key); got != s.serial-1 {
		t.Errorf("version %d came back", got)
	}
}

// What is replaced or dropped by the group that puts it is not vouched for: its place is written to when the group is durable.
func TestWhatAGroupDropsIsNotVouchedFor(t *testing.T) {
	for name, last := range map[string]func(p *player, c *Change) *Change{
		"replaced": func(p *player, c *Change) *Change { return p.put("h", c.Put.Key, 100) },
		"dropped":  func(p *player, c *Change) *Change { return p.drop("h", c.Put.Key) },
		"cleared":  func(p *player, _ *Change) *Change { return p.clear("h") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(1, func(m *vfs.Mem) vfs.FS { return m })
			if !p.open() {
				t.Fatal("it does not open")
			}
			put := p.put("h", plan.Number(1), 5000)
			if !p.commit(put, last(p, put)) {
				t.Fatal("it is not committed")
			}
			if err := p.d.Space().Write(put.Off, make([]byte, 8192)); err != nil {
				t.Fatal(err)
			}
			if _, err := recovered(p.options(p.mem.Crash(p.r, 1)), []model{p.sure}); err != nil {
				t.Error(err)
			}
			p.close()
		})
	}
}

// When nothing is committed for a while, a batch ends the doubt: what goes bad then is damage.
func TestDoubtEnds(t *testing.T) {
	s := newSite(t)
	at := s.put("h", plan.Number(1), 5000)
	before := s.d.log.Bytes()
	for end := time.Now().Add(time.Minute); s.d.log.Bytes() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the doubt does not end")
		}
	}
	s.flipAt(at)
	if got := s.check(Scope{Data: true}); got.Damaged != 1 || got.Torn != 0 {
		t.Errorf("%+v", got)
	}
	s.close()
}

// Large checkpoints, and those without checksums, are synced before their batch is written, and so are those in stores of version 0.1.
func TestWhatIsNotVouchedFor(t *testing.T) {
	for name, flips := range map[string]bool{"large": false, "of an old store": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			size := int64(mostVouched + segment.Block)
			if flips {
				size = 100
				s.d.identity.vouches = false
			}
			at := s.put("h", plan.Number(1), size)
			s.flipAt(at)
			if got := s.check(Scope{Data: true}); got.Damaged != 1 || got.Torn != 0 {
				t.Errorf("%+v", got)
			}
			s.close()
		})
	}
}
