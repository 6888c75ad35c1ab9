// Package segment is the medium of the disk tier: a linear space of bytes over preallocated files.
//
// Each file is created when a write first touches it, grows ahead of the writes in large steps, and is
// then written again and again: rewriting costs a file system less than growing a file, and what was
// allocated cannot run out of space. A disk that has less is used up to what is to be left of it. Scratch files belong to the process and vanish with it; named ones stay, and what Sync has
// been told of is there after a loss of power. Nobody but their owner writes to them: see package durable.
package segment

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

var (
	// ErrNotDirectory: the path given for the segment files, or a parent of it, is something else.
	ErrNotDirectory = errors.New("not a directory")
	// ErrClosed: the space is closed.
	ErrClosed = errors.New("segment space is closed")
	// ErrUnwanted: nobody wanted what was being written any more. Any part of it may be there.
	ErrUnwanted = errors.New("nobody wants what was being written any more")
	// ErrRange: the range does not lie inside the space.
	ErrRange = errors.New("range outside the segment space")
	// ErrUnwritten: nothing was ever written near the bytes asked for.
	ErrUnwritten = errors.New("nothing was written here")
	// ErrSuspect: a sync of the file has failed, so that nobody knows what of it is on the medium.
	ErrSuspect = errors.New("a sync of the file has failed")
)

// Defaults of Options. BenchmarkSustained compares them with raw I/O and with other values: pieces of
// 1 MiB cost a tenth, pieces of 4 and 8 MiB are alike, reads gain a little up to eight helpers.
const (
	DefaultSegmentBytes = 256 << 20
	DefaultParallel     = 8
	DefaultPieceBytes   = 8 << 20
)

// Block is what the offsets of two neighbours must differ by: see Write.
const Block = 4096

// Purpose is the name under which the aligned buffers are accounted in package memory.
const Purpose = "segment buffers"

// bounceBytes is the length of an aligned buffer: large enough that copying through it costs a few
// percent of the disk's speed, small enough that all of them together (24 MiB by default) do not matter.
const bounceBytes = 2 << 20

// Options describe a space. Zero values of SegmentBytes, Parallel, PieceBytes and OpenFiles mean the defaults.
type Options struct {
	FS           vfs.FS
	Dir          string
	Capacity     int64     // bytes, rounded up to a multiple of Block
	SegmentBytes int64     // length of what each file but the last holds, where the disk has so much; rounded up likewise
	Direct       bool      // pass the page cache by, where the file system allows it
	Parallel     int       // goroutines that help with large transfers
	PieceBytes   int64     // length of the pieces that a large transfer is cut into
	Named        bool      // files that stay; Dir exists, and FS follows it. SegmentBytes is then part of what is stored
	ReadOnly     bool      // of named files: writes fail, and nothing is created
	Store        *[16]byte // identity of the store that the heads of named files carry; nil: the files have no heads
	Index        int64     // bytes of the index behind a head, an even number of blocks; 0: none
	Commits      int64     // bytes of the commit area behind an index, whole blocks; 0: none
	OpenFiles    int       // named files that are open at once, about

	// Occupied are the ranges of named files that count when the space is opened. Without it Close gives back nothing of files that were there before.
	Occupied iter.Seq2[int64, int64]
}

// Space is a range of bytes [0, Capacity) on disk. Its methods may be called from any goroutine.
type Space struct {
	opt     Options
	held    vfs.HeldDir  // of scratch files; nil: the caller holds the directory
	bytes   atomic.Int64 // capacity
	growth  sync.Mutex   // held while a file grows
	leave   atomic.Int64
	barred  atomic.Error // why nothing may be written any more
	queue   chan *transfer
	bounce  *bounce
	helpers sync.WaitGroup

	mu     sync.RWMutex // held shared by every transfer, exclusively by Close
	closed bool

	shelf    shelf
	files    sync.Mutex
	segments map[int64]*segment // by number; made when first asked for: a generous budget costs nothing until it is used
	answers  [2]atomic.Int64    // pieces that have ended, by direction; syncs are writes
}

// Answers is how many pieces of reads, and of writes and syncs, have ended, well or not: what stands still is a disk that does not answer.
func (s *Space) Answers() (reads, writes int64) {
	return s.answers[read].Load(), s.answers[write].Load()
}

