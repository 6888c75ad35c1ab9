package operation

import (
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// deviceSource is what a restore has whose bytes lie on a device.
type deviceSource struct {
	*restore

	lent []uint64 // debug mode: checksums of the bytes, for the lease
}

// pollOnDevice continues a restore whose bytes lie on a device. It gives a lease without reading the bytes: they were captured there, or a load
// brought them and the device verifies it, before or afterwards. In debug mode, and with VerifyAlways, the bytes are read first. The lock is held.
func (ds *deviceSource) pollOnDevice(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	if err := ds.wrong(); err != nil {
		return ds.failRestore(ds.s.Explain(err, ds.reads.Rec))
	}
	ds.at, ds.placed = ds.s.Engine.Fragment(ds.reads.Rec, ds.reads.Tier).Offset, true
	if ds.lends && !ds.readsBeforeLending() {
		if err := ds.lendOn(a); err != nil {
			return ds.failRestore(ds.s.Explain(devicememory.Explain(err), ds.reads.Rec))
		}
		return ds.giveFromDevice(out)
	}
	return status.Again, nil
}

// readsBeforeLending tells whether bytes on a device are read before they are handed over: to verify them, or, in debug mode, to compare them when
// the lease ends.
func (ds *deviceSource) readsBeforeLending() bool {
	return ds.s.Set.Verifies == config.VerifyAlways || ds.s.Set.Debug && ds.lends
}

// lendOn makes the caller's streams wait for the work that writes the slot. If the caller may write into the lease, the streams also wait for the
// work that reads the slot.
func (ds *deviceSource) lendOn(a *devicememory.Memory) error {
	streams := ds.streams
	if len(streams) == 0 {
		streams = []uint64{0}
	}
	return a.Lend(streams, ds.at, ds.reads.Rec.Size, ds.reads.Last)
}

// stepDeviceRestore restores bytes that lie on a device. Copies within the device are queued in the order of the caller's streams; other copies go
// through host memory.
func (ds *deviceSource) stepDeviceRestore(out *Outcome) (status.Code, error) {
	a := ds.s.DeviceOf(ds.reads.Rec)
	if ds.readsBeforeLending() && !ds.check {
		if code, err := ds.verifySlot(out, a); code != status.Again {
			return code, err
		}
	}
	if ds.lends {
		return ds.endWithSlot(out, ds.lendOn(a))
	}
	if ds.device == a && allOnDevice(ds.regions) && ds.partial.extracted(a) {
		return ds.endWithSlot(out, ds.scatter(a))
	}
	return ds.stageToHost(out, a)
}

// verifySlot computes the checksums of a slot, waits for them and verifies them. In debug mode it keeps them for the lease.
func (ds *deviceSource) verifySlot(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	s, rec := ds.s, ds.reads.Rec
	b := rec.Version
	if err := pending.Complete(s, a, b); err != nil {
		return ds.endOnDevice(out, err)
	}
	if b.Sums == nil && !s.Set.Debug {
		ds.check = true
		return status.Again, nil
	}
	var sums []uint64
	err := a.InOwnLane(func(lane device.Lane) (err error) {
		sums, err = a.Checksums(lane, ds.at, &b.Layout.Layout)
		return err
	})
	if err != nil {
		return ds.endOnDevice(out, err)
	}
	if b.Sums != nil && s.Set.Verifies != config.VerifyOff {
		if bad := checkpoint.Differing(sums, b.Sums); len(bad) > 0 {
			return ds.endOnDevice(out, s.Mismatch(rec, int(bad[0]), ds.reads.Tier))
		}
	}
	ds.check, ds.lent = true, sums
	return status.Again, nil
}

// allOnDevice tells whether all destinations lie on the device.
func allOnDevice(regions []model.Region) bool {
	for i := range regions {
		if regions[i].Place == 0 && regions[i].Bytes > 0 {
			return false
		}
	}
	return true
}

// scatter queues the copy into the destinations behind the caller's work.
func (ds *deviceSource) scatter(a *devicememory.Memory) error {
	lane, err := a.Join(ds.streams)
	if err != nil {
		return err
	}
	began := ds.s.Now()
	spans := ds.reads.Rec.Version.Layout.Spans
	m, err := a.QueueRead(lane, devicememory.Restores, ds.at, ds.reads.Rec.Size, func() error {
		if ds.partial.parts != nil {
			return ds.partial.extract(a, lane)
		}
		return lane.Scatter(devicememory.Pieces(a.Address(ds.at), spans, ds.want, ds.regions))
	})
	ds.copied += ds.s.Now() - began
	if m != nil {
		defer m.Drop()
	}
	if err != nil {
		return err
	}
	return a.Rejoin(ds.streams, m)
}

// endWithSlot is endOnDevice for bytes that were lent or copied from their slot. It fails if a verification has found them wrong meanwhile.
func (ds *deviceSource) endWithSlot(out *Outcome, err error) (status.Code, error) {
	ds.s.Lock()
	defer ds.s.Leave()
	if err == nil {
		err = ds.wrong()
	}
	if err != nil {
		return ds.failRestore(ds.s.Explain(devicememory.Explain(err), ds.reads.Rec))
	}
	return ds.giveFromDevice(out)
}

// giveFromDevice hands over bytes whose copy to the device, or whose verification there, may not have ended. The lock is held.
func (ds *deviceSource) giveFromDevice(out *Outcome) (status.Code, error) {
	if r := ds.reads; !ds.check && ds.s.Engine.Loading(r.Rec, r.Tier) {
		ds.s.Findings.Lend(r.Rec, ds.want)
	}
	return ds.endRestore(out)
}

// stageToHost copies the bytes to a private mapping in host memory. The restore continues from there.
func (ds *deviceSource) stageToHost(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	if ds.partial.parts != nil {
		if code, err := ds.partial.stageParts(out, a); code != status.Again {
			return code, err
		}
		return ds.staged()
	}
	l := ds.reads.Rec.Version.Layout
	if ds.private == nil {
		m, err := memory.Map("private restore", max(l.Slot, 1))
		if err != nil {
			return ds.endOnDevice(out, status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(l.Slot)))
		}
		ds.private = m
	}
	bytes := ds.private.Bytes(0, ds.private.Size())
	if ds.async == nil {
		at, spans := ds.at, slots.Selected(l.Spans, ds.want)
		ds.startAsync(a, nil, func(gate *borrow.Source) error { return slots.Bring(ds.s, a, gate, bytes, at, spans) })
	}
	done, err := ds.async.ended()
	switch {
	case !done:
		return status.Pending, nil
	case err != nil:
		return ds.endOnDevice(out, err)
	}
	ds.async = nil
	if err := pending.Complete(ds.s, a, ds.reads.Rec.Version); err != nil {
		return ds.endOnDevice(out, err)
	}
	return ds.staged()
}

// staged continues with the bytes in the private mapping.
func (ds *deviceSource) staged() (status.Code, error) {
	ds.placed, ds.slot = false, ds.private.Bytes(0, ds.private.Size())
	ds.check = ds.reads.Rec.Version.Sums != nil && ds.s.Set.Verifies != config.VerifyOff
	return status.Again, nil
}

// wrong returns the error of a load that a restore has waited for; nil when its bytes may be handed over.
func (ds *deviceSource) wrong() error {
	s, r := ds.s, ds.reads
	if s.Engine.Complete(r.Rec, r.Tier) {
		return nil
	}
	if why := s.Findings.Suspect(r.Rec); why != nil {
		return s.Explain(why, r.Rec)
	}
	return s.Mismatch(r.Rec, status.RegionNone, r.Tier) // the copy went because the store was closed meanwhile
}
