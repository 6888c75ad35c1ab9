package store

import (
	"cmp"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
)

// Small checkpoints go down and come up together: a disk moves a few hundred KiB in hardly more time than one block.
const (
	batchSmall = 64 << 10 // what is larger goes alone
	batchBytes = 1 << 20  // of one batch
	batchAhead = 4 << 20  // … of what comes up before anybody waits for it: so 64 KiB took half the time that they took in batches of a quarter
	batchApart = 7        // when it is of more places on disk it ends: they are read one after the other, and all are there together
)

// worker is one goroutine that carries out transfers.
type worker struct {
	s      *Store
	pool   *workerPool
	lane   device.Lane     // of a crew that serves a device; nil until it is needed
	buffer *memory.Mapping // where neighbours on disk are laid side by side; nil until it is needed
	unread int             // of the transfers that it carries; as long as some are, it is one of those of its crew that read
}

// batch continues the transfer taken with others that can be carried out together with it. The lock is held.
func (s *Store) batch(c *workerPool, first *engine.Transfer) []*engine.Transfer {
	all := []*engine.Transfer{first}
	if c.device != nil {
		return all
	}
	most, apart, at := int64(batchBytes), batchApart, ranges{}
	switch {
	case first.Kind == engine.Load && first.Urgent:
		apart = 1 // others can read beside it what else is waited for
	case first.Kind == engine.Load:
		most = batchAhead
	}
	for x, bytes := first, int64(0); canJoin(x, first); all = append(all, x) {
		if first.Kind == engine.Load {
			at.add(x)
		}
		if bytes += onDiskBytes(x); bytes > most-batchSmall || len(at) > apart {
			break
		}
		if x = c.another(s.eng, s.now(), first.Urgent); x == nil {
			break
		}
	}
	return all
}

// joined is how many of the transfers taken are carried out together: all, or all but the last, which does not join them and may be large.
func joined(all []*engine.Transfer) int {
	if n := len(all); n > 1 && !canJoin(all[n-1], all[0]) {
		return n - 1
	}
	return len(all)
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

// canJoin tells whether x can be carried out together with others of the kind of first.
func canJoin(x, first *engine.Transfer) bool {
	return x.Kind == first.Kind && (x.Kind == engine.Flush || x.Kind == engine.Load) && x.Rec.Size <= batchSmall
}

// onDisk is where on disk a transfer's checkpoint lies, in whole blocks.
func onDisk(x *engine.Transfer) (from, end int64) {
	if from = x.FromOff; x.Kind == engine.Flush {
		from = x.ToOff
	}
	return from, from + onDiskBytes(x)
}

func onDiskBytes(x *engine.Transfer) int64 {
	return (x.Rec.Size + diskGrain - 1) / diskGrain * diskGrain
}

// carry carries out one transfer, or several that go together.
func (w *worker) carry(all []*engine.Transfer) []*moved {
	results := make([]*moved, len(all))
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
		results[i].err = w.s.reconsider(x, results[i].err)
	}
	return results
}

func areAdjacent(a, b *engine.Transfer) bool {
	_, end := onDisk(a)
	from, _ := onDisk(b)
	return end == from
}

// moveAdjacent moves neighbours with one request. Should that fail, each is tried alone afterwards: an error concerns as few as possible.
func (w *worker) moveAdjacent(run []*engine.Transfer, results []*moved) {
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

func (w *worker) write(at int64, buffer []byte, run []*engine.Transfer, results []*moved) {
	for _, x := range run {
		copy(buffer[x.ToOff-at:], w.s.host.Bytes(x.FromOff, x.Rec.Size))
	}
	if w.s.disk.Write(at, buffer) != nil {
		return
	}
	for i := range results {
		results[i] = &moved{}
	}
}

func (w *worker) read(at int64, buffer []byte, run []*engine.Transfer, results []*moved) {
	if w.s.disk.Read(at, buffer) != nil || w.s.disk.Proves(at, int64(len(buffer))) != nil {
		return
	}
	w.hasRead(len(run))
	for i, x := range run {
		results[i] = &moved{err: w.s.copyIn(w.s.host.Bytes(x.ToOff, x.Rec.Size), buffer[x.FromOff-at:], x.Rec.Body.(*body))}
	}
}

// copyIn copies a small checkpoint that comes from the disk into its slot, and verifies it in the same pass.
func (s *Store) copyIn(slot, from []byte, b *body) error {
	if s.set.verify == verifyOff || b.sums == nil {
		copy(slot, from)
		return nil
	}
	for i, span := range b.layout.Spans {
		to := slot[span.Offset : span.Offset+span.Bytes]
		if checksum.CopyLeaf(to, from[span.Offset:span.Offset+span.Bytes], false) != b.sums[i] {
			return damaged(i, status.TierDisk)
		}
	}
	return nil
}

// begin and end count a worker among those that read. The lock is held.
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

// hasRead lets another worker read when nothing is left to be read, while this one is still at what it has read.
func (w *worker) hasRead(transfers int) {
	w.s.mu.Lock()
	defer w.s.leave()
	if w.unread > transfers {
		w.unread -= transfers
		return
	}
	w.end()
}

// mostBatch is the most bytes that a batch of the crew has.
func (c *workerPool) mostBatch() int64 {
	if c.direction == engine.Up {
		return batchAhead
	}
	return batchBytes
}

// ready tells whether there is a buffer.
func (w *worker) ready() bool {
	if w.buffer == nil {
		w.buffer, _ = memory.Map("batch", w.pool.mostBatch()) // without one each goes alone
	}
	return w.buffer != nil
}

func (w *worker) free() {
	if w.lane != nil {
		_ = w.lane.Close() // the worker alone had it
	}
	if w.buffer != nil {
		_ = w.buffer.Unmap() // the worker alone had it
	}
}
