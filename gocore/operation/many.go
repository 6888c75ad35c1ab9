package operation

import (
	"sync"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/transfer/slots"
)

// Small checkpoints of one call are captured in groups. Their bytes are gathered beside the cache first, without the lock: the caller's memory may be slow, and
// may fault. Then one section of the lock captures all of a group, one after the other, exactly as that many calls would.
const (
	groupBytes = 64 << 10 // bounds a group, and how long it holds the lock
	groupMost  = 64       // … in checkpoints
	smallSlot  = 16 << 10 // larger slots are captured alone
)

// group is a number of small checkpoints whose bytes have been gathered.
type group struct {
	bytes  [groupBytes]byte
	fill   int64
	staged []staged
	sums   []uint64
	took   int64 // ns that the gathering of all took
}

// moment is one time, by both clocks: ns on that of the store, and ns since 1970 (UTC). Reading the clocks for each step of each checkpoint of a group would cost
// a sixth of the time.
type moment struct{ ns, wall int64 }

// now returns the time on the store's clock.
func (op *capture) now() int64 {
	if op.time.ns != 0 {
		return op.time.ns
	}
	return op.s.Now()
}

// wall returns the time of day.
func (op *capture) wall() int64 {
	if op.time.wall != 0 {
		return op.time.wall
	}
	return op.s.Clock().UnixNano()
}

// staged is one checkpoint of a group.
type staged struct {
	from int64 // offset of its slot in the group's bytes
	sums int   // where its checksums begin
}

var groups = sync.Pool{New: func() any { return new(group) }}

// CheckpointMany captures checkpoints in their order, each as Checkpoint does, until one of them needs its caller, or a slice of time is over. It returns how
// many were captured, and their outcomes in outs. If the next one has begun, it also returns its operation, with the code of Checkpoint. An error is that of
// the next one; those before it stand.
func CheckpointMany(s *cache.Cache, h History, all []CheckpointArgs, outs []Outcome) (done int, op *Op, code status.Code, err error) {
	g := groups.Get().(*group)
	defer groups.Put(g)
	for until := time.Now().Add(slice); done < len(all) && (done == 0 || time.Now().Before(until)); {
		var n int
		if g.gather(s, all[done:]); len(g.staged) > 0 {
			n, op, code, err = g.capture(s, h, all[done:], outs[done:])
		} else if op, code, err = Checkpoint(s, h, &all[done], &outs[done]); err == nil && code == status.OK {
			n, op = 1, nil
		}
		if done += n; err != nil || op != nil {
			return done, op, code, err
		}
	}
	return done, nil, status.OK, nil
}

// gather copies the bytes of the first checkpoints to the group, as long as they are small and fit.
func (g *group) gather(s *cache.Cache, all []CheckpointArgs) {
	g.fill, g.staged, g.sums = 0, g.staged[:0], g.sums[:0]
	began := s.Now()
	defer func() { g.took = s.Now() - began }()
	for i := range all[:min(len(all), groupMost)] {
		a := &all[i]
		if !a.isSmall() || g.fill+a.Slot > groupBytes {
			return
		}
		job := slots.GatherJob(s, g.bytes[g.fill:g.fill+a.Slot], a.Regions)
		job.Run(0)
		g.staged = append(g.staged, staged{from: g.fill, sums: len(g.sums)})
		g.sums = append(g.sums, job.Sums()...)
		job.Free()
		g.fill += (a.Slot + checkpoint.CacheLine - 1) / checkpoint.CacheLine * checkpoint.CacheLine
	}
}

// isSmall tells whether a checkpoint can be captured with a group: from host memory, and of regions that can be. Checkpoint refuses the others.
func (a *CheckpointArgs) isSmall() bool {
	if a.SourceStays || a.Slot < 0 || a.Slot > smallSlot || checkMemory(a.Regions) != nil {
		return false
	}
	end := int64(0)
	for i := range a.Regions {
		r := &a.Regions[i]
		if r.Place != 0 || r.Offset < end || r.Bytes > a.Slot || r.Offset > a.Slot-r.Bytes {
			return false
		}
		end = r.Offset + r.Bytes
	}
	return true
}

// capture captures the checkpoints of the group, with one section of the lock.
func (g *group) capture(s *cache.Cache, h History, all []CheckpointArgs, outs []Outcome) (done int, op *Op, code status.Code, err error) {
	if err := s.EnterToWrite(); err != nil {
		return 0, nil, status.CodeOf(err), err
	}
	defer s.Leave()
	now := moment{s.Now(), s.Clock().UnixNano()}
	for done = range g.staged {
		c := newCapture(s, all[done].FD)
		c.time = now
		if code, err = g.captureOne(c, h, &all[done], done, &outs[done]); err != nil {
			return done, nil, code, err
		}
		if code != status.OK {
			//mutation:time-of-a-group-kept
			c.time = moment{}
			return done, &c.Op, code, nil
		}
	}
	return len(g.staged), nil, status.OK, nil
}

// captureOne captures a checkpoint of the group. If it has to wait, it reads its source again once there is room. The lock is held.
func (g *group) captureOne(op *capture, h History, a *CheckpointArgs, number int, out *Outcome) (status.Code, error) {
	returned := false
	defer op.disownUnless(&returned)
	if err := op.begin(h.Engine(), a); err != nil {
		returned = true
		return status.CodeOf(err), err
	}
	code, err := op.pollCapture(out)
	if code == status.Again {
		g.put(op, number)
		code, err = op.endWithBytes(out)
	}
	returned = true
	return code, err
}

// put copies a checkpoint of the group to its slot. The lock is held.
func (g *group) put(op *capture, number int) {
	one := g.staged[number]
	b := op.capture.Rec.Version
	for _, span := range b.Layout.Spans {
		copy(op.slot[span.Offset:span.End()], g.bytes[one.from+span.Offset:])
	}
	if op.s.Set.Checksum {
		b.Keep(g.sums[one.sums : one.sums+len(b.Layout.Spans)])
	}
	op.copied += g.took / int64(len(g.staged))
}
