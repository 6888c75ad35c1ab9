package workers

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	lineages "velocpy/gocore/device/lineage"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/path"
)

// deviceLineage is the lineage of a history on a device while a transfer has its turn there.
type deviceLineage struct {
	s        *Workers
	x        *engine.Transfer
	a        *devicememory.Memory
	method   *cache.DeviceMethod
	area     *cache.LineageArea
	begun    bool
	state    *cache.DeviceLineage // nil: not asked for yet
	number   uint32
	running  *lineages.Checkpoint // that is not finished
	finished bool                 // the lineage has the checkpoint as its latest
	// references are the numbers of the checkpoints to which it refers, once it is finished, and found what it was made, once it refers to them.
	references []uint32
	found      *checkpoint.Deduplicated
	moving     *cache.Moving // of the checkpoint, once its turn is over; nil: it is not
	held       *cache.Held   // the memory of the checkpoint; nil: it has none
	lent       *cache.Lent   // what the gathering of the first occurrences uses of it after the turn; nil: nothing
}

// DeviceLineage returns the lineage to which the device of the transfer adds its checkpoint; nil if it is not de-duplicated there.
func (p *planner) DeviceLineage() path.DeviceLineage {
	s, x := p.s, p.x
	s.Lock()
	r := reduction(s.Cache, x)
	area := s.AreaFor(r, x.From)
	if area == nil || p.together != nil {
		s.Unlock()
		return nil
	}
	l := &deviceLineage{s: s, x: x, a: s.DeviceTier(x.From), method: r.OnDevice, area: area}
	s.Unlock()
	return l
}

// Begin implements path.DeviceLineage. The worker waits, too: the kernels of one checkpoint occupy the device, or the link.
func (l *deviceLineage) Begin() {
	if !l.area.Turn.TryLock() {
		l.s.Host.Resting(l.area.Turn.Lock)
	}
	l.begun = true
}

// deduplicates tells whether the device that a checkpoint leaves may de-duplicate it. The lock is held.
func (s *Workers) deduplicates(x *engine.Transfer) bool {
	r := reduction(s.Cache, x)
	if x.Stage != engine.Encoding || x.Lower != engine.Deduplicated || x.From < 0 || s.AreaFor(r, x.From) == nil {
		return false
	}
	return s.IsFree(s.AreaFor(r, x.From), s.DeviceTier(x.From))
}

// Dedup implements path.DeviceLineage. The engine keeps the copies on the host that the checkpoint may come to need.
func (l *deviceLineage) Dedup(lane device.Lane, all []lineages.Region, result device.Address, most int64, apart bool) (*lineages.Checkpoint, error) {
	if err := l.area.Settle(l.a); err != nil {
		return nil, err
	}
	name := l.x.Rec.Hist.Name
	if !l.isWanted(name) {
		return nil, path.ErrDeduplication
	}
	var err error
	if l.state, err = l.area.Lineage(name, l.method, l.a, all); err != nil {
		return nil, l.leaveToHost(err)
	}
	w := l.state.Lineage
	if w.Changed() {
		if err := l.state.Rebase(); err != nil {
			return nil, l.leaveToHost(err)
		}
	}
	if err := l.hold(); err != nil {
		return nil, err
	}
	m, err := l.memory(all, most)
	if err != nil {
		return nil, err
	}
	m.Result, m.OverLink, m.Apart, l.number = result, true, apart, l.state.Next
	l.state.Next++
	l.running, err = w.Dedup(lane, l.number, all, m)
	return l.running, err
}

// isWanted gives back the memory of histories that are not de-duplicated any more, and tells whether this one is, as it was when the transfer was planned.
func (l *deviceLineage) isWanted(history string) bool {
	l.s.Lock()
	defer l.s.Unlock()
	l.area.EndOthers(l.s.MethodOf)
	return l.s.MethodOf(history) == l.method
}

// memory returns memory for the checkpoint.
func (l *deviceLineage) memory(all []lineages.Region, most int64) (m lineages.Memory, err error) {
	if m, l.held, err = l.state.Memory(all, most); err != nil {
		return m, l.leaveToHost(err)
	}
	return m, nil
}

// remedies are the causes for which a device does not de-duplicate a checkpoint, and what helps.
var remedies = []struct {
	cause  error
	remedy string
}{
	{cache.ErrArea, "it is de-duplicated on its way to the disk, and a larger budget of the device helps"},
	{cache.ErrOthers, "it is de-duplicated on its way to the disk, and a larger budget of the device helps, or fewer histories that it de-duplicates"},
	{cache.ErrResult, "it is de-duplicated on its way to the disk, and longer chunks help"},
	{lineages.ErrRegion, "regions with shorter and different names, or with fewer bytes together, help"},
	{lineages.ErrBusy, "an earlier checkpoint has failed there, and a store that is opened anew de-duplicates again"},
}

