package workers

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/slots"
)

// backgroundVerifier verifies in a goroutine of its own the checkpoints that will be lent next, so that they can be lent without delay.
type backgroundVerifier struct {
	wake    *sync.Cond
	resting bool
}

// VerifyAheadFrom is the size from which on this pays. Below it, the lease's own verification also brings the bytes into the CPU's cache for the
// application.
const VerifyAheadFrom = 1 << 20

// verifySlice is how long a copy is read between two checks whether the result is still useful.
const verifySlice = 2 * time.Millisecond

func (s *Workers) startVerifier() {
	s.verifier.wake = sync.NewCond(s.Cache)
	if !VerifiesAhead(&s.Set) {
		return
	}
	s.Users++
	s.running++
	safego.Go("verification ahead", func() {
		for {
			x, some := s.takeVerification()
			if !some {
				break
			}
			s.endVerification(x, s.matchesCapture(x))
		}
		s.ended()
	})
}

// VerifiesAhead tells whether leases are verified ahead. With VerifyAlways each lease verifies for itself.
func VerifiesAhead(set *config.Settings) bool {
	return set.Verifies <= config.VerifyFirst && set.Prefetch && set.Host != nil
}

// wakeVerifier is part of Wake.
func (s *Workers) wakeVerifier() {
	if s.VerifierRests() && s.Engine.HasUnverified() {
		s.verifier.wake.Signal()
	}
}

// VerifierRests tells whether the verifier has nothing to do. The lock is held.
func (s *Workers) VerifierRests() bool { return s.verifier.resting }

// aheadVerification is a copy to verify, and its memory.
type aheadVerification struct {
	engine.Verification
	slot []byte
}

// takeVerification waits for a copy to verify. some is false when the store closes.
func (s *Workers) takeVerification() (x aheadVerification, some bool) {
	s.Lock()
	defer s.Leave()
	for !s.Closing {
		if _, bad := safego.Poisoned(); bad {
			return x, false
		}
		if p, some := s.Engine.BeginVerification(s.Now()); some {
			return aheadVerification{p, slots.Slot(s.Cache, p.Rec, p.Tier)}, true
		}
		s.verifier.resting = true
		s.verifier.wake.Wait()
		s.verifier.resting = false
	}
	return x, false
}

func (s *Workers) endVerification(x aheadVerification, right bool) {
	s.Lock()
	defer s.Leave()
	s.Engine.EndVerification(s.Now(), x.Verification, right)
}

// matchesCapture tells whether the bytes are those captured. It returns false if the result became useless.
func (s *Workers) matchesCapture(x aheadVerification) bool {
	b := x.Rec.Version
	if b.Sums == nil {
		return false
	}
	pieces := make([]copier.Piece, 0, len(b.Layout.Spans))
	for _, span := range b.Layout.Spans {
		pieces = append(pieces, copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(x.slot[span.Offset:])), Bytes: span.Bytes})
	}
	job := copier.NewJob(copier.Verify, pieces, copier.Options{})
	defer job.Free()
	for !job.Run(verifySlice) {
		if s.isObsolete(x) {
			return false
		}
	}
	return slices.Equal(job.Sums(), b.Sums)
}

// isObsolete tells whether the result of a verification is useless by now.
func (s *Workers) isObsolete(x aheadVerification) bool {
	s.Lock()
	defer s.Unlock()
	return s.Closing || s.Engine.IsObsolete(x.Verification)
}
