package path

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/status"
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
	if from, e := p.source.Bytes(), p.version.Encoding; from != nil && p.o.Staging != nil && e != nil && !e.Sections {
		err := s.decodeOnDevice(e, from)
		if !errors.Is(err, device.ErrCodec) && !errors.Is(err, device.ErrContainer) { // the host tells what is wrong with a container
			return err
		}
	}
	m, err := slots.Beside(p.version.Layout, false)
	if err != nil {
		return err
	}
	bytes := m.Bytes(0, m.Size())
	if err = p.decode(bytes); err == nil {
		err = s.Write(0, bytes)
	}
	return errors.Join(err, m.Unmap())
}

// decodeOnDevice brings encoded bytes of the host to the slot. Restores may use it as soon as all of this is queued: see Write. It fails with device.ErrCodec,
// before it has changed anything that matters, if the device cannot decode.
func (s *deviceSlot) decodeOnDevice(encoding *model.Encoding, from []byte) error {
	p := s.p
	d := &deviceDecoder{s: s, from: from, kinds: p.kinds()}
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
	kinds  []codec.Kind // by region
	queued []decodedGroup
}

type decodedGroup struct {
	faults  device.Faults
	regions []int
}

// run queues all containers, group by group, in the places in turns. The event that it returns is behind all that is queued.
func (d *deviceDecoder) run(encoding *model.Encoding) (last device.Event, err error) {
	var group []model.Container
	plain, room, turn, in := int64(0), int64(0), 0, d.s.p.o.Staging
	flush := func() bool {
		if len(group) == 0 {
			return true
		}
		var x device.Event
		if x, err = d.decode(group, placeIn(in, d.s.a, turn)); x != nil {
			if last != nil {
				last.Drop()
			}
			last = x
		}
		group, plain, room, turn = nil, 0, 0, turn+1
		return err == nil
	}
	encoding.Each(d.s.p.version.Layout.Spans, func(c model.Container) bool {
		if c.Plain.Bytes > in.Group || c.At.Bytes > in.Room() {
			err = fmt.Errorf("a container is too large for the staging memory: %w", device.ErrCodec)
			return false
		}
		if plain+c.Plain.Bytes > in.Group || room+c.At.Bytes > in.Room() || len(group) == in.MostContainers() {
			if !flush() {
				return false
			}
		}
		group, plain, room = append(group, c), plain+c.Plain.Bytes, room+c.At.Bytes
		return true
	})
	if err == nil {
		flush()
	}
	return last, err
}

// decode queues the copies and the decoding of a group.
func (d *deviceDecoder) decode(group []model.Container, place stagedGroup) (device.Event, error) {
	s := d.s
	all, at := make([]device.Container, len(group)), place.containers
	q := decodedGroup{}
	for i, c := range group {
		all[i] = device.Container{Plain: s.a.Address(s.at + c.Plain.Offset), Bytes: c.Plain.Bytes, Kind: d.kinds[c.Region], At: at, Length: c.At.Bytes}
		at += device.Address(c.At.Bytes)
		q.regions = append(q.regions, c.Region)
	}
	first, last := group[0].Plain.Offset, group[len(group)-1].Plain.End()
	x, err := s.a.QueueWrite(s.lane, devicememory.Loads, s.at+first, last-first, func() (err error) {
		from, end := group[0].At.Offset, group[len(group)-1].At.End()
		if err := s.lane.Copy(place.containers, device.AddressOf(d.from[from:]), end-from); err != nil {
			return err
		}
		q.faults, err = s.lane.Decode(all, place.scratch)
		return err
	})
	if q.faults != nil && x != nil { // without an event nothing tells when the kernels have written them: their memory stays taken
		d.queued = append(d.queued, q)
	}
	return x, err
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
