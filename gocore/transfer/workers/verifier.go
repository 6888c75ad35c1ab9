package workers

import (
	"slices"
	"sync"
	"time"
	"unsafe"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/cache"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/slots"
)

// backgroundVerifier verifies in a goroutine of its own the checkpoints that will be lent next, so that they can be lent without delay.
type backgroundVerifier struct {
	*cache.Cache

	wake    *sync.Cond
	resting bool
}

// VerifyAheadFrom is the size from which on this pays. Below it, the lease's own verification also brings the bytes into the CPU's cache for the
// application.
const VerifyAheadFrom = 1 << 20

// verifySlice is how long a copy is read between two checks whether the result is still useful.
const verifySlice = 2 * time.Millisecond

func (s *Workers) startVerifier() {
	s.verifier.Cache, s.verifier.wake = s.Cache, sync.NewCond(s.Cache)
	if !VerifiesAhead(&s.Set) {
		return
	}
	s.Users++
	s.running++
	safego.Go("verification ahead", func() {
		for {
			x, some := s.verifier.take()
			if !some {
				break
			}
			s.verifier.end(x, s.verifier.matchesCapture(x))
		}
		s.ended()
	})
}

// VerifiesAhead tells whether leases are verified ahead. With VerifyAlways each lease verifies for itself.
func VerifiesAhead(set *config.Settings) bool {
	return set.Verifies <= config.VerifyFirst && set.Prefetch && set.Host != nil
}

// wakeUp is part of Wake.
func (bv *backgroundVerifier) wakeUp() {
	if bv.resting && bv.Engine.HasUnverified() {
		bv.wake.Signal()
	}
}

// VerifierRests tells whether the verifier has nothing to do. The lock is held.
func (s *Workers) VerifierRests() bool { return s.verifier.resting }

// aheadVerification is a copy to verify, and its memory.
type aheadVerification struct {
	engine.Verification
	slot []byte
}

// take waits for a copy to verify. some is false when the store closes.
func (bv *backgroundVerifier) take() (x aheadVerification, some bool) {
	bv.Lock()
	defer bv.Leave()
	for !bv.Closing {
		if _, bad := safego.Poisoned(); bad {
			return x, false
		}
		if p, some := bv.Engine.BeginVerification(bv.Now()); some {
			return aheadVerification{p, slots.Slot(bv.Cache, p.Rec, p.Tier)}, true
		}
		bv.resting = true
		bv.wake.Wait()
		bv.resting = false
	}
	return x, false
}

func (bv *backgroundVerifier) end(x aheadVerification, right bool) {
	bv.Lock()
	defer bv.Leave()
	bv.Engine.EndVerification(bv.Now(), x.Verification, right)
}

// matchesCapture tells whether the bytes are those captured. It returns false if the result became useless.
func (bv *backgroundVerifier) matchesCapture(x aheadVerification) bool {
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
		if bv.isObsolete(x) {
			return false
		}
	}
	return slices.Equal(job.Sums(), b.Sums)
}

// isObsolete tells whether the result of a verification is useless by now.
func (bv *backgroundVerifier) isObsolete(x aheadVerification) bool {
	bv.Lock()
	defer bv.Unlock()
	return bv.Closing || bv.Engine.IsObsolete(x.Verification)
}
