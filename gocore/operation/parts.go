package operation

import (
	"unsafe"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/copier"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// A restore of parts of regions verifies first and copies then, because the ranges that are verified, leaves, are not those that are copied. Parts for a
// device are packed into memory beside the cache, from where they go on like whole regions.

// partial is what a restore of parts of regions has beside that of whole ones.
type partial struct {
	*restore

	parts   []model.Part        // parallel to want; nil: whole regions
	reading *checkpoint.Reading // what is verified, once it is known
	packed  *memory.Mapping     // parts on their way to a device
	packs   []model.Span        // where they lie there
}

// checkParts checks that each part lies in its region, and has the bytes of its destination.
func checkParts(l *checkpoint.Layout, want []int32, a *RestoreArgs) error {
	if len(a.Parts) != len(want) {
		return status.New(status.Invalid, "%d parts for %d regions", len(a.Parts), len(want))
	}
	for j, i := range want {
		n, err := a.Parts[j].Check(l.Spans[i].Bytes)
		switch {
		case err != nil:
			return status.Wrap(status.Invalid, err, "no part of a region of %s", quantity.Exact(l.Spans[i].Bytes)).AtRegion(int(i))
		case n != a.Into[j].Bytes:
			return status.New(status.Invalid, "destination of %s for a part of %s", quantity.Exact(a.Into[j].Bytes), quantity.Exact(n)).AtRegion(int(i))
		}
	}
	return nil
}

// selected returns the regions and the parts that the restore wants.
func (p *partial) selected() checkpoint.Selection {
	return checkpoint.Selection{Regions: p.want, Parts: p.parts}
}

// prepareParts creates the job that verifies what is read for parts, or, after it, the one that copies them.
func (p *partial) prepareParts() error {
	if !p.check {
		return p.prepareExtraction()
	}
	if p.reading == nil {
		p.reading = p.reads.Rec.Version.Reading(p.selected(), true)
	}
	pieces := make([]copier.Piece, len(p.reading.Checks))
	for j := range pieces {
		span := p.reading.Checks[j].Span
		pieces[j] = copier.Piece{Slot: unsafe.Pointer(unsafe.SliceData(p.slot[span.Offset:])), Bytes: span.Bytes}
	}
	p.job = copier.NewJob(copier.Verify, pieces, copier.Options{Pool: p.s.Copiers})
	return nil
}

// prepareExtraction creates the job that copies the parts: to their destinations, or, if some of these lie on a device, to packed memory.
func (p *partial) prepareExtraction() error {
	spans := p.reads.Rec.Version.Layout.Spans
	pieces := make([]copier.Piece, len(p.want))
	for j, i := range p.want {
		pieces[j] = copier.Piece{
			Slot: unsafe.Pointer(unsafe.SliceData(p.slot[spans[i].Offset:])), Bytes: p.regions[j].Bytes, Mem: p.regions[j].Mem, Part: &p.parts[j],
		}
	}
	if p.target.sendsToDevice() {
		if err := p.pack(); err != nil {
			return err
		}
		for j := range pieces {
			pieces[j].Mem = model.Strided{Base: unsafe.Add(p.packed.Base(), p.packs[j].Offset)}
		}
	}
	p.job = copier.NewJob(copier.Scatter, pieces, copier.Options{Pool: p.s.Copiers})
	return nil
}

// pack maps memory for the parts, one after the other.
func (p *partial) pack() (err error) {
	end := int64(0)
	p.packs = make([]model.Span, len(p.regions))
	for j := range p.regions {
		p.packs[j] = model.Span{Offset: end, Bytes: p.regions[j].Bytes}
		end += (p.regions[j].Bytes + checkpoint.CacheLine - 1) / checkpoint.CacheLine * checkpoint.CacheLine
	}
	if p.packed, err = memory.Map("private restore", max(end, 1)); err != nil {
		return status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(end))
	}
	return nil
}

// usePacked makes the packed parts the bytes that go to the device. Memory that a fetch has filled stays until the operation ends: the lock is held.
func (p *partial) usePacked() {
	p.private, p.packed = p.packed, p.private
	p.slot = p.private.Bytes(0, p.private.Size())
}

