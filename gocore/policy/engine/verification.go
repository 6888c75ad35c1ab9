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

// verificationReach is how many checkpoints ahead verifications go.
func (h *History) verificationReach() int64 {
	return max(verifyBytes/max(h.verifySize, 1), verifyLeast)
}

// noteLease records a restore. Copies are verified ahead of leases; a restore that copies out verifies on the way.
func (rd *readings) noteLease(h *History, r *Restore) {
	if h.verifies = !r.options.Into && rd.verifiesSize(r.Rec.Size); h.verifies {
		h.verifySize = r.Rec.Size
		rd.queueVerification(h)
	}
}

// verifiesSize tells whether so many bytes are large enough to be verified ahead.
func (rd *readings) verifiesSize(bytes int64) bool {
	return rd.cfg.VerifyFrom > 0 && bytes >= rd.cfg.VerifyFrom
}

// queueVerification puts the history on the list of those whose next restores may find unverified copies.
func (rd *readings) queueVerification(h *History) {
	if h.verifies && !h.inVerify {
		h.inVerify = true
		rd.toVerify = append(rd.toVerify, h)
	}
}

// HasUnverified tells whether BeginVerification is worth a call: half of the checkpoints within reach may be unverified. The threshold avoids a wake-up per
// restore.
func (rd *readings) HasUnverified() bool {
	for len(rd.toVerify) > 0 && !rd.toVerify[0].needsVerification() {
		rd.dequeueVerification()
	}
	return len(rd.toVerify) > 0
}

// dequeueVerification takes the first history off the list.
func (rd *readings) dequeueVerification() {
	rd.toVerify[0].inVerify = false
	rd.toVerify = append(rd.toVerify[:0], rd.toVerify[1:]...)
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
func (rd *readings) BeginVerification(now int64) (p Verification, some bool) {
	for ; len(rd.toVerify) > 0; rd.dequeueVerification() {
		h := rd.toVerify[0]
		if rec, o := rd.nextUnverified(h); o != nil {
			rd.toVerify = append(append(rd.toVerify[:0], rd.toVerify[1:]...), h)
			return rd.beginVerification(now, rec, o), true
		}
	}
	return p, false
}

// nextUnverified is the next copy within reach that is to be verified, or nil. If the latest verification ended too late, the next lease verifies its own
// bytes; the one behind it then has time.
func (rd *readings) nextUnverified(h *History) (of *Record, next *Object) {
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
			if i := slices.IndexFunc(rec.Objects(), func(o *Object) bool { return rd.isVerifiable(o, rec.Top()) }); i >= 0 {
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
func (rd *readings) isVerifiable(o *Object, t int) bool {
	if !o.captured || !rd.verifiesSize(o.Bytes(t)) || rd.tiers[t].Device || rd.tiers[t].Remote || !rd.copies.complete(o, t) || o.loadRuns != 0 {
		return false
	}
	f := rd.copies.row(o, t)
	return !f.Verified && !o.verifying && f.Pins == 0
}

func (rd *readings) beginVerification(now int64, rec *Record, o *Object) Verification {
	p := Verification{Rec: rec, Obj: o, Tier: rec.Top()}
	o.verifying = true
	rd.copies.row(o, p.Tier).Transfers++
	rd.verifying++
	rd.tiers[p.Tier].verifying++
	rd.copies.updateCopy(now, o, p.Tier)
	return p
}

// EndVerification reports the result of a verification. Wrong bytes are left for the restore to find, which knows the other copies.
func (rd *readings) EndVerification(now int64, p Verification, right bool) {
	f := rd.copies.row(p.Obj, p.Tier)
	p.Rec.Hist.overtaken = f.Pins > 0
	rd.verifying--
	rd.tiers[p.Tier].verifying--
	f.Transfers--
	//mutation:damage-verified-ahead
	//mutation:changed-during-verification
	f.Verified = f.Verified || right && p.Obj.verifying
	p.Obj.verifying = false
	rd.copies.updateCopy(now, p.Obj, p.Tier)
	// Also if a restore holds the copy now: flushes that waited for it look for another one.
	rd.copies.roomAppeared(p.Tier)
	rd.makeProgress(now)
}

// IsObsolete tells whether a verification has become useless: a restore verifies the bytes itself, the record is gone, or a claim waits for room in the tier.
func (rd *readings) IsObsolete(p Verification) bool {
	return p.Obj.gone || rd.copies.row(p.Obj, p.Tier).Pins > 0 || rd.rooms.awaitsRoom(p.Tier)
}

// MarkUnverified revokes that the bytes of a copy are verified, or are being verified.
func (rd *readings) MarkUnverified(rec *Record, t int) {
	for _, o := range rec.Objects() {
		if o.copies[t] != fragment.None {
			rd.copies.row(o, t).Verified, o.verifying = false, false
		}
	}
}
