package cache

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"

	"velocpy/gocore/device"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/tier/devicememory"
)

// A device that de-duplicates keeps the digests of the latest checkpoint of each history, and the record of first occurrences, in a part of its tier: so that memory is part
// of the tier's budget. It lies behind the place of the staging memory.

// areaShare is the part of a tier (as a divisor of its budget) that the digests and records of all histories, and the memory of the kernels, may take.
const areaShare = 20

// LeastAreaTier is the budget of a tier below which its device leaves de-duplication to the host: there would be memory for few chunks. Tests lower it.
var LeastAreaTier int64 = 64 << 20

// recordOfArea is the part of an area's free memory that the record of a new lineage may take.
const recordOfArea = 4

// recordOfChunks is how many times as many entries a record has as the first checkpoint has chunks, at most.
const recordOfChunks = 8

// areaAlign is the unit in which memory of an area is given out.
const areaAlign = 256

// DeviceMethod says how devices de-duplicate the checkpoints of a history.
type DeviceMethod struct {
	Method difference.Method // Basic, List or Tree
	Chunk  int               // bytes, at least. Where the memory of a device is short, chunks are longer there
}

// LineageArea is that part of a device's tier.
type LineageArea struct {
	// Turn is held by a worker from before it asks for a lineage until the engine knows how the flush has ended. It is locked before the cache's lock, and guards what follows.
	Turn     sync.Mutex
	at       int64 // offset in the tier
	bytes    int64
	taken    []model.Span // by offset
	lent     []*Lent      // parts of it that work of the device uses, which may have ended
	lineages map[string]*DeviceLineage
	uses     uint64
	warned   map[error]bool // causes of which a warning was given
	settled  bool           // the work of checkpoints that lay there has ended
}

// DeviceLineage is the state of one history on one device. The turn of its area guards it.
type DeviceLineage struct {
	Lineage *lineage.Lineage
	Objects map[uint32]*engine.Object // whose copies on the host later checkpoints may need, by the numbers of their checkpoints
	Next    uint32                    // number of the next checkpoint
	Mapped  []*engine.Object          // whose versions have a map, some of which the host may have no longer
	looked  int                       // index in Mapped
	Moving  *Moving                   // the latest checkpoint, whose bytes are on their way to the host; nil: it has arrived, or not
	area    *LineageArea
	memory  *devicememory.Memory
	method  *DeviceMethod
	used    uint64 // the number of the area's use that was its last
	record  model.Span
	digests model.Span // of the latest checkpoint; no bytes: there are none
}

// Moving is the latest checkpoint of a lineage while its bytes are on their way: meanwhile the kernels of the next one may run.
type Moving struct {
	Number  uint32
	Object  *engine.Object
	Ended   chan struct{} // closed when the engine knows how its flush has ended …
	Arrived bool          // … and whether the host has the bytes
}

// TakeArrived takes over what has come of the checkpoint that was on its way, if its flush has ended.
func (l *DeviceLineage) TakeArrived() {
	if l.Moving == nil {
		return
	}
	select {
	case <-l.Moving.Ended:
		l.AwaitMoving()
	default:
	}
}

// AwaitMoving waits until nothing is on its way any more.
func (l *DeviceLineage) AwaitMoving() {
	if m := l.Moving; m != nil {
		<-m.Ended
		if l.Moving = nil; m.Arrived {
			l.Objects[m.Number] = m.Object
		}
	}
}

// lineageAreas has the areas of all devices, by their tiers. The cache's lock guards it.
type lineageAreas struct {
	*state
	stagings *stagings
	areas    map[int]*LineageArea
}

