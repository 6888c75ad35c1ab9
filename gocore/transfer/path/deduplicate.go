package path

import (
	"errors"
	"fmt"
	"time"

	"velocpy/gocore/base/description"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/tier/host"
	"velocpy/gocore/transfer/pending"
)

// A device that de-duplicates writes what is new in a checkpoint straight to the host, and metadata behind it (Tan et al., ICPP'23, algorithm 1). So the link has these bytes
// alone, and the device needs no memory for them. The host reads the metadata, and gives its room back.

// DeviceLineage is the lineage of a device to which one transfer adds its checkpoint. No lock is held. From Begin to HandOver, or to Leave, no other transfer uses it.
type DeviceLineage interface {
	// Begin waits for the turn of the transfer. The calls that follow are made in it, up to HandOver, or to Leave.
	Begin()
	// Dedup queues the de-duplication of the checkpoint in a lane. The result gets so many bytes at the most; where that may not do, and where the device's memory does not,
	// it fails with ErrDeduplication. apart leaves the first occurrences to the caller.
	Dedup(lane device.Lane, all []lineage.Region, result device.Address, most int64, apart bool) (*lineage.Checkpoint, error)
	// Finish makes the checkpoint the lineage's latest, from its metadata. It fails with ErrDeduplication if the checkpoint cannot be that.
	Finish(metadata []byte) (*checkpoint.Deduplicated, error)
	// Refer makes the checkpoint need the copies of those to which it refers, once the one before has moved. It is called after Finish. It fails with ErrDeduplication if one of them
	// has gone.
	Refer(found *checkpoint.Deduplicated) error
	// HandOver lets the next checkpoint begin, while the first occurrences of this one are brought: by a kernel that reads the memory of the checkpoint (gathers), or by copies. It is
	// called after Refer.
	HandOver(gathers bool)
	// Lose keeps the memory of the checkpoint from being used again: kernels may still use it.
	Lose()
	// Leave ends the use, under the cache's lock, once the engine knows how the transfer has ended.
	Leave(ok bool)
}

// ErrDeduplication: a checkpoint is not de-duplicated after all, and its plain bytes move.
var ErrDeduplication = errors.New("the device does not de-duplicate this checkpoint")

// deduplicate brings what is new in a slot of a device to the host.
func (p *Path) deduplicate(s *deviceSlot) error {
	l, to := p.encoder.onDevice, p.sink.Bytes()
	if !p.isPinned(int64(len(to))) { // no kernel writes to memory that is not
		return regions.ErrLarge
	}
	if err := pending.AwaitCopied(p.c, s.a, p.version); err != nil {
		return err
	}
	l.Begin()                                    // now: the capture may be behind work of the application that waits for another checkpoint
	copied := pending.Begin(p.c, s.a, p.version) // in the turn: restores of this checkpoint wait for the completion
	if err := copied.AwaitCopy(); err != nil {
		return err
	}
	p.x.Begun(p.c.Now())
	p.began = time.Now()
	var k *lineage.Checkpoint
	err := error(engine.ErrStopped)
	var last device.Event
	if !p.version.Gone.Load() {
		last, err = s.a.QueueReads(s.lane, devicememory.Flushes, []model.Span{{Offset: s.at, Bytes: p.version.Layout.End()}}, func() (err error) {
			k, err = l.Dedup(s.lane, s.regions(), device.AddressOf(to), int64(len(to)), p.version.Layout.End() >= LeastApart)
			return err
		})
	}
	summed := copied.QueueChecksums(s.lane) // behind the kernels: on the link they wait for the copies of the checkpoint before
	if err = s.a.Finish(last, err); err != nil || summed != nil {
		summed = errors.Join(summed, copied.AwaitChecksums())
		if err != nil {
			err = p.orPlain(err)
		}
		if summed != nil && errors.Is(err, regions.ErrLarge) { // the plain bytes do not move instead: their checksums are not known
			return summed
		}
		return errors.Join(err, summed)
	}
	at, n := k.Metadata()
	found, err := p.bringFirsts(s, k, to, to[at:at+n], copied)
	if err != nil {
		return p.orPlain(err)
	}
	did := &p.result.Staged
	did.Deduplicated, did.First, did.Meta = found, found.Bytes, n
	did.Waited = s.beyondLink(found.Bytes + n)
	return nil
}

// Where half of a checkpoint of at least LeastApart bytes is new, and lies in pieces of LeastCopied bytes on average, the copy engine brings them: it takes all of the link, and nothing
// of the device. Tests lower both.
var (
	LeastApart  int64 = 16 << 20
	LeastCopied int64 = 64 << 10
)

const partForCopy = 2 // a divisor

