package engine

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
)

// Verification is a copy in a record's fastest tier whose checksum the caller verifies ahead of a lease. The lease would otherwise have to read all bytes
// before it is granted. While the verification is under way the copy stays where it is.
type Verification struct {
	Rec  *Record
	Obj  *Object
	Tier int
}

// Verifications run this many bytes ahead of the restores, and at least this many checkpoints. That is far enough for a lease to find its bytes verified.
// They go no further, since the captures of a sweep need the memory's bandwidth more.
const (
	verifyBytes = 64 << 20
	verifyLeast = 2
)

// verifications verify copies ahead of leases.
type verifications struct {
	*state

	toVerify []*History // those whose next restores may find unverified copies
}

// verificationReach is how many checkpoints ahead verifications go.
func (h *History) verificationReach() int64 {
	return max(verifyBytes/max(h.verifySize, 1), verifyLeast)
}

// noteLease records a restore. Copies are verified ahead of leases; a restore that copies out verifies on the way.
func (vf *verifications) noteLease(h *History, r *Restore) {
	if h.verifies = !r.options.Into && vf.verifiesSize(r.Rec.Size); h.verifies {
		h.verifySize = r.Rec.Size
		vf.queueVerification(h)
	}
}

// verifiesSize tells whether so many bytes are large enough to be verified ahead.
func (vf *verifications) verifiesSize(bytes int64) bool {
	return vf.cfg.VerifyFrom > 0 && bytes >= vf.cfg.VerifyFrom
}

// queueVerification puts the history on the list of those whose next restores may find unverified copies.
func (vf *verifications) queueVerification(h *History) {
	if h.verifies && !h.inVerify {
		h.inVerify = true
		vf.toVerify = append(vf.toVerify, h)
	}
}

// HasUnverified tells whether BeginVerification is worth a call: half of the checkpoints within reach may be unverified. The threshold avoids a wake-up per
// restore.
func (vf *verifications) HasUnverified() bool {
	for len(vf.toVerify) > 0 && !vf.toVerify[0].needsVerification() {
		vf.dequeueVerification()
	}
	return len(vf.toVerify) > 0
}

// dequeueVerification takes the first history off the list.
func (vf *verifications) dequeueVerification() {
	vf.toVerify[0].inVerify = false
	vf.toVerify = append(vf.toVerify[:0], vf.toVerify[1:]...)
}

func (h *History) needsVerification() (some bool) {
	head := h.order.Head()
	at := max(h.verifiedTo, head)
	if !h.verifies || at-head > h.verificationReach()/2 {
		return false
	}
	h.order.Upcoming(at, func(int64, model.Key, bool) bool { some = true; return false })
	return some
}

// BeginVerification returns the next copy to verify, in the order of the restores; histories take turns. EndVerification follows.
func (vf *verifications) BeginVerification(now int64) (p Verification, some bool) {
	for ; len(vf.toVerify) > 0; vf.dequeueVerification() {
		h := vf.toVerify[0]
		if rec, o := vf.nextUnverified(h); o != nil {
			vf.toVerify = append(append(vf.toVerify[:0], vf.toVerify[1:]...), h)
			return vf.beginVerification(now, rec, o), true
		}
	}
	return p, false
}

// nextUnverified is the next copy within reach that is to be verified, or nil. If the latest verification ended too late, the next lease verifies its own
// bytes; the one behind it then has time.
func (vf *verifications) nextUnverified(h *History) (of *Record, next *Object) {
	if !h.verifies {
		return nil, nil
	}
	head := h.order.Head()
	if h.verifiedTo = max(h.verifiedTo, head); h.overtaken {
		h.verifiedTo, h.overtaken = max(h.verifiedTo, head+1), false
	}
	h.order.Upcoming(h.verifiedTo, func(seq int64, k model.Key, _ bool) bool {
		if next != nil || seq-head >= h.verificationReach() {
			return false
		}
		if rec := h.records.get(k); rec != nil {
			if i := slices.IndexFunc(rec.Objects(), func(o *Object) bool { return vf.isVerifiable(o, rec.Top()) }); i >= 0 {
				of, next = rec, rec.Objects()[i]
				if i < len(rec.Objects())-1 {
					return false
				}
			}
		}
		h.verifiedTo = seq + 1
		return true
	})
	return of, next
}

// isVerifiable tells whether o has an unverified copy that no restore reads yet, in the tier that would be leased from. A load verifies the bytes that
// it brings.
func (vf *verifications) isVerifiable(o *Object, t int) bool {
	if !o.captured || !vf.verifiesSize(o.Bytes(t)) || vf.tiers[t].Device || vf.tiers[t].Remote || !vf.copies.complete(o, t) || o.loadRuns != 0 {
		return false
	}
	f := vf.copies.row(o, t)
	return !f.Verified && !o.verifying && f.Pins == 0
}

func (vf *verifications) beginVerification(now int64, rec *Record, o *Object) Verification {
	p := Verification{Rec: rec, Obj: o, Tier: rec.Top()}
	o.verifying = true
	vf.copies.row(o, p.Tier).Transfers++
	vf.readings.begun(p.Tier)
	vf.copies.updateCopy(now, o, p.Tier)
	return p
}

// EndVerification reports the result of a verification. Wrong bytes are left for the restore to find, which knows the other copies.
func (vf *verifications) EndVerification(now int64, p Verification, right bool) {
	f := vf.copies.row(p.Obj, p.Tier)
	p.Rec.Hist.overtaken = f.Pins > 0
	vf.readings.ended(p.Tier)
	f.Transfers--
	//mutation:damage-verified-ahead
	//mutation:changed-during-verification
	f.Verified = f.Verified || right && p.Obj.verifying
	p.Obj.verifying = false
	vf.copies.updateCopy(now, p.Obj, p.Tier)
	// Also if a restore holds the copy now: flushes that waited for it look for another one.
	vf.copies.roomAppeared(p.Tier)
	vf.makeProgress(now)
}

// IsObsolete tells whether a verification has become useless: a restore verifies the bytes itself, the record is gone, or a claim waits for room in the tier.
func (vf *verifications) IsObsolete(p Verification) bool {
	return p.Obj.gone || vf.copies.row(p.Obj, p.Tier).Pins > 0 || vf.rooms.awaitsRoom(p.Tier)
}

// MarkUnverified revokes that the bytes of a copy are verified, or are being verified.
func (vf *verifications) MarkUnverified(rec *Record, t int) {
	for _, o := range rec.Objects() {
		if o.copies[t] != fragment.None {
			vf.copies.row(o, t).Verified, o.verifying = false, false
		}
	}
}