// SetLineagesAside keeps a part of every device's tier free from now on. What lies there stays until it is given up.
func (la *lineageAreas) SetLineagesAside() {
	for t, a := range la.Devices {
		if la.areas[t] != nil {
			continue
		}
		budget := min(a.Reserved(), la.Engine.Capacity(t))
		at, bytes := int64(0), budget/areaShare/areaAlign*areaAlign
		if group := la.stagings.groupOf(t, budget); group > 0 {
			at = roundUp(stagingBytes(group), areaAlign)
		}
		if bytes == 0 || budget < LeastAreaTier {
			continue
		}
		la.areas[t] = &LineageArea{at: at, bytes: bytes, lineages: map[string]*DeviceLineage{}}
		a.Keep(at + bytes)
		la.Engine.Retire(t, at, at+bytes)
	}
}

// AreaFor returns the area in which the device of a tier de-duplicates the checkpoints of a history; nil: it does not. The lock is held.
func (la *lineageAreas) AreaFor(r *Reduction, t int) *LineageArea {
	if r == nil || r.OnDevice == nil || la.Host == nil || la.DeviceTier(t) == nil {
		return nil
	}
	return la.areas[t]
}

// MethodOf returns how devices de-duplicate a history; nil: they do not. The lock is held.
func (la *lineageAreas) MethodOf(history string) *DeviceMethod {
	if r := la.Reductions[history]; r != nil {
		return r.OnDevice
	}
	return nil
}

// IsFree tells whether no checkpoint lies in the area any more, and the tier's memory reaches behind it. The lock is held.
func (la *lineageAreas) IsFree(area *LineageArea, a *devicememory.Memory) bool {
	return a.Mapped() >= area.at+area.bytes && la.Engine.Idle(a.Tier, area.at, area.at+area.bytes, func(int64, int64) {}) >= area.bytes
}

// Settle waits until the device has ended the work of checkpoints that lay in the area, which streams of the application may have queued long ago.
func (ar *LineageArea) Settle(a *devicememory.Memory) error {
	if ar.settled {
		return nil
	}
	err := a.AwaitRange(ar.at, ar.bytes)
	ar.settled = err == nil
	return err
}

// WarnOnce tells, once for each cause, that a warning is due.
func (ar *LineageArea) WarnOnce(cause error) bool {
	if ar.warned[cause] {
		return false
	}
	if ar.warned == nil {
		ar.warned = map[error]bool{}
	}
	ar.warned[cause] = true
	return true
}

// EndOthers gives back the memory of histories that are not de-duplicated any more by the methods with which they began. method tells that of a history.
func (ar *LineageArea) EndOthers(method func(history string) *DeviceMethod) {
	for name, l := range ar.lineages {
		if method(name) != l.method {
			ar.end(name)
		}
	}
}

// ForgetMaps takes the maps from some versions whose copies are gone. Each checkpoint calls it, so that no more maps are kept than a few times as many as there are copies.
func (l *DeviceLineage) ForgetMaps(gone func(o *engine.Object) bool) {
	const each = 8
	for range min(each, len(l.Mapped)) {
		l.looked = (l.looked + 1) % len(l.Mapped)
		if o := l.Mapped[l.looked]; gone(o) {
			last := len(l.Mapped) - 1
			l.Mapped[l.looked], l.Mapped[last] = l.Mapped[last], nil
			if l.Mapped = l.Mapped[:last]; last == 0 {
				return
			}
		}
	}
}

// EndIdleLineages gives back the memory of histories that are not de-duplicated any more, on the devices where no checkpoint is de-duplicated just now. The lock is held.
func (la *lineageAreas) EndIdleLineages() {
	for _, ar := range la.areas {
		if ar.Turn.TryLock() {
			ar.EndOthers(la.MethodOf)
			ar.Turn.Unlock()
		}
	}
}

