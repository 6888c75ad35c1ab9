package workers

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/cache"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/transfer/path"
)

// Small checkpoints are flushed and loaded in batches: a disk moves a few hundred KiB in hardly more time than one block, and a device encodes several in hardly
// more time than one.
const (
	batchBytes = 1 << 20 // of one batch of flushes
	batchAhead = 4 << 20 // of one batch of loads ahead of any restore; with a quarter of it, loads of 64 KiB took twice as long
	BatchApart = 7       // a batch ends when it covers more disk ranges than this: they are read one after the other, and complete together
)

// worker is one goroutine that carries out transfers.
type worker struct {
	s      *Workers
	pool   *workerPool
	lane   device.Lane     // for a pool that serves a device; created on first use
	buffer *memory.Mapping // bounce buffer for checkpoints that are adjacent on disk; mapped on first use
	room   regions.Room    // for encoders and decoders
	// staging is memory of the device for the same, where the pool serves one; nil: the worker has none yet.
	staging *cache.Staging
	use     use // of the link, by the transfers that it carries out
	unread  int // transfers in hand that are not read yet; while above zero, the worker counts in its pool's reading
}

// batch continues a transfer with others that can be carried out together with it, and tells how many of them can: all, or all but the last, which may for example
// be a large one. The lock is held.
func (s *Workers) batch(c *workerPool, first *engine.Transfer) (all []*engine.Transfer, together int) {
	if c.device != nil {
		return s.accumulate(c, first)
	}
	most, apart, at := int64(batchBytes), BatchApart, ranges{}
	switch {
	case first.Kind == engine.Load && first.Urgent:
		apart = 1 // other workers can read the other awaited ranges at the same time
	case first.Kind == engine.Load:
		most = batchAhead
	}
	bytes := int64(0)
	return s.joined(c, first, canJoin, func(x *engine.Transfer) bool {
		if first.Kind == engine.Load {
			at.add(x)
		}
		bytes += onDiskBytes(x)
		return bytes > most-cache.MostTogether || len(at) > apart
	})
}

// joined takes transfers until one cannot join the first, or enough says of one that joins that no more are to.
func (s *Workers) joined(c *workerPool, first *engine.Transfer, joins func(x, first *engine.Transfer) bool, enough func(x *engine.Transfer) bool) (
	all []*engine.Transfer, together int,
) {
	for x := first; x != nil; x = s.following(c, first.Urgent) {
		all = append(all, x)
		if !joins(x, first) {
			break
		}
		if together++; enough(x) {
			break
		}
	}
	return all, max(together, 1)
}

// following returns another transfer whose source is filled; nil when there is none.
func (s *Workers) following(c *workerPool, urgent bool) *engine.Transfer {
	x := c.another(s.Engine, s.Now(), urgent)
	for x != nil && s.setAside(c, x) {
		x = c.another(s.Engine, s.Now(), urgent)
	}
	return x
}

// ranges are the parts of the disk that a batch reads, one after the other.
type ranges []model.Span

func (r *ranges) add(x *engine.Transfer) {
	from, end := onDisk(x)
	for i := range *r {
		switch q := &(*r)[i]; {
		case end == q.Offset:
			q.Offset, q.Bytes = from, q.Bytes+end-from
			return
		case from == q.Offset+q.Bytes:
			q.Bytes += end - from
			return
		}
	}
	*r = append(*r, model.Span{Offset: from, Bytes: end - from})
}

// canJoin tells whether x can be carried out together with other transfers of the kind of first.
func canJoin(x, first *engine.Transfer) bool {
	return x.Kind == first.Kind && (x.Kind == engine.Flush || x.Kind == engine.Load) && x.Rec.Size <= cache.MostTogether && x.Stage == engine.Verbatim
}

// onDisk returns the range of a transfer's checkpoint on disk, in whole blocks.
func onDisk(x *engine.Transfer) (from, end int64) {
	if from = x.FromOff; x.Kind == engine.Flush {
		from = x.ToOff
	}
	return from, from + onDiskBytes(x)
}

