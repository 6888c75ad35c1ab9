package store

import (
	"slices"

	"velocpy/gocore/engine"
	"velocpy/gocore/memory"
)

// Small checkpoints go down together: a disk takes a few hundred KiB in hardly more time than one block.
const (
	batchSmall = 64 << 10 // what is larger goes alone
	batchBytes = 1 << 20  // of one batch
)

// worker is one goroutine that carries out transfers.
type worker struct {
	s      *Store
	buffer *memory.Mapping // where neighbours on disk are laid side by side; nil until it is needed
}

// batch continues the transfer taken with others that can be written together with it. The lock is held.
func (s *Store) batch(first *engine.Transfer) []*engine.Transfer {
	all := []*engine.Transfer{first}
	for x, bytes := first, int64(0); small(x); all = append(all, x) {
		if bytes += onDiskBytes(x); bytes > batchBytes-batchSmall {
			break
		}
		if x = s.eng.Next(s.now(), engine.Down); x == nil {
			break
		}
	}
	return all
}

func small(x *engine.Transfer) bool { return x.Kind == engine.Flush && x.Rec.Size <= batchSmall }

// onDiskBytes is the room of a flush's checkpoint on disk.
func onDiskBytes(x *engine.Transfer) int64 {
	return (x.Rec.Size + diskGrain - 1) / diskGrain * diskGrain
}

// carry carries transfers out: the small flushes among them first, then, one at most, what is not.
func (w *worker) carry(all []*engine.Transfer) []*moved {
	results := make([]*moved, len(all))
	flushes := len(all)
	for flushes > 0 && !small(all[flushes-1]) {
		flushes--
	}
	if flushes > 1 {
		slices.SortFunc(all[:flushes], func(a, b *engine.Transfer) int { return int(a.ToOff>>12 - b.ToOff>>12) })
		for from := 0; from < flushes; {
			to := from + 1
			for to < flushes && all[to-1].ToOff+onDiskBytes(all[to-1]) == all[to].ToOff {
				to++
			}
			w.write(all[from:to], results[from:to])
			from = to
		}
	}
	for i, x := range all {
		if results[i] == nil {
			results[i] = w.s.move(x)
		}
	}
	return results
}

// write writes neighbours with one request. Should that fail, each is tried alone afterwards: an error concerns as few as possible.
func (w *worker) write(run []*engine.Transfer, results []*moved) {
	if len(run) == 1 || !w.ready() {
		return
	}
	at, s := run[0].ToOff, w.s
	end := run[len(run)-1].ToOff + onDiskBytes(run[len(run)-1])
	buffer := w.buffer.Bytes(0, end-at)
	for _, x := range run {
		copy(buffer[x.ToOff-at:], s.host.Bytes(x.FromOff, x.Rec.Size))
	}
	if s.disk.Write(at, buffer) != nil {
		return
	}
	for i := range results {
		results[i] = &moved{}
	}
}

// ready tells whether there is a buffer.
func (w *worker) ready() bool {
	if w.buffer == nil {
		w.buffer, _ = memory.Map("flush batch", batchBytes) // without one each goes alone
	}
	return w.buffer != nil
}

func (w *worker) free() {
	if w.buffer != nil {
		_ = w.buffer.Unmap() // the worker alone had it
	}
}
