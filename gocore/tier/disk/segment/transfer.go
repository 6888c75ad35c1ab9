package segment

import (
	"fmt"
	"sync"
	"unsafe"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
)

type direction int

const (
	read direction = iota
	write
)

func (d direction) String() string { return [...]string{"read", "write"}[d] }

// readPieceBytes bounds the pieces of a Read from a disk. Larger ones are hardly faster, and smaller ones let the caller process a piece while others are still read.
const readPieceBytes = 2 << 20

// piece is a part of a transfer within one segment.
type piece struct {
	segment *segment
	off     int64 // in the segment's file
	ahead   int64 // end of the transfer in that file
	at      int64 // in the transfer
	p       []byte
}

// transfer is a Read or Write cut into pieces. The caller and any free worker take pieces until none is left; a worker that comes too late finds none.
type transfer struct {
	space  *Space
	dir    direction
	pieces []piece
	stream *stream           // reads ranges in place of pieces; nil: it is no stream
	ended  func(at, n int64) // called for each finished piece; nil: not called
	wanted func() bool       // false cancels the transfer; nil: it cannot be cancelled
	next   atomic.Int64
	busy   sync.WaitGroup // one count per unfinished piece
	mu     sync.Mutex
	err    error
	failed atomic.Bool
}

func (s *Space) transfer(t *transfer, off int64, p []byte) error {
	t.space = s
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.within(t.dir, off, int64(len(p))); err != nil || len(p) == 0 {
		return err
	}
	first := s.cut(t.dir, off, p)
	if len(first.p) == len(p) {
		return t.run(first)
	}
	for at := int64(0); at < int64(len(p)); {
		next := s.cut(t.dir, off+at, p[at:])
		next.at = at
		t.pieces = append(t.pieces, next)
		at += int64(len(next.p))
	}
	return t.share(s.workers.count)
}

// within returns an error unless the space has a range.
func (s *Space) within(dir direction, off, n int64) error {
	if capacity := s.Capacity(); off < 0 || off > capacity || n > capacity-off {
		return fmt.Errorf("%s %d bytes at %d of %d: %w", dir, n, off, capacity, ErrRange)
	}
	return nil
}

// share does the units of the transfer, in this goroutine and in at most so many workers.
func (t *transfer) share(workers int) error {
	t.busy.Add(t.units())
	t.space.workers.call(t, min(workers, t.units()-1))
	t.work()
	t.busy.Wait()
	return t.err
}

// units is how many pieces or ranges the transfer has.
func (t *transfer) units() int {
	if t.stream != nil {
		return t.stream.ranges
	}
	return len(t.pieces)
}

// one does one unit.
func (t *transfer) one(i int) error {
	if t.stream != nil {
		return t.stream.one(t, i)
	}
	return t.run(t.pieces[i])
}

// cut returns the first piece of p. It ends at a segment's end or at a block boundary, so that no two pieces write into one block. A small rest stays in
// the piece.
func (s *Space) cut(dir direction, off int64, p []byte) piece {
	g := s.segment(off)
	n := min(int64(len(p)), g.start+s.opt.SegmentBytes-off)
	ahead := off + n - g.start
	most := s.opt.PieceBytes
	if dir == read {
		most = s.opt.ReadBytes
	}
	if n > most+most/4 {
		n = (off+most)&^(Block-1) - off
	}
	return piece{segment: g, off: off - g.start, ahead: ahead, p: p[:n:n]}
}

// work takes units until none is left. After the first error it only counts the remaining ones.
func (t *transfer) work() {
	for {
		i := t.next.Add(1) - 1
		if i >= int64(t.units()) {
			return
		}
		if t.wanted != nil && !t.wanted() {
			t.fail(ErrUnwanted)
		}
		if !t.failed.Load() {
			t.fail(t.one(int(i)))
		}
		t.busy.Done()
	}
}

func (t *transfer) fail(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.failed.Store(true)
}

