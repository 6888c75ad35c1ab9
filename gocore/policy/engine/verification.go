package engine

import "velocpy/gocore/model"

// Verification is a copy in a record's fastest tier whose checksum the caller verifies ahead of a lease. The lease would otherwise have to read all bytes
// before it is granted. While the proof is under way the copy stays where it is.
type Verification struct {
	Rec  *Record
	Tier int
}

// Proofs run this many bytes ahead of the restores, and at least this many checkpoints. That is far enough for a lease to find its bytes verified.
// They go no further, since the captures of a sweep need the memory's bandwidth more.
const (
	proofBytes = 64 << 20
	proofLeast = 2
)

// verificationReach is how many checkpoints ahead proofs go.
func (h *History) verificationReach() int64 { return max(proofBytes/max(h.proofSize, 1), proofLeast) }

// lends records a restore. Proofs are for leases; a restore that copies out verifies on the way.
func (e *Engine) lends(h *History, r *Restore) {
	if h.proves = !r.options.Into && e.verifiesSize(r.Rec); h.proves {
		h.proofSize = r.Rec.Size
		e.lag(h)
	}
}

// verifiesSize tells whether a record is large enough for proofs.
func (e *Engine) verifiesSize(rec *Record) bool {
	return e.cfg.VerifyFrom > 0 && rec.Size >= e.cfg.VerifyFrom
}

// lag puts the history on the list of those whose next restores may find unverified copies.
func (e *Engine) lag(h *History) {
	if h.proves && !h.lags {
		h.lags = true
		e.lagging = append(e.lagging, h)
	}
}

// HasUnverified tells whether BeginVerification is worth a call: half of the checkpoints within reach may be unverified. The threshold avoids a wake-up per
// restore.
func (e *Engine) HasUnverified() bool {
	for len(e.lagging) > 0 && !e.lagging[0].behind() {
		e.keepsUp()
	}
	return len(e.lagging) > 0
}

// keepsUp takes the first history off the list.
func (e *Engine) keepsUp() {
	e.lagging[0].lags = false
	e.lagging = append(e.lagging[:0], e.lagging[1:]...)
}

func (h *History) behind() (some bool) {
	head := h.order.Head()
	at := max(h.proven, head)
	if !h.proves || at-head > h.verificationReach()/2 {
		return false
	}
	h.order.Upcoming(at, func(int64, model.Key, bool) bool { some = true; return false })
	return some
}

// BeginVerification returns the next copy to verify, in the order of the restores; histories take turns. EndVerification follows.
func (e *Engine) BeginVerification(now int64) (p Verification, some bool) {
	for ; len(e.lagging) > 0; e.keepsUp() {
		h := e.lagging[0]
		if rec := e.nextUnverified(h); rec != nil {
			e.lagging = append(append(e.lagging[:0], e.lagging[1:]...), h)
			return e.beginVerification(now, rec), true
		}
	}
	return p, false
}

// nextUnverified is the next record within reach that has a copy to verify, or nil. If the latest proof came too late, the next lease verifies its own
// bytes; the one behind it then has time.
func (e *Engine) nextUnverified(h *History) (next *Record) {
	if !h.proves {
		return nil
	}
	head := h.order.Head()
	if h.proven = max(h.proven, head); h.overtaken {
		h.proven, h.overtaken = max(h.proven, head+1), false
	}
	h.order.Upcoming(h.proven, func(seq int64, k model.Key, _ bool) bool {
		if next != nil || seq-head >= h.verificationReach() {
			return false
		}
		h.proven = seq + 1
		if rec := h.records.get(k); rec != nil && e.isVerifiable(rec) {
			next = rec
		}
		return true
	})
	return next
}

// isVerifiable tells whether rec has an unverified copy that no restore reads yet, in the tier that would be leased from. A load verifies the bytes that
// it brings.
func (e *Engine) isVerifiable(rec *Record) bool {
	t := rec.Top()
	if !rec.captured || !e.verifiesSize(rec) || e.tiers[t].Device || e.tiers[t].Remote || !e.Complete(rec, t) || rec.loadRuns != 0 {
		return false
	}
	f := e.Fragment(rec, t)
	return !f.Verified && !rec.verifying && f.Pins == 0
}

func (e *Engine) beginVerification(now int64, rec *Record) Verification {
	p := Verification{Rec: rec, Tier: rec.Top()}
	rec.verifying = true
	e.Fragment(rec, p.Tier).Transfers++
	e.proofs++
	e.tiers[p.Tier].proofs++
	e.settle(now, rec, p.Tier)
	return p
}

// EndVerification reports the result of a proof. Wrong bytes are left for the restore to find, which knows the other copies.
func (e *Engine) EndVerification(now int64, p Verification, right bool) {
	f := e.Fragment(p.Rec, p.Tier)
	p.Rec.Hist.overtaken = f.Pins > 0
	e.proofs--
	e.tiers[p.Tier].proofs--
	f.Transfers--
	//mutation:damage-verified-ahead
	//mutation:changed-during-verification
	f.Verified = f.Verified || right && p.Rec.verifying
	p.Rec.verifying = false
	e.settle(now, p.Rec, p.Tier)
	// Also if a restore holds the copy now: flushes that waited for it look for another one.
	e.roomier(p.Tier)
	e.pump(now)
}

// IsObsolete tells whether a proof has become useless: a restore verifies the bytes itself, the record is gone, or a claim waits for room in the tier.
func (e *Engine) IsObsolete(p Verification) bool {
	t := e.tiers[p.Tier]
	if p.Rec.gone || e.Fragment(p.Rec, p.Tier).Pins > 0 || t.claims.len() > 0 {
		return true
	}
	for _, l := range e.links {
		if l.lower == p.Tier && l.paused == t.version+1 {
			return true
		}
	}
	return false
}

// MarkUnverified revokes that the bytes of a copy are verified, or are being verified.
func (e *Engine) MarkUnverified(rec *Record, t int) {
	e.Fragment(rec, t).Verified, rec.verifying = false, false
}
