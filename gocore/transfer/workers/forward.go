package workers

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// forwarder plans one transfer of encoded bytes to the disk.
type forwarder struct {
	s      *Workers
	x      *engine.Transfer
	source *model.Source   // held for the object that is written; nil: it needs none
	anchor *engine.Reading // of the copy on the host, which is kept; nil: it is not needed
}

// forwarder returns what plans a transfer; nil if it moves no encoded bytes to a tier that keeps them in another form.
func (w *worker) forwarder(x *engine.Transfer) path.Forwarder {
	if x.Stage != engine.Encoding || x.Upper == engine.Raw {
		return nil
	}
	return &forwarder{s: w.s, x: x}
}

// Forward implements path.Forwarder. While another worker brings the anchor to the disk, this one waits.
func (f *forwarder) Forward() (path.Forward, error) {
	s, x := f.s, f.x
	s.Lock()
	defer s.Leave()
	if !cache.IsWrapped(x) {
		return path.Forward{}, nil
	}
	wrapped := s.WrappedOf(x.Rec.Hist.Name)
	to := path.Forward{Wrapped: true, Lineage: wrapped.ID, Part: s.PartOf(x.Rec.Top()), Most: x.Obj.WasEnlarged(x.To)}
	if of := x.Obj.Related(x.From); of != nil {
		for {
			if f.source = s.HoldAnchor(wrapped, of); f.source != nil || !s.anchors.awaits(wrapped, of, x) {
				break
			}
			f.wait()
		}
		if to.Reference = f.source; f.source == nil {
			if s.Engine.CanFlushFirst(of, x) {
				return to, path.ErrAnchor
			}
			kept, ok := s.Engine.KeepCopy(s.Now(), of, x.From)
			if !ok { // cannot happen: the copy that is read keeps it, or the disk has both
				return to, status.New(status.Internal, "a checkpoint has lost the one with which it was encoded")
			}
			to.Lost, f.anchor = s.anchors.onHost(of, x.From), &kept
		}
	}
	to.Number = wrapped.Next()
	return to, nil
}

// wait waits until a flush has written an anchor, or has ended. The link is not to blame for that time. The lock is held.
func (f *forwarder) wait() {
	began := f.s.Now()
	f.s.anchors.flushed.Wait()
	f.x.Rested(f.s.Now() - began)
}

// Leave implements path.Forwarder.
func (f *forwarder) Leave(x *model.Difference) {
	s := f.s
	s.Lock()
	defer s.Leave()
	switch {
	case x != nil:
		s.WroteWrapped(s.WrappedOf(f.x.Rec.Hist.Name), f.x.Obj, f.x.ToOff, x)
	case f.source != nil:
		s.Disk.LetGo([]model.Source{*f.source})
	}
	if f.anchor != nil {
		s.Engine.EndReading(s.Now(), *f.anchor)
	}
	s.anchors.flushed.Broadcast()
}

// goesDeeper notes that checkpoints of a device have gone on to the disk: from now on the time there counts, too. The lock is held.
func (s *Workers) goesDeeper(r *cache.Reduction, x *engine.Transfer) {
	if r != nil && !r.Deeper {
		r.Deeper = true
		r.Planner.GoesDeeper(1e9 / s.Engine.FlushRate(x.From))
	}
}

// takeForwarded takes over what a transfer of encoded bytes did, before the engine is told of its end. The lock is held.
func (s *Workers) takeForwarded(x *engine.Transfer, did *path.Staged) {
	v := x.Rec.Version
	if x.Stage == engine.Encoding {
		s.goesDeeper(reduction(s.Cache, x), x)
	}
	if x.Wrote(min(did.Written(), x.Writes())); x.Stage == engine.Decoding {
		if v.Difference != nil { // otherwise it is the same
			v.Encoding = did.Encoding
		}
		return
	}
	if x.Spent(did.Waited); did.Difference == nil {
		return
	}
	v.Difference = did.Difference
	if did.Rewritten {
		x.Rewrote()
	}
	if did.Difference.Refers {
		x.Loosen()
	}
}