// Lineage returns the state of a history, for a checkpoint with these regions: that which there is, or a new one, with longer chunks if those of the old one need too much memory. A new
// one may cost other histories theirs. It fails with ErrArea or ErrOthers where the memory does not suffice, and with an error of package lineage for regions that no lineage takes.
func (ar *LineageArea) Lineage(history string, m *DeviceMethod, a *devicememory.Memory, regions []lineage.Region) (*DeviceLineage, error) {
	chunk := m.Chunk
	ar.uses++
	ar.takeBack()
	if l := ar.lineages[history]; l != nil {
		l.used = ar.uses
		has := l.hasRoom(regions)
		for !has && (ar.awaitLent() || ar.endUnused()) {
			has = l.hasRoom(regions)
		}
		if chunk = 2 * l.Lineage.Options().Chunk; has || chunk > difference.MaxChunk {
			return l, nil
		}
		ar.end(history)
	}
	for ar.awaitLent() { // a new lineage takes what is free
	}
	for {
		l, err := ar.beginFrom(m, chunk, a, regions)
		if err == nil {
			l.used = ar.uses
			ar.lineages[history] = l
			return l, nil
		}
		if !isShort(err) {
			return nil, err
		}
		if !ar.endUnused() {
			return nil, ar.shortage(nil, m, a, regions)
		}
	}
}