// leaveToHost warns, once for each cause, that the device does not de-duplicate the checkpoint, and returns the error that makes its plain bytes move.
func (l *deviceLineage) leaveToHost(why error) error {
	for _, r := range remedies {
		if errors.Is(why, r.cause) && l.area.WarnOnce(r.cause) {
			logring.Add(logring.Warning, fmt.Sprintf("history %.80q: %v, so the checkpoint goes to the host as it is; %s", l.x.Rec.Hist.Name, why, r.remedy))
		}
	}
	return errors.Join(path.ErrDeduplication, why)
}

// hold makes the copy that is written need those of the checkpoints that the lineage knows, and makes it forget those that are gone, and some where they are many.
func (l *deviceLineage) hold() error {
	l.state.TakeArrived()
	w, objects := l.state.Lineage, l.state.Objects
	l.s.Lock()
	defer l.s.Leave()
	var gone []uint32
	owned := w.Last().Owned()
	for number, o := range objects {
		if !l.has(number, o) || isMostlyDead(o, owned[number]) {
			gone = append(gone, number)
		}
	}
	for _, number := range w.Known() {
		if objects[number] == nil && !l.isMoving(number) {
			gone = append(gone, number)
		}
	}
	if err := l.forget(gone); err != nil {
		return err
	}
	if err := l.forget(l.tooMany()); err != nil {
		return err
	}
	known := slices.DeleteFunc(w.Known(), l.isMoving) // Refer waits for this one
	if !l.s.Engine.NeedParts(l.s.Now(), l.x.Obj, l.objects(known), l.x.To) {
		return path.ErrDeduplication
	}
	return nil
}

// isMoving tells whether the bytes of a checkpoint are on their way.
func (l *deviceLineage) isMoving(number uint32) bool {
	return l.state.Moving != nil && l.state.Moving.Number == number
}

// has tells whether the host still has the first occurrences of a checkpoint.
func (l *deviceLineage) has(number uint32, o *engine.Object) bool {
	d := o.Made().Version.Deduplicated
	return d != nil && d.Lineage == l.state.Lineage.Options().Seed && d.Number == number && l.s.Engine.HasParts(o, l.x.Obj, l.x.To)
}

// isMostlyDead tells whether an object without checkpoints has more bytes that the latest checkpoint does not need than such that it does, which are so many. These are stored anew, so
// that its room is free when the earlier ones have gone that need it.
func isMostlyDead(o *engine.Object, owned uint64) bool {
	return o.Gone() && 2*owned < uint64(o.Made().Version.Deduplicated.Bytes)
}

// tooMany are checkpoints that the next one is not to refer to, so that it does not refer to more than it may: those that only the record has, the earliest first, and then those with
// the fewest bytes of the latest checkpoint. Half of what may be stays, so that bytes are seldom stored anew.
func (l *deviceLineage) tooMany() []uint32 {
	w := l.state.Lineage
	known, last := w.Known(), w.Last()
	if len(known) < object.DefaultSources {
		return nil
	}
	more, owned := len(known)-object.DefaultSources/2, last.Owned()
	var all []uint32
	for _, number := range known {
		if owned[number] == 0 && len(all) < more {
			all = append(all, number)
		}
	}
	return append(all, last.Scarce(more-len(all))...)
}

func (l *deviceLineage) forget(numbers []uint32) error {
	if len(numbers) == 0 {
		return nil
	}
	for _, number := range numbers {
		delete(l.state.Objects, number)
	}
	if err := l.state.Lineage.Forget(numbers...); err != nil { // an earlier checkpoint was lost
		return l.leaveToHost(err)
	}
	return nil
}

func (l *deviceLineage) objects(numbers []uint32) []*engine.Object {
	all := make([]*engine.Object, len(numbers))
	for i, number := range numbers {
		all[i] = l.state.Objects[number]
	}
	return all
}

const (
	// bytesOfRun is the memory of a run of a map, which the host has beside its tier, and mostOfMap the part (as a divisor) of a checkpoint's bytes that a map may take.
	bytesOfRun, mostOfMap = 24, 8
)

// Finish implements path.DeviceLineage. Where the map would take too much memory, the plain bytes move.
func (l *deviceLineage) Finish(metadata []byte) (*checkpoint.Deduplicated, error) {
	d, m, err := l.running.Finish(metadata, nil)
	if err != nil {
		return nil, errors.Join(path.ErrDeduplication, err)
	}
	l.running, l.finished = nil, true
	if int64(m.Runs())*bytesOfRun > l.x.Rec.Size/mostOfMap {
		return nil, path.ErrDeduplication
	}
	l.references = d.References
	return &checkpoint.Deduplicated{Lineage: d.Seed, Number: l.number, Bytes: int64(d.Stored()), Map: m}, nil
}

// Refer implements path.DeviceLineage.
func (l *deviceLineage) Refer(found *checkpoint.Deduplicated) error {
	l.state.AwaitMoving()
	l.s.Lock()
	defer l.s.Leave()
	all := l.objects(l.references)
	if slices.Contains(all, nil) || !l.s.Engine.NeedParts(l.s.Now(), l.x.Obj, all, l.x.To) {
		return path.ErrDeduplication // the one that was on its way has not arrived, or has gone since
	}
	l.state.ForgetMaps(l.hasNoCopy)
	l.state.Mapped = append(l.state.Mapped, l.x.Obj)
	l.found = found
	return nil
}