// endParts continues after a job of parts: it compares what was verified, or hands over. The lock is held.
func (p *partial) endParts(out *Outcome) (status.Code, error) {
	if p.check {
		sums := p.job.Sums()
		for j := range p.reading.Checks {
			c := &p.reading.Checks[j]
			//mutation:part-in-memory-unverified
			if sums[j] != c.Sum {
				return p.damaged(int(c.Region))
			}
		}
		p.reading.NoteLeaves(p.job.Leaves)
		p.check = false
		return status.Again, nil
	}
	if p.target.sendsToDevice() {
		p.usePacked()
		p.target.sent = true
		return status.Again, nil
	}
	return p.endRestore(out)
}

// extracted tells whether a device can copy all parts from its slot to their destinations by itself. The destination of a strided part must be contiguous and
// begin at a cache line, as a slot does.
func (p *partial) extracted(a *devicememory.Memory) bool {
	for j := range p.parts {
		r, i := &p.regions[j], p.want[j]
		from := int64(a.Address(p.at)) + p.reads.Rec.Version.Layout.Spans[i].Offset + p.parts[j].Offset
		switch {
		case r.Bytes == 0:
		case len(p.parts[j].Shape) > 0:
			if !r.Mem.Contiguous() || uintptr(r.Mem.Base)%checkpoint.CacheLine != 0 {
				return false
			}
		case !r.Mem.Contiguous() && from%checkpoint.CacheLine != 0:
			return false
		}
	}
	return true
}

// extract queues the copies of parts from a slot on a device to their destinations there.
func (p *partial) extract(a *devicememory.Memory, lane device.Lane) error {
	var gathered, scattered []device.Piece
	for j, i := range p.want {
		r, part := &p.regions[j], &p.parts[j]
		from := a.Address(p.at) + device.Address(p.reads.Rec.Version.Layout.Spans[i].Offset+part.Offset)
		switch {
		case r.Bytes == 0:
		case len(part.Shape) > 0:
			in := model.Strided{Base: devicememory.Pointer(from), Shape: part.Shape, Strides: part.Strides, Item: part.Item}
			gathered = append(gathered, device.Piece{Slot: device.Address(r.Mem.Base), Bytes: r.Bytes, Mem: in})
		case r.Mem.Contiguous():
			if err := lane.Copy(device.Address(r.Mem.Base), from, r.Bytes); err != nil {
				return err
			}
		default:
			scattered = append(scattered, device.Piece{Slot: from, Bytes: r.Bytes, Mem: r.Mem})
		}
	}
	if len(gathered) > 0 {
		if _, err := lane.Gather(gathered, false); err != nil {
			return err
		}
	}
	if len(scattered) > 0 {
		return lane.Scatter(scattered)
	}
	return nil
}

// stageParts copies what is read of a slot on a device to memory beside the cache. The checksums of the capture come first, since they tell what is read. It
// returns Again when all of it is there.
func (p *partial) stageParts(out *Outcome, a *devicememory.Memory) (status.Code, error) {
	if p.async == nil {
		if behind := p.captureEvent(); behind != nil {
			p.startAsync(a, behind, func(*borrow.Source) error { return nil })
		}
	}
	if p.async != nil {
		switch done, err := p.async.ended(); {
		case !done:
			return status.Pending, nil
		case err != nil:
			return p.endOnDevice(out, err)
		}
		p.async = nil
	}
	if p.reading != nil {
		return status.Again, nil
	}
	b := p.reads.Rec.Version
	if err := pending.Complete(p.s, a, b); err != nil {
		return p.endOnDevice(out, err)
	}
	r := b.Reading(p.selected(), p.s.Set.Verifies != config.VerifyOff)
	beside, err := slots.Beside(b.Layout, r.Bytes())
	if err != nil {
		return p.endOnDevice(out, err)
	}
	p.private, p.reading = beside, r
	at, to := p.at, p.private.Bytes(0, p.private.Size())
	p.startAsync(a, nil, func(gate *borrow.Source) error { return slots.Bring(p.s, a, gate, to, at, r.Spans) })
	return status.Pending, nil
}

// captureEvent returns the event behind which the device has copied the bytes of a capture, kept for the caller; nil if it has.
func (p *partial) captureEvent() device.Event {
	p.s.Lock()
	defer p.s.Unlock()
	if c := pending.Of(p.reads.Rec.Version); c != nil && c.Event != nil {
		return c.Event.Keep()
	}
	return nil
}