// Open makes the directory if needed, and checks that it can hold files; it allocates nothing yet.
func Open(opt Options) (*Space, error) {
	opt, err := opt.filled()
	if err != nil {
		return nil, err
	}
	s := &Space{opt: opt, queue: make(chan *transfer, 16*opt.Parallel), segments: map[int64]*segment{}}
	s.bytes.Store(opt.Capacity)
	s.occupy()
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	for range opt.Parallel {
		s.helpers.Add(1)
		safego.Go("segment helper", s.help)
	}
	return s, nil
}

// occupy notes where what counts ends in each segment.
func (s *Space) occupy() {
	if s.opt.Occupied == nil || s.opt.ReadOnly {
		return
	}
	for from, end := range s.opt.Occupied {
		for number := from / s.opt.SegmentBytes; number*s.opt.SegmentBytes < end; number++ {
			g := s.numbered(number)
			g.had = max(g.had, min(end-g.start, s.opt.SegmentBytes))
		}
	}
}

// prepare holds the directory of scratch files open, tries it, and takes the buffers.
func (s *Space) prepare() (err error) {
	if !s.opt.Named {
		if err := MakeDir(s.opt.FS, s.opt.Dir); err != nil {
			return err
		}
		if s.held, err = s.opt.FS.HoldDir(s.opt.Dir); err != nil {
			return fmt.Errorf("segment directory %s: %w", s.opt.Dir, err)
		}
		s.opt.FS = s.held
	}
	if !s.opt.ReadOnly {
		if err := s.probe(); err != nil {
			return err
		}
	}
	s.bounce, err = newBounce(s.opt.Parallel + 4)
	return err
}

// release closes the directory of scratch files.
func (s *Space) release() error {
	if s.held == nil {
		return nil
	}
	return s.held.Close()
}

// probe learns from a scratch file what files in the directory can do.
func (s *Space) probe() error {
	probe, err := s.opt.FS.OpenScratch(s.opt.Dir, s.opt.Direct)
	if err != nil {
		return fmt.Errorf("segment directory %s: %w", s.opt.Dir, err)
	}
	align := probe.Align()
	s.opt.Direct = probe.Direct()
	if err := probe.Close(); err != nil {
		return fmt.Errorf("segment directory %s: %w", s.opt.Dir, err)
	}
	if align > Block {
		return fmt.Errorf("segment directory %s: its disk has blocks of %s, more than %s: %w", s.opt.Dir, quantity.Exact(int64(align)), quantity.Exact(Block), unix.EINVAL)
	}
	return nil
}

func (o Options) filled() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.Parallel == 0 {
		o.Parallel = DefaultParallel
	}
	if o.PieceBytes == 0 {
		o.PieceBytes = DefaultPieceBytes
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = DefaultOpenFiles
	}
	const most = 1 << 62
	if o.FS == nil || o.Capacity < 0 || o.Capacity > most || o.SegmentBytes < 0 || o.SegmentBytes > most ||
		o.Parallel < 0 || o.Parallel > 1024 || o.PieceBytes < 0 || o.PieceBytes > most {
		return o, fmt.Errorf("segment space of %s in files of %s, pieces of %s, %d at once: %w",
			quantity.Exact(o.Capacity), quantity.Exact(o.SegmentBytes), quantity.Exact(o.PieceBytes), o.Parallel, unix.EINVAL)
	}
	o.Capacity, o.SegmentBytes, o.PieceBytes = Blocks(o.Capacity), Blocks(o.SegmentBytes), Blocks(o.PieceBytes)
	return o, nil
}

// Blocks rounds up to whole blocks.
func Blocks(n int64) int64 { return (n + Block - 1) &^ (Block - 1) }

// MakeDir makes a directory, and its parents, unless it is there.
func MakeDir(fs vfs.FS, dir string) error {
	info, err := fs.Stat(dir)
	if err == nil && !info.Dir || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%s: %w", dir, ErrNotDirectory)
	}
	if err == nil {
		return nil
	}
	err = fs.MkdirAll(dir)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w: %w", dir, ErrNotDirectory, err)
	}
	if err != nil {
		return fmt.Errorf("segment directory %s: %w", dir, err)
	}
	return nil
}

