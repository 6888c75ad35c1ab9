package path

import (
	"errors"
	"time"

	"velocpy/gocore/cache"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/pending"
)

// A device encodes and decodes in its own memory, so that the link has the encoded bytes alone. The containers go through staging memory at the beginning of
// the tier, group by group. Kernels and copies take turns in the lane of a worker; meanwhile the link has the copies of another worker.

// stagedGroup is the place of a group in the staging memory: of its containers, and of the device's scratch memory.
type stagedGroup struct{ containers, scratch device.Address }

// placeIn returns the place of a group. Groups take turns.
func placeIn(in *cache.Staging, a *devicememory.Memory, turn int) stagedGroup {
	containers, scratch := in.Place(turn)
	return stagedGroup{a.Address(containers), a.Address(scratch)}
}

// encodedSlot is a slot of a device on its way to the host.
type encodedSlot struct {
	p       *Path
	s       *deviceSlot
	to      []byte
	copied  *pending.Completion
	at      int64    // bytes of containers so far
	most    int64    // that there may be
	plain   int64    // bytes that they have been
	lengths []uint32 // of the containers so far
	err     error    // nothing of it is sent any more
}

// coded is a container of a slot, as it goes over the link.
type coded struct {
	device.Container
	slot *encodedSlot
	from int64 // of the plain bytes in the slot
	at   int64 // of the container in the host's memory, and its length; once they are known
	n    int64
}

// readsOf are the ranges of the tier that the encoding of a group reads: of each slot, and of its anchor.
func readsOf(group []coded) (all []model.Span) {
	for first, i := 0, 0; i < len(group); i++ {
		if i+1 < len(group) && group[i+1].slot == group[i].slot {
			continue
		}
		s, from, end := group[i].slot, group[first].from, group[i].from+group[i].Bytes
		all = append(all, model.Span{Offset: s.s.at + from, Bytes: end - from})
		if anchor := s.p.anchor; anchor != nil {
			all = append(all, model.Span{Offset: anchor.At + from, Bytes: end - from})
		}
		first = i + 1
	}
	return all
}

// deviceEncoder encodes the slots of one or several checkpoints of a device.
type deviceEncoder struct {
	a      *devicememory.Memory
	lane   device.Lane
	in     *cache.Staging
	slots  []*encodedSlot
	sent   []coded // the containers of which copies have been queued
	sealed int     // of these, containers of which the host has the bytes, and has written the header
	call   Call    // of the first group
}

// encodeOnDevice brings the containers of slots of one device to the host, by one worker's lane, and returns an error for each. Slots that are small have
// containers in one group, which costs one launch and one wait (Maurya et al., HiPC'23, section III: accumulated compression). Each keeps a form of its own.
func encodeOnDevice(paths []*Path) []error {
	first, _ := paths[0].source.(*deviceSlot)
	e := &deviceEncoder{a: first.a, lane: first.lane, in: paths[0].o.Staging}
	for _, p := range paths {
		s, _ := p.source.(*deviceSlot)
		e.slots = append(e.slots, &encodedSlot{p: p, s: s, to: p.sink.Bytes(), most: p.encoder.most()})
	}
	e.fail(e.loadKernels())
	e.begin()
	last, err := e.run(e.cut())
	e.fail(e.end(last, err))
	e.seal(len(e.sent))
	failed := make([]error, len(paths))
	for i, s := range e.slots {
		if failed[i] = s.err; s.err == nil {
			did := &s.p.result.Staged
			did.Encoding, did.Choices, did.Together = &model.Encoding{Part: e.part(), Lengths: s.lengths}, s.p.encoder.plan.Choices, len(paths)
			did.Call, e.call = e.call, Call{}
		}
	}
	return failed
}

func (e *deviceEncoder) part() int64 { return e.in.Part() }

// fail makes an error that of all slots which have none.
func (e *deviceEncoder) fail(err error) {
	for _, s := range e.slots {
		if s.err == nil {
			s.err = err
		}
	}
}

