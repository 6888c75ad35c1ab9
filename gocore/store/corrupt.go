package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
)

// Corrupt flips one bit of a checkpoint's bytes in a tier. With TierNone it instead records a deferred verification error of a device. It exists for
// tests of the handling of damaged bytes.
func (h *History) Corrupt(k model.Key, tier int, offset int64) error {
	s := h.s
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	rec := h.h.Get(k)
	if rec == nil {
		return cache.NotFound(h.h, k)
	}
	if tier == status.TierNone {
		region := rec.Version.Layout.At(offset)
		s.Findings.Lend(rec, []int32{int32(region)})
		s.Findings.End(&engine.Transfer{Rec: rec, Early: true}, []int32{int32(region)}, checkpoint.Damaged(region, status.TierHost))
		s.Findings.Forget(rec)
		return nil
	}
	t, err := s.TierIndex(tier)
	if err != nil {
		return err
	}
	if !s.Engine.Complete(rec, t) || offset < 0 || offset >= rec.Size {
		return status.New(status.Invalid, "the %s tier has no byte %d of this checkpoint", status.TierName(tier), offset)
	}
	f := s.Engine.Fragment(rec, t)
	if a := s.DeviceTier(t); a != nil {
		s.Engine.MarkUnverified(rec, t)
		return a.Flip(f.Offset + offset)
	}
	if tier == status.TierHost {
		s.Host.Bytes(f.Offset, f.Size)[offset] ^= 1
		s.Engine.MarkUnverified(rec, t)
		return nil
	}
	block := make([]byte, disk.Grain)
	at := f.Offset + offset/disk.Grain*disk.Grain
	if err := s.Disk.Space.Read(at, block); err != nil {
		return s.DiskError(err)
	}
	block[offset%disk.Grain] ^= 1
	return s.DiskError(s.Disk.Space.Write(at, block))
}
