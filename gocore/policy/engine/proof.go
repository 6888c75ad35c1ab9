package engine

import "velocpy/gocore/model"

// Proof is a copy in a record's fastest tier whose bytes the caller compares with what was captured, ahead of a lease that would have to read
// them all before it is given. While it is under way the copy stays where it is.
type Proof struct {
	Rec  *Record
	Tier int
}

// Proofs go so many bytes ahead of the restores, and no fewer than so many checkpoints: far enough that a lease finds its bytes compared, and
// no further, as what a sweep still writes has more use of the memory's bandwidth.
const (
	proofBytes = 64 << 20
	proofLeast = 2
)

// proofReach is how many checkpoints ahead proofs go.
func (h *History) proofReach() int64 { return max(proofBytes/max(h.proofSize, 1), proofLeast) }

// lends takes note of a restore: proofs are for leases; what copies out compares on the way.
func (e *Engine) lends(h *History, r *Restore) {
	if h.proves = !r.options.Into && e.provesSize(r.Rec); h.proves {
		h.proofSize = r.Rec.Size
		e.lag(h)
	}
}

// provesSize tells whether a record is large enough.
func (e *Engine) provesSize(rec *Record) bool {
	return e.cfg.ProveFrom > 0 && rec.Size >= e.cfg.ProveFrom
}

// lag puts the history on the list of those whose next restores may find bytes that were not compared.
func (e *Engine) lag(h *History) {
	if h.proves && !h.lags {
		h.lags = true
		e.lagging = append(e.lagging, h)
	}
}

// Unproven tells whether BeginProof is worth a call: when half of what lies within reach may be unproven, so that not every restore wakes
// somebody.
func (e *Engine) Unproven() bool {
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
	if !h.proves || at-head > h.proofReach()/2 {
		return false
	}
	h.order.Upcoming(at, func(int64, model.Key, bool) bool { some = true; return false })
	return some
}

// BeginProof gives out the next copy to compare, in the order in which they will be restored; histories take turns. EndProof follows.
func (e *Engine) BeginProof(now int64) (p Proof, some bool) {
	for ; len(e.lagging) > 0; e.keepsUp() {
		h := e.lagging[0]
		if rec := e.nextUnproven(h); rec != nil {
			e.lagging = append(append(e.lagging[:0], e.lagging[1:]...), h)
			return e.beginProof(now, rec), true
		}
	}
	return p, false
}

// nextUnproven is the next record within reach that has a copy to compare, or nil. When the latest proof came too late the next lease is left to itself:
// the one behind it has time then.
func (e *Engine) nextUnproven(h *History) (next *Record) {
	if !h.proves {
		return nil
	}
	head := h.order.Head()
	if h.proven = max(h.proven, head); h.overtaken {
		h.proven, h.overtaken = max(h.proven, head+1), false
	}
	h.order.Upcoming(h.proven, func(seq int64, k model.Key, _ bool) bool {
		if next != nil || seq-head >= h.proofReach() {
			return false
		}
		h.proven = seq + 1
		if rec := h.records.get(k); rec != nil && e.provable(rec) {
			next = rec
		}
		return true
	})
	return next
}

// provable tells whether a copy that nobody reads yet lies unproven where a lease of it would be given. What comes up from below is compared there.
func (e *Engine) provable(rec *Record) bool {
	t := rec.Top()
	if !rec.captured || !e.provesSize(rec) || e.tiers[t].Front || e.tiers[t].Remote || !e.Complete(rec, t) || rec.loadRuns != 0 {
		return false
	}
	f := e.Fragment(rec, t)
	return !f.Verified && !rec.proving && f.Pins == 0
}

func (e *Engine) beginProof(now int64, rec *Record) Proof {
	p := Proof{Rec: rec, Tier: rec.Top()}
	rec.proving = true
	e.Fragment(rec, p.Tier).Transfers++
	e.proofs++
	e.tiers[p.Tier].proofs++
	e.settle(now, rec, p.Tier)
	return p
}

// EndProof tells what came of a proof. Bytes that are wrong are left for the restore to find: it knows who has others.
func (e *Engine) EndProof(now int64, p Proof, right bool) {
	f := e.Fragment(p.Rec, p.Tier)
	p.Rec.Hist.overtaken = f.Pins > 0
	e.proofs--
	e.tiers[p.Tier].proofs--
	f.Transfers--
	//mutation:damage-verified-ahead
	//mutation:changed-during-verification
	f.Verified = f.Verified || right && p.Rec.proving
	p.Rec.proving = false
	e.settle(now, p.Rec, p.Tier)
	e.roomier(p.Tier) // also when somebody else holds the copy now: flushes that waited for it look for another
	e.pump(now)
}

// Overtaken tells whether a proof is of no use any more: a restore reads the bytes by itself, nobody will, or somebody waits for room in the tier.
func (e *Engine) Overtaken(p Proof) bool {
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

// Doubt takes back that the bytes of a copy were compared, or are about to be.
func (e *Engine) Doubt(rec *Record, t int) {
	e.Fragment(rec, t).Verified, rec.proving = false, false
}