// Lose implements path.DeviceLineage. Unless the checkpoint is finished, the lineage stays busy, so that no later one is de-duplicated with it.
func (l *deviceLineage) Lose() {
	l.running, l.held = nil, nil
	l.endLent(true)
}

// endLent ends the use of memory after the turn. lost: it may go on.
func (l *deviceLineage) endLent(lost bool) {
	if l.lent != nil {
		l.lent.End(lost)
		l.lent = nil
	}
}

// hasNoCopy tells whether the host has no copy of an object, and takes its map from its version. The lock is held.
func (l *deviceLineage) hasNoCopy(o *engine.Object) bool {
	if l.s.Engine.HasCopy(o, l.x.To) {
		return false
	}
	o.Made().Version.Deduplicated = nil
	return true
}

// HandOver implements path.DeviceLineage.
func (l *deviceLineage) HandOver(gathers bool) {
	l.moving = &cache.Moving{Number: l.number, Object: l.x.Obj, Ended: make(chan struct{})}
	l.state.Moving = l.moving
	if gathers {
		l.lent = l.held.Lend()
	} else {
		l.held.Release(true)
	}
	l.area.Turn.Unlock()
}

// Leave implements path.DeviceLineage.
func (l *deviceLineage) Leave(ok bool) {
	arrived := ok && l.found != nil && l.x.Rec.Version.Deduplicated == l.found
	if !arrived && len(l.x.Obj.Sources(l.x.To)) > 0 { // its plain bytes have moved: they need no others
		l.s.Engine.NeedNoMore(l.s.Now(), l.x.Obj, l.x.To)
	}
	l.endLent(false)
	if l.moving != nil {
		l.moving.Arrived = arrived
		close(l.moving.Ended)
		return
	}
	if !l.begun {
		return
	}
	defer l.area.Turn.Unlock()
	if l.running != nil {
		l.running.Drop()
	}
	if l.held != nil {
		l.held.Release(l.finished)
	}
	if arrived {
		l.state.Objects[l.number] = l.x.Obj
	}
}

// partsOf returns where the bytes of a transfer's checkpoint lie on the host, if a device has de-duplicated it; nil: they lie together. The lock is held.
func (s *Workers) partsOf(x *engine.Transfer) *path.Parts {
	d := x.Rec.Version.Deduplicated
	if d == nil || s.Host == nil || x.From != s.HostTier() || x.Obj.Form(x.From) != engine.Deduplicated {
		return nil
	}
	parts := &path.Parts{Of: d, Firsts: map[uint32][]byte{d.Number: s.Host.Bytes(x.FromOff, d.Bytes)}}
	end := x.FromOff + d.Bytes
	for _, o := range x.Obj.Sources(x.From) {
		of, off := o.Made().Version.Deduplicated, s.Engine.Offset(o, x.From)
		parts.Firsts[of.Number] = s.Host.Bytes(off, of.Bytes)
		end = max(end, off+of.Bytes)
	}
	if x.To >= 0 && s.DeviceTier(x.To) != nil {
		parts.Pinned = s.Host.Watermark().End() >= end
		s.lendResident(x, parts)
	}
	return parts
}

// mostResidents is how many checkpoints of a history that came to a device or left it lately may serve those that come next.
const mostResidents = 8

// noteResident remembers a checkpoint of which a device has the plain bytes, and of which it is known where else they lie. The lock is held.
func (s *Workers) noteResident(x *engine.Transfer) {
	r := reduction(s.Cache, x)
	if r == nil || x.Rec.Version.Deduplicated == nil || s.DeviceTier(min(x.From, x.To)) == nil {
		return
	}
	r.Residents = append(slices.DeleteFunc(r.Residents, func(o *engine.Record) bool { return o == x.Rec || o.Version.Gone.Load() }), x.Rec)
	if len(r.Residents) > mostResidents {
		r.Residents = slices.Delete(r.Residents, 0, 1)
	}
}

// lendResident lets a load take what it can from the checkpoint of its lineage that the device has, and that is nearest to it. The lock is held.
func (s *Workers) lendResident(x *engine.Transfer, parts *path.Parts) {
	r, of := reduction(s.Cache, x), parts.Of
	if r == nil {
		return
	}
	var nearest *engine.Record
	best := uint32(math.MaxUint32)
	for _, o := range r.Residents {
		d := o.Version.Deduplicated
		if d == nil || d.Lineage != of.Lineage || o == x.Rec || !s.Engine.Complete(o, x.To) || distance(d.Number, of.Number) >= best {
			continue
		}
		nearest, best = o, distance(d.Number, of.Number)
	}
	if nearest == nil {
		return
	}
	reading, ok := s.Engine.Keep(s.Now(), nearest, x.To)
	if !ok {
		return
	}
	v := nearest.Version
	parts.Resident = &path.Resident{Map: v.Deduplicated.Map, At: s.Engine.Offset(reading.Obj, x.To), Spans: v.Layout.Spans}
	parts.Ended = func() { s.anchors.endReading(reading) }
}