func onDiskBytes(x *engine.Transfer) int64 {
	return (x.Rec.Size + disk.Grain - 1) / disk.Grain * disk.Grain
}

// carry carries out one transfer, or several as a batch.
func (w *worker) carry(all []*engine.Transfer) []*path.Result {
	if len(all) > 1 && w.pool.device != nil {
		return w.moveTogether(all)
	}
	results := make([]*path.Result, len(all))
	if len(all) > 1 {
		slices.SortFunc(all, func(a, b *engine.Transfer) int {
			from, _ := onDisk(a)
			other, _ := onDisk(b)
			return cmp.Compare(from, other)
		})
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && areAdjacent(all[to-1], all[to]) {
			to++
		}
		w.moveAdjacent(all[from:to], results[from:to])
		from = to
	}
	for i, x := range all {
		if results[i] == nil {
			results[i] = w.move(x)
		}
		if w.s.Disk != nil {
			results[i].Err = w.s.Disk.Reconsider(x, results[i].Err)
		}
	}
	return results
}

func areAdjacent(a, b *engine.Transfer) bool {
	_, end := onDisk(a)
	from, _ := onDisk(b)
	return end == from
}

// moveAdjacent moves transfers that are adjacent on disk with one request. If it fails, carry tries each of them alone, so that an error affects as
// few as possible.
func (w *worker) moveAdjacent(run []*engine.Transfer, results []*path.Result) {
	if len(run) == 1 || !w.ready() {
		return
	}
	at, _ := onDisk(run[0])
	_, end := onDisk(run[len(run)-1])
	buffer := w.buffer.Bytes(0, end-at)
	if run[0].Kind == engine.Flush {
		w.write(at, buffer, run, results)
	} else {
		w.read(at, buffer, run, results)
	}
}

func (w *worker) write(at int64, buffer []byte, run []*engine.Transfer, results []*path.Result) {
	together := make([]*path.Result, 0, len(run))
	for _, x := range run {
		moved := path.Move(w.s.Cache, x, wanted(x), path.Options{To: buffer[x.ToOff-at:]})
		if moved.Err != nil {
			return
		}
		together = append(together, moved)
	}
	if w.s.Disk.Space.Write(at, buffer) == nil {
		copy(results, together)
	}
}

func (w *worker) read(at int64, buffer []byte, run []*engine.Transfer, results []*path.Result) {
	if w.s.Disk.Space.Read(at, buffer) != nil || w.s.Disk.Space.Proves(at, int64(len(buffer))) != nil {
		return
	}
	w.hasRead(len(run))
	for i, x := range run {
		results[i] = path.Move(w.s.Cache, x, wanted(x), path.Options{From: buffer[x.FromOff-at:]})
	}
}

// begin and end count a worker among those of its pool that read. The lock is held.
func (w *worker) begin(transfers int) {
	w.unread = transfers
	w.pool.reading++
}

func (w *worker) end() {
	if w.unread > 0 {
		w.unread = 0
		w.pool.reading--
	}
}

// hasRead notes that so many transfers have been read. When the worker has nothing left to read, another may read while this one still verifies and
// copies.
func (w *worker) hasRead(transfers int) {
	w.s.Lock()
	defer w.s.Leave()
	if w.unread > transfers {
		w.unread -= transfers
		return
	}
	w.end()
}

// mostBatch returns the most bytes of one batch of the pool.
func (c *workerPool) mostBatch() int64 {
	if c.direction == engine.Up {
		return batchAhead
	}
	return batchBytes
}

// ready tells whether the worker has a buffer, and maps it on first use.
func (w *worker) ready() bool {
	if w.buffer == nil {
		w.buffer, _ = memory.Map("batch", w.pool.mostBatch()) // without a buffer each transfer is carried out alone
	}
	return w.buffer != nil
}

func (w *worker) free() {
	if w.lane != nil {
		_ = w.lane.Close() // no other goroutine uses the lane
	}
	if w.buffer != nil {
		_ = w.buffer.Unmap() // no other goroutine uses the buffer
	}
	w.room.Free()
}
