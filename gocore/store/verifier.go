package store

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/copier"
)

// backgroundVerifier compares, in a goroutine of its own, what will be lent next with what was captured: the caller is given it at once then.
type backgroundVerifier struct {
	bell    *sync.Cond
	resting bool
}

// verifyAheadFrom is the size from which on that pays: below, the lease's own look brings the bytes into the cache, for the application as well.
const verifyAheadFrom = 1 << 20

// verifySlice is how long a copy is read between two looks at whether that is still of use.
const verifySlice = 2 * time.Millisecond

func (s *Store) startVerifier() {
	s.verifier.bell = sync.NewCond(&s.mu)
	if !s.verifiesAhead() {
		return
	}
	s.users++
	s.workers++
	safego.Go("proofs", func() {
		for {
			x, some := s.takeVerification()
			if !some {
				break
			}
			s.endVerification(x, s.matchesCapture(x))
		}
		s.workerEnded()
	})
}

// verifiesAhead tells whether leases are compared ahead: with "always" each compares for itself.
func (s *Store) verifiesAhead() bool {
	return s.set.verify <= verifyFirst && s.set.Prefetch && s.set.Host != nil
}

// wakeVerifier is part of settle.
func (s *Store) wakeVerifier() {
	if s.verifier.resting && s.eng.Unproven() {
		s.verifier.bell.Signal()
	}
}

// aheadVerification is a copy, and where it lies.
type aheadVerification struct {
	engine.Proof
	slot []byte
}

// takeVerification waits for something to compare; nothing when the store closes.
func (s *Store) takeVerification() (x aheadVerification, some bool) {
	s.mu.Lock()
	defer s.leave()
	for !s.closing {
		if _, bad := safego.Poisoned(); bad {
			return x, false
		}
		if p, some := s.eng.BeginProof(s.now()); some {
			return aheadVerification{p, s.slot(p.Rec, p.Tier)}, true
		}
		s.verifier.resting = true
		s.verifier.bell.Wait()
		s.verifier.resting = false
	}
	return x, false
}

func (s *Store) endVerification(x aheadVerification, right bool) {
	s.mu.Lock()
	defer s.leave()
	s.eng.EndProof(s.now(), x.Proof, right)
}

// matchesCapture tells whether the bytes are those that were captured. When the answer comes too late it is no.
func (s *Store) matchesCapture(x aheadVerification) bool {
	b := x.Rec.Body.(*body)
	if b.sums == nil {
		return false
	}
	pieces := make([]copier.Piece, 0, len(b.layout.Spans))
	for _, span := range b.layout.Spans {
		pieces = append(pieces, copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(x.slot[span.Offset:])), Bytes: span.Bytes})
	}
	job := copier.NewJob(copier.Verify, pieces, copier.Options{})
	defer job.Free()
	for !job.Run(verifySlice) {
		if s.isObsolete(x) {
			return false
		}
	}
	return slices.Equal(job.Sums(), b.sums)
}

// isObsolete tells whether a proof is of no use any more.
func (s *Store) isObsolete(x aheadVerification) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing || s.eng.Overtaken(x.Proof)
}
