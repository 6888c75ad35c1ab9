package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
)

// Corrupt flips one bit of a checkpoint's bytes in a tier. With TierNone it instead records a deferred verification error of a device. It exists for
// tests of the handling of damaged bytes.
func (h *History) Corrupt(k model.Key, tier int, offset int64) error {
	s := h.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	rec := h.h.Get(k)
	if rec == nil {
		return notFound(h.h, k)
	}
	if tier == status.TierNone {
		region := rec.Version.Layout.At(offset)
		s.deferred.lend(rec, []int32{int32(region)})
		s.deferred.end(&engine.Transfer{Rec: rec, Early: true}, &moved{bad: []int32{int32(region)}, err: checkpoint.Damaged(region, status.TierHost)})
		delete(s.deferred.suspects, rec)
		return nil
	}
	t, err := s.tierIndex(tier)
	if err != nil {
		return err
	}
	if !s.eng.Complete(rec, t) || offset < 0 || offset >= rec.Size {
		return status.New(status.Invalid, "the %s tier has no byte %d of this checkpoint", status.TierName(tier), offset)
	}
	f := s.eng.Fragment(rec, t)
	if a := s.deviceTier(t); a != nil {
		s.eng.MarkUnverified(rec, t)
		return a.Flip(f.Offset + offset)
	}
	if s.eng.IsMemory(t) {
		s.host.Bytes(f.Offset, f.Size)[offset] ^= 1
		s.eng.MarkUnverified(rec, t)
		return nil
	}
	block := make([]byte, disk.Grain)
	at := f.Offset + offset/disk.Grain*disk.Grain
	if err := s.disk.Space.Read(at, block); err != nil {
		return s.diskError(err)
	}
	block[offset%disk.Grain] ^= 1
	return s.diskError(s.disk.Space.Write(at, block))
}