// beginFrom is begin with chunks of a length, or with longer ones where that is too little. The error is that of the longest.
func (ar *LineageArea) beginFrom(m *DeviceMethod, chunk int, a *devicememory.Memory, regions []lineage.Region) (l *DeviceLineage, err error) {
	for ; chunk <= difference.MaxChunk; chunk *= 2 {
		if l, err = ar.begin(m, chunk, a, regions); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// shortage is the cause for which there is no memory for a checkpoint of a lineage, or of a new one (nil): ErrOthers if there would be enough without other histories, else ErrArea.
func (ar *LineageArea) shortage(of *DeviceLineage, m *DeviceMethod, a *devicememory.Memory, regions []lineage.Region) error {
	if others := len(ar.lineages); others == 0 || others == 1 && of != nil {
		return ErrArea
	}
	alone := &LineageArea{at: ar.at, bytes: ar.bytes}
	_, err := alone.beginFrom(m, m.Chunk, a, regions)
	if err == nil {
		err = ErrOthers
	}
	return err
}

// hasRoom tells whether there is memory for the next checkpoint, with these regions. Where that is not the question, it says so, too.
func (l *DeviceLineage) hasRoom(regions []lineage.Region) bool {
	_, held, err := l.Memory(regions, math.MaxInt64)
	if err == nil {
		held.Release(false)
	}
	return !isShort(err)
}

// unused is how many checkpoints of other histories have to be de-duplicated before a history loses its memory to a new one: histories that take turns must not lose theirs each time.
const unused = 16

// endUnused gives back the memory of the history that has not used it for the longest time; false: all have used it lately.
func (ar *LineageArea) endUnused() bool {
	name, used := "", ar.uses
	for each, l := range ar.lineages {
		if l.used < used {
			name, used = each, l.used
		}
	}
	if ar.uses-used <= unused {
		return false
	}
	ar.end(name)
	return true
}

// end gives back the memory of a history.
func (ar *LineageArea) end(history string) {
	l := ar.lineages[history]
	ar.give(l.record)
	ar.give(l.digests)
	delete(ar.lineages, history)
}

// begin begins a lineage, unless a checkpoint with these regions needs more memory than there is (ErrArea), or no lineage takes them.
func (ar *LineageArea) begin(m *DeviceMethod, chunk int, a *devicememory.Memory, regions []lineage.Region) (*DeviceLineage, error) {
	o := lineage.Options{
		Method: m.Method, Chunk: chunk, Seed: rand.Uint64(), MaxReferences: object.DefaultSources, Blocks: true,
		Entries: int(max(0, min((ar.free()/recordOfArea-device.RecordHead)/(device.RecordBytes(1)-device.RecordHead), recordOfChunks*chunksOf(regions, chunk), device.MostDedupChunks))),
	}
	l := &DeviceLineage{Objects: map[uint32]*engine.Object{}, Next: 1, area: ar, memory: a, method: m}
	var ok bool
	if l.record, ok = ar.take(max(o.RecordBytes(), areaAlign)); !ok {
		return nil, ErrArea
	}
	var err error
	if l.Lineage, err = lineage.New(o, a.Address(l.record.Offset)); err == nil {
		err = l.requireRoom(regions)
	}
	if err != nil {
		ar.give(l.record)
		return nil, err
	}
	return l, nil
}

// requireRoom fails with ErrArea unless there is memory for a checkpoint with these regions, and for the next one, whose regions may be a little larger: it has the digests of both then.
func (l *DeviceLineage) requireRoom(regions []lineage.Region) error {
	need, err := l.Lineage.Need(l.Next, regions)
	if err != nil {
		return err
	}
	for _, bytes := range []int64{need.Digests / 8 * 9, need.Digests / 8 * 9, need.Scratch / 8 * 9} {
		s, ok := l.area.take(bytes)
		if !ok {
			return ErrArea
		}
		defer l.area.give(s)
	}
	return nil
}

// Causes for which a device does not de-duplicate a checkpoint.
var (
	// ErrArea: the checkpoint needs more memory than the area has.
	ErrArea = errors.New("the digests of a checkpoint's chunks, and the memory of the kernels, need more than the twentieth of the device's tier that they may take")
	// ErrOthers: the area has enough for the checkpoint, and other histories have taken too much of that.
	ErrOthers = errors.New("the digests of other histories leave too little of the twentieth of the device's tier that those of all histories may take")
	// ErrResult: the room of the checkpoint on the host is too little for what the kernels may write.
	ErrResult = errors.New("the room of the checkpoint on the host is less than de-duplication may write")
)

// isShort tells whether an error says that there is too little memory in the area.
func isShort(err error) bool { return errors.Is(err, ErrArea) || errors.Is(err, ErrOthers) }

// Held is the memory of a checkpoint that is being de-duplicated.
type Held struct {
	of               *DeviceLineage
	scratch, digests model.Span
}

// Memory returns memory for the next checkpoint, with these regions; the result is the caller's, and may have so many bytes at the most. Either method of Held ends its use.
func (l *DeviceLineage) Memory(regions []lineage.Region, most int64) (m lineage.Memory, h *Held, err error) {
	need, err := l.Lineage.Need(l.Next, regions)
	if err == nil && need.Result > most {
		err = ErrResult
	}
	if err != nil {
		return m, nil, err
	}
	ar, ok := l.area, false
	h = &Held{of: l}
	if h.scratch, ok = ar.takeLast(need.Scratch); !ok {
		return m, nil, ar.shortage(l, l.method, l.memory, regions)
	}
	if need.Digests > 0 {
		if h.digests, ok = ar.take(need.Digests); !ok {
			ar.give(h.scratch)
			return m, nil, ar.shortage(l, l.method, l.memory, regions)
		}
		m.Digests = l.memory.Address(h.digests.Offset)
	}
	m.Scratch = l.memory.Address(h.scratch.Offset)
	return m, h, nil
}

// Release gives the memory back. kept: the checkpoint is the lineage's latest, so its digests take the place of those before.
func (h *Held) Release(kept bool) {
	h.of.area.give(h.scratch)
	h.settle(kept)
}

// Lend is Release of a kept checkpoint while the device still reads the scratch memory.
func (h *Held) Lend() *Lent {
	h.settle(true)
	return h.of.area.lend(h.scratch)
}

func (h *Held) settle(kept bool) {
	l := h.of
	if kept && h.digests.Bytes > 0 {
		h.digests, l.digests = l.digests, h.digests
	}
	l.area.give(h.digests)
}

// Rebase makes the next checkpoint one that refers to no other.
func (l *DeviceLineage) Rebase() error {
	l.area.give(l.digests)
	l.digests, l.Moving = model.Span{}, nil
	clear(l.Objects)
	return l.Lineage.Rebase()
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

func chunksOf(regions []lineage.Region, chunk int) (n int64) {
	for i := range regions {
		n += roundUp(regions[i].Bytes, int64(chunk)) / int64(chunk)
	}
	return max(n, 1)
}
