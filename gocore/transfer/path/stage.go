package path

import (
	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
)

// stage looks at the bytes of a path on their way.
type stage interface {
	begin(p *Path)
	// arrived tells of bytes that have come to their place in the sink. Several goroutines may call it at once.
	arrived(at, n int64)
	// end waits for the stage, and returns the error of the path: err is the error of the transfer of the bytes.
	end(err error) error
	reporter
}

// stagesFor returns the stages of a path. A device verifies bytes in its own memory by itself, and sources hash what they take from a caller.
func (p *Path) stagesFor(want []int32) []stage {
	up := p.x.Kind == engine.Load || p.x.Kind == engine.Fetch
	switch to := p.sink.Bytes(); {
	case p.movesEncoded(), p.forwards(): // checksums are those of the plain bytes
		p.result.Leaves = p.version.AllLeaves()
		return nil
	case up && to != nil:
		p.verification = checkpoint.Verification{Slot: to, Version: p.version, Regions: want}
		p.arrivals.Verification = &p.verification
		if p.reading != nil {
			p.arrivals.Verification = p.reading.Verification(to)
		}
		p.oneStage[0] = &p.arrivals
	case p.x.From >= 0 && p.o.From == nil && p.source.Bytes() != nil && p.c.UsesDisk(p.x) && p.c.IsDurable() && p.version.HasLeaves():
		p.oneStage[0] = &leaves{ended: make(chan struct{})}
	default:
		return nil
	}
	return p.oneStage[:]
}

// arrivals verifies bytes while they arrive in the sink.
type arrivals struct {
	*checkpoint.Verification
	p        *Path
	verifies bool
}

func (s *arrivals) begin(p *Path) {
	s.p, s.verifies = p, p.c.Set.Verifies != config.VerifyOff
	read := p.o.Read
	if read == nil {
		read = func() {}
	}
	s.Expect(p.spans, s.verifies, read)
}

func (s *arrivals) arrived(at, n int64) { s.Received(at, n) }

func (s *arrivals) end(err error) error {
	if err != nil || !s.verifies {
		return err
	}
	return checkpoint.Damaged(s.Mismatch(), s.p.c.Tiers[s.p.x.From])
}

func (s *arrivals) report(*Result) {}

// leaves hashes the bytes of the source, in a goroutine of its own, while they go to a tier that outlives the store. They must not become durable unless
// they are still the captured bytes.
type leaves struct {
	version *checkpoint.Version
	hashes  []uint64
	bad     error
	ended   chan struct{}
}

func (s *leaves) begin(p *Path) {
	s.version = p.version
	safego.Go("leaves", func() {
		defer close(s.ended)
		s.hashes, s.bad = p.version.Leaves(p.source.Bytes())
	})
}

func (s *leaves) arrived(int64, int64) {}

func (s *leaves) end(err error) error {
	<-s.ended
	if s.bad != nil {
		return s.bad
	}
	s.version.KeepLeaves(s.hashes)
	return err
}

func (s *leaves) report(r *Result) { r.Leaves = s.hashes }