// loadKernels waits until the device has the codec's kernels, which takes long the first time. The planner is not told of that time.
func (e *deviceEncoder) loadKernels() error {
	nothing, err := e.lane.Encode(nil, 0)
	if err == nil {
		_ = nothing.Take()
	}
	if errors.Is(err, device.ErrCodec) {
		return regions.ErrLarge // the plain bytes move
	}
	return err
}

// begin waits until the device has captured the slots, and queues their checksums. Restores may have to wait for this goroutine until end is called.
func (e *deviceEncoder) begin() {
	for _, s := range e.slots {
		if s.err == nil {
			s.copied = pending.Begin(s.p.c, e.a, s.p.version)
			s.err = s.copied.AwaitCopy()
		}
	}
	for _, s := range e.slots {
		s.p.x.Begun(s.p.c.Now())
		s.p.began = time.Now()
		if s.err == nil {
			s.err = s.copied.QueueChecksums(e.lane)
		}
	}
}

// end waits for everything that is queued, up to an event.
func (e *deviceEncoder) end(last device.Event, err error) error {
	for _, s := range e.slots {
		if failed := s.copied.AwaitChecksums(); s.err == nil {
			s.err = failed
		}
	}
	return e.a.Finish(last, err)
}

// cut cuts the regions of all slots into containers, and these into groups, each of which fits the staging memory.
func (e *deviceEncoder) cut() (groups [][]coded) {
	var group []coded
	plain, room := int64(0), int64(0)
	add := func(c coded) {
		bound := model.ContainerBound(c.Bytes)
		if len(group) > 0 && (plain+c.Bytes > e.in.Group || room+bound > e.in.Room() || len(group) == e.in.MostContainers()) {
			groups, group, plain, room = append(groups, group), nil, 0, 0
		}
		group, plain, room = append(group, c), plain+c.Bytes, room+bound
	}
	for _, s := range e.slots {
		for i, span := range s.p.version.Layout.Spans {
			choice := s.p.encoder.plan.Choices[i]
			for from := span.Offset; from < span.End(); from += e.part() {
				add(coded{Container: device.Container{Bytes: min(e.part(), span.End()-from), Kind: choice.Kind, Modes: choice.Modes}, slot: s, from: from})
			}
		}
	}
	if len(group) > 0 {
		groups = append(groups, group)
	}
	return groups
}

// judged is after how many plain bytes a checkpoint is given up that does not become smaller.
const judged = 16 << 20

// queuedGroup is a group whose encoding is queued.
type queuedGroup struct {
	containers []coded
	lengths    device.Lengths
	event      device.Event
	known      time.Time // when the host knew the lengths
}

// bytes is how many plain bytes the group has.
func (q *queuedGroup) bytes() (n int64) {
	for i := range q.containers {
		n += q.containers[i].Bytes
	}
	return n
}

// giveUp waits for a group that is not sent. Without an event, or if the wait fails, kernels may still write the lengths: then their memory stays taken.
func (q *queuedGroup) giveUp(a *devicememory.Memory) {
	if q.event != nil && a.Wait(q.event) == nil && q.lengths != nil {
		q.lengths.Discard()
	}
}

// run queues all groups. The event that it returns is behind all that is queued.
func (e *deviceEncoder) run(groups [][]coded) (last device.Event, err error) {
	var before *queuedGroup
	began := time.Now()
	for i := 0; i <= len(groups); i++ {
		var next *queuedGroup
		if i < len(groups) {
			if next, err = e.encode(e.wanted(groups[i]), placeIn(e.in, e.a, i)); err != nil {
				break
			}
		}
		if before != nil {
			if last, err = e.send(before, last); err != nil {
				before = next
				break
			}
			if i == 1 { // the device had nothing of this worker's to do before
				e.call = Call{before.bytes(), before.known.Sub(began).Nanoseconds()}
			}
		}
		before = next
	}
	if err != nil && before != nil {
		before.giveUp(e.a) // the staging memory must not be used any more when the caller goes on
	}
	return last, err
}

