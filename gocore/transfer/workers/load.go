package workers

import (
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// load reads a whole checkpoint into its slot and verifies it.
func (w *worker) load(x *engine.Transfer, b *checkpoint.Version) error {
	// Bytes behind the last region may never have been written.
	all := model.Span{Bytes: b.Layout.End()}
	return w.bring(x, checkpoint.NewVerification(w.s.Host.Bytes(x.ToOff, x.Rec.Size), b, b.Layout.All()), all)
}

// fetch reads the wanted regions into memory beside the cache and verifies them.
func (w *worker) fetch(x *engine.Transfer, b *checkpoint.Version) (*memory.Mapping, error) {
	want := x.Restore.Notify.(Fetcher).Wants()
	spans := b.Layout.Runs(want)
	if err := w.s.filesHold(x, spans); err != nil {
		return nil, err
	}
	m, err := memory.Map("private restore", max(b.Layout.Slot, 1))
	if err != nil {
		return nil, status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(b.Layout.Slot))
	}
	return m, w.bring(x, checkpoint.NewVerification(m.Bytes(0, m.Size()), b, want), spans...)
}

// filesHold returns an error if the disk lacks spans of a checkpoint. A catalog may list more than the files hold.
func (s *Workers) filesHold(x *engine.Transfer, spans []model.Span) error {
	if !s.IsDurable() || s.Tiers[x.From] != status.TierDisk {
		return nil
	}
	for _, span := range spans {
		if err := s.Disk.Space.Holds(x.FromOff+span.Offset, span.Bytes); err != nil {
			return s.Disk.ReadError(err)
		}
	}
	return nil
}

// bring reads spans of a checkpoint, and verifies the regions expected.
func (w *worker) bring(x *engine.Transfer, a *checkpoint.Verification, spans ...model.Span) error {
	verifies := w.s.Set.Verifies != config.VerifyOff
	a.Expect(spans, verifies, func() { w.hasRead(1) })
	for _, span := range spans {
		if err := w.s.readFrom(x, span, a); err != nil {
			return err
		}
	}
	if !verifies {
		return nil
	}
	return checkpoint.Damaged(a.Mismatch(), w.s.Tiers[x.From])
}

// readFrom reads a span from the source tier of a transfer.
func (s *Workers) readFrom(x *engine.Transfer, span model.Span, to *checkpoint.Verification) error {
	from, p := x.FromOff+span.Offset, to.Slot[span.Offset:span.Offset+span.Bytes]
	switch a := s.DeviceTier(x.From); {
	case a != nil:
		if err := a.Read(p, from); err != nil {
			return err
		}
	case s.Tiers[x.From] == status.TierHost:
		copy(p, s.Host.Bytes(from, span.Bytes))
	default:
		err := s.Disk.Space.ReadPieces(from, p, func(at, n int64) { to.Received(span.Offset+at, n) })
		if proved := s.Set.Verifies != config.VerifyOff && to.Version.Sums != nil; err == nil && !proved {
			err = s.Disk.Space.Proves(from, span.Bytes)
		}
		if err != nil {
			return s.Disk.ReadError(err)
		}
	}
	to.Received(span.Offset, span.Bytes)
	return nil
}