// run transfers one piece. It turns a panic into an error, because the caller waits for the piece.
func (t *transfer) run(c piece) (err error) {
	defer safego.Guard("segment transfer", &err)
	err = t.onFile(c, func(file vfs.File) error { return t.runOn(file, c) })
	if err == nil && t.ended != nil {
		t.ended(c.at, int64(len(c.p)))
	}
	return err
}

// onFile calls f with the file of a piece.
func (t *transfer) onFile(c piece, f func(vfs.File) error) error {
	s, dir := t.space, t.dir
	file, err := c.segment.open(s, dir, c.off, int64(len(c.p)), c.ahead)
	if err == nil {
		err = f(file)
		c.segment.release(dir)
	}
	s.answers[dir].Inc()
	if dir == write && s.opt.Named {
		killpoint.Pass(killpoint.DataWritten)
	}
	if err != nil {
		return fmt.Errorf("%s %d bytes at %d (segment file %d, offset %d) in %s: %w",
			dir, len(c.p), c.segment.start+c.off, c.segment.number, c.off, s.opt.Dir, err)
	}
	return nil
}

func (t *transfer) runOn(file vfs.File, c piece) error {
	dir := t.dir
	if !file.Direct() {
		return straight(file, dir, c.p, c.off)
	}
	from, to := c.blocks(dir, int64(file.Align()))
	if err := straight(file, dir, c.p[from:to], c.off+from); err != nil {
		return err
	}
	if from == 0 && to == int64(len(c.p)) {
		return nil
	}
	buf := t.space.bounce.take()
	defer t.space.bounce.give(buf)
	if dir == write {
		return writeThrough(file, buf, c.p[to:], c.off+to)
	}
	if err := readThrough(file, buf, c.p[:from], c.off); err != nil {
		return err
	}
	return readThrough(file, buf, c.p[to:], c.off+to)
}

// blocks is the part of a piece that is transferred without a bounce buffer: whole blocks that lie in memory as in the file. A write has none unless it begins with a block,
// since the block that it begins inside of is written as a whole.
func (c *piece) blocks(dir direction, align int64) (from, to int64) {
	address, bytes := int64(uintptr(unsafe.Pointer(unsafe.SliceData(c.p)))), int64(len(c.p))
	first := -c.off & (align - 1)
	if (c.off^address)&(align-1) != 0 || first >= bytes || first > 0 && dir == write {
		return 0, 0
	}
	return first, max(first, (c.off+bytes)&^(align-1)-c.off)
}

func straight(file vfs.File, dir direction, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	call := file.ReadAt
	if dir == write {
		call = file.WriteAt
	}
	n, err := call(p, off)
	return whole(n, len(p), err)
}

// readThrough reads whole blocks into buf and copies the requested bytes.
func readThrough(file vfs.File, buf, p []byte, off int64) error {
	align := int64(file.Align())
	for len(p) > 0 {
		skip := off & (align - 1)
		n := min(int64(len(p)), int64(len(buf))-skip)
		blocks := buf[:(skip+n+align-1)&^(align-1)]
		if err := straight(file, read, blocks, off-skip); err != nil {
			return err
		}
		copy(p, blocks[skip:skip+n])
		p, off = p[n:], off+n
	}
	return nil
}

// writeThrough writes whole blocks from buf. It reads the block that p begins inside of first, and pads the block that p ends in with zeros.
func writeThrough(file vfs.File, buf, p []byte, off int64) error {
	align := int64(file.Align())
	for len(p) > 0 {
		skip := off & (align - 1)
		n := min(int64(len(p)), int64(len(buf))-skip)
		blocks := buf[:(skip+n+align-1)&^(align-1)]
		clear(blocks[max(0, int64(len(blocks))-align):])
		if skip > 0 {
			if err := straight(file, read, blocks[:align], off-skip); err != nil {
				return err
			}
		}
		copy(blocks[skip:], p[:n])
		if err := straight(file, write, blocks, off-skip); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}
