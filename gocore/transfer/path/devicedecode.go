package path

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/slots"
)

// decodeToDevice brings what the host has encoded to a slot of a device. The device decodes, or, if it cannot, the host does so beside the cache.
func (p *Path) decodeToDevice(s *deviceSlot) error {
	if p.o.Parts != nil {
		if done, err := s.gatherOnDevice(); done {
			return err
		}
		p.result.Staged.Crossed = p.version.Layout.End()
	}
	if from, e := p.source.Bytes(), p.version.Encoding; p.o.Parts == nil && from != nil && p.o.Staging != nil && e != nil && !e.Sections && p.anchor.fits(e) {
		err := s.decodeOnDevice(e, from)
		if !errors.Is(err, device.ErrCodec) && !errors.Is(err, device.ErrContainer) { // the host tells what is wrong with a container
			return err
		}
	}
	m, err := slots.Beside(p.version.Layout, p.version.Layout.Slot)
	if err != nil {
		return err
	}
	bytes := m.Bytes(0, m.Size())
	if err = (&decoder{Path: p}).decode(bytes); err == nil {
		err = s.Write(0, bytes)
	}
	return errors.Join(err, m.Unmap())
}

// decodeOnDevice brings encoded bytes of the host to the slot. Restores may use it as soon as all of this is queued: see Write. It fails with device.ErrCodec,
// before it has changed anything that matters, if the device cannot decode.
func (s *deviceSlot) decodeOnDevice(encoding *model.Encoding, from []byte) error {
	p := s.p
	d := &deviceDecoder{s: s, from: from, kinds: kindsOf(p.version.Layout)}
	if p.anchor != nil && !p.anchor.Device {
		d.anchor = p.anchor.containers(p.version.Layout.Spans, encoding.Containers(p.version.Layout.Spans))
	}
	last, err := d.run(encoding)
	if err != nil {
		if last == nil || s.a.Wait(last) == nil {
			d.discard()
		}
		return err
	}
	if err = s.verify(last); err != nil && status.CodeOf(err) != status.Corrupt {
		return err // the kernels may not have ended
	}
	if bad := d.faults(); bad >= 0 {
		s.bad = []int32{int32(bad)}
		return checkpoint.Damaged(bad, p.c.Tiers[p.x.From])
	}
	return err
}

// deviceDecoder decodes containers on their way to a slot.
type deviceDecoder struct {
	s      *deviceSlot
	from   []byte
	kinds  []codec.Kind      // by region
	anchor []model.Container // those of the anchor, whose plain bytes come to the slot first; nil: there is none, or they are on the device
	turn   int               // groups that were queued
	queued []decodedGroup
}

type decodedGroup struct {
	faults  device.Faults
	regions []int
}

// decodedContainers are containers with the plain bytes of the same part of a slot: those of the checkpoint, and those of its anchor, if it has one.
type decodedContainers struct {
	own, anchor       []model.Container
	plain, room, more int64 // bytes: plain ones, of own, and of anchor
}

func (g *decodedContainers) add(own model.Container, anchor []model.Container) {
	g.own, g.plain, g.room = append(g.own, own), g.plain+own.Plain.Bytes, g.room+own.At.Bytes
	for _, c := range anchor {
		g.anchor, g.more = append(g.anchor, c), g.more+c.At.Bytes
	}
}

// fits tells whether the group fits the staging memory.
func (g *decodedContainers) fits(in *cache.Staging) bool {
	return g.plain <= in.Group && max(g.room, g.more) <= in.Room() && len(g.own) <= in.MostContainers()
}

// run queues all containers, group by group, in the places in turns. The event that it returns is behind all that is queued.
func (d *deviceDecoder) run(encoding *model.Encoding) (last device.Event, err error) {
	var group decodedContainers
	for i, c := range encoding.Containers(d.s.p.version.Layout.Spans) {
		var alone decodedContainers
		var anchor []model.Container
		if d.anchor != nil {
			anchor = d.anchor[i : i+1]
		}
		if alone.add(c, anchor); !alone.fits(d.s.p.o.Staging) {
			return last, fmt.Errorf("a container is too large for the staging memory: %w", device.ErrCodec)
		}
		next := group
		if next.add(c, anchor); !next.fits(d.s.p.o.Staging) {
			if last, err = d.decode(&group, last); err != nil {
				return last, err
			}
			next = alone
		}
		group = next
	}
	return d.decode(&group, last)
}

// decode queues the decoding of a group, and of the anchor before it. It drops the event of what was queued before, and returns that of this.
func (d *deviceDecoder) decode(g *decodedContainers, last device.Event) (device.Event, error) {
	if len(g.own) == 0 {
		return last, nil
	}
	if g.anchor != nil {
		var err error
		if last, err = d.queueAnchor(g.anchor, last); err != nil {
			return last, err
		}
	}
	return d.queue(g.own, d.from, true, last)
}

