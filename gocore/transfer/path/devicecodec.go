package path

import (
	"errors"
	"fmt"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/pending"
	"velocpy/gocore/transfer/slots"
)

// A device encodes and decodes in its own memory, so that the link has the encoded bytes alone. The containers go through staging memory at the beginning of
// the tier, group by group. Kernels and copies of one checkpoint take turns in the lane of its worker; meanwhile the link has the copies of another worker.

// devicePart is the plain bytes of a container that a device makes. A launch for fewer would not occupy the device.
const devicePart = 4 << 20

// stagedGroup is the place of a group in the staging memory: of its containers, and of the device's scratch memory.
type stagedGroup struct{ containers, scratch device.Address }

// place returns the place of a group. Groups take turns.
func (s *deviceSlot) place(turn int) stagedGroup {
	containers, scratch := s.p.o.Staging.Place(turn)
	return stagedGroup{s.a.Address(containers), s.a.Address(scratch)}
}

// coded is a container of a checkpoint, as it goes over the link.
type coded struct {
	device.Container
	from int64 // of the plain bytes in the slot
}

// cutContainers cuts the regions into containers of some plain bytes, and these into groups, each of which fits the staging memory.
func (p *Path) cutContainers(choices []regions.Choice, part int64) (groups [][]coded) {
	var group []coded
	plain, room := int64(0), int64(0)
	in := p.o.Staging
	for i, span := range p.version.Layout.Spans {
		for from := span.Offset; from < span.End(); from += part {
			c := coded{device.Container{Bytes: min(part, span.End()-from), Kind: choices[i].Kind, Modes: choices[i].Modes}, from}
			bound := model.ContainerBound(c.Bytes)
			if len(group) > 0 && (plain+c.Bytes > in.Group || room+bound > in.Room() || len(group) == in.MostContainers()) {
				groups, group, plain, room = append(groups, group), nil, 0, 0
			}
			group, plain, room = append(group, c), plain+c.Bytes, room+bound
		}
	}
	if len(group) > 0 {
		groups = append(groups, group)
	}
	return groups
}

// judged is after how many plain bytes a checkpoint is given up that does not become smaller.
const judged = 16 << 20

// deviceEncoder encodes a slot on its way to the host.
type deviceEncoder struct {
	p       *Path
	s       *deviceSlot
	to      []byte
	at      int64    // bytes of containers so far
	most    int64    // that there may be
	plain   int64    // bytes that they have been
	lengths []uint32 // of the containers so far
	sealed  int      // containers of which the host has the bytes, and has written the header
	starts  []int64  // where each of them begins
	all     []coded  // the containers whose encoding has been queued
}

// encodeOnDevice brings the containers of the slot to the host.
func (p *Path) encodeOnDevice(s *deviceSlot) error {
	x, b := p.x, p.version
	e := &deviceEncoder{p: p, s: s, to: p.sink.Bytes(), most: p.most()}
	part := min(devicePart, p.o.Staging.Group)
	if err := p.loadKernels(s); err != nil {
		return err
	}
	t := pending.Begin(p.c, s.a, b)
	if err := t.AwaitCopy(); err != nil {
		return err
	}
	x.Begun(p.c.Now())
	p.began = time.Now()
	if err := t.QueueChecksums(s.lane); err != nil {
		return err
	}
	last, err := e.run(p.cutContainers(p.plan.Choices, part))
	if err = s.a.Finish(last, errors.Join(err, t.AwaitChecksums())); err != nil {
		return err
	}
	if err := e.seal(len(e.all)); err != nil {
		return err
	}
	p.result.Staged.Encoding = &model.Encoding{Part: part, Lengths: e.lengths}
	p.result.Staged.Choices = p.plan.Choices
	return nil
}

// loadKernels waits until the device has the codec's kernels, which takes long the first time. The planner is not told of that time.
func (p *Path) loadKernels(s *deviceSlot) error {
	nothing, err := s.lane.Encode(nil, 0)
	if err == nil {
		_ = nothing.Take()
	}
	if errors.Is(err, device.ErrCodec) {
		return regions.ErrLarge // the plain bytes move
	}
	return err
}