// bringFirsts makes the checkpoint the lineage's latest, and brings its first occurrences to the host if the kernels have left them out. It ends the completion of its capture, whose
// checksums are queued.
func (p *Path) bringFirsts(s *deviceSlot, k *lineage.Checkpoint, to, metadata []byte, copied *pending.Completion) (*checkpoint.Deduplicated, error) {
	l := p.encoder.onDevice
	all, firsts := k.Bytes()
	if !k.IsApart() || firsts == 0 {
		found, err := l.Finish(metadata)
		if err = errors.Join(err, copied.AwaitChecksums()); err == nil {
			err = l.Refer(found)
		}
		return found, err
	}
	var gathered device.Event
	queue := func(work func() error) (err error) {
		gathered, err = s.a.QueueReads(s.lane, devicememory.Flushes, []model.Span{{Offset: s.at, Bytes: p.version.Layout.End()}}, work)
		return err
	}
	gather := func() error { return k.Gather(s.lane) }
	few := firsts < all/partForCopy
	var err error
	if few { // the kernel works while the host reads the metadata
		err = queue(gather)
	}
	var found *checkpoint.Deduplicated
	var failed error
	copies := false
	if err == nil {
		found, failed = l.Finish(metadata)
	}
	if err == nil && failed == nil && !few {
		pieces := firstsOf(found)
		if copies = firsts/int64(len(pieces)) >= LeastCopied; copies {
			err = queue(func() error { return s.copyFirsts(pieces, to) })
		} else {
			err = queue(gather)
		}
	}
	err = errors.Join(err, copied.AwaitChecksums())
	if err == nil && failed == nil {
		if failed = l.Refer(found); failed == nil { // what is queued is behind the bytes of the checkpoint before: the link is not idle meanwhile
			l.HandOver(!copies)
		}
	}
	if err = s.a.Finish(gathered, err); err != nil { // before what Finish and Refer said: the kernels may not have ended
		return nil, err
	}
	return found, failed
}

// firstPiece is a part of a region that lies in the first occurrences.
type firstPiece struct {
	region    int
	at, bytes int64 // in the region
	to        int64 // in the first occurrences
}

// firstsOf finds the pieces, in their order, one behind the other.
func firstsOf(d *checkpoint.Deduplicated) (all []firstPiece) {
	end := int64(0)
	for i := range d.Map.Regions {
		l := &d.Map.Regions[i]
		l.Each(0, l.Size, func(r difference.Run, n uint64) bool {
			if r.Period > 0 {
				n = min(n, uint64(r.Period))
			}
			if skip := end - int64(r.Offset); r.Checkpoint == d.Number && skip >= 0 && skip < int64(n) { // a run repeats what lies before, at its beginning or as a whole
				all = append(all, firstPiece{i, int64(r.At) + skip, int64(n) - skip, end})
				end += int64(n) - skip
			}
			return true
		})
	}
	return all
}

// copyFirsts queues the copies of pieces.
func (s *deviceSlot) copyFirsts(pieces []firstPiece, to []byte) error {
	all := make([]device.Move, len(pieces))
	for i, x := range pieces {
		from := s.at + s.p.version.Layout.Spans[x.region].Offset + x.at
		all[i] = device.Move{To: device.AddressOf(to[x.to:]), From: s.a.Address(from), Bytes: x.bytes}
	}
	return s.lane.CopyAll(all)
}

// orPlain lets the plain bytes move where de-duplication is not possible. After any other error nothing tells whether the kernels have ended.
func (p *Path) orPlain(err error) error {
	switch {
	case errors.Is(err, ErrDeduplication), errors.Is(err, device.ErrDedup):
		return fmt.Errorf("%w: %w", regions.ErrLarge, err)
	case !errors.Is(err, engine.ErrStopped):
		p.encoder.onDevice.Lose()
	}
	return err
}

// pinPatience is for how long pinning may stand still before de-duplication does not wait for it any more.
const pinPatience = time.Second

// isPinned tells whether the host tier's memory is pinned up to an offset of the sink, once it has waited for that. Meanwhile the transfer does not count as one that moves
// bytes, for which threads that prefault memory would pause.
func (p *Path) isPinned(end int64) bool {
	h := p.c.Host
	end += p.x.ToOff
	if now := h.Watermark().End(); now >= end || end > now+host.WatermarkReach || !h.IsPinning() {
		return now >= end
	}
	isPinned := func() bool { return h.Watermark().End() >= end }
	h.Resting(func() {
		for so, moved := h.Advanced(), time.Now(); !isPinned() && h.IsPinning() && time.Since(moved) < pinPatience; time.Sleep(time.Millisecond) {
			if now := h.Advanced(); now > so {
				so, moved = now, time.Now()
			}
		}
	})
	return isPinned()
}

// beyondLink is for how many ns of the transfer the link cannot have been busy with so many bytes.
func (s *deviceSlot) beyondLink(bytes int64) int64 {
	took := time.Since(s.p.began).Nanoseconds()
	return max(0, took-int64(float64(bytes)/devicememory.LinkRate(s.a.Device)*1e9))
}

// regions are those of the slot, as a lineage takes them.
func (s *deviceSlot) regions() []lineage.Region {
	l := s.p.version.Layout
	all := make([]lineage.Region, len(l.Spans))
	for i, name := range description.Names(&l.Layout) {
		all[i] = lineage.Region{Name: name, At: s.a.Address(s.at + l.Spans[i].Offset), Bytes: l.Spans[i].Bytes}
	}
	return all
}
