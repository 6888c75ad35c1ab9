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

// prover compares, in a goroutine of its own, what will be lent next with what was captured: the caller is given it at once then.
type prover struct {
	bell    *sync.Cond
	resting bool
}

// proveFrom is the size from which on that pays: below, the lease's own look brings the bytes into the cache, for the application as well.
const proveFrom = 1 << 20

// proofSlice is how long a copy is read between two looks at whether that is still of use.
const proofSlice = 2 * time.Millisecond

func (s *Store) startProving() {
	s.prover.bell = sync.NewCond(&s.mu)
	if !s.proves() {
		return
	}
	s.users++
	s.workers++
	safego.Go("proofs", func() {
		for {
			x, some := s.takeProof()
			if !some {
				break
			}
			s.endProof(x, s.holds(x))
		}
		s.retire()
	})
}

// proves tells whether leases are compared ahead: with "always" each compares for itself.
func (s *Store) proves() bool {
	return s.set.verify <= verifyFirst && s.set.Prefetch && s.set.Host != nil
}

// wakeProver is part of settle.
func (s *Store) wakeProver() {
	if s.prover.resting && s.eng.Unproven() {
		s.prover.bell.Signal()
	}
}

// proof is a copy, and where it lies.
type proof struct {
	engine.Proof
	slot []byte
}

// takeProof waits for something to compare; nothing when the store closes.
func (s *Store) takeProof() (x proof, some bool) {
	s.mu.Lock()
	defer s.leave()
	for !s.closing {
		if _, bad := safego.Poisoned(); bad {
			return x, false
		}
		if p, some := s.eng.BeginProof(s.now()); some {
			return proof{p, s.slot(p.Rec, p.Tier)}, true
		}
		s.prover.resting = true
		s.prover.bell.Wait()
		s.prover.resting = false
	}
	return x, false
}

func (s *Store) endProof(x proof, right bool) {
	s.mu.Lock()
	defer s.leave()
	s.eng.EndProof(s.now(), x.Proof, right)
}

// holds tells whether the bytes are those that were captured. When the answer comes too late it is no.
func (s *Store) holds(x proof) bool {
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
	for !job.Run(proofSlice) {
		if s.overtaken(x) {
			return false
		}
	}
	return slices.Equal(job.Sums(), b.sums)
}

// overtaken tells whether a proof is of no use any more.
func (s *Store) overtaken(x proof) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing || s.eng.Overtaken(x.Proof)
}
