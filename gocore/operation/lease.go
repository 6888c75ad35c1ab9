package operation

import (
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/slots"
)

// Lease is a checkpoint's bytes lent to the caller. It may be released in any goroutine, once, also after the store was closed.
type Lease struct {
	s *cache.Cache
	// untaken is the restore of a lease for the last time until Take; otherwise nil. The store's lock guards it.
	untaken  *engine.Restore
	Reads    *engine.Restore      // nil: the bytes are private
	device   *devicememory.Memory // where Base lies; nil for host memory
	offset   int64                // … in the device's tier
	private  *memory.Mapping
	Layout   *checkpoint.Layout
	meta     string
	sums     []uint64 // debug mode: checksums that the bytes must still have at the release
	Base     unsafe.Pointer
	Writable bool
	Last     bool // Take consumes the checkpoint
}

// Meta returns the annotation of the checkpoint.
func (l *Lease) Meta() string { return l.meta }

// Release returns the bytes. streams are all that read a lease on a device. In debug mode Release waits for them and returns an error if the holder
// wrote into shared bytes. While one of the streams is being captured into a graph, it does not wait; the error is logged later.
func (l *Lease) Release(streams ...uint64) error {
	var err error
	if l.device == nil {
		err = l.verify()
	} else {
		recording, failed := l.device.NoteReads(streams, l.offset, l.Layout.Slot)
		if len(recording) > 0 {
			l.releaseWhenRecorded(streams, recording)
			return failed
		}
		if err = failed; err == nil {
			err = l.verifyOnDevice(streams)
		}
	}
	l.giveBack(err != nil)
	if l.private != nil {
		_ = l.private.Unmap() // no other goroutine uses the mapping
	}
	return err
}

func (l *Lease) giveBack(damaged bool) {
	s, r := l.s, l.Reads
	s.Lock()
	defer s.Leave()
	if l.untaken != nil {
		s.Engine.Return(s.Now(), l.untaken)
		l.untaken = nil
	}
	if r != nil {
		if damaged {
			s.Engine.MarkUnverified(r.Rec, r.Tier) // the next lease of it must verify, and fail
		}
		s.Engine.EndRestore(s.Now(), r)
	}
	s.Layouts.Give(l.Layout)
	s.Users--
}

// noteChecksums computes, in debug mode, the checksums of a lease in host memory whose capture took none. The lock is not held. l may be nil.
func (l *Lease) noteChecksums() {
	if l == nil || !l.s.Set.Debug || l.sums != nil || l.Reads == nil || l.device != nil || l.Writable {
		return
	}
	slot := l.slot()
	for _, span := range l.Layout.Spans {
		l.sums = append(l.sums, checksum.Sum(slot[span.Offset:span.Offset+span.Bytes]))
	}
}

// slot returns the memory of a lease in host memory.
func (l *Lease) slot() []byte { return unsafe.Slice((*byte)(l.Base), l.Layout.Slot) }

// verify compares, in debug mode, the bytes of a lease in host memory with those that were lent.
func (l *Lease) verify() error {
	if l.sums == nil {
		return nil
	}
	b := checkpoint.Version{Layout: l.Layout, Sums: l.sums}
	if bad := b.Mismatch(l.slot(), l.Layout.All()); bad >= 0 {
		return l.written(bad, status.TierHost)
	}
	return nil
}

// written is the error of a lease whose holder wrote into it.
func (l *Lease) written(region, tier int) *status.Error {
	rec := l.Reads.Rec
	return status.New(status.Corrupt, "history %q, checkpoint %s: a caller wrote into a lease that others may share, and the checkpoint is damaged in this tier",
		rec.Hist.Name, rec.Key).AtTier(tier).AtRegion(region)
}

// Take tells the store that the caller uses the bytes. A checkpoint that was lent for the last time is consumed then; a lease that is released before
// returns it. Take has no effect on other leases, nor in a closed store.
func (l *Lease) Take() error {
	s := l.s
	if err := s.Enter(); err != nil {
		if status.CodeOf(err) == status.Closed {
			return nil
		}
		return err
	}
	defer s.Leave()
	if l.untaken != nil {
		s.Engine.Consume(s.Now(), l.untaken)
		l.untaken = nil
	}
	return nil
}

// give tells the engine that the caller was given a lease. The lock is held.
func (op *restore) give(l *Lease) {
	s := op.s
	s.Line.Took = op.copied
	s.Engine.Lend(s.Now(), op.reads)
	s.Line.Took = 0
	if op.reads.Last {
		l.untaken, l.Last = op.reads, true
	}
}

// lend turns a restore that is Ready into a lease. The lock is held.
func (op *restore) lend() *Lease {
	s, r := op.s, op.reads
	b := r.Rec.Version
	l := &Lease{s: s, Layout: b.Layout, meta: b.Meta, Writable: r.Last}
	b.Layout.Share()
	s.Users++
	if op.private != nil {
		l.private, op.private = op.private, nil
		l.Base = l.private.Base()
		op.give(l)
		s.Engine.EndRestore(s.Now(), r)
		return l
	}
	l.Reads = r
	l.Writable = r.Last && s.Engine.Exclusive(r)
	if l.device = s.DeviceTier(r.Tier); l.device != nil {
		l.offset = op.at
		l.Base = devicememory.Pointer(l.device.Address(op.at))
		if !l.Writable {
			l.sums = op.source.lent
		}
		op.give(l)
		return l
	}
	l.Base = unsafe.Pointer(unsafe.SliceData(slots.Slot(s, r.Rec, r.Tier)))
	if s.Set.Debug && !l.Writable {
		l.sums = b.Sums
	}
	op.give(l)
	return l
}
