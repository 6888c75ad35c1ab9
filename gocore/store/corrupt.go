package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/codec"
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
	if rec.Version.Encoding != nil {
		if offset, err = s.encodedAt(rec.Version, f.Offset, offset); err != nil || offset < 0 {
			return err
		}
	}
	block := make([]byte, disk.Grain)
	at := f.Offset + offset/disk.Grain*disk.Grain
	if err := s.Disk.Space.Read(at, block); err != nil {
		return s.DiskError(err)
	}
	block[offset%disk.Grain] ^= 1
	return s.DiskError(s.Disk.Space.Write(at, block))
}

// encodedAt returns the offset of a byte on disk without which a byte of the slot is not what it was, and others are: the first one of its chunk's payload; -1
// for a byte between regions, which the disk does not have.
func (s *Store) encodedAt(v *checkpoint.Version, from, offset int64) (at int64, err error) {
	at = -1
	v.Encoding.Each(v.Layout.Spans, func(c model.Container) bool {
		if offset < c.Plain.Offset || offset >= c.Plain.End() {
			return true
		}
		encoded := make([]byte, c.At.Bytes)
		if err = s.DiskError(s.Disk.Space.Read(from+c.At.Offset, encoded)); err != nil {
			return false
		}
		container, damage := codec.Open(encoded, int(c.Plain.Bytes))
		if damage != nil {
			err = damage
			return false
		}
		at = c.At.Offset + int64(container.Payload(int((offset-c.Plain.Offset)/codec.ChunkBytes)))
		return false
	})
	return at, err
}