// Write stores p at off and returns when the disk (or, without direct I/O, the page cache) has it
// and p is free again. Alignment of off, p and its length affects speed only: aligned ones go
// straight to the disk, the rest through a buffer.
//
// With direct I/O the disk takes whole blocks. Bytes before off in its block stay as they are; the
// bytes behind the last one, up to the next multiple of Block, have no defined contents afterwards.
// So two checkpoints must not share a block, and what shares one must not be written by two calls
// at once.
//
// The first write into a segment creates its file, and a write that reaches further than any before gives it room, for itself and for later ones as far as the
// disk has it: ENOSPC comes from there, and what failed may be tried again. After an error the range has no defined contents.
func (s *Space) Write(off int64, p []byte) error { return s.WriteWhile(nil, off, p) }

// WriteWhile is Write that ends between two pieces, with ErrUnwanted, when wanted, which several goroutines call, turns false.
func (s *Space) WriteWhile(wanted func() bool, off int64, p []byte) error {
	return s.transfer(&transfer{dir: write, wanted: wanted}, off, p)
}

// Read fills p with the bytes at off, exactly. It returns ErrUnwritten when a part lies in a segment
// that no write has touched, and io.ErrUnexpectedEOF when it lies where a file has no room yet; other bytes that were never written have no defined contents.
func (s *Space) Read(off int64, p []byte) error { return s.ReadPieces(off, p, nil) }

// ReadPieces is Read, and calls arrived, if there is one, with each part of p that has come: in any order, by several goroutines at once, before it returns. What arrived does
// takes the time that other pieces are read in.
func (s *Space) ReadPieces(off int64, p []byte, arrived func(from, n int64)) error {
	return s.transfer(&transfer{dir: read, ended: arrived}, off, p)
}

// Release says that the contents of a range are not needed any more. It never blocks, and costs
// nothing: the space stays allocated, for the next checkpoint that is put there.
func (s *Space) Release(off, n int64) {}

// Bar makes all further writes fail.
func (s *Space) Bar(why error) { s.barred.Store(why) }

// Capacity returns the number of bytes of the space.
func (s *Space) Capacity() int64 { return s.bytes.Load() }

// Grow makes the space larger; one that is larger already stays so.
func (s *Space) Grow(capacity int64) {
	s.files.Lock()
	defer s.files.Unlock()
	s.bytes.Store(max(s.bytes.Load(), Blocks(capacity)))
}

// Direct says whether I/O passes the page cache by.
func (s *Space) Direct() bool { return s.opt.Direct }

// Close waits for the transfers in flight and gives everything back; scratch files vanish, and of named ones the ends go back that nothing was written to.
// Later calls, a second Close among them, return ErrClosed.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	close(s.queue)
	s.helpers.Wait()
	var errs []error
	for _, g := range s.segments {
		if err := g.giveBack(s); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("%s: the end of %s stays longer than it has to be: %v", s.opt.Dir, FileName(uint64(g.number)+1), err))
		}
		errs = append(errs, g.close())
	}
	errs = append(errs, s.bounce.close(), s.release())
	return errors.Join(errs...)
}

// bounce is a bounded set of aligned buffers.
type bounce struct {
	mapping *memory.Mapping
	free    chan []byte
}

func newBounce(n int) (*bounce, error) {
	m, err := memory.Map(Purpose, int64(n)*bounceBytes)
	if err != nil {
		return nil, err
	}
	b := &bounce{mapping: m, free: make(chan []byte, n)}
	for i := range int64(n) {
		b.free <- m.Bytes(i*bounceBytes, bounceBytes)
	}
	return b, nil
}

// take waits until a buffer is free. Nobody holds two, so the wait ends.
func (b *bounce) take() []byte    { return <-b.free }
func (b *bounce) give(buf []byte) { b.free <- buf }
func (b *bounce) close() error    { return b.mapping.Unmap() }

// whole turns a file's answer about a transfer into an error or nil.
func whole(n, want int, err error) error {
	if n == want && (err == nil || err == io.EOF) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
