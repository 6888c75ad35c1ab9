package store

import (
	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/object"
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
		at := offset
		if d := rec.Version.Deduplicated; d != nil && s.Engine.Form(rec, t) == engine.Deduplicated {
			if at %= max(d.Bytes, 1); d.Bytes == 0 {
				return nil
			}
		}
		if s.Engine.Form(rec, t) == engine.Encoded && rec.Version.Encoding != nil {
			in := s.Host.Bytes(f.Offset, f.Size)
			at, err = s.encodedAt(rec.Version, 0, offset, func(at int64, p []byte) error {
				copy(p, in[at:])
				return nil
			})
		}
		if err != nil || at < 0 {
			return err
		}
		s.Host.Bytes(f.Offset, f.Size)[at] ^= 1
		s.Engine.MarkUnverified(rec, t)
		return nil
	}
	at := f.Offset + offset
	switch {
	case rec.Version.Difference != nil:
		at, err = s.differenceAt(rec.Version, f.Offset, offset)
	case rec.Version.Encoding != nil:
		at, err = s.encodedAt(rec.Version, f.Offset, offset, s.readDisk)
	}
	if err != nil || at < 0 {
		return err
	}
	block := make([]byte, disk.Grain)
	offset, at = at, at/disk.Grain*disk.Grain
	if err := s.Disk.Space.Read(at, block); err != nil {
		return s.DiskError(err)
	}
	block[offset%disk.Grain] ^= 1
	return s.DiskError(s.Disk.Space.Write(at, block))
}

// differenceAt is encodedAt for a checkpoint that may need objects of earlier ones.
func (s *Store) differenceAt(v *checkpoint.Version, from, offset int64) (at int64, err error) {
	region := v.Layout.At(offset)
	if region < 0 || offset >= v.Layout.Spans[region].End() {
		return -1, nil
	}
	begin := func(source int) int64 {
		if source == object.Own {
			return from
		}
		return v.Difference.Sources[source].Offset
	}
	r, err := object.Open(v.Difference, description.Names(&v.Layout.Layout), v.Layout.Spans, func(source int, at int64, p []byte) error {
		return s.readDisk(begin(source)+at, p)
	})
	if err != nil {
		return -1, err
	}
	c := r.Container(region, offset-v.Layout.Spans[region].Offset)
	return payloadAt(begin(c.Source)+c.At.Offset, c.At.Bytes, c.Plain, c.Offset, s.readDisk)
}

func (s *Store) readDisk(at int64, p []byte) error { return s.DiskError(s.Disk.Space.Read(at, p)) }

// payloadAt returns where the payload begins that has a plain byte of a container, which lies at an offset of what is read.
func payloadAt(at, encoded, plain, offset int64, read func(at int64, p []byte) error) (int64, error) {
	p := make([]byte, encoded)
	if err := read(at, p); err != nil {
		return -1, err
	}
	c, err := codec.Open(p, int(plain))
	if err != nil {
		return -1, err
	}
	return at + int64(c.Payload(int(offset/codec.ChunkBytes))), nil
}

// encodedAt returns the offset of a byte of encoded bytes without which a byte of the slot is not what it was, and others are: the first one of its chunk's payload; -1
// for a byte between regions, which the disk does not have.
func (s *Store) encodedAt(v *checkpoint.Version, from, offset int64, read func(at int64, p []byte) error) (at int64, err error) {
	at = -1
	v.Encoding.Each(v.Layout.Spans, func(c model.Container) bool {
		if offset < c.Plain.Offset || offset >= c.Plain.End() {
			return true
		}
		at, err = payloadAt(from+c.At.Offset, c.At.Bytes, c.Plain.Bytes, offset-c.Plain.Offset, read)
		return false
	})
	return at, err
}