// reference is where the plain bytes of the anchor are for a container of the checkpoint: on the device, or in the place of the container's own; 0: there is no anchor.
// The device's memory need not know of the reads: the engine keeps the anchor's copy, and lends it to no writer, until the path has waited for the kernels.
func (d *deviceDecoder) reference(c *device.Container, at int64) device.Address {
	switch anchor := d.s.p.anchor; {
	case anchor == nil:
		return 0
	case anchor.Device:
		return d.s.a.Address(anchor.At + at)
	}
	return c.Plain
}

// queueAnchor brings the plain bytes of the anchor to the place of those of a group.
func (d *deviceDecoder) queueAnchor(group []model.Container, last device.Event) (device.Event, error) {
	s, anchor := d.s, d.s.p.anchor
	if anchor.Encoding != nil {
		return d.queue(group, anchor.Bytes, false, last)
	}
	begin, end := group[0].Plain.Offset, group[len(group)-1].Plain.End()
	x, err := s.a.QueueWrite(s.lane, devicememory.Loads, s.at+begin, end-begin, func() error {
		return s.lane.Copy(s.a.Address(s.at+begin), device.AddressOf(anchor.Bytes[begin:]), end-begin)
	})
	return behind(x, last), err
}

// behind drops the event before another; without that it stays the last.
func behind(x, last device.Event) device.Event {
	if x == nil {
		return last
	}
	if last != nil {
		last.Drop()
	}
	return x
}

// queue queues the copies and the decoding of containers: those of the checkpoint, or those of its anchor.
func (d *deviceDecoder) queue(group []model.Container, from []byte, own bool, last device.Event) (device.Event, error) {
	s, place := d.s, placeIn(d.s.p.o.Staging, d.s.a, d.turn)
	d.turn++
	all, at := make([]device.Container, len(group)), place.containers
	q := decodedGroup{}
	for i, c := range group {
		all[i] = device.Container{Plain: s.a.Address(s.at + c.Plain.Offset), Bytes: c.Plain.Bytes, Kind: d.kinds[c.Region], At: at, Length: c.At.Bytes}
		if own {
			all[i].Reference = d.reference(&all[i], c.Plain.Offset)
		}
		at += device.Address(c.At.Bytes)
		q.regions = append(q.regions, c.Region)
	}
	begin, end := group[0].Plain.Offset, group[len(group)-1].Plain.End()
	x, err := s.a.QueueWrite(s.lane, devicememory.Loads, s.at+begin, end-begin, func() (err error) {
		first, behind := group[0].At.Offset, group[len(group)-1].At.End()
		if err := s.lane.Copy(place.containers, device.AddressOf(from[first:]), behind-first); err != nil {
			return err
		}
		q.faults, err = s.lane.Decode(all, place.scratch)
		return err
	})
	if q.faults != nil && x != nil { // without an event nothing tells when the kernels have written them: their memory stays taken
		d.queued = append(d.queued, q)
	}
	return behind(x, last), err
}

// faults returns the first region of which a container is damaged, or -1. All that was queued has ended.
func (d *deviceDecoder) faults() int {
	bad := -1
	for _, q := range d.queued {
		for _, i := range q.faults.Take() {
			if r := q.regions[i]; bad < 0 || r < bad {
				bad = r
			}
		}
	}
	d.queued = nil
	return bad
}

func (d *deviceDecoder) discard() {
	for _, q := range d.queued {
		q.faults.Discard()
	}
	d.queued = nil
}

// verify lets restores use a load that is queued up to an event, which it drops, and verifies it on the device.
func (s *deviceSlot) verify(last device.Event) error {
	c, b := s.p.c, s.p.version
	if c.Set.Verifies == config.VerifyOff || b.Sums == nil {
		s.queued()
		return s.orIdle(s.a.Finish(last, nil))
	}
	sums, m, err := s.a.QueueChecksums(s.lane, devicememory.Loads, s.at, &b.Layout.Layout)
	if err != nil {
		return s.a.Finish(last, err)
	}
	if last != nil {
		last.Drop() // the checksums follow it in the same lane
	}
	if c.Set.Verifies != config.VerifyAlways { // with VerifyAlways every restore verifies for itself, and waits
		s.queued()
	}
	there, err := s.a.AwaitChecksums(sums, m)
	if err != nil {
		return s.orIdle(err)
	}
	if s.bad = checkpoint.Differing(there, b.Sums); len(s.bad) > 0 {
		return checkpoint.Damaged(int(s.bad[0]), c.Tiers[s.p.x.From])
	}
	return nil
}
