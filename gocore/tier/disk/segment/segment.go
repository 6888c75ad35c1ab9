// Package segment is the medium of the disk tier: a linear space of bytes over preallocated files.
//
// The first write into a segment creates its file. The file grows ahead of the writes in large steps, and is then overwritten again and again: overwriting
// costs a file system less than growing, and allocated blocks cannot run out of space. On a nearly full disk the files grow until only the reserved rest is
// free.
//
// Scratch files belong to the process and vanish with it. Named files stay, and their synced bytes survive a loss of power. Only the process that has the
// store open for writing writes to them: see package durable.
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
	"velocpy/gocore/base/vfs"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

var (
	// ErrNotDirectory: the path given for the segment files, or a parent of it, is not a directory.
	ErrNotDirectory = errors.New("not a directory")
	// ErrClosed: the space is closed.
	ErrClosed = errors.New("segment space is closed")
	// ErrUnwanted: the caller cancelled the write. Any part of it may be in the file.
	ErrUnwanted = errors.New("nobody wants what was being written any more")
	// ErrRange: the range is not inside the space.
	ErrRange = errors.New("range outside the segment space")
	// ErrUnwritten: the range is in a segment without a file.
	ErrUnwritten = errors.New("nothing was written here")
	// ErrSuspect: a sync of the file has failed, so it is unknown which of its writes are on the medium.
	ErrSuspect = errors.New("a sync of the file has failed")
)

// Defaults of Options. BenchmarkSustained compares them with raw I/O and with other values: pieces of 1 MiB cost a tenth, pieces of 4 and 8 MiB perform
// alike, and reads gain a little with up to eight workers.
const (
	DefaultSegmentBytes = 256 << 20
	DefaultParallel     = 8
	DefaultPieceBytes   = 8 << 20
)

// Block is the alignment that keeps two neighbouring ranges independent: see Write.
const Block = 4096

// Purpose is the name under which package memory accounts the aligned buffers.
const Purpose = "segment buffers"

// bounceBytes is the length of an aligned buffer. Copying through it costs a few percent of the disk's speed; all buffers together take 24 MiB by default.
const bounceBytes = 2 << 20

// Options describe a space. Zero values of SegmentBytes, Parallel, PieceBytes, ReadBytes and OpenFiles mean the defaults.
type Options struct {
	FS           vfs.FS
	Dir          string
	Capacity     int64     // bytes, rounded up to a multiple of Block
	SegmentBytes int64     // length of the segment in each file, except in a shorter last one; rounded up likewise
	Direct       bool      // bypass the page cache, where the file system allows it
	Parallel     int       // goroutines that take part in large transfers
	PieceBytes   int64     // length of the pieces that a large transfer is cut into
	ReadBytes    int64     // length of the pieces that a large Read is cut into; 0: PieceBytes, and 2 MiB at most
	Named        bool      // persistent files. Dir must exist, and FS must resolve names in it. SegmentBytes is then part of the stored format
	ReadOnly     bool      // for named files: writes fail, and no file is created
	Store        *[16]byte // store id in the heads of named files; nil: the files have no heads
	Index        int64     // bytes of the index after a head, an even number of blocks; 0: none
	Commits      int64     // bytes of the commit area after an index, whole blocks; 0: none
	OpenFiles    int       // approximate limit of simultaneously open named files

	// Occupied yields the ranges of named files that are in use when the space is opened. Without it, Close frees no room of files that existed before.
	Occupied iter.Seq2[int64, int64]
}

// Space is a range of bytes [0, Capacity) on disk. Its methods are safe for concurrent use.
type Space struct {
	opt     Options
	held    vfs.HeldDir     // of scratch files; nil: the caller holds the directory
	barred  atomic.Error    // why writes fail from now on; nil: they do not
	answers [2]atomic.Int64 // completed pieces, by direction; syncs count as writes

	mu     sync.RWMutex // held shared by every transfer, exclusively by Close
	closed bool

	segments
	growth
	shelf   shelf
	bounce  *bounce
	streams streamPool
	workers workers
}

// Answers counts the completed pieces of reads, and of writes and syncs, successful or not. If the counts stand still during I/O, the disk does not
// respond.
func (s *Space) Answers() (reads, writes int64) {
	return s.answers[read].Load(), s.answers[write].Load()
}

// Open creates the directory if needed, and verifies that it can hold files; it allocates no disk space yet.
func Open(opt Options) (*Space, error) {
	opt, err := opt.filled()
	if err != nil {
		return nil, err
	}
	s := &Space{opt: opt}
	s.segments.each, s.segments.byNumber = opt.SegmentBytes, map[int64]*segment{}
	s.segments.capacity.Store(opt.Capacity)
	if opt.Occupied != nil && !opt.ReadOnly {
		s.occupy(opt.Occupied)
	}
	s.growth.opt = &s.opt
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.workers.count = opt.Parallel
	return s, nil
}