// wanted leaves out the containers of slots that are sent no more.
func (e *deviceEncoder) wanted(group []coded) (all []coded) {
	for _, c := range group {
		if c.slot.err == nil && c.slot.p.version.Gone.Load() {
			c.slot.err = engine.ErrStopped
		}
		if c.slot.err == nil {
			all = append(all, c)
		}
	}
	return all
}

// encode queues the encoding of a group, behind the copies from its place that were queued before. It returns nil for a group of none.
func (e *deviceEncoder) encode(group []coded, place stagedGroup) (*queuedGroup, error) {
	if len(group) == 0 {
		return nil, nil
	}
	all, at := make([]device.Container, len(group)), place.containers
	for i := range group {
		c := &group[i]
		c.Plain, c.At = e.a.Address(c.slot.s.at+c.from), at
		if anchor := c.slot.p.anchor; anchor != nil {
			c.Reference = e.a.Address(anchor.At + c.from)
		}
		at += device.Address(model.ContainerBound(c.Bytes))
		all[i] = c.Container
	}
	q := &queuedGroup{containers: group}
	var err error
	q.event, err = e.a.QueueReads(e.lane, devicememory.Flushes, readsOf(group), func() (err error) {
		q.lengths, err = e.lane.Encode(all, place.scratch)
		return err
	})
	if err == nil {
		return q, nil
	}
	q.giveUp(e.a)
	return nil, err
}

// send waits for the lengths of a group and queues the copies of its containers. It drops the event of the copies before, and returns that of these.
func (e *deviceEncoder) send(q *queuedGroup, before device.Event) (device.Event, error) {
	if err := e.a.Wait(q.event); err != nil { // kernels may still write the lengths: their memory stays taken
		return before, err
	}
	q.known = time.Now()
	e.measure(q)
	sealed, err := len(e.sent), error(nil)
	for _, c := range q.containers {
		if c.slot.err != nil {
			continue
		}
		e.awaitPinned(c.slot, c.at+c.n)
		if err = e.lane.Copy(device.AddressOf(c.slot.to[c.at:]), c.At, c.n); err != nil {
			break
		}
		e.sent = append(e.sent, c)
	}
	x, err := devicememory.EventBehind(e.lane, err)
	if x == nil {
		return before, err
	}
	if before != nil { // the copies of the group before have ended while this one was encoded, or will soon
		if failed := e.a.Wait(before); failed != nil {
			return x, errors.Join(err, failed)
		}
		e.seal(sealed)
	}
	return x, err
}

// measure takes the lengths of a group, and gives up the slots that are too large.
func (e *deviceEncoder) measure(q *queuedGroup) {
	for i, n := range q.lengths.Take() {
		c := &q.containers[i]
		s := c.slot
		c.at, c.n = s.at, n
		s.lengths, s.at, s.plain = append(s.lengths, uint32(n)), s.at+n, s.plain+c.Bytes
	}
	for _, c := range q.containers {
		if s := c.slot; s.at > s.most || s.plain >= judged && s.at > s.plain/100*97 { // the rest will hardly become smaller
			s.err = regions.ErrLarge
		}
	}
}

// awaitPinned waits until the host's memory is pinned up to an offset of a slot's sink. All slots wait, so it is no time of their link.
func (e *deviceEncoder) awaitPinned(s *encodedSlot, end int64) {
	waited := s.p.awaitPinned(end)
	for _, other := range e.slots {
		other.p.x.Rested(waited)
	}
}

// seal writes the headers of the containers that the host has, up to a number.
func (e *deviceEncoder) seal(until int) {
	for ; e.sealed < until; e.sealed++ {
		c := &e.sent[e.sealed]
		end := c.at + c.n
		if _, err := codec.SealTables(c.slot.to[c.at:end:end], c.Kind, int(c.Bytes)); err != nil && c.slot.err == nil {
			c.slot.err = err
		}
	}
}