// queuedGroup is a group whose encoding is queued.
type queuedGroup struct {
	containers []coded
	lengths    device.Lengths
	event      device.Event
}

// giveUp waits for a group that is not sent. Without an event, or if the wait fails, kernels may still write the lengths: then their memory stays taken.
func (q *queuedGroup) giveUp(s *deviceSlot) {
	if q.event != nil && s.a.Wait(q.event) == nil && q.lengths != nil {
		q.lengths.Discard()
	}
}

// run queues all groups. The event that it returns is behind all that is queued.
func (e *deviceEncoder) run(groups [][]coded) (last device.Event, err error) {
	var before *queuedGroup
	for i := 0; i <= len(groups); i++ {
		var next *queuedGroup
		if i < len(groups) {
			if next, err = e.encode(groups[i], e.s.place(i)); err != nil {
				break
			}
		}
		if before != nil {
			if last, err = e.send(before, last); err != nil {
				before = next
				break
			}
		}
		before = next
	}
	if err != nil && before != nil {
		before.giveUp(e.s) // the staging memory must not be used any more when the caller goes on
	}
	return last, err
}

// encode queues the encoding of a group, behind the copies from its place that were queued before.
func (e *deviceEncoder) encode(group []coded, place stagedGroup) (*queuedGroup, error) {
	if e.p.version.Gone.Load() {
		return nil, engine.ErrStopped
	}
	all := make([]device.Container, len(group))
	at := place.containers
	for i := range group {
		c := &group[i]
		c.Plain, c.At = e.s.a.Address(e.s.at+c.from), at
		at += device.Address(model.ContainerBound(c.Bytes))
		all[i] = c.Container
	}
	first, last := &group[0], &group[len(group)-1]
	q := &queuedGroup{containers: group}
	var err error
	q.event, err = e.s.a.QueueRead(e.s.lane, devicememory.Flushes, e.s.at+first.from, last.from+last.Bytes-first.from, func() (err error) {
		q.lengths, err = e.s.lane.Encode(all, place.scratch)
		return err
	})
	if err == nil {
		return q, nil
	}
	q.giveUp(e.s)
	return nil, err
}

// send waits for the lengths of a group and queues the copies of its containers. It drops the event of the copies before, and returns that of these.
func (e *deviceEncoder) send(q *queuedGroup, before device.Event) (device.Event, error) {
	if err := e.s.a.Wait(q.event); err != nil { // kernels may still write the lengths: their memory stays taken
		return before, err
	}
	sealed := len(e.all)
	first := e.at
	lengths := q.lengths.Take()
	for _, n := range lengths {
		e.lengths, e.starts, e.at = append(e.lengths, uint32(n)), append(e.starts, e.at), e.at+n
	}
	e.all = append(e.all, q.containers...)
	for i := range q.containers {
		e.plain += q.containers[i].Bytes
	}
	if e.at > e.most || e.plain >= judged && e.at > e.plain/100*97 { // the rest will hardly become smaller
		return before, regions.ErrLarge
	}
	e.p.x.Rested(e.p.awaitPinned(e.at))
	var err error
	at := first
	for i, n := range lengths {
		if err == nil {
			err = e.s.lane.Copy(device.AddressOf(e.to[at:]), q.containers[i].At, n)
		}
		at += n
	}
	x, err := devicememory.EventBehind(e.s.lane, err)
	if x == nil {
		return before, err
	}
	if before != nil { // the copies of the group before have ended while this one was encoded, or will soon
		if failed := e.s.a.Wait(before); failed != nil {
			return x, errors.Join(err, failed)
		}
		err = errors.Join(err, e.seal(sealed))
	}
	return x, err
}

// seal writes the headers of the containers that the host has, up to a number.
func (e *deviceEncoder) seal(until int) error {
	for ; e.sealed < until; e.sealed++ {
		c, at, n := &e.all[e.sealed], e.starts[e.sealed], int64(e.lengths[e.sealed])
		if _, err := codec.SealTables(e.to[at:at+n:at+n], c.Kind, int(c.Bytes)); err != nil {
			return err
		}
	}
	return nil
}

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
		if x, err = d.decode(group, d.s.place(turn)); x != nil {
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