// prepare opens the directory of scratch files, probes it, and allocates the buffers.
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

// probe finds the capabilities of files in the directory by means of a scratch file.
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
	if o.ReadBytes == 0 {
		o.ReadBytes = min(o.PieceBytes, readPieceBytes)
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = DefaultOpenFiles
	}
	const most = 1 << 62
	if o.FS == nil || o.Capacity < 0 || o.Capacity > most || o.SegmentBytes < 0 || o.SegmentBytes > most ||
		o.Parallel < 0 || o.Parallel > 1024 || o.PieceBytes < 0 || o.PieceBytes > most || o.ReadBytes < 0 || o.ReadBytes > most {
		return o, fmt.Errorf("segment space of %s in files of %s, pieces of %s, %d at once: %w",
			quantity.Exact(o.Capacity), quantity.Exact(o.SegmentBytes), quantity.Exact(o.PieceBytes), o.Parallel, unix.EINVAL)
	}
	o.Capacity, o.SegmentBytes, o.PieceBytes, o.ReadBytes = Blocks(o.Capacity), Blocks(o.SegmentBytes), Blocks(o.PieceBytes), Blocks(o.ReadBytes)
	return o, nil
}

// Blocks rounds up to whole blocks.
func Blocks(n int64) int64 { return (n + Block - 1) &^ (Block - 1) }

// MakeDir creates a directory and its parents, unless it exists.
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

// Write stores p at off. It returns when the disk (without direct I/O, the page cache) has the bytes, and p may be reused. The alignment of off, p and its
// length affects speed only: aligned parts go straight to the disk, the rest through a buffer.
//
// With direct I/O the disk takes whole blocks. Bytes before off in its block stay as they are. The bytes after the last one, up to the next multiple of
// Block, have undefined contents afterwards. So two checkpoints must not share a block, and two concurrent calls must not write into the same block.
//
// The first write into a segment creates its file. A write that reaches further than any before allocates room for itself and, as far as the disk has it,
// for later ones. ENOSPC comes from this allocation, and a failed write may be retried. After an error the range has undefined contents.
func (s *Space) Write(off int64, p []byte) error { return s.WriteWhile(nil, off, p) }

// WriteWhile is Write that can be cancelled: it ends between two pieces, with ErrUnwanted, once wanted returns false. Several goroutines call wanted.
func (s *Space) WriteWhile(wanted func() bool, off int64, p []byte) error {
	return s.transfer(&transfer{dir: write, wanted: wanted}, off, p)
}

// Read fills p with the bytes at off, exactly. It returns ErrUnwritten if a part is in a segment without a file, and io.ErrUnexpectedEOF if a part is
// beyond the end of a file. Other bytes that were never written have undefined contents.
func (s *Space) Read(off int64, p []byte) error { return s.ReadPieces(off, p, nil) }

// ReadPieces is Read, and calls arrived, unless nil, with each part of p that has been read. Calls come in any order, from several goroutines at once, and
// end before ReadPieces returns. Their time overlaps with the reads of other pieces.
func (s *Space) ReadPieces(off int64, p []byte, arrived func(from, n int64)) error {
	return s.transfer(&transfer{dir: read, ended: arrived}, off, p)
}

// Bar makes all further writes fail.
func (s *Space) Bar(why error) { s.barred.Store(why) }

// Direct tells whether I/O bypasses the page cache.
func (s *Space) Direct() bool { return s.opt.Direct }

// Close waits for the transfers in flight and releases all resources. Scratch files vanish. Of named files, the unwritten ends are returned to the file
// system. Later calls, including a second Close, return ErrClosed.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	s.workers.close()
	var errs []error
	for _, g := range s.byNumber {
		if err := g.giveBack(s); err != nil {
			logring.Add(logring.Warning, fmt.Sprintf("%s: the end of %s stays longer than it has to be: %v", s.opt.Dir, FileName(uint64(g.number)+1), err))
		}
		errs = append(errs, g.close())
	}
	errs = append(errs, s.bounce.close(), s.streams.close(), s.release())
	return errors.Join(errs...)
}

// bounce is a bounded pool of aligned buffers.
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

// take waits until a buffer is free. The wait ends because no goroutine holds two.
func (b *bounce) take() []byte    { return <-b.free }
func (b *bounce) give(buf []byte) { b.free <- buf }
func (b *bounce) close() error    { return b.mapping.Unmap() }

// whole returns nil if a read or write was complete, otherwise the error.
func whole(n, want int, err error) error {
	if n == want && (err == nil || err == io.EOF) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
